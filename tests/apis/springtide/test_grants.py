"""What grants allow, and that no address in disguise gets through."""

from __future__ import annotations

import fnmatch
import re
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from springtide.apis.springtide.grants import (
    GrantedResource,
    GrantSpec,
    is_granted,
    is_url_within,
    matches_glob,
    missing_grant_message,
)

GROUP = "arn:aws:autoscaling:*:*:*:autoScalingGroupName/team-a-*"
QUEUE = "arn:aws:sqs:*:*:team-a-*"
TEAM_A = GrantSpec(
    namespaces=("team-a", "shared-*"),
    node_groups=(GROUP, "workers-?"),
    queues=(QUEUE,),
    urls=("https://prom.example.com/",),
)


def arn(name: str) -> str:
    return f"arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:0b66:autoScalingGroupName/{name}"


@pytest.mark.parametrize(
    ("namespace", "reach", "target", "expected"),
    [
        pytest.param("team-a", GrantedResource.NODE_GROUP, arn("team-a-web"), True, id="arn"),
        pytest.param("shared-x", GrantedResource.NODE_GROUP, arn("team-a-web"), True, id="namespace-by-glob"),
        pytest.param("team-b", GrantedResource.NODE_GROUP, arn("team-a-web"), False, id="other-namespace"),
        pytest.param(
            "team-a-b", GrantedResource.NODE_GROUP, arn("team-a-web"), False, id="namespace-that-begins-the-same"
        ),
        pytest.param("", GrantedResource.NODE_GROUP, arn("team-a-web"), False, id="no-namespace"),
        pytest.param("team-a", GrantedResource.NODE_GROUP, arn("team-b-web"), False, id="group-of-others"),
        pytest.param("team-a", GrantedResource.NODE_GROUP, "team-a-web", False, id="name-where-arns-are-granted"),
        pytest.param("team-a", GrantedResource.NODE_GROUP, "workers-1", True, id="one-letter"),
        pytest.param("team-a", GrantedResource.NODE_GROUP, "workers-12", False, id="two-letters"),
        pytest.param("team-a", GrantedResource.NODE_GROUP, "workers-", False, id="no-letter"),
        pytest.param("team-a", GrantedResource.QUEUE, "arn:aws:sqs:eu-west-1:1:team-a-jobs", True, id="queue"),
        pytest.param("team-a", GrantedResource.QUEUE, arn("team-a-web"), False, id="group-is-no-queue"),
        pytest.param(
            "team-a", GrantedResource.NODE_GROUP, "arn:aws:sqs:eu-west-1:1:team-a-jobs", False, id="queue-is-no-group"
        ),
        pytest.param(
            "team-a", GrantedResource.URL, "https://prom.example.com/api/v1/query?query=up", True, id="address"
        ),
        pytest.param("team-a", GrantedResource.URL, "https://prom.example.com.evil.org/", False, id="longer-host"),
    ],
)
def test_what_is_allowed(namespace: str, reach: GrantedResource, target: str, expected: bool) -> None:
    """A grant is for its namespaces, and for what it lists."""
    assert expected == is_granted([TEAM_A], namespace, reach, target)


@pytest.mark.parametrize("field", ["node_groups", "queues", "urls"])
def test_what_one_field_lists_says_nothing_of_the_others(field: str) -> None:
    """A grant of every queue does not allow node groups."""
    everything = {"node_groups": ("*",), "queues": ("*",), "urls": ("https://a/",)}
    reaches = {"node_groups": GrantedResource.NODE_GROUP, "queues": GrantedResource.QUEUE, "urls": GrantedResource.URL}
    others = GrantSpec(namespaces=("*",), **{name: listed for name, listed in everything.items() if name != field})

    assert not is_granted([others], "team-a", reaches[field], "https://a/")


def test_nothing_is_allowed_without_a_grant() -> None:
    """What no grant speaks of is refused, with the fix in words."""
    assert not is_granted([], "team-a", GrantedResource.QUEUE, "jobs")
    assert not is_granted([GrantSpec(namespaces=("*",))], "team-a", GrantedResource.QUEUE, "jobs")
    assert missing_grant_message("team-a", GrantedResource.QUEUE, "jobs") == (
        'no Grant lets objects of namespace team-a reach the queue "jobs":'
        " list it under `queues` of a Grant for this namespace"
    )


def test_several_grants_add_up_but_do_not_mix() -> None:
    """A namespace of one grant does not get what another one lists."""
    one = GrantSpec(namespaces=("a",), queues=("q-a",))
    two = GrantSpec(namespaces=("b",), queues=("q-b",))

    assert is_granted([one, two], "b", GrantedResource.QUEUE, "q-b")
    assert not is_granted([one, two], "a", GrantedResource.QUEUE, "q-b")


API = "https://prom.example.com/api/"


@pytest.mark.parametrize(
    ("prefix", "url", "expected"),
    [
        pytest.param(API, "https://prom.example.com/api/v1", True, id="below"),
        pytest.param(API, "https://prom.example.com/api/", True, id="itself"),
        pytest.param(API, "https://prom.example.com/api", False, id="folder-without-its-slash"),
        pytest.param(API, "https://prom.example.com/admin", False, id="beside"),
        pytest.param(API, "https://prom.example.com/API/", False, id="paths-have-case"),
        pytest.param("https://prom.example.com/api", "https://prom.example.com/api2", True, id="prefix-without-slash"),
        pytest.param("https://prom.example.com", "https://prom.example.com/x", True, id="grant-of-an-origin"),
        pytest.param("https://prom.example.com", "https://prom.example.com", True, id="empty-paths"),
        pytest.param("https://prom.example.com/", "https://prom.example.com?q=1", True, id="empty-path-with-query"),
        pytest.param("https://prom.example.com", "https://prom.example.com.evil.org/", False, id="longer-host"),
        pytest.param("https://prom.example.com", "https://prom.example.computer/", False, id="host-goes-on"),
        pytest.param(API, "HTTPS://PROM.Example.COM/api/x", True, id="case-of-scheme-and-host"),
        pytest.param("https://PROM.example.com/", "https://prom.example.com/", True, id="case-in-the-grant"),
        pytest.param(API, "http://prom.example.com/api/", False, id="other-scheme"),
        pytest.param("ftp://h/", "ftp://h/", False, id="scheme-that-is-not-fetched"),
        pytest.param(API, "https://prom.example.com:443/api/", True, id="default-port-spelt-out"),
        pytest.param("https://h:443/", "https://h/", True, id="default-port-in-the-grant"),
        pytest.param("http://h/", "http://h:80/", True, id="default-port-of-http"),
        pytest.param(API, "https://prom.example.com:8443/api/", False, id="other-port"),
        pytest.param(API, "https://prom.example.com:80/api/", False, id="port-of-the-other-scheme"),
        pytest.param(API, "https://prom.example.com:0/api/", False, id="port-zero"),
        pytest.param(API, "https://prom.example.com:99999/api/", False, id="port-out-of-range"),
        pytest.param(API, "https://prom.example.com:x/api/", False, id="port-that-is-none"),
        pytest.param(API, "https://prom.example.com:443:80/api/", False, id="two-ports"),
        pytest.param(API, "https://prom.example.com@evil.org/api/", False, id="granted-host-as-user"),
        pytest.param(API, "https://evil.org@prom.example.com/api/", False, id="user"),
        pytest.param(API, "https://@prom.example.com/api/", False, id="empty-user"),
        pytest.param(API, "https://u:p@prom.example.com/api/", False, id="user-and-password"),
        pytest.param(API, "https://prom.example.com:x@evil.org/api/", False, id="granted-host-as-user-with-password"),
        pytest.param(API, "https://prom.example.com:443@evil.org/api/", False, id="granted-host-and-port-as-user"),
        pytest.param("https://[::1]/", "https://[::1]:443@evil.org/", False, id="granted-ipv6-host-as-user"),
        pytest.param(API, "https://evil.org#@prom.example.com/api/", False, id="fragment-before-the-host"),
        pytest.param(API, "https://evil.org?@prom.example.com/api/", False, id="query-before-the-host"),
        pytest.param(API, "https://prom.example.com/api/#x", False, id="fragment"),
        pytest.param(API, "https://prom.example.com./api/", False, id="trailing-dot"),
        pytest.param("https://prom.example.com./", "https://prom.example.com./", True, id="trailing-dot-granted"),
        pytest.param(API, "https://prom.example.com%2e/api/", False, id="escaped-host"),
        pytest.param(API, "https://prom%2eexample.com/api/", False, id="escaped-dot-in-host"),
        pytest.param(API, "https://prom。example.com/api/", False, id="ideographic-dot"),
        pytest.param(API, "https://ｐrom.example.com/api/", False, id="full-width-letter"),
        pytest.param(API, "https://prom.example.com\\@evil.org/api/", False, id="backslash-in-host"),
        pytest.param(API, "https://evil.org\\.prom.example.com/api/", False, id="backslash-before-host"),
        pytest.param(API, "https:\\\\prom.example.com/api/", False, id="backslashes-for-slashes"),
        pytest.param(API, "https:prom.example.com/api/", False, id="no-slashes"),
        pytest.param(API, "https:/prom.example.com/api/", False, id="one-slash"),
        pytest.param(API, "https:///prom.example.com/api/", False, id="three-slashes"),
        pytest.param(API, "//prom.example.com/api/", False, id="no-scheme"),
        pytest.param(API, " https://prom.example.com/api/", False, id="leading-space"),
        pytest.param(API, "https://prom.example.com/api/\n", False, id="newline"),
        pytest.param(API, "ht\ntps://prom.example.com/api/", False, id="newline-in-scheme"),
        pytest.param(API, "https://prom.example.com/a\tpi/", False, id="tab"),
        pytest.param(API, "https://prom.example.com/api/..", False, id="parent"),
        pytest.param(API, "https://prom.example.com/api/../admin", False, id="parent-of-another"),
        pytest.param(API, "https://prom.example.com/x/../api/", False, id="way-round"),
        pytest.param(API, "https://prom.example.com/api/./x", False, id="dot"),
        pytest.param(API, "https://prom.example.com/api/%2e%2e/admin", False, id="escaped-parent"),
        pytest.param(API, "https://prom.example.com/api/.%2E/admin", False, id="half-escaped-parent"),
        pytest.param(API, "https://prom.example.com/api/%252e%252e/admin", False, id="twice-escaped-parent"),
        pytest.param(API, "https://prom.example.com/api/..%2fadmin", False, id="escaped-slash"),
        pytest.param(API, "https://prom.example.com/api%2fx", False, id="escaped-slash-of-the-prefix"),
        pytest.param(API, "https://prom.example.com/api/..\\admin", False, id="backslash"),
        pytest.param(API, "https://prom.example.com/api/..%5cadmin", False, id="escaped-backslash"),
        pytest.param(API, "https://prom.example.com/api/..;x/admin", False, id="parent-with-parameter"),
        pytest.param(API, "https://prom.example.com/api/..%3bx/admin", False, id="parent-with-escaped-parameter"),
        pytest.param(API, "https://prom.example.com/api/.%3B/admin", False, id="dot-with-escaped-parameter"),
        pytest.param(API, "https://prom.example.com/api/..%20/admin", False, id="parent-with-escaped-space"),
        pytest.param(API, "https://prom.example.com/api/%20..;x/admin", False, id="parent-behind-escaped-space"),
        pytest.param(API, "https://prom.example.com/api/x%3b../admin", True, id="parameter-of-a-name"),
        pytest.param(API, "https://prom.example.com/api//x", False, id="double-slash"),
        pytest.param(API, "https://prom.example.com//api/", False, id="double-slash-in-front"),
        pytest.param(API, "https://prom.example.com/api/%00", False, id="escaped-nul"),
        pytest.param(API, "https://prom.example.com/api/%0d%0aHost:%20evil", False, id="escaped-line-break"),
        pytest.param(API, "https://prom.example.com/api/%c0%ae%c0%ae/", False, id="overlong-dots"),
        pytest.param(API, "https://prom.example.com/api/%zz", False, id="broken-escape"),
        pytest.param(API, "https://prom.example.com/api/...", True, id="three-dots-are-a-name"),
        pytest.param(API, "https://prom.example.com/%61pi/x", True, id="escaped-letter"),
        pytest.param("https://h/a%20b/", "https://h/a%20b/c", True, id="escape-in-both"),
        pytest.param(
            API, 'https://prom.example.com/api/q?query=up{job="a b"}%', True, id="anything-printed-in-a-query"
        ),
        pytest.param(API, "https://prom.example.com/api/q?u=https://evil.org/../x", True, id="address-in-a-query"),
        pytest.param(API, "https://prom.example.com/x?/api/", False, id="prefix-in-the-query"),
        pytest.param("http://[::1]:9090/", "http://[0:0:0:0:0:0:0:1]:9090/x", True, id="ipv6-spelt-out"),
        pytest.param("http://[::1]:9090/", "http://[::2]:9090/", False, id="other-ipv6"),
        pytest.param("http://[::1]/", "http://[::1%25eth0]/", False, id="ipv6-with-zone"),
        pytest.param("http://[::1]/", "http://[::1].evil.org/", False, id="ipv6-with-more-behind"),
        pytest.param("http://[::1]/", "http://[::1/", False, id="ipv6-not-closed"),
        pytest.param("http://127.0.0.1/", "http://[::ffff:127.0.0.1]/", False, id="ipv4-in-ipv6"),
        pytest.param("http://127.0.0.1/", "http://2130706433/", False, id="ipv4-as-a-number"),
        pytest.param("", "", False, id="nothing"),
        pytest.param("https://h/?q", "https://h/?q", False, id="grant-with-query"),
    ],
)
def test_what_lies_within_an_address(prefix: str, url: str, expected: bool) -> None:
    """The same origin, a path that begins the same, and nothing that could be read in two ways."""
    assert expected == is_url_within(url, prefix)


PIECES = st.sampled_from(
    [
        "http", "https", "://", ":", "/", "//", "@", "#", "?", "\\", ".", "..", "%2e", "%2f", "%40", "%5c", "%00",
        "%25", "prom.example.com", "evil.org", "prom", ".example.com", "[::1]", "[", "]", "127.0.0.1", ":443", ":80",
        ":8443", ":0", "api", "/api/", "user", ";", "%3b", "%20", "%61", "&", "=", " ", "\t", "\n",
        "\u3002", "é", "[v1.x]",
        "PROM.EXAMPLE.COM", "x",
    ]
)  # fmt: skip
URLS = st.one_of(
    st.lists(PIECES, max_size=12).map("".join),
    st.lists(PIECES, max_size=8).map(lambda pieces: "https://prom.example.com" + "".join(pieces)),
    st.lists(PIECES, max_size=6).map(lambda pieces: "https://prom.example.com/api/" + "".join(pieces)),
    st.text(max_size=30).map(lambda text: "https://prom.example.com" + text),
)


@given(URLS)
@example("https://prom.example.com/api/x")
@example("https://prom.example.com/api/..%3b/x")
def test_no_other_origin_ever_matches(url: str) -> None:
    """The HTTP library requests an allowed URL from the granted server, below the granted path.

    What leaves is read as it is, and with all escapes undone, once and twice.
    """
    if is_url_within(url, API):
        fetched = URL(url)
        assert fetched.origin() == URL("https://prom.example.com").origin()
        assert fetched.user is None
        sent = fetched.raw_path
        assert unquote(sent).startswith("/api/")
        for read in (sent, fetched.path, unquote(unquote(sent))):
            assert not {".", ".."} & {name.partition(";")[0].strip() for name in re.split(r"[/\\]", read)}


@given(
    st.text(alphabet="ab*?[]", max_size=8),
    st.text(alphabet="ab*?[]", max_size=10),
)
@example("*a*a*a*b", "aaaaaaaaaa")
@example("", "")
@example("**", "")
def test_globs_agree_with_the_standard_library(pattern: str, text: str) -> None:
    """But for brackets, which mean themselves here."""
    plain = re.sub(r"\[", "[[]", pattern)

    assert matches_glob(pattern, text) == fnmatch.fnmatchcase(text, plain)


def test_a_hostile_glob_takes_no_longer_than_others() -> None:
    """A pattern of many stars is no reason to search for ever."""
    assert not matches_glob("*a" * 100 + "b", "a" * 2000)


_PIECES = st.sampled_from(("prom.example.com", "evil.org", "[::1]", "127.1", *"@:/?#", "443", "..", "%40", "%2f", "x"))


@given(st.sampled_from(["https://", "https:", "http://"]), st.lists(_PIECES, max_size=7).map("".join))
@example("https://", "prom.example.com:x@evil.org/")
def test_whatever_is_put_together_leads_to_the_granted_server_or_nowhere(scheme: str, rest: str) -> None:
    """Also where names of granted servers stand in places that are none of a server."""
    url = scheme + rest
    for granted in ("https://prom.example.com/", "https://[::1]/"):
        if is_url_within(url, granted):
            fetched = URL(url)
            assert (fetched.origin(), fetched.user, fetched.password) == (URL(granted).origin(), None, None)
