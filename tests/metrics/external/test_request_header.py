"""Request header authentication: headers of the front proxy are used, and those of other clients ignored."""

from __future__ import annotations

import pytest
from tests.e2e.identities import make_client
from tests.metrics.external.fake_cluster import AUTHORITY, NOW, PROXY, told_by

from springtide.cluster.errors import Unauthorized
from springtide.metrics.external.request_header import Caller, FrontProxy, Headers, RequestHeaderError

CERTIFICATE = PROXY.certificate.decode()
ADMIN = [("x-remote-user", "admin")]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param(ADMIN, Caller("admin"), id="user"),
        pytest.param(
            [*ADMIN, ("x-remote-group", "a"), ("accept", "*/*"), ("x-remote-group", "b")],
            Caller("admin", groups=("a", "b")),
            id="groups",
        ),
        pytest.param([*ADMIN, ("x-remote-uid", "u-1")], Caller("admin", "u-1"), id="uid"),
        pytest.param(
            [*ADMIN, ("x-remote-extra-scopes", "r"), ("x-remote-extra-a%2fb", "1"), ("x-remote-extra-scopes", "w")],
            Caller("admin", extra=(("a/b", ("1",)), ("scopes", ("r", "w")))),
            id="extra",
        ),
    ],
)
def test_the_caller_is_read_from_the_headers(headers: Headers, expected: Caller) -> None:
    assert FrontProxy.read(told_by()).caller(CERTIFICATE, headers, NOW) == expected


@pytest.mark.parametrize(
    ("certificate", "headers", "at", "words"),
    [
        pytest.param("", ADMIN, NOW, "no client certificate", id="headers-alone-are-worth-nothing"),
        pytest.param(CERTIFICATE, [], NOW, "x-remote-user is not set", id="no-user"),
        pytest.param(CERTIFICATE, [("x-remote-user", "")], NOW, "x-remote-user is not set", id="empty"),
        pytest.param(
            make_client(AUTHORITY, "other").certificate.decode(),
            ADMIN,
            NOW,
            "'other' is not an allowed name",
            id="another-name",
        ),
        pytest.param(CERTIFICATE, ADMIN, NOW + 10 * 86_400, "is not valid now", id="ended"),
        pytest.param(CERTIFICATE, ADMIN, NOW - 10 * 86_400, "is not valid now", id="not-begun"),
    ],
)
def test_requests_of_other_clients_are_unauthorized(certificate: str, headers: Headers, at: int, words: str) -> None:
    with pytest.raises(Unauthorized, match=words):
        FrontProxy.read(told_by()).caller(certificate, headers, at)


def test_a_cluster_may_allow_any_name() -> None:
    received = FrontProxy.read(told_by(requestheader_allowed_names=None))

    assert received.caller(make_client(AUTHORITY, "any").certificate.decode(), ADMIN, NOW).user == "admin"


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"requestheader_client_ca_file": None}, id="no-authority"),
        pytest.param({"requestheader_client_ca_file": "none"}, id="not-a-certificate"),
        pytest.param({"requestheader_allowed_names": "front-proxy-client"}, id="not-a-list"),
        pytest.param({"requestheader_username_headers": '{"a": 1}'}, id="not-names"),
    ],
)
def test_missing_settings_are_an_error_with_a_hint(changed: dict[str, str | None]) -> None:
    """In particular, an unreadable list of allowed names must not allow all names."""
    with pytest.raises(RequestHeaderError, match="--requestheader-client-ca-file"):
        FrontProxy.read(told_by(AUTHORITY, **changed))
