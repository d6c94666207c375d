"""Budgets against slow and obvious reimplementations of what their description says."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apis.karpenter.samples import compiled, instant

from springtide.apis.karpenter.budgets import AccountingEquation, BudgetDefault, DisruptionReason, compile_budget
from springtide.apis.karpenter.disruption import Budget
from springtide.apis.karpenter.explain import explain_disruption

# Activity: a budget is active if the schedule was hit within the last `duration`.


@dataclass(frozen=True)
class Field:
    """A field of a schedule, as text and as the values that it matches."""

    text: str
    values: frozenset[int]
    starred: bool = False


def fields(low: int, high: int, *, steps: tuple[int, ...] = (), named: int | None = None) -> st.SearchStrategy[Field]:
    """Make fields; single values and ranges go up to `named`, so that every schedule has hits."""
    value = st.integers(low, named or high)
    one = value.map(lambda n: Field(str(n), frozenset({n})))
    pair = st.tuples(value, value).map(lambda p: Field(f"{min(p)}-{max(p)}", frozenset(range(min(p), max(p) + 1))))
    star = st.just(Field("*", frozenset(range(low, high + 1)), starred=True))
    stepped = [Field(f"*/{step}", frozenset(range(low, high + 1, step))) for step in steps]
    return star | one | pair | st.sampled_from([*stepped, Field("*", frozenset(range(low, high + 1)), starred=True)])


@dataclass(frozen=True)
class Schedule:
    """Five fields, and whether a local time matches them."""

    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @property
    def text(self) -> str:
        return " ".join(f.text for f in (self.minute, self.hour, self.day, self.month, self.weekday))

    def matches(self, local: datetime.datetime) -> bool:
        on_day = local.day in self.day.values
        on_weekday = local.isoweekday() % 7 in self.weekday.values
        either_starred = self.day.starred or self.weekday.starred
        return (
            local.second == 0
            and local.minute in self.minute.values
            and local.hour in self.hour.values
            and local.month in self.month.values
            and ((on_day and on_weekday) if either_starred else (on_day or on_weekday))
        )


SCHEDULES = st.builds(
    Schedule,
    fields(0, 59, steps=(7, 15)),
    fields(0, 23, steps=(2, 5)),
    fields(1, 31, steps=(2,), named=28),
    fields(1, 12),
    fields(0, 6, steps=(2,)),
)
# Clocks change at 02:00 and 03:00 in these zones, by an hour and by half an hour; midnight always exists.
ZONES = st.sampled_from(["UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata"])
TRANSITIONS = [
    instant("2024-03-10 07:00"),
    instant("2024-11-03 06:00"),
    instant("2024-03-31 01:00"),
    instant("2024-10-27 01:00"),
    instant("2024-04-06 15:00"),
    instant("2024-10-05 15:30"),
]
INSTANTS = st.one_of(
    st.integers(instant("2023-12-25 00:00"), instant("2025-01-05 00:00")),
    st.builds(lambda t, d: t + d, st.sampled_from(TRANSITIONS), st.integers(-2 * 86400, 2 * 86400)),
    st.builds(lambda t, m: t + 60 * m, st.sampled_from(TRANSITIONS), st.integers(-300, 300)),
)


def was_hit(schedule: Schedule, zone: str, now: int, seconds: int) -> bool:
    """Walk back through every minute of the time just passed."""
    local = ZoneInfo(zone)
    first = now - now % 60
    return any(
        schedule.matches(datetime.datetime.fromtimestamp(minute, local)) for minute in range(first, now - seconds, -60)
    )


@settings(deadline=None)
@given(SCHEDULES, ZONES, st.integers(1, 2000), st.lists(INSTANTS, min_size=1, max_size=3))
def test_activity(schedule: Schedule, zone: str, minutes: int, instants: list[int]) -> None:
    """A budget is active exactly if a minute of the last `duration` matches the schedule."""
    hours, rest = divmod(minutes, 60)
    budget = {"schedule": schedule.text, "duration": f"{hours}h{rest}m", "timeZone": zone}
    made = compile_budget(msgspec.convert(budget, Budget), 0)

    assert not made.failure
    for now in instants:
        assert was_hit(schedule, zone, now, minutes * 60) is made.open.at(now)


# Numbers: limits, equations and the next change, from their formulas.

NOW = 1_000_000


@dataclass(frozen=True)
class Plain:
    """A budget as the formulas see it."""

    nodes: int
    percent: bool
    reasons: frozenset[DisruptionReason]
    allow: bool
    opens: int | None
    closes: int

    def written(self) -> dict[str, Any]:
        made: dict[str, Any] = {"nodes": f"{self.nodes}{'%' if self.percent else ''}"}
        made["mode"] = "Allow" if self.allow else "Limit"
        if self.reasons:
            made["reasons"] = sorted(self.reasons)
        if self.opens is not None:
            made |= {"from": _rfc3339(self.opens), "until": _rfc3339(self.closes)}
        return made

    def active(self, at: int) -> bool:
        return self.opens is None or self.opens <= at < self.closes

    def value(self, total: int) -> int:
        if not self.percent:
            return self.nodes
        whole, rest = divmod(self.nodes * total, 100)
        return whole + (1 if rest else 0)


def _rfc3339(at: int) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


PLAIN = st.builds(
    lambda nodes, percent, reasons, allow, opens, length: Plain(
        nodes, percent, frozenset(reasons), allow, opens, (opens or 0) + length
    ),
    st.integers(0, 20),
    st.booleans(),
    st.lists(st.sampled_from(list(DisruptionReason)), max_size=3),
    st.booleans(),
    st.none() | st.integers(NOW - 5, NOW + 5),
    st.integers(1, 6),
)


def naive_limit(
    listed: list[Plain], reason: DisruptionReason, at: int, total: int, reading: BudgetDefault
) -> int | None:
    """Take the minimum over what applies; a closed union of Allow windows is 0."""
    own = [plain for plain in listed if reason in plain.reasons]
    rest = [plain for plain in listed if not plain.reasons]
    own_is_active = any(plain.allow or plain.active(at) for plain in own)
    applying = own if own_is_active and reading is BudgetDefault.FALLBACK else own + rest
    numbers = [plain.value(total) for plain in applying if not plain.allow and plain.active(at)]
    allowing = [plain for plain in applying if plain.allow]
    if allowing:
        numbers.append(min([plain.value(total) for plain in allowing if plain.active(at)], default=0))
    return min(numbers, default=None)


def naive_taken(
    listed: list[Plain],
    reason: DisruptionReason,
    disrupting: dict[DisruptionReason, int],
    unhealthy: int,
    reading: BudgetDefault,
    equation: AccountingEquation,
) -> int:
    if reason is DisruptionReason.UNHEALTHY:
        unhealthy = 0  # what is to be repaired does not use up its own budget
    named = {
        r: any(r in plain.reasons and (plain.allow or plain.active(NOW)) for plain in listed) for r in DisruptionReason
    }
    if equation is AccountingEquation.TOTAL:
        return unhealthy + sum(disrupting.values())
    if named[reason] or reading is BudgetDefault.FLOOR:
        return unhealthy + disrupting.get(reason, 0)
    return unhealthy + sum(count for other, count in disrupting.items() if not named[other])


@given(
    st.lists(PLAIN, max_size=5),
    st.integers(0, 60),
    st.dictionaries(st.sampled_from(list(DisruptionReason)), st.integers(0, 9)),
    st.integers(0, 5),
    st.sampled_from(list(BudgetDefault)),
    st.sampled_from(list(AccountingEquation)),
    st.booleans(),
)
def test_numbers(
    listed: list[Plain],
    total: int,
    disrupting: dict[DisruptionReason, int],
    unhealthy: int,
    reading: BudgetDefault,
    equation: AccountingEquation,
    repair: bool,
) -> None:
    """Limit, what is taken, what is allowed and the next limit agree with the formulas for every reason."""
    pool = compiled([plain.written() for plain in listed], **({"repair": {}} if repair else {}))

    found = explain_disruption(
        pool, at=NOW, nodes=total, disrupting=disrupting, unhealthy=unhealthy, reading=reading, equation=equation
    )

    named = repair or any(DisruptionReason.UNHEALTHY in plain.reasons for plain in listed)
    assert (DisruptionReason.UNHEALTHY in found.reasons) is named
    for reason, explained in found.reasons.items():
        expected = naive_limit(listed, reason, NOW, total, reading)
        taken = naive_taken(listed, reason, disrupting, unhealthy, reading, equation)
        assert expected == explained.limit
        assert taken == explained.consuming
        assert max(0, (total if expected is None else expected) - taken) == explained.allowed
        later = ((at, naive_limit(listed, reason, at, total, reading)) for at in range(NOW + 1, NOW + 13))
        following = next(((at, value) for at, value in later if value != expected), None)
        assert following == (None if explained.next is None else (explained.next.at, explained.next.limit))
        assert (explained.budget is None) is (expected is None)
