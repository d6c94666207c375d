"""Firings: the instants at which a rule acts.

A timeline has a value at every instant; firings are single instants: every hit of a schedule, or one instant, on the
days that calendars allow. A firing belongs to its local day.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from springtide.almanac.calendars import CalendarFilter, allowed
from springtide.almanac.civil import CYCLE
from springtide.almanac.cron import Cron
from springtide.almanac.search_budget import BudgetScope, SearchBudget
from springtide.almanac.timeline import Timeline, active_spans
from springtide.almanac.zones import UTC, Zone

V = TypeVar("V")

MAX_EXCLUDED_RUNS = 1_500
"""How many excluded runs of days in a row a search into the past skips: more than four years of single days."""


class Firings:
    """The instants of a rule, searched in both directions."""

    __slots__ = ("_allowed", "_calendars", "_cron", "_once", "_zone")

    def __init__(self, cron: Cron | None, once: int | None, zone: Zone, calendars: Sequence[CalendarFilter]) -> None:
        self._cron = cron
        self._once = once
        self._zone = zone
        self._calendars = tuple(calendars)
        self._allowed = allowed(self._calendars, zone)

    @classmethod
    def of(cls, cron: Cron, zone: Zone, calendars: Sequence[CalendarFilter] = ()) -> "Firings":
        """Return the hits of a schedule in a zone."""
        return cls(cron, None, zone, calendars)

    @classmethod
    def once(cls, at: int, zone: Zone = UTC, calendars: Sequence[CalendarFilter] = ()) -> "Firings":
        """Return a single firing; calendars without a zone of their own use `zone`."""
        return cls(None, at, zone, calendars)

    def unrestricted(self) -> "Firings":
        """Return the same firings as they would be without calendars."""
        return Firings(self._cron, self._once, self._zone, ()) if self._calendars else self

    def after(self, t: int) -> int | None:
        """Return the first firing strictly later than an instant, or None if none lies ahead."""
        hit = self._hit_after(t)
        if hit is None or not self._calendars:
            return hit
        if self._cron is None:
            return hit if self._allows(hit) else None
        for start, end in active_spans(self._allowed, t):
            # Within a cycle every hit of the schedule has met every day of the calendars.
            if start - t > CYCLE:
                return None
            if hit < start:
                hit = self._hit_after(start - 1)
            if hit is None:
                return None
            if end is None or hit < end:
                return hit
        return None

    def at_or_before(self, t: int, *, since: int | None = None) -> int | None:
        """Return the latest firing that is not later than an instant, or None if there is none.

        With `since`, a firing before that instant does not count. The search gives up after `MAX_EXCLUDED_RUNS` hits in
        a row on excluded days.
        """
        hit = self._hit_at_or_before(t)
        for _ in range(MAX_EXCLUDED_RUNS):
            if hit is None or (since is not None and hit < since):
                return None
            latest = hit
            for reference in self._calendars:
                bound = reference.latest_allowed(latest, self._zone)
                if bound is None:
                    return None
                latest = bound
            if latest == hit:
                return hit
            hit = self._hit_at_or_before(latest)
        return None

    def between(self, a: int, b: int) -> Iterator[int]:
        """Yield the firings in (a, b], ascending."""
        for low, high in self._allowed_between(a, b):
            yield from self._hits_between(low, high)

    def count(self, a: int, b: int) -> int:
        """Count the firings in (a, b] without listing them, which is fast also for every minute of years."""
        return sum(self._hits_counted(low, high) for low, high in self._allowed_between(a, b))

    def _allows(self, t: int) -> bool:
        return all(reference.allows(t, self._zone) for reference in self._calendars)

    def _allowed_between(self, a: int, b: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of (a, b] that the calendars allow."""
        if not self._calendars:
            yield a, b
            return
        for start, end in active_spans(self._allowed, a):
            if start > b:
                return
            yield max(a, start - 1), b if end is None else min(b, end - 1)

    def _hit_after(self, t: int) -> int | None:
        if self._cron is not None:
            return self._cron.after(t, self._zone)
        return self._once if self._once is not None and self._once > t else None

    def _hit_at_or_before(self, t: int) -> int | None:
        if self._cron is not None:
            return self._cron.at_or_before(t, self._zone)
        return self._once if self._once is not None and self._once <= t else None

    def _hits_between(self, a: int, b: int) -> Iterator[int]:
        if self._cron is not None:
            return self._cron.between(a, b, self._zone)
        return iter((self._once,)) if self._once is not None and a < self._once <= b else iter(())

    def _hits_counted(self, a: int, b: int) -> int:
        if self._cron is not None:
            return self._cron.count(a, b, self._zone)
        return sum(1 for _ in self._hits_between(a, b))


def level_setters(rules: Sequence[tuple[Firings, V]]) -> Timeline[int | None]:
    """Return which rule has set the value that holds: its index, None before the first firing.

    A rule leaves its value behind until another one sets a different value; setting the same value again is no change.
    Of rules that fire at the same instant, the one that is listed last sets the value.
    """
    return Timeline(lambda t: _setters(rules, t))


def _setters(rules: Sequence[tuple[Firings, V]], t: int) -> Iterator[tuple[int, int | None]]:
    latest = [(at, index) for index, (firings, _) in enumerate(rules) if (at := firings.at_or_before(t)) is not None]
    setter = max(latest)[1] if latest else None
    yield t, setter
    following: list[int | None] = [t] * len(rules)  # the next firing of each rule, or an instant that has passed
    scope = BudgetScope()
    while True:
        with scope as budget:
            change = _next_setter(rules, following, t, None if setter is None else rules[setter][1], budget)
        if change is None:
            return
        t, setter = change
        yield t, setter


def _next_setter(
    rules: Sequence[tuple[Firings, V]], following: list[int | None], t: int, value: V | None, budget: SearchBudget
) -> tuple[int, int] | None:
    """Find the first firing after an instant that sets another value; rules with the same value are not searched."""
    while budget.left >= 0:
        budget.left -= len(rules)
        ahead = [at for i, (_, own) in enumerate(rules) if own != value and (at := _following(rules, following, i, t))]
        if not ahead:
            return None
        t = min(ahead)
        last = next(i for i in reversed(range(len(rules))) if _following(rules, following, i, t - 1) == t)
        if rules[last][1] != value:
            return t, last
    return None


def _following(rules: Sequence[tuple[Firings, V]], following: list[int | None], index: int, t: int) -> int | None:
    known = following[index]
    if known is not None and known <= t:
        known = following[index] = rules[index][0].after(t)
    return known
