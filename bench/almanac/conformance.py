"""The share of schedules for which a library finds the same next hits as the dialects of Kubernetes.

The expected hits are those of the tables of the tests and, for random schedules around clock changes, those of the
reference implementation of the tests, which visits every wall minute.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

from bench.almanac.subjects import SUBJECTS, first_hits
from tests.almanac import reference, strategies, test_cron_tables
from tests.almanac.builders import local, utc

from springtide.almanac import load_zone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _pytest.mark import ParameterSet


_RANDOM_CASES = 400
_HITS = 8
_DAY = 86_400


class Case(NamedTuple):
    """A schedule in a zone, an instant, and the expected next hits."""

    text: str
    zone: str
    t: int
    expected: list[int]


def table(rows: Iterable[ParameterSet]) -> list[Case]:
    """Return the rows of a table of the tests."""
    cases = []
    for row in rows:
        zone, text, start, expected = row.values
        assert isinstance(zone, str)
        assert isinstance(text, str)
        assert isinstance(start, str)
        assert isinstance(expected, list)
        cases.append(Case(text, zone, local(zone, start), [utc(hit) for hit in expected]))
    return cases


def random_cases(count: int, *, rules: bool) -> list[Case]:
    """Draw schedules near clock changes, with the next hits of the reference implementation."""
    draw = random.Random(42)
    cases: list[Case] = []
    while len(cases) < count:
        zone, text = draw.choice(strategies.ZONES), _schedule(draw)
        changes = load_zone(zone).transitions(strategies.START, strategies.STOP)
        if not changes:
            continue
        t = draw.choice(changes).at + draw.randint(-_DAY // 2, _DAY // 8)
        find = reference.fixed_times if rules and reference.read(text).fixed else reference.follow_clock
        hits = find(text, zone, t, t + _DAY)
        if hits:
            cases.append(Case(text, zone, t, hits[:_HITS]))
    return cases


def _schedule(draw: random.Random) -> str:
    minute = draw.choice(("0", "30", "15,45", "*", "*/10", "*/20", str(draw.randint(0, 59))))
    hour = draw.choice(("0", "1", "2", "3", "22-23", "*", "*/2", "0-4", str(draw.randint(0, 23))))
    day = draw.choice(("*", "*", "*", "*/2", "1-15", "*/5"))
    weekday = draw.choice(("*", "*", "1-5", "0", "0,6", "*/2"))
    return f"{minute} {hour} {day} * {weekday}"


def main() -> None:
    print("conformance: share of schedules with the right next hits")
    suites = {
        "budget dialect, table": (0, table(test_cron_tables.BUDGETS)),
        "rule dialect, table": (1, table(test_cron_tables.RULES)),
        f"budget dialect, {_RANDOM_CASES} random": (0, random_cases(_RANDOM_CASES, rules=False)),
        f"rule dialect, {_RANDOM_CASES} random": (1, random_cases(_RANDOM_CASES, rules=True)),
    }
    print(f"{'':30}" + "".join(f"{name:>14}" for name, *_ in SUBJECTS))
    for title, (dialect, cases) in suites.items():
        shares = []
        for _, *dialects in SUBJECTS:
            hits = dialects[dialect]
            right = sum(
                first_hits(hits, case.text, case.zone, case.t, len(case.expected)) == case.expected for case in cases
            )
            shares.append(right / len(cases))
        print(f"{title:30}" + "".join(f"{share:14.1%}" for share in shares))


if __name__ == "__main__":
    main()
