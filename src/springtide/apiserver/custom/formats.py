r"""Patterns in Go's syntax, the formats of strings, and the form of the names of kinds.

Users write patterns and texts, so both engines match in linear time: the one of jsonschema-rs, which validates whole
objects, and RE2 for the patterns that it does not accept, such as `\z`. Go's syntax is that of RE2. Formats that are
not listed here are not checked.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

import jsonschema_rs
import re2

from springtide.quantity import DurationError, parse_duration

_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_MATCHES_LABEL = re.compile(_LABEL).fullmatch
_MAX_LENGTH = 63


@lru_cache(maxsize=4096)
def kind_name_problem(text: str) -> str:
    """Return what is wrong with the name of a version, or with the lower-case name of a kind; empty if nothing is."""
    if len(text) > _MAX_LENGTH:
        return f"must be no more than {_MAX_LENGTH} characters"
    if _MATCHES_LABEL(text):
        return ""
    return (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation "
        f"is '{_LABEL}')"
    )


LINEAR: Final = jsonschema_rs.RegexOptions()

_NOT_IN_GO: Final = re.compile(r"\(\?(?:=|!|<=|<!|>|P=|\()|\\[1-9]|(?<!\\)(?:\\\\)*+\\C")
_GO_ERRORS: Final = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
}
"""What Go calls the errors of RE2."""
_PATTERN_MEMORY: Final = 1024 * 1024


class GoPatternError(ValueError):
    """A pattern is not a regular expression in Go's syntax."""


@lru_cache(maxsize=4096)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells whether a pattern matches anywhere in a string."""
    if is_linear(pattern):
        is_match: Callable[[str], bool] = jsonschema_rs.Draft7Validator(
            {"pattern": pattern}, pattern_options=LINEAR
        ).is_valid
        return is_match
    compiled = compile_go(pattern)
    return lambda text: compiled.search(text) is not None


@lru_cache(maxsize=4096)
def is_linear(pattern: str) -> bool:
    """Whether the linear-time engine accepts the pattern."""
    try:
        jsonschema_rs.Draft7Validator({"pattern": pattern}, pattern_options=LINEAR)
    except jsonschema_rs.ValidationError:
        return False
    return True


@lru_cache(maxsize=4096)
def compile_go(pattern: str) -> Any:
    """Compile a pattern in Go's syntax with RE2."""
    foreign = _NOT_IN_GO.search(re.sub(r"\\\\", "", pattern))
    if foreign is not None:
        raise GoPatternError(f"error parsing regexp: invalid or unsupported Perl syntax: `{foreign.group()}`")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_MEMORY
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        what, colon, where = reason.partition(": ")
        place = f": `{where}`" if colon else ""
        raise GoPatternError(f"error parsing regexp: {_GO_ERRORS.get(what, what)}{place}") from None
    except UnicodeEncodeError:
        raise GoPatternError("error parsing regexp: invalid UTF-8") from None


_UUID: Final = re.compile("[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_HOSTNAME_LABEL: Final = re.compile(r"[^\W_](?:(?:[^\W_]|-)*[^\W_])?")
_HOSTNAME_TOP: Final = re.compile(r"[^\W\d_]{2,63}")
_LOOSE_DURATION: Final = re.compile(r"(?<![0-9])[0-9]++\s*+([A-Za-zµ]+)")
_UNIT_STEMS: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_UNITS: Final = ("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk")


def is_uuid(text: str) -> bool:
    """Return whether a string is a UUID, with or without dashes."""
    return _UUID.fullmatch(text) is not None


def is_date(text: str) -> bool:
    """Whether a string is a date such as 2026-12-24."""
    try:
        return len(text) == 10 and bool(datetime.date.fromisoformat(text))
    except ValueError:
        return False


def is_date_time(text: str) -> bool:
    """Whether a string is a time such as 2026-12-24T18:00:00Z."""
    date, _, time = text.lower().partition("t")
    found = _TIME.fullmatch(time)
    return is_date(date) and found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def is_duration(text: str) -> bool:
    """Whether a string is a duration such as 1h30m or 2 days."""
    try:
        parse_duration(text)
    except DurationError:
        units = [unit.lower() for unit in _LOOSE_DURATION.findall(text)]
        return any(unit in _UNITS or unit.startswith(_UNIT_STEMS) for unit in units)
    return True


def is_base64(text: str) -> bool:
    """Whether a string is base64."""
    try:
        return bool(text) and bool(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return False


def is_uri(text: str) -> bool:
    """Whether a string is an absolute URI or path."""
    if text.startswith("/"):
        return True
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) and " " not in parts.netloc and text.isprintable()


def is_hostname(text: str) -> bool:
    """Whether a string is a host name."""
    *labels, last = text.split(".")
    if len(text) > 255 or not all(_HOSTNAME_LABEL.fullmatch(label) and len(label) <= 63 for label in (*labels, last)):
        return False
    return not labels or _HOSTNAME_TOP.fullmatch(last) is not None


def _without_leading_zeros(text: str) -> str:
    # Go used to accept leading zeros, and they stay valid in stored objects.
    return re.sub(r"(?<![0-9a-fA-F:])0+(?=[0-9])", "", text) if "." in text else text


def is_ipv4(text: str) -> bool:
    """Whether a string is an IPv4 address."""
    try:
        return "." in text and bool(ipaddress.ip_address(_without_leading_zeros(text)))
    except ValueError:
        return False


def is_ipv6(text: str) -> bool:
    """Whether a string is an IPv6 address."""
    try:
        return ":" in text and "%" not in text and bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def is_cidr(text: str) -> bool:
    """Whether a string is a network such as 10.0.0.0/8."""
    address, slash, length = text.partition("/")
    try:
        return (
            bool(slash)
            and length.isdecimal()
            and bool(ipaddress.ip_interface(f"{_without_leading_zeros(address)}/{length}"))
        )
    except ValueError:
        return False


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "byte": is_base64,
    "cidr": is_cidr,
    "date": is_date,
    "datetime": is_date_time,
    "duration": is_duration,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "uri": is_uri,
    "uuid": is_uuid,
}
"""The checks, by the name of the format without dashes."""


def format_check(written: str) -> Callable[[str], bool] | None:
    """Return the check of a format; None if the format is not checked."""
    return FORMATS.get(written.replace("-", ""))
