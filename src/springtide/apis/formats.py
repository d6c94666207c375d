"""Named format checks of single values, for formats that need a parser instead of a pattern."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from typing import Any

from springtide import quantity
from springtide.almanac import Cron, CronError, Dialect, UnknownZone, load_zone
from springtide.almanac.zones import fixed_abbreviation_warning
from springtide.apis.meta.times import parse_instant
from springtide.apis.problems import Problem, error, warning

ZONED_TIME = "zoned-time"
"""The format of times that may be written without an offset."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_LENGTH = 63
_QUALIFIED_HINT = "up to 63 letters, digits, `-`, `_` and `.`, after a domain in lower case and a `/` if there is one"
_NAME_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def _quantity(value: Any) -> Iterator[Problem]:
    try:
        quantity.Quantity.parse(value)
    except quantity.QuantityError as failure:
        yield error((), failure.message, failure.hint)


def _zone(value: str) -> Iterator[Problem]:
    try:
        load_zone(value)
    except UnknownZone as failure:
        yield error((), str(failure), failure.hint)
        return
    if (surprise := fixed_abbreviation_warning(value)) is not None:
        yield warning((), surprise)


def _time(value: str) -> Iterator[Problem]:
    try:
        parse_instant(value)
    except ValueError as failure:
        yield error(
            (), str(failure), "write date, time and offset, such as 2026-11-27T06:00:00Z or 2026-11-27T07:00:00+01:00"
        )


def _date(value: str) -> Iterator[Problem]:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value, re.ASCII):
        yield error((), f'"{value}" is not a date', "write year-month-day, such as 2026-12-24")
        return
    try:
        datetime.date.fromisoformat(value)
    except ValueError:
        yield error((), f"{value} is not a calendar date")


def _month_day(value: str) -> Iterator[Problem]:
    if not re.fullmatch(r"\d{2}-\d{2}", value, re.ASCII):
        yield error((), f'"{value}" is not a day of the year', "write month-day, such as 12-24")
        return
    try:
        datetime.date.fromisoformat(f"2024-{value}")  # a leap year: 02-29 is a day of some years
    except ValueError:
        yield error((), f"{value} is not a date of any year")


def _cron(dialect: Dialect) -> Callable[[str], Iterator[Problem]]:
    def check(value: str) -> Iterator[Problem]:
        try:
            Cron.parse(value, dialect)
        except CronError as failure:
            yield error((), failure.message, failure.hint)

    return check


def _dns_subdomain(value: str) -> Iterator[Problem]:
    if all(_LABEL.fullmatch(part) for part in value.split(".")):
        return
    proposal = re.sub(r"[^a-z0-9.-]+", "-", value.lower()).strip("-.")
    proposed = bool(proposal) and all(_LABEL.fullmatch(part) for part in proposal.split("."))
    hint = f"write `{proposal}`" if proposed else "use lower-case letters, digits, `-` and `.`"
    yield error((), f'"{value}" is not a legal name', hint)


def _dns_label(value: str) -> Iterator[Problem]:
    if len(value) <= _LABEL_LENGTH and _LABEL.fullmatch(value):
        return
    proposal = re.sub(r"[^a-z0-9-]+", "-", value.lower())[:_LABEL_LENGTH].strip("-")
    hint = f"write `{proposal}`" if proposal else "use lower-case letters, digits and `-`"
    yield error((), f'"{value}" is not a legal name', hint)


def _path_segment(value: str) -> Iterator[Problem]:
    if value in (".", ".."):
        yield error((), f'"{value}" cannot be a name')
    elif "/" in value or "%" in value:
        yield error((), f'"{value}" is not a legal name', "a name holds neither `/` nor `%`")


def _qualified(name: str) -> bool:
    prefix, slash, part = name.rpartition("/")
    if slash and not (0 < len(prefix) <= 253 and all(_LABEL.fullmatch(p) for p in prefix.split("."))):
        return False
    return 0 < len(part) <= 63 and _NAME_PART.fullmatch(part) is not None


def _qualified_name(value: str) -> Iterator[Problem]:
    if not _qualified(value):
        yield error((), f'"{value}" is not a legal name', _QUALIFIED_HINT)


def _label_keys(value: dict[str, Any]) -> Iterator[Problem]:
    for key in value:
        if not _qualified(key):
            yield error((key,), f'"{key}" is not a legal label name')


def _label_value(value: str) -> Iterator[Problem]:
    if value and not (len(value) <= _LABEL_LENGTH and _NAME_PART.fullmatch(value)):
        yield error(
            (),
            f'"{value}" is not a legal label value',
            "up to 63 letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit",
        )


def _labels(value: dict[str, str]) -> Iterator[Problem]:
    yield from _label_keys(value)
    for key, label in value.items():
        yield from (problem.under(key) for problem in _label_value(label))


def _annotations(value: dict[str, str]) -> Iterator[Problem]:
    for key in value:
        if not _qualified(key.lower()):
            yield error((key,), f'"{key}" is not a legal annotation name')


def _amount(parse: Callable[[Any], object]) -> Callable[[Any], Iterator[Problem]]:
    def check(value: Any) -> Iterator[Problem]:
        try:
            parse(value)
        except quantity.AmountError as failure:
            yield error((), failure.message, failure.hint)

    return check


def _finite_duration(value: str) -> int | None:
    seconds = quantity.parse_karpenter_duration(value)
    if seconds is None:
        msg = "`Never` is not a duration here"
        raise quantity.DurationError(msg, "leave the field out instead")
    return seconds


FORMATS: dict[str, Callable[[Any], Iterator[Problem]]] = {
    "annotations": _annotations,
    "cron-budget": _cron(Dialect.BUDGET),
    "cron-rule": _cron(Dialect.RULE),
    "date": _date,
    "dns-label": _dns_label,
    "dns-subdomain": _dns_subdomain,
    "karpenter-duration": _amount(_finite_duration),
    "karpenter-duration-or-never": _amount(quantity.parse_karpenter_duration),
    "label-keys": _label_keys,
    "label-value": _label_value,
    "labels": _labels,
    "month-day": _month_day,
    "node-count": _amount(quantity.IntOrPercent.parse),
    "path-segment": _path_segment,
    "qualified-name": _qualified_name,
    "quantity": _quantity,
    "time": _time,
    "window-duration": _amount(quantity.parse_window_duration),
    "zone": _zone,
    ZONED_TIME: _time,
}
"""The check of each format; paths are relative to the value."""
