"""Passwords and tokens are removed from addresses in texts, whatever is wrong with the addresses."""

from __future__ import annotations

import re
from string import ascii_letters, digits
from types import SimpleNamespace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from springtide.apis import redaction
from springtide.apis.redaction import redacted, redacted_address

SECRET = "S3cr3tPa55"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("http://user:¶@host/a", "http://…@host/a", id="user-and-password"),
        pytest.param("https://¶@host", "https://…@host", id="only-a-user"),
        pytest.param("https://:¶@host:443/", "https://…@host:443/", id="only-a-password"),
        pytest.param("http://user:p%40¶@host/", "http://…@host/", id="percent-encoded-at"),
        pytest.param("http://user:a@b@¶@host/", "http://…@host/", id="at-in-the-password"),
        pytest.param("http://user:a/¶@host/", "http://…@host/", id="slash-in-the-password"),
        pytest.param("http://user:a?¶@host/", "http://…@host/", id="question-mark-in-the-password"),
        pytest.param("http://user:a#¶@host/", "http://…@host/", id="hash-in-the-password"),
        pytest.param("http://user:12/¶@host/", "http://…@host/", id="password-that-begins-like-a-port"),
        pytest.param("'http://user:a ¶@host/' is no URL", "'http://…@host/' is no URL", id="space-in-the-password"),
        pytest.param('"http://user:a\'¶@host"', '"http://…@host"', id="quote-in-the-password"),
        pytest.param("http://user:¶", "http://user:…", id="without-a-host"),
        pytest.param("'http://user:¶/': no host", "'http://user:…': no host", id="without-a-host-quoted"),
        pytest.param("http:/user:¶@host", "http:/…@host", id="one-slash"),
        pytest.param("http:user:¶@host", "http:…@host", id="no-slash"),
        pytest.param("http:///user:¶@host", "http:///…@host", id="three-slashes"),
        pytest.param("http:\\\\user:¶@host", "http:\\\\…@host", id="backslashes"),
        pytest.param("HTTPS://user:¶@host", "HTTPS://…@host", id="upper-case"),
        pytest.param("//user:¶@host", "//…@host", id="without-a-scheme"),
        pytest.param("socks5://user:¶@host:1080", "socks5://…@host:1080", id="proxy"),
        pytest.param("http%3A%2F%2Fuser%3A¶%40host%2Fa", "http%3A%2F%2F…%40host%2Fa", id="encoded-url"),
        pytest.param("https://a/?to=http%3a%2f%2fu%3a¶%40h", "https://…%40h", id="url-in-a-query"),
        pytest.param("http://u:¶@a and http://v:¶@b.", "http://…@a and http://…@b.", id="two-urls"),
        pytest.param("http://u:¶@a,http://v:¶@b", "http://…@b", id="two-urls-in-one-word"),
        pytest.param("http://[¶:u@::1]:80/", "http://…@::1]:80/", id="within-brackets"),
        pytest.param("https://h/q?token=¶", "https://h/q?token=…", id="token"),
        pytest.param("https://h/q?a=1&access_token=¶&b=2", "https://h/q?a=1&access_token=…&b=2", id="access-token"),
        pytest.param("https://h/q?X-Amz-Signature=¶&x=1", "https://h/q?X-Amz-Signature=…&x=1", id="signature-of-aws"),
        pytest.param("https://h/q?apiKey=¶", "https://h/q?apiKey=…", id="api-key"),
        pytest.param("https://h/q?client_secret=¶#x", "https://h/q?client_secret=…#x", id="client-secret"),
        pytest.param("https://h/q?sig=¶", "https://h/q?sig=…", id="sas"),
        pytest.param("to=%3Ftoken%3D¶%26a%3D1", "to=%3Ftoken%3D…%26a%3D1", id="encoded-token"),
    ],
)
def test_secrets_are_removed(text: str, expected: str) -> None:
    found = redacted(text.replace("¶", SECRET))

    assert SECRET not in found
    assert found == expected


@pytest.mark.parametrize(
    "text",
    [
        "http://prometheus.monitoring:9090/",
        "cannot reach http://prometheus.monitoring:9090: connection refused",
        "(https://example.com:8443), https://[::1]:443/healthz and https://[fe80::1%25eth0]/",
        "write https://HOST[:PORT] or http://HOST:PORT/.",
        "https://example.com/users/@me",
        "image registry.example.com/app:1.0@sha256:0123456789abcdef",
        "arn:aws:sqs:eu-central-1:123456789012:jobs",
        "mail someone@example.com; a//b: c@d is not an address"[:26],
        "https://example.com/a?page=2&sort=name",
        "key=value, token: none, rule `a=b`",
        "karpenter_scheduled_capacity{name=\"shop\"} @ 1609746000",
        "",
    ],
)  # fmt: skip
def test_other_texts_are_left_as_they_are(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        pytest.param(f"user:{SECRET}@proxy:3128", "…@proxy:3128", id="without-a-scheme"),
        pytest.param(f"{SECRET}@proxy", "…@proxy", id="only-a-user"),
        pytest.param(f"ftp://user:{SECRET}@proxy", "ftp://…@proxy", id="with-a-scheme"),
        pytest.param("proxy:3128", "proxy:3128", id="nothing-to-remove"),
    ],
)
def test_the_text_of_an_address(address: str, expected: str) -> None:
    assert redacted_address(address) == expected


_PASSWORDS = st.text(st.sampled_from("@:/?#%&= '\"[]\\aZ0"), max_size=12).map(
    lambda text: f"{text[:6]}{SECRET}{text[6:]}"
)
_HOSTS = st.sampled_from(["host", "host:80", "10.0.0.1", "[::1]:80", "a.example.com/path?x=1"])


@given(st.sampled_from(["http", "https", "socks5"]), st.sampled_from(["user", "a.b", ""]), _PASSWORDS, _HOSTS)
@example("http", "user", f"@ {SECRET}", "host")
def test_no_password_remains(scheme: str, user: str, password: str, host: str) -> None:
    """Even one that no client would accept in a URL; after what can be a port or a host, a space or quote ends it."""
    assume(not re.search(r"^\d+[ '\"]|@[^@]+[ '\"]", password))
    assert SECRET not in redacted(f"cannot use '{scheme}://{user}:{password}@{host}': refused")


@given(st.text(ascii_letters + digits + "@:/?#%&= '\"[]\n", max_size=200))
def test_redacted_texts_stay_as_they_are(text: str) -> None:
    once = redacted(text)

    assert redacted(once) == once


@pytest.mark.parametrize(
    "unit",
    ["http://", "//", "@", "//a:b", "a:b@", "//a@", "?token=", "?", "&api_", "%2F", "[", "/@:", "http://a:b ", "%40 "],
)
def test_the_work_is_linear(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in characters that searches pass, at most some thousands for each URL of the text."""

    def work(size: int) -> int:
        text = f"http://{unit * (size // len(unit))}"
        passed = 0

        def counting(pattern: re.Pattern[str]) -> object:
            def search(text: str, start: int = 0, end: int = 1 << 60) -> re.Match[str] | None:
                nonlocal passed
                found = pattern.search(text, start, end)
                passed += min(len(text), end if found is None else found.end()) - start
                return found

            def match(text: str, start: int = 0) -> re.Match[str] | None:
                nonlocal passed
                found = pattern.match(text, start)
                passed += 0 if found is None else found.end() - start
                return found

            def finditer(text: str, start: int, end: int) -> object:
                nonlocal passed
                passed += min(len(text), end) - start
                return pattern.finditer(text, start, end)

            return SimpleNamespace(
                search=search, match=match, finditer=finditer, fullmatch=pattern.fullmatch, sub=pattern.sub
            )

        with monkeypatch.context() as patched:
            for name, value in vars(redaction).items():
                if isinstance(value, re.Pattern):
                    patched.setattr(redaction, name, counting(value))
            redacted(text)
        return passed

    assert work(80_000) <= 2.5 * work(40_000)
