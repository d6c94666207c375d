"""The webhooks as an ASGI application: `POST /validate`, `/default` and `/convert`, and `GET /healthz`.

Reviews are answered on every replica and beside whatever else the process does: the work on one is a pure function
that runs in a thread, and has a time after which the answer no longer depends on it. A webhook must never be the
reason why nothing can be written. So what fails here for reasons of our own lets an object pass with a warning; the
rules of the CRDs and the conditions that controllers write still hold.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from springtide.apis.fields import Context
from springtide.cluster.admission.answers import Verdict, not_converted
from springtide.cluster.admission.converting import convert_all
from springtide.cluster.admission.defaulting import default
from springtide.cluster.admission.reviews import MOST_BYTES, Malformed, uid_of
from springtide.cluster.admission.validating import validate
from springtide.cluster.compute import Compute

PATIENCE = 4.0
"""Seconds that the work on a review may take; the API server waits longer, and so gets an answer."""
ARRIVAL = 10.0
"""Seconds in which a review must have arrived."""
MOST_AT_ONCE = 16 * MOST_BYTES
"""How many bytes of reviews are held at a time. Who sends them is not known, and memory is for the controllers, too."""
_EXPECTED_COST = 0.005

log = logging.getLogger(__name__)


def admission_app(
    compute: Compute, now: Callable[[], int], *, default_zone: str = "UTC", patience: float = PATIENCE
) -> Starlette:
    """Make the application; `now` gives the instant that objects are judged at."""

    def context() -> Context:
        at = now()
        # Whole minutes, so that the same object gets the same messages for a while.
        return Context(now=at - at % 60, default_zone=default_zone)

    desk = _Desk(compute, patience)

    async def to_validate(request: Request) -> Response:
        judged_at = context()
        return await desk.answer(request, lambda body: validate(body, judged_at), _pass)

    async def to_default(request: Request) -> Response:
        return await desk.answer(request, default, _pass)

    async def to_convert(request: Request) -> Response:
        return await desk.answer(request, convert_all, not_converted)

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


def _pass(uid: str, why: str) -> bytes:
    return Verdict(warnings=(f"springtide has not looked at this object: {why}",)).written(uid)


class _NoRoom(Exception):
    """A review is not taken in; the answer says why."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(code, words)
        self.answer = PlainTextResponse(words, code)


class _Desk:
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
            async with asyncio.timeout(ARRIVAL):
                await self._take_in(request, parts)
            return await self._worked_on(b"".join(parts), request.url.path, work, excuse)
        except TimeoutError:
            return PlainTextResponse(f"the review has not arrived within {ARRIVAL:.0f} s", 408)
        except ClientDisconnect:
            return PlainTextResponse("nobody waits for the answer", 400)
        except _NoRoom as refusal:
            return refusal.answer
        finally:
            self._held -= sum(map(len, parts))

    async def _take_in(self, request: Request, parts: list[bytes]) -> None:
        """Read what is sent, unless it is too much."""
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > MOST_BYTES:
                raise _NoRoom(413, f"a review must not be larger than {MOST_BYTES} bytes")
            if self._held + len(part) > MOST_AT_ONCE:
                raise _NoRoom(429, f"reviews of {self._held} bytes are being worked on: try again")
            parts.append(part)
            self._held += len(part)

    async def _worked_on(
        self, body: bytes, path: str, work: Callable[[bytes], bytes], excuse: Callable[[str, str], bytes]
    ) -> Response:
        try:
            async with asyncio.timeout(self._patience):
                answer = await self._compute.run(work, body, cost=_EXPECTED_COST)
        except Malformed as failure:
            return PlainTextResponse(str(failure), 400)
        except TimeoutError:
            log.warning("a review of %d bytes at %s took too long", len(body), path)
            answer = excuse(uid_of(body), f"it took more than {self._patience:g} s")
        except Exception:
            log.exception("a review of %d bytes at %s failed", len(body), path)
            answer = excuse(uid_of(body), "something went wrong, and its log says what")
        return Response(answer, media_type="application/json")
