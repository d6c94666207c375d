"""URLs in rules: `url(self.endpoint).getScheme() == "https"`."""

from __future__ import annotations

from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from springtide.simulator.api.custom.formats import is_uri
from springtide.simulator.api.custom.rules.library.signatures import Signature


def _url(text: str) -> dict[str, Any]:
    if not is_uri(text):
        raise ValueError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return {"kubernetes.URL": text}


def _parts(boxed: dict[str, Any]) -> SplitResult:
    if "kubernetes.URL" not in boxed:
        raise ValueError("no such overload")
    return urlsplit(str(boxed["kubernetes.URL"]))


def _host(boxed: dict[str, Any]) -> str:
    return _parts(boxed).netloc.rpartition("@")[2]


def _hostname(boxed: dict[str, Any]) -> str:
    host = _host(boxed)
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _port(boxed: dict[str, Any]) -> str:
    return _host(boxed).rpartition("]")[2].rpartition(":")[2] if ":" in _host(boxed).rpartition("]")[2] else ""


LOCATIONS = (
    Signature("url", ("STRING",), "MAP", _url, member=False),
    Signature("isURL", ("STRING",), "BOOL", is_uri, member=False),
    Signature("getScheme", ("MAP",), "STRING", lambda boxed: _parts(boxed).scheme),
    Signature("getHost", ("MAP",), "STRING", _host),
    Signature("getHostname", ("MAP",), "STRING", _hostname),
    Signature("getPort", ("MAP",), "STRING", _port),
    Signature(
        "getEscapedPath", ("MAP",), "STRING", lambda boxed: quote(unquote(_parts(boxed).path), safe="/:@!$&'()*+,;=~")
    ),
    Signature("getQuery", ("MAP",), "MAP", lambda boxed: parse_qs(_parts(boxed).query, keep_blank_values=True)),
)
