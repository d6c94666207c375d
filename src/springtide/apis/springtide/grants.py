"""Grant: what objects of a namespace may reach through the credentials of the control plane.

What no grant allows is rejected. Ids match by globs, as a whole. URLs match by prefix, but only within one origin:
scheme, host and port must be equal, and the path must begin with the granted one. Grants compare URLs, but HTTP
libraries, proxies and servers request them, and each normalizes what it is given in its own way. So a URL that needs
normalizing is rejected: one with a user, backslashes, encoded dots or slashes, or unusual characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from ipaddress import AddressValueError, IPv6Address
from typing import Annotated
from urllib.parse import unquote, urlsplit

from msgspec import Meta

from springtide.apis.kinds import NonEmpty, ValidationContext, View, as_set, doc
from springtide.apis.meta.types import Conditions, Object
from springtide.apis.problems import Problem, error, warning

_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[!$&-;=@-Z_a-z~%\[\]]+")
"""The characters before a query: ASCII without backslash, space, quotes and braces."""
_QUERY = re.compile(r"[ !\"$-\[\]-~]*")
"""The characters of a query: printable ASCII without `#` and backslash."""
_HOST = re.compile(r"[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*\.?")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_AMBIGUOUS_ESCAPES = re.compile(r"%(2[ef5]|5c|[01][0-9a-f]|7f)|[\[\]]", re.IGNORECASE)
"""Escapes of dots, slashes, percent signs, backslashes and control characters, which no path needs, and brackets."""


_EVERYTHING = "*"

Globs = Annotated[tuple[NonEmpty, ...], Meta(max_length=256), as_set]


class GrantSpec(View, kw_only=True):
    """Which namespaces may reach what; what no grant allows is rejected."""

    __mistaken__ = {"namespace": "write `namespaces`, a list", "nodegroups": "write `nodeGroups`"}

    namespaces: Annotated[
        Annotated[
            tuple[Annotated[str, Meta(min_length=1, max_length=63, pattern=r"^[-a-z0-9*?]+$")], ...],
            Meta(min_length=1, max_length=256),
            as_set,
        ],
        doc("The namespaces whose objects may; `*` stands for any text, `?` for any letter."),
    ]
    node_groups: Annotated[
        Globs | None,
        doc("Node groups that may be scaled, by the ids that their provider gives them; with `*` and `?`."),
    ] = None
    queues: Annotated[Globs | None, doc("Queues whose length may be read, by their ids; with `*` and `?`.")] = None
    urls: Annotated[
        Annotated[tuple[NonEmpty, ...], Meta(max_length=256), as_set] | None,
        doc(
            "URL prefixes that may be read, at the same scheme, host and port."
            " End one with a slash to allow a directory."
        ),
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find grants of nothing, of everything, and URLs that match nothing."""
        if not (self.node_groups or self.queues or self.urls):
            yield warning((), "the grant allows nothing", "add `nodeGroups`, `queues` or `urls`")
        for position, url in enumerate(self.urls or ()):
            for problem in _url_problems(url):
                yield problem.under("urls", position)
        if _EVERYTHING not in self.namespaces:
            return
        for key, globs, what in (("nodeGroups", self.node_groups, "node group"), ("queues", self.queues, "queue")):
            if _EVERYTHING in (globs or ()):
                yield warning(
                    (key, (globs or ()).index(_EVERYTHING)),
                    f"every namespace may reach every {what} that our credentials reach",
                    "name the namespaces, or the beginning of the ids",
                )


class GrantStatus(View, kw_only=True):
    """What is observed about the grant."""

    conditions: Annotated[Conditions | None, doc("What is observed about the grant.")] = None


class Grant(Object, kw_only=True):
    """What objects of some namespaces may reach through the credentials of the control plane."""

    spec: Annotated[GrantSpec, doc("Which namespaces may reach what.")]
    status: Annotated[GrantStatus | None, doc("What is observed.")] = None


class GrantedResource(Enum):
    """What a namespace may reach: the field of a grant that lists it, and the noun in messages."""

    NODE_GROUP = ("nodeGroups", "node group")
    QUEUE = ("queues", "queue")
    URL = ("urls", "address")

    @property
    def field(self) -> str:
        """The field of the spec of a Grant."""
        return self.value[0]

    @property
    def noun(self) -> str:
        """The noun in messages."""
        return self.value[1]


def is_granted(grants: Iterable[GrantSpec], namespace: str, reach: GrantedResource, target: str) -> bool:
    """Return whether one of the grants lets objects of a namespace reach a target."""
    return any(_grants(grant, namespace, reach, target) for grant in grants)


def missing_grant_message(namespace: str, reach: GrantedResource, target: str) -> str:
    """Return the message for a missing grant."""
    return (
        f'no Grant lets objects of namespace {namespace} reach the {reach.noun} "{target}":'
        f" list it under `{reach.field}` of a Grant for this namespace"
    )


def _grants(grant: GrantSpec, namespace: str, reach: GrantedResource, target: str) -> bool:
    if not any(matches_glob(pattern, namespace) for pattern in grant.namespaces):
        return False
    match reach:
        case GrantedResource.NODE_GROUP:
            return any(matches_glob(pattern, target) for pattern in grant.node_groups or ())
        case GrantedResource.QUEUE:
            return any(matches_glob(pattern, target) for pattern in grant.queues or ())
        case GrantedResource.URL:
            return any(is_url_within(target, prefix) for prefix in grant.urls or ())


def matches_glob(pattern: str, text: str) -> bool:
    """Return whether a glob of `*`, `?` and literal characters matches a whole text.

    The time is at most proportional to the product of the lengths: only the last `*` is ever tried again.
    """
    at = star = retry = 0
    has_star = False
    position = 0
    while position < len(text):
        if at < len(pattern) and pattern[at] == "*":
            has_star, star, retry = True, at, position
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", text[position]):
            at += 1
            position += 1
        elif has_star:
            retry += 1
            at, position = star + 1, retry
        else:
            return False
    return not pattern[at:].strip("*")


def is_url_within(url: str, prefix: str) -> bool:
    """Return whether a URL is within a granted one; an ambiguous URL is not."""
    asked, granted = normalize_url(url), normalize_url(prefix)
    if asked is None or granted is None or granted.query:
        return False
    return asked.origin == granted.origin and asked.path.startswith(granted.path)


@dataclass(frozen=True, slots=True)
class NormalizedUrl:
    """A URL in its normalized form."""

    scheme: str
    host: str
    port: int
    path: str
    """Decoded; never empty."""
    query: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port."""
        return self.scheme, self.host, self.port


def normalize_url(url: str) -> NormalizedUrl | None:
    """Parse a URL; None if it is invalid, or ambiguous."""
    place, _, query = url.partition("?")
    if not _PLAIN.fullmatch(place) or _ESCAPE.search(place) or not _QUERY.fullmatch(query):
        return None
    try:
        parts = urlsplit(place)
        port = parts.port
        path = unquote(parts.path, errors="strict") or "/"
    except ValueError:
        return None
    host = _host(parts.netloc)
    if (
        parts.scheme not in _PORTS
        or host is None
        or _AMBIGUOUS_ESCAPES.search(parts.path)
        or not _is_unambiguous_path(path)
    ):
        return None
    return NormalizedUrl(
        scheme=parts.scheme,
        host=host,
        port=_PORTS[parts.scheme] if port is None else port,
        path=path,
        query=query,
    )


def _host(netloc: str) -> str | None:
    """Parse the host, which must be all that is before the port."""
    if "@" in netloc:
        return None  # the host is behind it, even if the user name before it looks like one
    if netloc.startswith("["):
        inner, _, rest = netloc[1:].partition("]")
        if rest and not rest.startswith(":"):
            return None
        try:
            return f"[{IPv6Address(inner).compressed}]" if "%" not in inner else None
        except AddressValueError:
            return None
    host = netloc.partition(":")[0].lower()
    return host if _HOST.fullmatch(host) else None


def _is_unambiguous_path(path: str) -> bool:
    """Return whether every server resolves a decoded path in the same way: no `.`, `..` or empty segments."""
    segments = path.split("/")[1:]
    names = [segment.partition(";")[0].strip() for segment in segments]
    return not any(name in (".", "..") for name in names) and all(segments[:-1])


def _url_problems(url: str) -> Iterator[Problem]:
    """Find URLs that no URL is within."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as failure:
        yield error((), f'"{url}" is not a URL: {failure}')
        return
    if parts.scheme not in ("http", "https") or not host:
        yield error((), f'"{url}" must begin with http:// or https:// and a host', "write https://prom.example.com/")
    elif "*" in url or "?" in url or "#" in url:
        yield error(
            (),
            f'"{url}": a URL matches by prefix; `*`, `?` and `#` have no meaning',
            "cut it before the first of them",
        )
    elif "@" in parts.netloc:
        yield error((), f'"{url}": a URL with a user or a password matches nothing', "leave them out")
    elif normalize_url(url) is None:
        hint = "write it as it is sent: plain characters, and no `..`, `//`, `\\`, `%2F` or `%2E`"
        yield error((), f'"{url}" is ambiguous, and matches nothing', hint)
