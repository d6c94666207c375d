"""Responses without a network: error responses, lists and watch lines.

Pages of lists, as views and as whole objects.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import msgspec
import pytest
from tests.cluster.http.scripted_server import DEPLOYMENTS, PODS, line, status

from springtide.apis.core.pods import Pod
from springtide.cluster.errors import Conflict, Gone, ServerError
from springtide.cluster.http.responses import error_from_response, events_of, page_of
from springtide.cluster.http.rest_client import WarningLog
from springtide.cluster.resources import Selection
from springtide.cluster.transport import ListPage, WatchEventType


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        pytest.param("7", 7.0, id="seconds"),
        pytest.param("1.5", 1.5, id="a fraction"),
        pytest.param("0", 0.0, id="at once"),
        pytest.param("-7", 0.0, id="in the past"),
        pytest.param("Thu, 01 Jan 1970 00:01:40 GMT", 40.0, id="a date"),
        pytest.param("Thu, 01 Jan 1970 00:00:00 GMT", 0.0, id="a date in the past"),
        pytest.param("Fri, 31 Dec 9999 23:59:59 GMT", 600.0, id="a date in the far future"),
        pytest.param("9" * 30, 600.0, id="many seconds"),
        pytest.param("1e999", 3.0, id="for ever"),
        pytest.param("nan", 3.0, id="no number"),
        pytest.param("soon", 3.0, id="neither"),
        pytest.param("", 3.0, id="nothing"),
    ],
)
def test_retry_after_is_in_the_header_or_in_the_details(header: str, seconds: float) -> None:
    body = json.dumps(status(429, "TooManyRequests", details={"retryAfterSeconds": 3})).encode()

    assert error_from_response(429, body, {"Retry-After": header}, now=60.0).retry_after == seconds


@pytest.mark.parametrize(("received", "seconds"), [(-3, 0.0), (10**30, 600.0), (0, None)])
def test_retry_after_of_the_details_is_bounded(received: int, seconds: float | None) -> None:
    body = json.dumps(status(503, "ServiceUnavailable", details={"retryAfterSeconds": received})).encode()

    assert error_from_response(503, body, {}, now=0.0).retry_after == seconds


def test_the_code_of_the_response_takes_precedence() -> None:
    """A proxy in between may have changed it."""
    body = json.dumps(status(200, "Conflict")).encode()

    assert type(error_from_response(409, body, {}, now=0.0)) is Conflict


def test_the_number_of_different_warnings_that_are_logged_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    warnings = WarningLog()
    with caplog.at_level(logging.WARNING, "springtide.cluster.http.rest_client"):
        warnings.record(f'299 - "object {number} is odd"' for number in range(5000))

    assert len(caplog.messages) == 1000


NAMELESS = {
    "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "3"},
    "spec": {"containers": [{"name": "c"}]},
}


def page(items: Any, **metadata: Any) -> bytes:
    return json.dumps({"kind": "List", "metadata": {"resourceVersion": "9"} | metadata, "items": items}).encode()


def test_whole_objects_of_a_list_have_api_version_and_kind() -> None:
    """Servers leave them out in lists of built-in kinds; those of the item take precedence."""
    found = page_of(page([NAMELESS, NAMELESS | {"kind": "Other"}]), Selection(DEPLOYMENTS))

    assert found.items == [
        NAMELESS | {"apiVersion": "apps/v1", "kind": "Deployment"},
        NAMELESS | {"apiVersion": "apps/v1", "kind": "Other"},
    ]


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(NAMELESS, id="left out by the server"),
        pytest.param({"apiVersion": "v1", "kind": "Pod"} | NAMELESS, id="said by the item"),
    ],
)
def test_a_tagged_view_gets_api_version_and_kind(item: Any) -> None:
    found = page_of(page([item]), Selection(PODS, view=Pod))

    assert found.items == [msgspec.convert({"apiVersion": "v1", "kind": "Pod"} | NAMELESS, Pod)]
    assert type(found.items[0]) is Pod


def test_the_kind_of_an_item_takes_precedence() -> None:
    found = page_of(page([NAMELESS, NAMELESS | {"kind": "Other"}]), Selection(PODS, view=Pod))

    assert [item.kind for item in found.items] == ["Pod", "Other"]


@pytest.mark.parametrize("view", [dict, Pod])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(page([]), ListPage([], "9"), id="empty"),
        pytest.param(page(None), ListPage([], "9"), id="null"),
        pytest.param(b'{"metadata":{"resourceVersion":"9"}}', ListPage([], "9"), id="left out"),
        pytest.param(
            page([], **{"continue": "abc", "remainingItemCount": 4}), ListPage([], "9", "abc", 4), id="more to come"
        ),
    ],
)
def test_the_page_has_the_metadata_of_the_list(view: type[Any], body: bytes, expected: ListPage) -> None:
    assert page_of(body, Selection(PODS, view=view)) == expected


@pytest.mark.parametrize(
    "item",
    [
        pytest.param({"metadata": {"name": 7}}, id="a wrong type"),
        pytest.param({}, id="nothing"),
        pytest.param([], id="a list"),
        pytest.param(None, id="null"),
    ],
)
def test_an_item_that_does_not_fit_its_view_is_a_validation_error(item: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        page_of(page([NAMELESS, item]), Selection(PODS, view=Pod))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="a list"),
        pytest.param(page([7]), id="items that are no objects"),
        pytest.param(page([NAMELESS])[:-2], id="cut"),
    ],
)
def test_a_malformed_list_is_a_server_error(body: bytes) -> None:
    with pytest.raises(ServerError, match="list of pods cannot be read"):
        page_of(body, Selection(PODS))


def test_the_type_of_an_event_may_follow_its_object() -> None:
    behind = json.dumps({"object": NAMELESS, "type": "DELETED"}).encode()

    (event,) = events_of(behind, dict)

    assert (event.change, event.object) == (WatchEventType.DELETED, NAMELESS)


def test_bookmarks_need_not_fit_the_view() -> None:
    (event,) = events_of(line("BOOKMARK", {"metadata": {"resourceVersion": "5"}}), Pod)

    assert event.object == {"metadata": {"resourceVersion": "5"}}


def test_an_error_before_an_event_that_cannot_be_read_is_raised() -> None:
    """Events are read one by one then; those before the error count."""
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    lines = (
        line("ADDED", {"metadata": {"name": "a", "resourceVersion": "1"}})
        + line("ERROR", gone)
        + b'{"type":"ADDED","object":7}\n'
    )
    events = events_of(lines, dict)

    assert next(events).change is WatchEventType.ADDED
    with pytest.raises(Gone, match="too old"):
        next(events)
