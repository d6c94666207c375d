"""Addresses that mean the same to everybody who reads them.

A grant compares addresses here, but others fetch them: HTTP libraries, proxies and servers, which mend what they are
given, each in its own way. So whatever would need mending is no address here: users, backslashes, dots and slashes in
disguise, unusual characters.

The kinds that belong to nobody else: Calendar, Grant and NodeClass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import AddressValueError, IPv6Address
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from msgspec import Meta

from springtide.almanac import CalendarError, public_holidays
from springtide.apis.kinds import CelRule, NonEmpty, ValidationContext, View, Zone, as_set, doc, schema, text_format
from springtide.apis.meta.types import Conditions, Object
from springtide.apis.problems import Problem, error, warning

_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[!$&-;=@-Z_a-z~%\[\]]+")
"""The characters before a query; no backslash, space, quote, brace or anything beyond ASCII among them."""
_QUERY = re.compile(r"[ !\"$-\[\]-~]*")
"""The characters of a query: whatever is printed, but for `#` and the backslash."""
_HOST = re.compile(r"[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*\.?")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_AMBIGUOUS_ESCAPES = re.compile(r"%(2[ef5]|5c|[01][0-9a-f]|7f)|[\[\]]", re.IGNORECASE)
"""Escapes of dots, slashes, percent signs, backslashes and control characters: nobody needs them in a path.

Nor brackets, which belong to hosts.
"""


@dataclass(frozen=True, slots=True)
class NormalizedUrl:
    """An address in its one form."""

    scheme: str
    host: str
    port: int
    path: str
    """Without escapes; never empty."""
    query: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """Who is asked."""
        return self.scheme, self.host, self.port


def normalize_url(url: str) -> NormalizedUrl | None:
    """Read an address; None where it is none, or can be read in more than one way."""
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
    """Read the host, which is all that may stand before the port."""
    if "@" in netloc:
        return None  # who is asked stands behind it, however much what stands before it looks like a host
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
    """Tell whether a path without escapes leads to where it says, whoever walks it.

    Without: HTTP libraries undo some of them before they send a path, and servers the others.
    """
    segments = path.split("/")[1:]
    names = [segment.partition(";")[0].strip() for segment in segments]
    return not any(name in (".", "..") for name in names) and all(segments[:-1])


# The API server wants to know how long the texts are that a rule compares; our own checks have better words for it.
Date = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), schema(maxLength=10), text_format("date")]
MonthDay = Annotated[str, Meta(pattern=r"^[0-9]{2}-[0-9]{2}$"), schema(maxLength=5), text_format("month-day")]

_LEAP_DAY = "02-29"

_EVERYTHING = "*"

Globs = Annotated[tuple[NonEmpty, ...], Meta(max_length=256), as_set]


class DateRange(View, kw_only=True):
    """Days in a row."""

    __rules__ = (CelRule("self.from <= self.until", "A range must not end before it begins: swap from and until."),)
    __mistaken__ = {"start": "write `from`", "end": "write `until`, the last day", "to": "write `until`, the last day"}

    from_: Annotated[Date, doc("The first day.")]
    until: Annotated[Date, doc("The last day, which belongs to the range.")]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find ranges without a day."""
        if self.until < self.from_:
            yield error(("until",), f"the range ends on {self.until}, before it begins on {self.from_}", "swap them")


class Holidays(View, kw_only=True):
    """The public holidays of a country."""

    __mistaken__ = {"state": "write `subdivision`", "region": "write `subdivision`"}

    country: Annotated[NonEmpty, doc("The country, by its ISO 3166 code, such as DE.")]
    subdivision: Annotated[NonEmpty | None, doc("The part of the country, by its code, such as BE.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find countries and parts of them whose holidays nobody knows."""
        key = "country"
        try:
            public_holidays(self.country)
            key = "subdivision"
            public_holidays(self.country, self.subdivision)
        except CalendarError as failure:
            # Without the package nothing can be said about the country, right or wrong.
            judge = error if find_spec("holidays") is not None else warning
            yield judge((key,), failure.message, failure.hint)


class CalendarSpec(View, kw_only=True):
    """Which days are in the calendar: all that are listed in any way."""

    __mistaken__ = {"timezone": "write `timeZone`", "days": "write `dates`", "annual": "write `yearly`"}

    time_zone: Annotated[
        Zone | None, doc("Zone whose midnights part the days; that of the object which refers to it if not set.")
    ] = None
    dates: Annotated[Annotated[tuple[Date, ...], Meta(max_length=1024), as_set] | None, doc("Single days.")] = None
    ranges: Annotated[Annotated[tuple[DateRange, ...], Meta(max_length=256)] | None, doc("Days in a row.")] = None
    yearly: Annotated[
        Annotated[tuple[MonthDay, ...], Meta(max_length=366), as_set] | None,
        doc("Days of every year, as month and day."),
    ] = None
    holidays: Annotated[Holidays | None, doc("The public holidays of a country.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find calendars without days, and days that most years do not have."""
        if not (self.dates or self.ranges or self.yearly or self.holidays):
            yield warning((), "the calendar has no days", "add `dates`, `ranges`, `yearly` or `holidays`")
        for position, day in enumerate(self.yearly or ()):
            if day == _LEAP_DAY:
                yield warning(("yearly", position), "29 February exists in leap years only")


class CalendarStatus(View, kw_only=True):
    """What the calendar comes to."""

    next_dates: Annotated[tuple[Date, ...] | None, doc("The next days of the calendar.")] = None
    conditions: Annotated[Conditions | None, doc("What is observed about the calendar.")] = None


class Calendar(Object, kw_only=True):
    """Days that schedules leave out, or that they are for: holidays, freezes, sales."""

    spec: Annotated[CalendarSpec, doc("Which days are in the calendar.")]
    status: Annotated[CalendarStatus | None, doc("What the calendar comes to.")] = None


class GrantSpec(View, kw_only=True):
    """Who may reach what; what no grant allows is refused."""

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
            "Addresses that may be read: every one that begins with one of these, at the same scheme, host and port."
            " End it with a slash to name a folder."
        ),
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find grants of nothing, of everything, and addresses that match nothing."""
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

    spec: Annotated[GrantSpec, doc("Who may reach what.")]
    status: Annotated[GrantStatus | None, doc("What is observed.")] = None


class NodeClassSpec(View, kw_only=True):
    """The provider of the nodes, and its settings."""

    provider: Annotated[Literal["simulated", "cluster-api", "aws"], doc("Who makes the nodes.")]
    parameters: Annotated[Annotated[dict[str, str], Meta(max_length=100)] | None, doc("Settings of the provider.")] = (
        None
    )


class NodeClassStatus(View, kw_only=True):
    """What is observed about the class."""

    conditions: Annotated[Conditions | None, doc("What is observed about the class.")] = None


class NodeClass(Object, kw_only=True):
    """Where the nodes of a NodePool come from."""

    spec: Annotated[NodeClassSpec, doc("The provider, and its settings.")]
    status: Annotated[NodeClassStatus | None, doc("What is observed.")] = None


def _url_problems(url: str) -> Iterator[Problem]:
    """Find addresses that no address lies within."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as failure:
        yield error((), f'"{url}" is not an address: {failure}')
        return
    if parts.scheme not in ("http", "https") or not host:
        yield error((), f'"{url}" must begin with http:// or https:// and a host', "write https://prom.example.com/")
    elif "*" in url or "?" in url or "#" in url:
        yield error(
            (),
            f'"{url}": an address matches by how it begins, `*`, `?` and `#` mean nothing',
            "cut it before the first of them",
        )
    elif "@" in parts.netloc:
        yield error(
            (), f'"{_without_user(url)}": an address with a user or a password matches nothing', "leave them out"
        )
    elif normalize_url(url) is None:
        hint = "write it as it is sent: plain letters, and no `..`, `//`, `\\`, `%2F` or `%2E`"
        yield error((), f'"{url}" can be read in more than one way, and matches nothing', hint)


def _without_user(url: str) -> str:
    """Keep what may be a password out of messages."""
    scheme, mark, rest = url.partition("//")
    return f"{scheme}{mark}…@{rest.rpartition('@')[2]}"
