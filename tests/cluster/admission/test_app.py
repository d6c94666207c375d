"""The webhook application: every request gets a response in time, and never a 5xx."""

from __future__ import annotations

import asyncio
import json
import threading
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, TypeVarTuple

import msgspec
import pytest
from starlette.types import ASGIApp
from tests.apis.karpenter.samples import beta_pool, node_pool
from tests.apis.manifests import CONTEXT
from tests.cluster.admission.review_requests import UID, conversion_review, review

from springtide.cluster.admission import webhooks as admission
from springtide.cluster.admission.reviews import MOST_BYTES, decoded_bytes
from springtide.cluster.admission.webhooks import admission_app
from springtide.cluster.compute import LiveCompute

Args = TypeVarTuple("Args")
T = TypeVar("T")
PATHS = ("/validate", "/default", "/convert")


async def ask(app: ASGIApp, path: str, *parts: bytes, method: str = "POST") -> tuple[int, bytes]:
    """Send a request to the application itself; without parts the body never comes."""
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"timeout=5s",
        "headers": [(b"content-type", b"application/json")],
        "http_version": "1.1",
        "scheme": "https",
        "server": ("127.0.0.1", 443),
        "client": ("127.0.0.1", 1),
    }
    waiting = list(parts)
    status = 0
    answer = b""

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.Event().wait()
        part = waiting.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(waiting) or len(parts) > 1}

    async def send(message: Any) -> None:
        nonlocal status, answer
        status = message.get("status", status)
        answer += message.get("body", b"")

    await app(scope, receive, send)
    return status, answer


def with_app(scenario: Callable[[ASGIApp], Awaitable[None]], *, timeout: float = 30.0) -> None:
    """Run a test with the application."""

    async def main() -> None:
        compute = LiveCompute(2)
        try:
            await scenario(admission_app(compute, lambda: CONTEXT.now, timeout=timeout))
        finally:
            compute.close()

    asyncio.run(main())


def test_each_path_answers_its_kind_of_review() -> None:
    async def scenario(app: ASGIApp) -> None:
        refused = await ask(app, "/validate", review(node_pool({"budgets": [{"nodes": "many"}]})))
        mended = await ask(app, "/default", review(node_pool({"budgets": [{"nodes": 5}]})))
        converted = await ask(app, "/convert", conversion_review("karpenter.sh/v1", beta_pool()))

        answers = [json.loads(body)["response"] for status, body in (refused, mended, converted) if status == 200]
        assert [answer["uid"] for answer in answers] == [UID] * 3
        assert not answers[0]["allowed"]
        assert answers[1]["patchType"] == "JSONPatch"
        assert answers[2]["convertedObjects"][0]["apiVersion"] == "karpenter.sh/v1"

    with_app(scenario)


def test_objects_are_validated_by_the_clock_and_zone_of_the_controllers() -> None:
    """A date in the past for one clock is in the future for another."""
    pool = node_pool({"budgets": [{"nodes": "0", "from": "2026-05-01T00:00:00Z", "until": "2026-06-01T00:00:00Z"}]})

    async def main() -> list[int]:
        compute = LiveCompute(1)
        try:
            apps = [admission_app(compute, lambda at=at: at) for at in (CONTEXT.now, CONTEXT.now + 10**7)]  # type: ignore[misc]
            answers = [await ask(app, "/validate", review(pool)) for app in apps]
        finally:
            compute.close()
        return [len(json.loads(body)["response"]["warnings"]) for _, body in answers]

    assert asyncio.run(main()) == [1, 2]  # one of them says that no controller acts on NodePools yet


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(b"", "Input data was truncated", id="nothing"),
        pytest.param(b"\xff\xfe", "malformed", id="no text"),
        pytest.param(b"[]", "Expected `object`", id="a list"),
        pytest.param(b'{"kind": "AdmissionReview"}', "missing required field", id="no request"),
        pytest.param(b'{"kind": "Pod", "apiVersion": "v1"}', "Invalid value 'Pod'", id="another kind"),
        pytest.param(review(1), "Expected `object | null`, got `int`", id="no object"),
        pytest.param(
            review({}).replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1"),
            'apiVersion is "admission.k8s.io/v1beta1", expected "admission.k8s.io/v1"',
            id="older review",
        ),
        pytest.param(review({}).replace(b": {}", b': {"a":' + b"[" * 100_000), "recursion", id="too deep to read"),
        pytest.param(review({"spec": json.loads("[" * 200 + "]" * 200)}), "more than 128 levels", id="deep"),
        pytest.param(review({"spec": "\ud800"}), "the body is no AdmissionReview", id="half a character"),
    ],
)
def test_a_malformed_review_is_a_bad_request(body: bytes, words: str) -> None:
    async def scenario(app: ASGIApp) -> None:
        status, answer = await ask(app, "/validate", body)

        assert (status, words in answer.decode()) == (400, True), answer

    with_app(scenario)


def test_the_deepest_accepted_object_can_be_handled(caplog: pytest.LogCaptureFixture) -> None:
    """At every path, the limit of nesting is within the recursion limit."""
    deep: Any = {}
    for _ in range(125):
        deep = {"nodeClassRef": deep}
    pool = {**node_pool(), "spec": {"template": {"spec": deep["nodeClassRef"]}}}

    async def scenario(app: ASGIApp) -> None:
        for path, body in (
            ("/validate", review(pool, node_pool())),
            ("/default", review(pool)),
            ("/convert", conversion_review("karpenter.sh/v1beta1", pool)),
        ):
            assert (await ask(app, path, body))[0] == 200

    with_app(scenario)
    assert caplog.records == []


def test_a_body_that_is_too_large_is_not_read_to_its_end() -> None:
    async def scenario(app: ASGIApp) -> None:
        status, answer = await ask(app, "/validate", *[b" " * (2 << 20)] * 4, b" ", b"never asked for")

        assert (status, answer.decode()) == (413, f"a review must not be larger than {MOST_BYTES} bytes")
        assert MOST_BYTES == 8 << 20

    with_app(scenario)


def test_the_bytes_of_all_reviews_in_memory_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is refused, or that ends, frees its memory."""
    monkeypatch.setattr(admission, "ARRIVAL_TIMEOUT", 0.1)
    monkeypatch.setattr(admission, "MOST_AT_ONCE", 10_000)
    sound = review(node_pool())

    async def scenario(app: ASGIApp) -> None:
        slow = asyncio.create_task(ask(app, "/validate", b" " * 9_900, b""))
        await asyncio.sleep(0)
        assert (await ask(app, "/validate", sound))[0] == 429
        assert (await slow)[0] == 408
        assert (await ask(app, "/validate", sound))[0] == 200

    with_app(scenario)


def test_a_review_that_is_too_large_when_decoded_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size in bytes is within the limit; the object is allowed, so that its author can also make it smaller."""
    monkeypatch.setattr(admission, "MOST_DECODED_BYTES", 1_000_000)
    pool = node_pool({"budgets": [{}] * 5_000})
    calls = RecordingCompute()

    async def scenario() -> bytes:
        app = admission_app(calls, lambda: CONTEXT.now)
        assert (await ask(app, "/validate", review(node_pool())))[0] == 200
        return (await ask(app, "/validate", review(pool)))[1]

    response = json.loads(asyncio.run(scenario()))["response"]
    assert (response["allowed"], response["uid"]) == (True, UID)
    assert "when decoded" in response["warnings"][0]
    assert "shorten its lists" in response["warnings"][0]
    assert calls.made == ["thread"]


def test_only_small_reviews_are_handled_in_this_process() -> None:
    large = node_pool({"budgets": [{"nodes": "many"}] * (admission.SMALL_BYTES // 15)})
    calls = RecordingCompute()

    async def scenario() -> bytes:
        app = admission_app(calls, lambda: CONTEXT.now)
        await ask(app, "/validate", review(node_pool()))
        await ask(app, "/default", review(large))
        await ask(app, "/convert", conversion_review("karpenter.sh/v1", *[beta_pool()] * 200))
        return (await ask(app, "/validate", review(large)))[1]

    assert not json.loads(asyncio.run(scenario()))["response"]["allowed"]
    assert calls.made == ["thread", "limited", "limited", "limited"]


def test_large_reviews_are_handled_in_a_child_process() -> None:
    """The functions, their arguments and their results can be sent there."""
    large = node_pool({"budgets": [{"nodes": "many"}] * (admission.SMALL_BYTES // 15)})
    uids = []

    async def scenario(app: ASGIApp) -> None:
        for path, body in (
            ("/validate", review(large)),
            ("/default", review(large)),
            ("/convert", conversion_review("karpenter.sh/v1", *[beta_pool()] * 200)),
        ):
            status, answer = await ask(app, path, body)
            response = json.loads(answer)["response"]
            assert (status, "warnings" in response and "did not check" in str(response["warnings"])) == (200, False)
            uids.append(response["uid"])

    with_app(scenario, timeout=120)
    assert uids == [UID] * 3


class RecordingCompute:
    """Runs functions at once, and records where they would run."""

    def __init__(self) -> None:
        self.made: list[str] = []

    async def run(self, function: Callable[[*Args], T], *args: *Args, cost: float) -> T:
        self.made.append("thread")
        return function(*args)

    async def run_limited(
        self, function: Callable[[*Args], T], *args: *Args, cost: float, cpu: float | None = None
    ) -> T:
        self.made.append("limited")
        return function(*args)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"[" + b",".join([b"{}"] * 20_000) + b"]", id="empty-objects"),
        pytest.param(b"[" + b",".join([b"[]"] * 20_000) + b"]", id="empty-lists"),
        pytest.param(b"[" + b",".join([b'{"a":{}}'] * 20_000) + b"]", id="objects-in-objects"),
        pytest.param(b"[" + b",".join([b'""'] * 20_000) + b"]", id="empty-texts"),
        pytest.param(b"[" + b",".join(b'"%d"' % number for number in range(20_000)) + b"]", id="texts"),
        pytest.param(b"[" + b",".join(b"%d" % number for number in range(20_000)) + b"]", id="numbers"),
        pytest.param(b"[" + b",".join([b"0.5"] * 20_000) + b"]", id="fractions"),
        pytest.param(b"{" + b",".join(b'"%d":1' % number for number in range(20_000)) + b"}", id="members"),
        pytest.param(b'["' + "\u00e9".encode() * 20_000 + b'"]', id="escaped-text"),
        pytest.param(b"[" * 500 + b"]" * 500, id="nested-lists"),
    ],
)
def test_the_size_when_decoded_is_not_underestimated(text: bytes) -> None:
    tracemalloc.start()
    try:
        decoded = msgspec.json.decode(text)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decoded
    assert size <= 1.1 * decoded_bytes(text) + 4096


def test_receiving_a_body_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "ARRIVAL_TIMEOUT", 0.05)

    async def scenario(app: ASGIApp) -> None:
        assert (await ask(app, "/validate"))[0] == 408

    with_app(scenario)


def test_other_paths_are_not_found() -> None:
    async def scenario(app: ASGIApp) -> None:
        assert (await ask(app, "/healthz", b"", method="GET")) == (200, b"ok")
        assert [(await ask(app, path, b"", method="GET"))[0] for path in PATHS] == [405] * 3
        assert (await ask(app, "/nothing", b""))[0] == 404

    with_app(scenario)


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        pytest.param("/validate", review(node_pool()), {"allowed": True}, id="validate"),
        pytest.param("/default", review(node_pool()), {"allowed": True}, id="default"),
        pytest.param("/convert", conversion_review("karpenter.sh/v1"), {"convertedObjects": []}, id="convert"),
    ],
)
def test_an_internal_error_does_not_refuse_the_object(
    path: str, body: bytes, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The object is allowed with a warning, a conversion fails with a message, and the error is logged."""

    def broken(*_: object) -> bytes:
        raise ZeroDivisionError

    for name in ("validate", "default_object", "convert_all"):
        monkeypatch.setattr(admission, name, broken)

    async def scenario(app: ASGIApp) -> None:
        status, answer = await ask(app, path, body)

        response = json.loads(answer)["response"]
        assert (status, response["uid"]) == (200, UID)
        assert expected.items() <= response.items()
        assert "unexpected error" in json.dumps(response)

    with_app(scenario)
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_an_object_is_allowed_when_its_review_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server gets a response before its own timeout."""
    released = threading.Event()
    monkeypatch.setattr(admission, "validate", lambda *_: released.wait(10) and b"")

    async def scenario(app: ASGIApp) -> None:
        try:
            _, answer = await ask(app, "/validate", review(node_pool()))
        finally:
            released.set()

        response = json.loads(answer)["response"]
        assert response["allowed"]
        assert response["warnings"] == ["springtide did not check this object: it took more than 0.05 s"]

    with_app(scenario, timeout=0.05)


def test_a_slow_review_does_not_block_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """It blocks neither other reviews nor the event loop."""
    released = threading.Event()
    monkeypatch.setattr(admission, "default_object", lambda *_: released.wait(10) and b"{}")

    async def scenario(app: ASGIApp) -> None:
        slow = asyncio.create_task(ask(app, "/default", review(node_pool())))
        status, _ = await ask(app, "/validate", review(node_pool()))

        assert (status, slow.done()) == (200, False)
        released.set()
        await slow

    with_app(scenario)
