"""How a function is told to the engine.

Quantities in rules: `quantity("1Gi").isGreaterThan(quantity(self.size))`.

Lists and sets in rules: sums, extremes, order, positions, membership.

Regular expressions in rules: `find` and `findAll`, beside the `matches` that CEL has.

URLs in rules: `url(self.endpoint).getScheme() == "https"`.

Addresses and networks in rules: `cidr(self.range).containsIP(self.address)`.

The functions that Kubernetes adds to CEL, for those of them that our engine does not bring.

Types that CEL does not have (quantities, URLs, addresses, networks) are maps with one marked entry, because the engine
lets functions written in Python take and return nothing more special. The marks are made so that equal things are
equal maps.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from springtide.apiserver.custom.formats import GoPatternError, compile_go, is_uri
from springtide.quantity import Quantity, QuantityError


@dataclass(frozen=True, slots=True)
class CelFunction:
    """One overload of a function; types are named as the engine's own are: STRING, INT, LIST, MAP, DYN …"""

    name: str
    parameters: tuple[str, ...]
    result: str
    call: Callable[..., Any]
    member: bool = True
    """Whether it is called on its first parameter, as in `text.find(pattern)`."""


_NANO = 10**9
_INT64 = range(-(2**63), 2**63)

Boxed: TypeAlias = dict[str, Any]


def _box(nano: int) -> Boxed:
    # As text, because an amount in billionths outgrows the integers of CEL.
    return {"kubernetes.Quantity": str(nano)}


def _nano(boxed: Boxed) -> int:
    if "kubernetes.Quantity" not in boxed:
        raise ValueError("no such overload")
    return int(boxed["kubernetes.Quantity"])


def _quantity(text: str) -> Boxed:
    try:
        return _box(Quantity.parse(text).nano)
    except QuantityError:
        grammar = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
        raise ValueError(f"quantities must match the regular expression '{grammar}'") from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _compare(one: Boxed, other: Boxed) -> int:
    return (_nano(one) > _nano(other)) - (_nano(one) < _nano(other))


def _is_integer(boxed: Boxed) -> bool:
    units, rest = divmod(_nano(boxed), _NANO)
    return not rest and units in _INT64


def _as_integer(boxed: Boxed) -> int:
    if not _is_integer(boxed):
        raise ValueError("cannot convert value to integer")
    return _nano(boxed) // _NANO


def _by(operation: Callable[[int, int], int]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def with_quantity(one: Boxed, other: Boxed) -> Boxed:
        return _box(operation(_nano(one), _nano(other)))

    def with_integer(one: Boxed, other: int) -> Boxed:
        return _box(operation(_nano(one), other * _NANO))

    return with_quantity, with_integer


_ADD, _ADD_INTEGER = _by(lambda one, other: one + other)
_SUB, _SUB_INTEGER = _by(lambda one, other: one - other)

AMOUNTS = (
    CelFunction("quantity", ("STRING",), "MAP", _quantity, member=False),
    CelFunction("isQuantity", ("STRING",), "BOOL", _is_quantity, member=False),
    CelFunction("sign", ("MAP",), "INT", lambda boxed: (_nano(boxed) > 0) - (_nano(boxed) < 0), member=False),
    CelFunction("isGreaterThan", ("MAP", "MAP"), "BOOL", lambda one, other: _compare(one, other) > 0),
    CelFunction("isLessThan", ("MAP", "MAP"), "BOOL", lambda one, other: _compare(one, other) < 0),
    CelFunction("compareTo", ("MAP", "MAP"), "INT", _compare),
    CelFunction("asApproximateFloat", ("MAP",), "DOUBLE", lambda boxed: _nano(boxed) / _NANO),
    CelFunction("asInteger", ("MAP",), "INT", _as_integer),
    CelFunction("isInteger", ("MAP",), "BOOL", _is_integer),
    CelFunction("add", ("MAP", "MAP"), "MAP", _ADD),
    CelFunction("add", ("MAP", "INT"), "MAP", _ADD_INTEGER),
    CelFunction("sub", ("MAP", "MAP"), "MAP", _SUB),
    CelFunction("sub", ("MAP", "INT"), "MAP", _SUB_INTEGER),
)


def _is_sorted(values: list[Any]) -> bool:
    return all(one <= other for one, other in pairwise(values))


def _sum(values: list[Any]) -> Any:
    if values and isinstance(values[0], datetime.timedelta):
        return sum(values, datetime.timedelta())
    return sum(values)


def _extreme(name: str, choose: Callable[[Iterable[Any]], Any]) -> Callable[[list[Any]], Any]:
    def find(values: list[Any]) -> Any:
        if not values:
            raise ValueError(f"{name} called on empty list")
        return choose(values)

    return find


def _equal(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _index_of(values: list[Any], wanted: Any) -> int:
    return next((index for index, value in enumerate(values) if _equal(value, wanted)), -1)


def _last_index_of(values: list[Any], wanted: Any) -> int:
    return next((index for index in reversed(range(len(values))) if _equal(values[index], wanted)), -1)


def _distinct(values: list[Any]) -> list[Any]:
    return [value for index, value in enumerate(values) if _index_of(values, value) == index]


def _flatten(values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise ValueError("level must be non-negative")
    flat: list[Any] = []
    for value in values:
        flat.extend(_flatten(value, depth - 1) if isinstance(value, list) and depth else [value])
    return flat


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(values):
        raise ValueError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def _contains(values: list[Any], wanted: list[Any]) -> bool:
    return all(_index_of(values, value) >= 0 for value in wanted)


SEQUENCES = (
    CelFunction("isSorted", ("LIST",), "BOOL", _is_sorted),
    CelFunction("sum", ("LIST",), "DYN", _sum),
    CelFunction("max", ("LIST",), "DYN", _extreme("max", max)),
    CelFunction("min", ("LIST",), "DYN", _extreme("min", min)),
    CelFunction("indexOf", ("LIST", "DYN"), "INT", _index_of),
    CelFunction("lastIndexOf", ("LIST", "DYN"), "INT", _last_index_of),
    CelFunction("distinct", ("LIST",), "LIST", _distinct),
    CelFunction("flatten", ("LIST",), "LIST", _flatten),
    CelFunction("flatten", ("LIST", "INT"), "LIST", _flatten),
    CelFunction("reverse", ("LIST",), "LIST", lambda values: values[::-1]),
    CelFunction("slice", ("LIST", "INT", "INT"), "LIST", _slice),
    CelFunction("sort", ("LIST",), "LIST", sorted),
    CelFunction("lists.range", ("INT",), "LIST", lambda count: list(range(count)), member=False),
    CelFunction("sets.contains", ("LIST", "LIST"), "BOOL", _contains, member=False),
    CelFunction(
        "sets.equivalent",
        ("LIST", "LIST"),
        "BOOL",
        lambda one, other: _contains(one, other) and _contains(other, one),
        member=False,
    ),
    CelFunction(
        "sets.intersects",
        ("LIST", "LIST"),
        "BOOL",
        lambda one, other: any(_index_of(one, value) >= 0 for value in other),
        member=False,
    ),
)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return compile_go(pattern)
    except GoPatternError as error:
        raise ValueError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    found = _compiled(pattern).search(text)
    return found.group() if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match.group() for match in _compiled(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


EXPRESSIONS = (
    CelFunction("find", ("STRING", "STRING"), "STRING", _find),
    CelFunction("findAll", ("STRING", "STRING"), "LIST", _find_all),
    CelFunction("findAll", ("STRING", "STRING", "INT"), "LIST", _find_all),
)


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
    CelFunction("url", ("STRING",), "MAP", _url, member=False),
    CelFunction("isURL", ("STRING",), "BOOL", is_uri, member=False),
    CelFunction("getScheme", ("MAP",), "STRING", lambda boxed: _parts(boxed).scheme),
    CelFunction("getHost", ("MAP",), "STRING", _host),
    CelFunction("getHostname", ("MAP",), "STRING", _hostname),
    CelFunction("getPort", ("MAP",), "STRING", _port),
    CelFunction(
        "getEscapedPath", ("MAP",), "STRING", lambda boxed: quote(unquote(_parts(boxed).path), safe="/:@!$&'()*+,;=~")
    ),
    CelFunction("getQuery", ("MAP",), "MAP", lambda boxed: parse_qs(_parts(boxed).query, keep_blank_values=True)),
)


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface


def _read_address(text: str) -> _Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f'ParseAddr("{text}"): unable to parse IP') from None
    if "%" in text or (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped):
        raise ValueError(f'IP address "{text}" with zone value or IPv4-mapped is not allowed')
    return address


def _read_network(text: str) -> _Interface:
    try:
        if "/" not in text:
            raise ValueError("no '/'")
        return ipaddress.ip_interface(text)
    except ValueError:
        detail = f'netip.ParsePrefix("{text}"): invalid network'
        raise ValueError(f"network address parse error during conversion from string: {detail}") from None


def _reads(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def judge(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return judge


def _address(boxed: dict[str, Any]) -> _Address:
    if "net.IP" not in boxed:
        raise ValueError("no such overload")
    return ipaddress.ip_address(boxed["net.IP"])


def _network(boxed: dict[str, Any]) -> _Interface:
    if "net.CIDR" not in boxed:
        raise ValueError("no such overload")
    return ipaddress.ip_interface(boxed["net.CIDR"])


def _box_address(address: _Address) -> dict[str, Any]:
    return {"net.IP": str(address)}


def _within(boxed: dict[str, Any], address: _Address) -> bool:
    return address in _network(boxed).network


def _covers(boxed: dict[str, Any], other: _Interface) -> bool:
    network = _network(boxed).network
    return other.ip in network and network.prefixlen <= other.network.prefixlen


def _is_global_unicast(boxed: dict[str, Any]) -> bool:
    address = _address(boxed)
    plain = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not plain and str(address) != "255.255.255.255"


ADDRESSES = (
    CelFunction("ip", ("STRING",), "MAP", lambda text: _box_address(_read_address(text)), member=False),
    CelFunction("isIP", ("STRING",), "BOOL", _reads(_read_address), member=False),
    CelFunction("ip.isCanonical", ("STRING",), "BOOL", lambda text: str(_read_address(text)) == text, member=False),
    CelFunction("family", ("MAP",), "INT", lambda boxed: _address(boxed).version),
    CelFunction("isUnspecified", ("MAP",), "BOOL", lambda boxed: _address(boxed).is_unspecified),
    CelFunction("isLoopback", ("MAP",), "BOOL", lambda boxed: _address(boxed).is_loopback),
    CelFunction("isLinkLocalUnicast", ("MAP",), "BOOL", lambda boxed: _address(boxed).is_link_local),
    CelFunction("isGlobalUnicast", ("MAP",), "BOOL", _is_global_unicast),
    CelFunction("cidr", ("STRING",), "MAP", lambda text: {"net.CIDR": str(_read_network(text))}, member=False),
    CelFunction("isCIDR", ("STRING",), "BOOL", _reads(_read_network), member=False),
    CelFunction("containsIP", ("MAP", "STRING"), "BOOL", lambda box, text: _within(box, _read_address(text))),
    CelFunction("containsIP", ("MAP", "MAP"), "BOOL", lambda box, other: _within(box, _address(other))),
    CelFunction("containsCIDR", ("MAP", "STRING"), "BOOL", lambda box, text: _covers(box, _read_network(text))),
    CelFunction("containsCIDR", ("MAP", "MAP"), "BOOL", lambda box, other: _covers(box, _network(other))),
    CelFunction("ip", ("MAP",), "MAP", lambda boxed: _box_address(_network(boxed).ip)),
    CelFunction("prefixLength", ("MAP",), "INT", lambda boxed: _network(boxed).network.prefixlen),
    CelFunction("masked", ("MAP",), "MAP", lambda boxed: {"net.CIDR": str(_network(boxed).network)}),
)


FUNCTIONS: tuple[CelFunction, ...] = (*AMOUNTS, *SEQUENCES, *EXPRESSIONS, *LOCATIONS, *ADDRESSES)
