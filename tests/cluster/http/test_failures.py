"""Everything that goes wrong on the way: what is tried again, what is not, and what the caller gets."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.http.scripted_server import (
    HASTY,
    PODS,
    Asked,
    Server,
    Step,
    answers,
    connected,
    cuts,
    cuts_within,
    hangs,
    playing,
    pod,
    raw,
    refuses,
)

from springtide.cluster.clock import Backoff
from springtide.cluster.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    ClusterError,
    Conflict,
    ConnectionLost,
    Gone,
    Invalid,
    NotFound,
    RequestTimeout,
    ServerError,
    TooManyRequests,
    Unauthorized,
)
from springtide.cluster.http import HttpSettings, HttpTransport, InlineContent, StaticCredentials
from springtide.cluster.http.credentials import Authentication, ChangingFile
from springtide.cluster.resources import Key, Selection
from springtide.cluster.transport import ListPage, Patch, Precondition, Write

WEB = Key("default", "web")
WRITE = Write("me")
Call = Callable[[HttpTransport], Coroutine[Any, Any, Any]]


def get(transport: HttpTransport) -> Coroutine[Any, Any, Any]:
    return transport.get(PODS, WEB)


def listing(transport: HttpTransport) -> Coroutine[Any, Any, Any]:
    return transport.list(Selection(PODS))


def create(transport: HttpTransport) -> Coroutine[Any, Any, Any]:
    return transport.create(PODS, pod("web"), WRITE, namespace="default")


def delete(transport: HttpTransport) -> Coroutine[Any, Any, Any]:
    return transport.delete(PODS, WEB, WRITE)


def evict(transport: HttpTransport) -> Coroutine[Any, Any, Any]:
    return transport.create(PODS, {}, WRITE, namespace="default", name="web", subresource="eviction")


def merge(transport: HttpTransport) -> Coroutine[Any, Any, Any]:
    return transport.patch(PODS, WEB, Patch.merge({}), WRITE)


READS = [pytest.param(get, id="get"), pytest.param(listing, id="list")]
WRITES = [pytest.param(call, id=call.__name__) for call in (create, delete, evict, merge)]


async def outcome(call: Call, *steps: Step, settings: HttpSettings = HASTY, **access: Any) -> tuple[Any, Server]:
    """Make a call, and give its result or what it raised."""
    async with playing(*steps) as server, connected(server, settings=settings, **access) as transport:
        try:
            return await call(transport), server
        except ClusterError as error:
            return error, server


def no_answer(code: int, **headers: str) -> Step:
    return answers(b"", code=code, **headers)


@pytest.mark.parametrize("call", READS)
@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(cuts, id="cut"),
        pytest.param(cuts_within(b'{"items": [], "metadata": {}}' * 9), id="cut within the answer"),
        pytest.param(refuses(500, "InternalError"), id="500"),
        pytest.param(no_answer(503), id="503 of a proxy"),
        pytest.param(refuses(429, "TooManyRequests", Retry_After="0"), id="429"),
    ],
)
def test_a_read_that_fails_is_tried_again(call: Call, trouble: Step) -> None:
    found, server = asyncio.run(outcome(call, trouble, trouble, answers({"items": [], "metadata": {}})))

    assert not isinstance(found, ClusterError)
    assert len(server.asked) >= 3


@pytest.mark.parametrize("call", [*READS, *WRITES])
def test_an_unreachable_server_is_tried_a_few_times_and_then_an_error(call: Call) -> None:
    async def play() -> ClusterError:
        async with playing(answers({})) as server:
            pass
        async with connected(server) as transport:
            with pytest.raises(
                ConnectionLost, match=r"127\.0\.0\.1:\d+/api/v1/.*cannot connect: Connection refused"
            ) as caught:
                await call(transport)
            return caught.value

    assert asyncio.run(play()).retriable


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        pytest.param(cuts, ConnectionLost, id="cut"),
        pytest.param(cuts_within(b"{}" * 99), ConnectionLost, id="cut within the answer"),
        pytest.param(refuses(500, "InternalError"), ServerError, id="500"),
        pytest.param(refuses(503, "ServiceUnavailable", Retry_After="0"), ServerError, id="503"),
        pytest.param(refuses(429, "TooManyRequests"), TooManyRequests, id="429 without Retry-After"),
        pytest.param(refuses(409, "Conflict"), Conflict, id="conflict"),
    ],
)
def test_a_write_that_may_have_had_an_effect_is_sent_once(call: Call, trouble: Step, error: type[Exception]) -> None:
    found, server = asyncio.run(outcome(call, trouble, answers({})))

    assert type(found) is error
    assert len(server.asked) == 1


@pytest.mark.parametrize("call", [create, delete, merge])
def test_a_write_that_a_busy_server_refuses_is_retried(call: Call) -> None:
    found, server = asyncio.run(outcome(call, refuses(429, "TooManyRequests", Retry_After="0"), answers({})))

    assert not isinstance(found, ClusterError)
    assert len(server.asked) == 2


def test_a_refused_eviction_is_not_retried() -> None:
    found, server = asyncio.run(outcome(evict, refuses(429, "TooManyRequests", Retry_After="0"), answers({})))

    assert (type(found), found.retry_after, len(server.asked)) == (TooManyRequests, 0.0, 1)


def test_no_retry_if_the_server_asks_for_a_pause_longer_than_the_limit() -> None:
    found, server = asyncio.run(outcome(get, refuses(429, "TooManyRequests", Retry_After="60"), answers({})))

    assert (type(found), found.retry_after, len(server.asked)) == (TooManyRequests, 60.0, 1)


def test_a_resource_version_ahead_of_the_server_is_not_retried() -> None:
    details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}

    found, server = asyncio.run(outcome(listing, refuses(504, "Timeout", details=details), answers({})))

    assert (type(found), len(server.asked)) == (ServerError, 1)


@pytest.mark.parametrize("call", [*READS, *WRITES])
def test_a_request_without_an_answer_times_out(call: Call) -> None:
    settings = replace(HASTY, request=0.05, listing=0.05, retries=replace(HASTY.retries, attempts=1))

    found, _ = asyncio.run(outcome(call, hangs, settings=settings))

    assert type(found) is RequestTimeout


def test_a_list_has_more_time_than_other_requests() -> None:
    async def answers_late(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        writer.write(raw(200, b'{"items": [], "metadata": {}}'))

    settings = replace(HASTY, request=0.02, listing=10, retries=replace(HASTY.retries, attempts=1))

    assert [type(asyncio.run(outcome(call, answers_late, settings=settings))[0]) for call in (get, listing)] == [
        RequestTimeout,
        ListPage,
    ]


@pytest.mark.parametrize("call", [get, create])
def test_a_tls_handshake_that_does_not_end_times_out(call: Call) -> None:
    async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def play() -> None:
        async with await asyncio.start_server(says_nothing, "127.0.0.1", 0) as listener:
            server = Server(port=listener.sockets[0].getsockname()[1], secure=True)
            settings = replace(HASTY, connect=0.1, request=60, retries=replace(HASTY.retries, attempts=1))
            async with asyncio.timeout(20), connected(server, settings=settings) as transport:
                with pytest.raises(RequestTimeout):
                    await call(transport)

    asyncio.run(play())


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda t: t.get(PODS, Key("default", "")), id="get"),
        pytest.param(lambda t: t.patch(PODS, Key("default", ""), Patch.merge({}), WRITE), id="patch"),
        pytest.param(lambda t: t.delete(PODS, Key("default", ""), WRITE), id="delete"),
    ],
)
def test_an_empty_name_does_not_address_the_collection(call: Call) -> None:
    found, server = asyncio.run(outcome(call, answers({})))

    assert (type(found), server.asked) == (BadRequest, [])


def test_a_connection_attempt_times_out() -> None:
    async def play() -> None:
        # A full backlog: nothing accepts, so the kernel no longer answers.
        with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
            address = listener.getsockname()
            full = [socket.socket() for _ in range(4)]
            for one in full:
                one.setblocking(False)
                one.connect_ex(address)
            server = Server(port=address[1])
            settings = replace(HASTY, connect=0.1, request=60, retries=replace(HASTY.retries, attempts=1))
            async with asyncio.timeout(20), connected(server, settings=settings) as transport:
                with pytest.raises(RequestTimeout):
                    await get(transport)
            for one in full:
                one.close()

    asyncio.run(play())


@pytest.mark.parametrize("call", [get, create, delete])
@pytest.mark.parametrize("late", [pytest.param(0.0, id="up again"), pytest.param(0.05, id="up again soon")])
def test_a_server_that_restarts_on_its_port_is_found_again(call: Call, late: float) -> None:
    settings = replace(HASTY, retries=replace(HASTY.retries, pauses=Backoff(first=0.1)))

    async def play() -> int:
        async with AsyncExitStack() as stack:
            async with playing(answers({})) as before:
                transport = await stack.enter_async_context(connected(before, settings=settings))
                await call(transport)
            calling = asyncio.create_task(call(transport)) if late else None
            await asyncio.sleep(late)
            async with playing(answers({}), port=before.port) as after:
                await (calling or call(transport))
            return len(after.asked)

    assert asyncio.run(play()) == 1


@pytest.mark.parametrize("call", WRITES)
def test_a_write_does_not_fail_because_the_server_closed_an_idle_connection(call: Call) -> None:
    """The closing has arrived, but the event loop has not looked at it when the connection is taken from the pool."""

    async def play() -> tuple[int, int]:
        async with playing(answers({})) as server, connected(server) as transport:
            await call(transport)
            shut = server.writers[0].get_extra_info("socket")
            shut.shutdown(socket.SHUT_WR)
            await call(transport)
            return len(server.asked), server.connections

    assert asyncio.run(play()) == (2, 2)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"<html><style>p{}</style><h1>Bad  gateway</h1></html>", "Bad gateway", id="a page of a proxy"),
        pytest.param(b"", "and nothing more", id="nothing"),
        pytest.param(b"\xff\xfe\x00", "\ufffd", id="garbage"),
        pytest.param(b'{"kind": "Status"}', "Status", id="an empty Status"),
        pytest.param(b'{"kind": "Status", "code": "x"}', "Status", id="a malformed Status"),
        pytest.param(b"x" * 9999, "x" * 200 + "…", id="a long text"),
    ],
)
def test_a_body_that_is_not_a_status_is_quoted(body: bytes, message: str) -> None:
    found, _ = asyncio.run(outcome(create, answers(body, code=502)))

    assert type(found) is ServerError
    assert message in found.message
    assert "502" in found.message


def test_a_web_page_is_not_an_answer() -> None:
    page = answers(b"<html><h1>It works!</h1></html>", Content_Type="text/html; charset=utf-8")
    found, _ = asyncio.run(outcome(create, page))

    assert type(found) is ServerError
    assert "is no API server" in found.message


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", BadRequest),
        (401, "Unauthorized", Unauthorized),
        (404, "NotFound", NotFound),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Expired", Gone),
        (410, "Gone", Gone),
        (413, "RequestEntityTooLarge", BadRequest),
        (422, "Invalid", Invalid),
        (504, "Timeout", ServerError),
    ],
)
def test_a_status_becomes_a_typed_error(code: int, reason: str, error: type[ApiError]) -> None:
    causes = [{"field": "spec.x", "message": "Required value", "reason": "FieldValueRequired"}]
    details = {"causes": causes, "retryAfterSeconds": 3}

    found, _ = asyncio.run(outcome(create, refuses(code, reason, "so it is", details=details)))

    assert type(found) is error
    assert (found.message, found.code, found.answered, found.retry_after) == ("so it is", code, reason, 3.0)
    assert [(cause.field, cause.message, cause.reason) for cause in found.causes] == [
        ("spec.x", "Required value", "FieldValueRequired")
    ]


def test_a_redirection_is_not_followed() -> None:
    found, server = asyncio.run(outcome(create, no_answer(307, Location="https://login.example.com/")))

    assert "a redirection to https://login.example.com/" in str(found)
    assert len(server.asked) == 1


@pytest.mark.parametrize("call", [get, listing, create])
@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"x"', b"\xff"])
def test_an_answer_that_cannot_be_read_is_the_servers_failure(call: Call, body: bytes) -> None:
    found, _ = asyncio.run(outcome(call, answers(body)))

    assert type(found) is ServerError


def test_an_answer_that_is_too_large_is_refused() -> None:
    found, _ = asyncio.run(outcome(create, answers(b" " * 200_000)))

    assert str(found) == "the answer is larger than 100000 bytes, and is not read"


def test_a_response_that_is_not_http_is_a_lost_connection() -> None:
    async def speaks_otherwise(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")

    found, server = asyncio.run(outcome(create, speaks_otherwise))

    assert (type(found), len(server.asked)) == (ConnectionLost, 1)


@pytest.mark.parametrize("call", [get, create])
def test_a_token_that_was_replaced_is_read_again(call: Call, tmp_path: Path) -> None:
    """The file has the same size and time: only the server's 401 shows that its content changed."""
    path = tmp_path / "token"
    path.write_text("old")
    token = ChangingFile(path)

    async def rejects(asked: Asked, writer: asyncio.StreamWriter) -> None:
        before = path.stat()
        path.write_text("new")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        writer.write(raw(401, b"{}"))

    found, server = asyncio.run(outcome(call, rejects, answers({}), credentials=StaticCredentials(token=token)))

    assert not isinstance(found, ClusterError)
    assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer old", "Bearer new"]


def test_a_token_file_is_followed_without_a_401(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")

    async def play() -> list[str]:
        credentials = StaticCredentials(token=ChangingFile(path))
        async with playing(answers({})) as server, connected(server, credentials=credentials) as transport:
            await get(transport)
            path.write_text("newer")
            await get(transport)
            path.unlink()
            await get(transport)
        return [asked.headers["authorization"] for asked in server.asked]

    assert asyncio.run(play()) == ["Bearer old", "Bearer newer", "Bearer newer"]


def test_a_token_file_that_is_swapped_is_followed(tmp_path: Path) -> None:
    """As kubelets do it: a link leads to another file, which may be as large and as old as the one before."""
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (1000, 1000))
    link = tmp_path / "token"
    link.symlink_to("one")
    token = ChangingFile(link)
    assert token.read() == b"one"
    link.unlink()
    link.symlink_to("two")

    assert token.read() == b"two"


def test_a_rejected_token_that_was_not_replaced_is_not_sent_again() -> None:
    found, server = asyncio.run(
        outcome(
            get, refuses(401, "Unauthorized", "Unauthorized"), credentials=StaticCredentials(token=InlineContent(b"x"))
        )
    )

    assert (type(found), len(server.asked)) == (Unauthorized, 1)


def test_a_server_that_rejects_every_token_gets_two_attempts() -> None:
    """The second token may be newer than what the server knows; more attempts would not help."""

    class Inexhaustible:
        given = 0

        async def authenticate(self) -> Authentication:
            return Authentication(f"Bearer {self.given}")

        async def renew(self, rejected: Authentication) -> bool:
            self.given += 1
            return True

    found, server = asyncio.run(outcome(get, refuses(401, "Unauthorized"), credentials=Inexhaustible()))

    assert (type(found), len(server.asked)) == (Unauthorized, 2)


def test_a_uid_that_the_server_finds_invalid_is_a_conflict() -> None:
    causes = [{"field": "metadata.uid", "message": 'Invalid value: "x": field is immutable'}]
    step = refuses(422, "Invalid", details={"causes": causes})

    async def change(transport: HttpTransport) -> Any:
        return await transport.patch(PODS, WEB, Patch.merge({}), WRITE, precondition=Precondition(uid="x"))

    assert type(asyncio.run(outcome(change, step))[0]) is Conflict
    assert type(asyncio.run(outcome(merge, step))[0]) is Invalid


@pytest.mark.parametrize(
    ("version", "error"), [pytest.param(8, Conflict, id="changed"), pytest.param(7, Invalid, id="unchanged")]
)
def test_a_json_patch_that_fails_is_a_conflict_if_the_object_has_changed(
    version: int, error: type[ClusterError]
) -> None:
    """The server does not say which operation failed: the test of the precondition, or one of the patch."""
    patch = Patch.json({"op": "remove", "path": "/spec/x"})

    async def change(transport: HttpTransport) -> Any:
        return await transport.patch(PODS, WEB, patch, WRITE, precondition=Precondition("7", "uid-web"))

    found, _ = asyncio.run(outcome(change, refuses(422, "Invalid"), answers(pod("web", version))))

    assert type(found) is error


def test_a_json_patch_that_breaks_a_rule_is_no_conflict_whatever_has_changed() -> None:
    step = refuses(422, "Invalid", details={"causes": [{"field": "spec.x", "message": "Required value"}]})

    async def change(transport: HttpTransport) -> Any:
        return await transport.patch(PODS, WEB, Patch.json(), WRITE, precondition=Precondition("7", "uid-web"))

    found, server = asyncio.run(outcome(change, step, answers(pod("web", 8))))

    assert (type(found), len(server.asked)) == (Invalid, 1)


def test_a_warning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    warns = answers({}, Warning='299 - "v1 Old is \\"deprecated\\"", 299 kube "other"')

    async def twice(transport: HttpTransport) -> None:
        await get(transport)
        await get(transport)

    with caplog.at_level(logging.WARNING, "springtide.cluster.http.rest_client"):
        asyncio.run(outcome(twice, warns))

    assert caplog.messages == ['the server warns: v1 Old is "deprecated"', "the server warns: other"]


def test_a_transport_that_is_closed_says_so() -> None:
    async def play() -> None:
        async with playing(answers({})) as server, connected(server) as transport:
            pass
        with pytest.raises(ConnectionLost, match="is closed"):
            await get(transport)

    asyncio.run(play())
