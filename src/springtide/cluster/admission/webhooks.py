"""The webhooks as an ASGI application: `POST /validate`, `/default` and `/convert`, and `GET /healthz`.

Reviews are answered on every replica and beside whatever else the process does: the work on one is a pure function
that runs in a thread, and has a time after which the answer no longer depends on it. A webhook must never be the
reason why nothing can be written. So what fails here for reasons of our own lets an object pass with a warning; the
rules of the CRDs and the conditions that controllers write still hold.

The webhooks of one process, from certificates to answers, for as long as a block of code lasts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from springtide.apis.kinds import ValidationContext
from springtide.cluster.admission.configurations import UrlTarget, WebhookTarget
from springtide.cluster.admission.handlers import convert_all, default_object, validate
from springtide.cluster.admission.registration import WebhookRegistration
from springtide.cluster.admission.reviews import (
    MOST_BYTES,
    AdmissionResponse,
    MalformedReview,
    conversion_failure,
    uid_of,
)
from springtide.cluster.certificates.issuance import CertificatePair, make_authority, make_serving
from springtide.cluster.certificates.manager import ROUND_SECONDS, CertificateManager, wall_time
from springtide.cluster.certificates.rotation import CertificateLifetimes
from springtide.cluster.compute import Compute, ThreadCompute
from springtide.cluster.serving import LOOPBACK, RunningServer, TlsIdentity, serving
from springtide.cluster.transport import Transport

REVIEW_TIMEOUT = 4.0
"""Seconds that the work on a review may take; the API server waits longer, and so gets an answer."""
ARRIVAL_TIMEOUT = 10.0
"""Seconds in which a review must have arrived."""
MOST_AT_ONCE = 16 * MOST_BYTES
"""How many bytes of reviews are held at a time. Who sends them is not known, and memory is for the controllers, too."""
_EXPECTED_COST = 0.005

log = logging.getLogger(__name__)


def admission_app(
    compute: Compute, now: Callable[[], int], *, default_zone: str = "UTC", patience: float = REVIEW_TIMEOUT
) -> Starlette:
    """Make the application; `now` gives the instant that objects are judged at."""

    def context() -> ValidationContext:
        at = now()
        # Whole minutes, so that the same object gets the same messages for a while.
        return ValidationContext(now=at - at % 60, default_zone=default_zone)

    desk = _ReviewRunner(compute, patience)

    async def to_validate(request: Request) -> Response:
        judged_at = context()
        return await desk.answer(request, lambda body: validate(body, judged_at), _allow_with_warning)

    async def to_default(request: Request) -> Response:
        return await desk.answer(request, default_object, _allow_with_warning)

    async def to_convert(request: Request) -> Response:
        return await desk.answer(request, convert_all, conversion_failure)

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
    return AdmissionResponse(warnings=(f"springtide has not looked at this object: {why}",)).written(uid)


class _Rejected(Exception):
    """A review is not taken in; the answer says why."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(code, words)
        self.answer = PlainTextResponse(words, code)


class _ReviewRunner:
    """Takes reviews in, has them worked on, and answers them in time."""

    def __init__(self, compute: Compute, patience: float) -> None:
        self._compute = compute
        self._patience = patience
        self._held = 0

    async def answer(
        self, request: Request, work: Callable[[bytes], bytes], excuse: Callable[[str, str], bytes]
    ) -> Response:
        """Answer one review; `excuse` words the answer where the work comes to none."""
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(ARRIVAL_TIMEOUT):
                await self._take_in(request, parts)
            return await self._worked_on(b"".join(parts), request.url.path, work, excuse)
        except TimeoutError:
            return PlainTextResponse(f"the review has not arrived within {ARRIVAL_TIMEOUT:.0f} s", 408)
        except ClientDisconnect:
            return PlainTextResponse("nobody waits for the answer", 400)
        except _Rejected as refusal:
            return refusal.answer
        finally:
            self._held -= sum(map(len, parts))

    async def _take_in(self, request: Request, parts: list[bytes]) -> None:
        """Read what is sent, unless it is too much."""
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > MOST_BYTES:
                raise _Rejected(413, f"a review must not be larger than {MOST_BYTES} bytes")
            if self._held + len(part) > MOST_AT_ONCE:
                raise _Rejected(429, f"reviews of {self._held} bytes are being worked on: try again")
            parts.append(part)
            self._held += len(part)

    async def _worked_on(
        self, body: bytes, path: str, work: Callable[[bytes], bytes], excuse: Callable[[str, str], bytes]
    ) -> Response:
        try:
            async with asyncio.timeout(self._patience):
                answer = await self._compute.run(work, body, cost=_EXPECTED_COST)
        except MalformedReview as failure:
            return PlainTextResponse(str(failure), 400)
        except TimeoutError:
            log.warning("a review of %d bytes at %s took too long", len(body), path)
            answer = excuse(uid_of(body), f"it took more than {self._patience:g} s")
        except Exception:
            log.exception("a review of %d bytes at %s failed", len(body), path)
            answer = excuse(uid_of(body), "something went wrong, and its log says what")
        return Response(answer, media_type="application/json")


_THREADS = 2
_PROVISIONAL_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Webhooks that are up."""

    serving: RunningServer
    target: WebhookTarget
    keeper: CertificateManager

    def ready(self) -> bool:
        """Tell whether API servers are told where we are and whom to trust."""
        return self.keeper.ready.is_set()

    async def until_ready(self) -> None:
        """Wait until that is so."""
        await self.keeper.ready.wait()


@asynccontextmanager
async def webhooks(
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
) -> AsyncIterator[Webhooks]:
    """Serve the webhooks within the block.

    `target` is how API servers reach them; None: at the address that is served, which suits an API server on the same
    machine. `now` is the instant that objects are judged at; certificates live by the world's clock in any case.
    `create` registers the webhooks where nobody has installed them. `convert` serves all versions of the kinds that we
    convert, where the CRDs are ours and nobody else converts them; `create` means that too. Nothing is waited for:
    until certificates are there and published, `ready` says no.
    """
    compute = ThreadCompute(_THREADS)
    app = admission_app(compute, now, default_zone=default_zone)
    identity = TlsIdentity(_provisional(host))
    try:
        async with serving(app, host=host, port=port, identity=identity) as served:
            reached = target or UrlTarget(served.url)
            registration = WebhookRegistration(
                transport, reached, create=create, convert=convert, failure_policy=failure_policy
            )
            keeper = CertificateManager(
                transport,
                namespace=namespace,
                names=reached.names,
                publisher=registration,
                terms=terms,
                round_seconds=round_seconds,
            )
            keeping = asyncio.create_task(keeper.run(identity), name="certificates of the webhooks")
            try:
                yield Webhooks(served, reached, keeper)
            finally:
                keeping.cancel()
                with suppress(asyncio.CancelledError):
                    await keeping
    finally:
        compute.close()


def _provisional(host: str) -> CertificatePair:
    """Make something to show until the real certificate is there; nobody trusts it."""
    now = wall_time()
    authority = make_authority("springtide-provisional", now=now, seconds=_PROVISIONAL_SECONDS)
    return make_serving(authority, (host,), now=now, seconds=_PROVISIONAL_SECONDS)
