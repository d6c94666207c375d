"""The webhook server of one process: `POST /validate`, `/default` and `/convert`, and `GET /healthz`.

Every replica serves it. A handler is a pure function that runs in a thread with a timeout. Larger reviews are decoded
and handled in a child process, one at a time and within limits, so that they neither take the memory of the controllers
nor hold their event loop. An internal failure must not block writes to the cluster, so on errors and timeouts, and if a
review is too large when decoded, the object is allowed with a warning; the rules of the CRDs and the conditions of
controllers still apply.

`serve_webhooks` runs the server together with its certificates and their registration. API servers can be made to
authenticate by client certificates when they validate and default objects, but not when they convert them, so with
verification of clients there is no conversion.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVarTuple

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from springtide.apis.kinds import ValidationContext
from springtide.cluster.admission.configurations import UrlTarget, WebhookTarget
from springtide.cluster.admission.handlers import convert_all, default_object, validate
from springtide.cluster.admission.registration import WebhookRegistration
from springtide.cluster.admission.reviews import (
    MOST_BYTES,
    MOST_DECODED_BYTES,
    AdmissionResponse,
    MalformedReview,
    conversion_failure,
    decoded_bytes,
    uid_of,
)
from springtide.cluster.certificates.clients import ClientVerification, ClientVerifyingTls, VerifiedClients
from springtide.cluster.certificates.issuance import make_provisional
from springtide.cluster.certificates.manager import ROUND_SECONDS, CertificateManager, wall_time
from springtide.cluster.certificates.rotation import CertificateLifetimes
from springtide.cluster.compute import Compute, ComputeLimitExceeded, LiveCompute
from springtide.cluster.serving import LOOPBACK, RunningServer, TlsIdentity, serving
from springtide.cluster.transport import Transport

REVIEW_TIMEOUT = 4.0
"""Seconds for handling a review; the API server waits longer, so it still gets a response."""
ARRIVAL_TIMEOUT = 10.0
"""Seconds for receiving the body of a review."""
MOST_AT_ONCE = 16 * MOST_BYTES
"""Bytes of all reviews in memory at a time. Clients are not authenticated, and the controllers need memory, too."""
SMALL_BYTES = 32 * 1024
"""The largest review that is handled in a thread: two versions of an object with some 10 kB of spec."""
_EXPECTED_COST = 0.005
log = logging.getLogger(__name__)
_THREADS = 2
Args = TypeVarTuple("Args")


@dataclass(frozen=True, slots=True)
class Webhooks:
    """A running webhook server."""

    serving: RunningServer
    target: WebhookTarget
    certificates: CertificateManager

    def ready(self) -> bool:
        """Return whether the CA bundle of the served certificate is published."""
        return self.certificates.ready.is_set()

    async def until_ready(self) -> None:
        """Wait until `ready`."""
        await self.certificates.ready.wait()


@asynccontextmanager
async def serve_webhooks(
    transport: Transport,
    *,
    namespace: str,
    target: WebhookTarget | None = None,
    host: str = LOOPBACK,
    port: int = 0,
    now: Callable[[], int] = wall_time,
    default_zone: str = "UTC",
    create: bool = False,
    convert: bool = False,
    failure_policy: str = "Fail",
    terms: CertificateLifetimes | None = None,
    round_seconds: float = ROUND_SECONDS,
    clients: ClientVerification | None = None,
) -> AsyncIterator[Webhooks]:
    """Serve the webhooks within the block.

    `target` is where API servers reach them; None: the address of the server, for an API server on the same machine.
    `now` returns the instant at which objects are validated; certificates always use wall time. `create` creates the
    webhook configurations. `convert` adds the conversion webhook to CRDs of Springtide that have none; `create`
    implies it. With `clients`, only these can connect, and nothing is converted. The block starts at once; `ready` is
    false until certificates exist and their CA bundle is published.
    """
    compute = LiveCompute(_THREADS, seconds=REVIEW_TIMEOUT)
    app: ASGIApp = admission_app(compute, now, default_zone=default_zone)
    provisional = make_provisional(host, now=wall_time())
    if clients is None:
        identity = TlsIdentity(provisional)
    else:
        identity = ClientVerifyingTls(provisional, required=True, authorities=clients.authorities)
        app = VerifiedClients(app, clients.names, wall_time)
    try:
        async with serving(app, host=host, port=port, identity=identity) as served:
            reached = target or UrlTarget(served.url)
            registration = WebhookRegistration(
                transport,
                reached,
                create=create,
                convert=convert,
                failure_policy=failure_policy,
                verifies_clients=clients is not None,
            )
            certificates = CertificateManager(
                transport,
                namespace=namespace,
                names=reached.names,
                publisher=registration,
                terms=terms,
                round_seconds=round_seconds,
            )
            task = asyncio.create_task(certificates.run(identity), name="certificates of the webhooks")
            try:
                yield Webhooks(served, reached, certificates)
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
    finally:
        compute.close()


def admission_app(
    compute: Compute, now: Callable[[], int], *, default_zone: str = "UTC", timeout: float = REVIEW_TIMEOUT
) -> Starlette:
    """Make the application; `now` returns the instant at which objects are validated."""

    def context() -> ValidationContext:
        at = now()
        # Whole minutes, so that repeated requests get the same messages.
        return ValidationContext(now=at - at % 60, default_zone=default_zone)

    runner = _ReviewRunner(compute, timeout)

    async def to_validate(request: Request) -> Response:
        validation_context = context()
        return await runner.answer(request, _allow_with_warning, validate, validation_context)

    async def to_default(request: Request) -> Response:
        return await runner.answer(request, _allow_with_warning, default_object)

    async def to_convert(request: Request) -> Response:
        return await runner.answer(request, conversion_failure, convert_all)

    return Starlette(
        routes=[
            Route("/validate", to_validate, methods=["POST"]),
            Route("/default", to_default, methods=["POST"]),
            Route("/convert", to_convert, methods=["POST"]),
            Route("/healthz", _healthz, methods=["GET"]),
        ]
    )


async def _healthz(request: Request) -> Response:  # noqa: ARG001
    return PlainTextResponse("ok")


def _allow_with_warning(uid: str, why: str) -> bytes:
    return AdmissionResponse(warnings=(f"springtide did not check this object: {why}",)).encode(uid)


class _Rejected(Exception):
    """A review is not accepted."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.answer = PlainTextResponse(message, code)


class _ReviewRunner:
    """Receives reviews within limits, and runs their handlers."""

    def __init__(self, compute: Compute, timeout: float) -> None:
        self._compute = compute
        self._timeout = timeout
        self._held = 0

    async def answer(
        self,
        request: Request,
        fallback: Callable[[str, str], bytes],
        work: Callable[[bytes, *Args], bytes],
        *args: *Args,
    ) -> Response:
        """Handle one review; `fallback` makes the response if the handler fails, or needs too much."""
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(ARRIVAL_TIMEOUT):
                decoded = await self._receive(request, parts)
            return await self._handle(b"".join(parts), decoded, request.url.path, fallback, work, *args)
        except TimeoutError:
            return PlainTextResponse(f"the review has not arrived within {ARRIVAL_TIMEOUT:.0f} s", 408)
        except ClientDisconnect:
            return PlainTextResponse("the client has disconnected", 400)
        except _Rejected as refusal:
            return refusal.answer
        finally:
            self._held -= sum(map(len, parts))

    async def _receive(self, request: Request, parts: list[bytes]) -> int:
        """Read the body, unless it is too large or too much is in memory already; return its size when decoded."""
        size = decoded = 0
        async for part in request.stream():
            size += len(part)
            if size > MOST_BYTES:
                raise _Rejected(413, f"a review must not be larger than {MOST_BYTES} bytes")
            if self._held + len(part) > MOST_AT_ONCE:
                raise _Rejected(429, f"reviews of {self._held} bytes are being handled: try again")
            parts.append(part)
            self._held += len(part)
            # Part by part: the whole body at once would hold the event loop for longer.
            decoded += decoded_bytes(part)
        return decoded

    async def _handle(
        self,
        body: bytes,
        decoded: int,
        path: str,
        fallback: Callable[[str, str], bytes],
        work: Callable[[bytes, *Args], bytes],
        *args: *Args,
    ) -> Response:
        try:
            if decoded > MOST_DECODED_BYTES:
                raise ComputeLimitExceeded(
                    f"it takes about {decoded >> 20} MiB when decoded, and the most is {MOST_DECODED_BYTES >> 20} MiB:"
                    " shorten its lists"
                )
            run = self._compute.run if len(body) <= SMALL_BYTES else self._compute.run_limited
            async with asyncio.timeout(self._timeout):
                answer = await run(work, body, *args, cost=_EXPECTED_COST)
        except MalformedReview as failure:
            return PlainTextResponse(str(failure), 400)
        except TimeoutError:
            log.warning("a review of %d bytes at %s took too long", len(body), path)
            answer = fallback(await self._uid_of(body), f"it took more than {self._timeout:g} s")
        except ComputeLimitExceeded as limit:
            log.warning("a review of %d bytes at %s was not handled: %s", len(body), path, limit)
            answer = fallback(await self._uid_of(body), str(limit))
        except Exception:
            log.exception("a review of %d bytes at %s failed", len(body), path)
            answer = fallback(await self._uid_of(body), "unexpected error, which its log describes")
        return Response(answer, media_type="application/json")

    async def _uid_of(self, body: bytes) -> str:
        # The threads of reviews may all be busy.
        return await asyncio.to_thread(uid_of, body)
