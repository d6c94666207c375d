"""Addresses and networks in rules: `cidr(self.range).containsIP(self.address)`."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

from springtide.simulator.api.custom.rules.library.signatures import Signature

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
    Signature("ip", ("STRING",), "MAP", lambda text: _box_address(_read_address(text)), member=False),
    Signature("isIP", ("STRING",), "BOOL", _reads(_read_address), member=False),
    Signature("ip.isCanonical", ("STRING",), "BOOL", lambda text: str(_read_address(text)) == text, member=False),
    Signature("family", ("MAP",), "INT", lambda boxed: _address(boxed).version),
    Signature("isUnspecified", ("MAP",), "BOOL", lambda boxed: _address(boxed).is_unspecified),
    Signature("isLoopback", ("MAP",), "BOOL", lambda boxed: _address(boxed).is_loopback),
    Signature("isLinkLocalUnicast", ("MAP",), "BOOL", lambda boxed: _address(boxed).is_link_local),
    Signature("isGlobalUnicast", ("MAP",), "BOOL", _is_global_unicast),
    Signature("cidr", ("STRING",), "MAP", lambda text: {"net.CIDR": str(_read_network(text))}, member=False),
    Signature("isCIDR", ("STRING",), "BOOL", _reads(_read_network), member=False),
    Signature("containsIP", ("MAP", "STRING"), "BOOL", lambda box, text: _within(box, _read_address(text))),
    Signature("containsIP", ("MAP", "MAP"), "BOOL", lambda box, other: _within(box, _address(other))),
    Signature("containsCIDR", ("MAP", "STRING"), "BOOL", lambda box, text: _covers(box, _read_network(text))),
    Signature("containsCIDR", ("MAP", "MAP"), "BOOL", lambda box, other: _covers(box, _network(other))),
    Signature("ip", ("MAP",), "MAP", lambda boxed: _box_address(_network(boxed).ip)),
    Signature("prefixLength", ("MAP",), "INT", lambda boxed: _network(boxed).network.prefixlen),
    Signature("masked", ("MAP",), "MAP", lambda boxed: {"net.CIDR": str(_network(boxed).network)}),
)
