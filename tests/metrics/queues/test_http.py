"""Queues that answer over HTTP: what counts as an answer, and what is said where there is none."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from springtide.apis.scheduled.queue import QueueSpec
from springtide.apis.springtide.grants import Reach
from springtide.metrics.queues import QueueError, QueueLength, Target
from springtide.metrics.queues.http import HttpQueues

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
SECRET = "hunter2"


def _answering(body: bytes | str, status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        text = body.encode() if isinstance(body, str) else body
        return web.Response(body=text, status=status, headers=headers)

    return handle


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    try:
        while True:
            await response.write(b" " * 65_536)
    except ConnectionError:
        return response


async def _silent(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(5)
    return web.Response(text="1")


async def _broken(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response(text="1")


def _ask(handler: Handler, pointer: str | None = None, *, timeout: float = 5.0) -> QueueLength | QueueError:
    """Ask a server on loopback that answers like this."""

    async def main() -> QueueLength | QueueError:
        app = web.Application()
        app.router.add_get("/{path:.*}", handler)
        async with TestServer(app, host="127.0.0.1") as server:
            queue = QueueSpec(type="HTTP", id=str(server.make_url("/stats?x=1")), pointer=pointer)
            try:
                return await HttpQueues(timeout=timeout, largest=100_000).read(queue, namespace="default")
            except QueueError as failure:
                return failure

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("body", "pointer", "length"),
    [
        pytest.param("41", None, 41, id="a-number"),
        pytest.param('{"a": {"b": [1, 7]}}', "/a/b/1", 7, id="at-a-pointer"),
        pytest.param("0", "", 0, id="an-empty-queue"),
        pytest.param("2.0", None, 2, id="a-whole-float"),
        pytest.param("2.1", None, 3, id="a-part-of-a-message-counts-as-one"),
        pytest.param("1e3", None, 1000, id="an-exponent"),
        pytest.param("9223372036854775807", None, 2**63 - 1, id="the-longest"),
        pytest.param(' {"n" : 3}\n', "/n", 3, id="white-space"),
    ],
)
def test_answers(body: str, pointer: str | None, length: int) -> None:
    """The number that the pointer names is the length."""
    assert _ask(_answering(body), pointer) == QueueLength(length)


def test_an_answer_is_asked_for_as_it_is() -> None:
    """JSON, and not packed: nothing is unpacked that may be huge, so a server that packs must be told not to."""
    asked: list[tuple[str | None, ...]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked.append(tuple(request.headers.get(name) for name in ("Accept", "Accept-Encoding")))
        return web.Response(text="1")

    _ask(handle)

    assert asked == [("application/json", "identity")]


@pytest.mark.parametrize(
    ("handler", "pointer", "reason", "retryable", "words"),
    [
        pytest.param(_answering("-1"), None, "NotACount", False, "gives a number below 0", id="less-than-none"),
        pytest.param(_answering("9223372036854775808"), None, "NotACount", False, "more messages than", id="too-many"),
        pytest.param(_answering("1e300"), None, "NotACount", False, "more messages than", id="far-too-many"),
        pytest.param(_answering("NaN"), None, "UnexpectedAnswer", False, "is not JSON", id="no-number-of-json"),
        pytest.param(_answering('"7"'), None, "NotACount", False, "no number in the answer", id="a-text"),
        pytest.param(_answering("true"), None, "NotACount", False, "no number in the answer", id="a-truth"),
        pytest.param(_answering('{"a": null}'), "/a", "NotACount", False, "no number at /a", id="nothing"),
        pytest.param(_answering('{"a": 1}'), "/b", "UnexpectedAnswer", False, 'no member "b"', id="nowhere"),
        pytest.param(_answering(f"<html>{SECRET}"), None, "UnexpectedAnswer", False, "is not JSON", id="a-page"),
        pytest.param(_answering(b"\xff\xfe"), None, "UnexpectedAnswer", False, "is not JSON", id="no-text"),
        pytest.param(_answering("[" * 90_000), None, "UnexpectedAnswer", False, "is not JSON", id="deep"),
        pytest.param(_answering(""), None, "UnexpectedAnswer", False, "is not JSON", id="empty"),
        pytest.param(_answering(SECRET, 404), None, "UnexpectedAnswer", False, "status 404", id="not-found"),
        pytest.param(_answering(SECRET, 401), None, "UnexpectedAnswer", False, "status 401", id="unauthorized"),
        pytest.param(_answering(SECRET, 503), None, "UnexpectedAnswer", True, "status 503", id="unavailable"),
        pytest.param(_answering(SECRET, 429), None, "UnexpectedAnswer", True, "status 429", id="too-many-requests"),
        pytest.param(
            _answering("", 302, {"Location": "http://169.254.169.254/"}),
            None,
            "UnexpectedAnswer",
            False,
            "redirects are not followed",
            id="a-redirect",
        ),
        pytest.param(
            _answering(gzip.compress(b"7"), 200, {"Content-Encoding": "gzip"}),
            None,
            "UnexpectedAnswer",
            False,
            "is not JSON",
            id="nothing-is-unpacked-that-may-be-huge",
        ),
        pytest.param(_endless, None, "UnexpectedAnswer", False, "larger than 100000 bytes", id="endless"),
        pytest.param(_broken, None, "NoAnswer", True, "the connection broke", id="cut-off"),
    ],
)
def test_what_is_no_answer(handler: Handler, pointer: str | None, reason: str, retryable: bool, words: str) -> None:
    """The message names the host and what was expected, and nothing that the server said."""
    failure = _ask(handler, pointer)

    assert isinstance(failure, QueueError)
    assert (failure.reason, failure.retryable) == (reason, retryable)
    assert words in str(failure)
    assert "127.0.0.1" in str(failure)
    assert SECRET not in str(failure)


def test_who_does_not_answer_in_time() -> None:
    """It may well answer later."""
    failure = _ask(_silent, timeout=0.1)

    assert isinstance(failure, QueueError)
    assert (failure.reason, failure.retryable) == ("NoAnswer", True)
    assert str(failure) == "127.0.0.1 has not answered within 0.1 seconds"


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://127.0.0.1:1/", id="nobody-listens"),
        pytest.param("https://user:hunter2@127.0.0.1:1/", id="with-credentials"),
    ],
)
def test_who_cannot_be_reached(url: str) -> None:
    """The host is named, and no credentials are."""
    queue = QueueSpec(type="HTTP", id=url)

    with pytest.raises(QueueError, match=r"127\.0\.0\.1 cannot be asked") as caught:
        asyncio.run(HttpQueues(timeout=2).read(queue, namespace="default"))

    assert caught.value.retryable
    assert SECRET not in str(caught.value)


def test_a_grant_must_allow_the_address() -> None:
    """The whole of it."""
    url = "https://example.com/queues/a"

    assert HttpQueues().target(QueueSpec(type="HTTP", id=url)) == Target(Reach.URL, url)
