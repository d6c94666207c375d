"""Queue readers: JSON pointers, HTTP endpoints, and the delegation by type.

Queues that answer over HTTP: what counts as an answer, and what is said where there is none.

All kinds of queues behind one port, and those whose length is a metric.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from fractions import Fraction
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from springtide.apis.scheduled.producer import QueueSpec
from springtide.apis.springtide.grants import GrantedResource
from springtide.metrics.queues import DelegatingQueueReader, QueueError, QueueLength, QueueReader, QueueTarget
from springtide.metrics.queues.readers import HttpQueueReader, PointerError, resolve
from springtide.metrics.reading.port import MetricReader, OwnSeries, QueryError

RFC = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
    "~1": 9,
}


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        pytest.param("", RFC, id="the-whole-document"),
        pytest.param("/foo", ["bar", "baz"], id="a-member"),
        pytest.param("/foo/0", "bar", id="an-entry"),
        pytest.param("/", 0, id="the-empty-name"),
        pytest.param("/a~1b", 1, id="a-slash"),
        pytest.param("/c%d", 2, id="a-percent-sign"),
        pytest.param("/e^f", 3, id="a-caret"),
        pytest.param("/g|h", 4, id="a-bar"),
        pytest.param("/i\\j", 5, id="a-backslash"),
        pytest.param('/k"l', 6, id="a-quote"),
        pytest.param("/ ", 7, id="a-space"),
        pytest.param("/m~0n", 8, id="a-tilde"),
        pytest.param("/~01", 9, id="a-tilde-that-is-not-half-of-a-slash"),
    ],
)
def test_pointers_of_the_rfc(pointer: str, expected: Any) -> None:
    """The examples of RFC 6901."""
    assert resolve(RFC, pointer) == expected


@pytest.mark.parametrize(
    ("pointer", "words"),
    [
        pytest.param("/bar", 'there is no member "bar" at the top', id="no-such-member"),
        pytest.param("/foo/2", 'there is no entry "2" in the list at /foo', id="beyond-the-end"),
        pytest.param("/foo/-", 'there is no entry "-" in the list at /foo', id="the-entry-after-the-last"),
        pytest.param("/foo/01", 'there is no entry "01" in the list at /foo', id="a-leading-zero"),
        pytest.param("/foo/0/x", 'there is nothing below /foo/0 that could have a member "x"', id="below-a-text"),
    ],
)
def test_a_pointer_to_nothing_is_an_error(pointer: str, words: str) -> None:
    """The message says which part is missing, and quotes no values."""
    with pytest.raises(PointerError, match="^" + words.replace("/", "\\/") + "$"):
        resolve(RFC, pointer)


@pytest.mark.parametrize("index", ["9" * 30, "9" * 5000], ids=["long", "longer-than-numbers-may-be"])
def test_invalid_indices_are_errors(index: str) -> None:
    """Whatever the index is, the pointer does not exist."""
    with pytest.raises(PointerError, match="there is no entry"):
        resolve([1], f"/{index}")


documents = st.recursive(
    st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a/~01", max_size=3), inner, max_size=3),
)


@given(documents)
def test_every_place_has_a_pointer(document: Any) -> None:
    """The escaped path of every value resolves to it."""
    for pointer, value in _places(document, ""):
        assert resolve(document, pointer) is value


def _places(value: Any, pointer: str) -> list[tuple[str, Any]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    below = [
        place
        for name, inner in entries
        for place in _places(inner, f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}")
    ]
    return [(pointer, value), *below]


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
    """Read from a server on loopback with this handler."""

    async def main() -> QueueLength | QueueError:
        app = web.Application()
        app.router.add_get("/{path:.*}", handler)
        async with TestServer(app, host="127.0.0.1") as server:
            queue = QueueSpec(type="HTTP", id=str(server.make_url("/stats?x=1")), pointer=pointer)
            try:
                return await HttpQueueReader(timeout=timeout, largest=100_000).read(queue, namespace="default")
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
    """The number at the pointer is the length."""
    assert _ask(_answering(body), pointer) == QueueLength(length)


def test_requests_accept_uncompressed_json() -> None:
    """Compressed responses are not decompressed, as they could be huge."""
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
            id="compressed",
        ),
        pytest.param(_endless, None, "UnexpectedAnswer", False, "larger than 100000 bytes", id="endless"),
        pytest.param(_broken, None, "NoAnswer", True, "the connection broke", id="cut-off"),
    ],
)
def test_invalid_responses(handler: Handler, pointer: str | None, reason: str, retryable: bool, words: str) -> None:
    """The message has the host and what was expected, and does not quote the response."""
    failure = _ask(handler, pointer)

    assert isinstance(failure, QueueError)
    assert (failure.reason, failure.retryable) == (reason, retryable)
    assert words in str(failure)
    assert "127.0.0.1" in str(failure)
    assert SECRET not in str(failure)


def test_a_timeout_is_retryable() -> None:
    """The host may answer later."""
    failure = _ask(_silent, timeout=0.1)

    assert isinstance(failure, QueueError)
    assert (failure.reason, failure.retryable) == ("NoAnswer", True)
    assert str(failure) == "127.0.0.1 has not answered within 0.1 seconds"


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://127.0.0.1:1/", id="connection-refused"),
        pytest.param("https://user:hunter2@127.0.0.1:1/", id="with-credentials"),
    ],
)
def test_an_unreachable_host_is_retryable(url: str) -> None:
    """The message has the host, but no credentials."""
    queue = QueueSpec(type="HTTP", id=url)

    with pytest.raises(QueueError, match=r"127\.0\.0\.1 cannot be reached") as caught:
        asyncio.run(HttpQueueReader(timeout=2).read(queue, namespace="default"))

    assert caught.value.retryable
    assert SECRET not in str(caught.value)


def test_the_target_is_the_whole_url() -> None:
    """A Grant must allow it."""
    url = "https://example.com/queues/a"

    assert HttpQueueReader().target(QueueSpec(type="HTTP", id=url)) == QueueTarget(GrantedResource.URL, url)


QUERY = QueueSpec(type="Prometheus", id="sum(jobs)")


class Metrics(MetricReader):
    """Returns the same result for every query."""

    def __init__(self, answer: Fraction | QueryError, address: str | None = None) -> None:
        self._answer = answer
        self._address = address

    async def read(self, query: str, *, namespace: str) -> Fraction:
        assert (query, namespace) == ("sum(jobs)", "default")
        if isinstance(self._answer, QueryError):
            raise self._answer
        return self._answer

    def sources(self, query: str) -> tuple[OwnSeries, ...] | None:
        return None

    def address(self, query: str) -> str | None:
        return self._address


class Named(QueueReader):
    """Returns its own number as the length."""

    def __init__(self, length: int) -> None:
        self._length = length

    def target(self, queue: QueueSpec) -> QueueTarget | None:
        return QueueTarget(GrantedResource.QUEUE, str(self._length))

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
        return QueueLength(self._length)


def _read(queues: QueueReader, queue: QueueSpec) -> QueueLength:
    return asyncio.run(queues.read(queue, namespace="default"))


@pytest.mark.parametrize(
    ("queue", "length"),
    [
        pytest.param(QueueSpec(type="AWSSQSQueue", id="arn"), 1, id="sqs"),
        pytest.param(QueueSpec(type="HTTP", id="http://x/"), 2, id="http"),
        pytest.param(QUERY, 3, id="prometheus"),
    ],
)
def test_whoever_knows_the_type_is_asked(queue: QueueSpec, length: int) -> None:
    """One reader for each type."""
    queues = DelegatingQueueReader(Metrics(Fraction(3)), sqs=Named(1), http=Named(2))

    assert _read(queues, queue) == QueueLength(length)
    target = queues.target(queue)
    assert target == (None if length == 3 else QueueTarget(GrantedResource.QUEUE, str(length)))


def test_a_query_that_leaves_the_process_needs_a_grant() -> None:
    """For the address of the server."""
    queues = DelegatingQueueReader(Metrics(Fraction(3), "https://prom.example.com/"))

    assert queues.target(QUERY) == QueueTarget(GrantedResource.URL, "https://prom.example.com/")


@pytest.mark.parametrize(
    ("value", "length"),
    [
        pytest.param(Fraction(0), 0, id="none"),
        pytest.param(Fraction(5, 2), 3, id="a-part-of-a-message-counts-as-one"),
        pytest.param(Fraction(41), 41, id="whole"),
    ],
)
def test_a_sample_is_a_length(value: Fraction, length: int) -> None:
    """Rounded up."""
    assert _read(DelegatingQueueReader(Metrics(value)), QUERY) == QueueLength(length)


@pytest.mark.parametrize(
    ("reader", "reason", "retryable"),
    [
        pytest.param(None, "NoPrometheus", False, id="no-reader"),
        pytest.param(Metrics(QueryError("NoSample", "there is none")), "NoSample", True, id="no-sample"),
        pytest.param(Metrics(QueryError("NotPromQL", "no", permanent=True)), "NotPromQL", False, id="a-bad-query"),
        pytest.param(Metrics(Fraction(-1)), "NotACount", False, id="less-than-none"),
    ],
)
def test_what_is_no_length(reader: MetricReader | None, reason: str, retryable: bool) -> None:
    """The message of the reader is passed on."""
    with pytest.raises(QueueError) as caught:
        _read(DelegatingQueueReader(reader), QUERY)

    assert (caught.value.reason, caught.value.retryable) == (reason, retryable)


def test_a_negative_number_of_any_length_is_no_length() -> None:
    """It is not repeated: exact numbers may be longer than what can be written."""
    with pytest.raises(QueueError, match="the query gives a number below 0") as failed:
        _read(DelegatingQueueReader(Metrics(Fraction(-1, 7**6000))), QUERY)
    assert failed.value.reason == "NotACount"
