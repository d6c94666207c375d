"""Which firings are applied and which are missed: tables, and a reference implementation that checks every minute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.almanac import UTC, Cron, Dialect, Firings
from springtide.apis.meta.times import parse_instant
from springtide.controllers.cron_federated_hpa.plan import CandidateRule, ConflictingRule, plan_firings

MINUTE, HOUR, DAY = 60, 3600, 86_400


def instant(time: str, day: int = 5) -> int:
    return parse_instant(f"2026-06-{day:02d}T{time}:00Z")


def firings(schedule: str) -> Firings:
    return Firings.of(Cron.parse(schedule, Dialect.RULE), UTC)


def candidate(name: str, schedule: str, since: int, **more: Any) -> CandidateRule:
    return CandidateRule(name, firings(schedule), more.pop("action", {"replicas": 1}), since, **more)


def up_and_down(since: int, **more: Any) -> list[CandidateRule]:
    return [
        candidate("up", "30 8 * * *", since, action={"replicas": 1000}, **more),
        candidate("down", "0 11 * * *", since, action={"replicas": 1}),
    ]


Listed = list[tuple[str, int]]


@pytest.mark.parametrize(
    ("candidates", "now", "applied", "missed"),
    [
        pytest.param(up_and_down(instant("08:20")), instant("08:29"), [], [], id="nothing-is-due"),
        pytest.param(
            up_and_down(instant("08:20")), instant("08:30"), [("up", instant("08:30"))], [], id="due-on-the-second"
        ),
        pytest.param(up_and_down(instant("08:20")), instant("09:00"), [("up", instant("08:30"))], [], id="caught up"),
        pytest.param(
            up_and_down(instant("08:20")),
            instant("11:30"),
            [("down", instant("11:00"))],
            [("up", instant("08:30"))],
            id="only the latest is caught up",
        ),
        pytest.param(
            up_and_down(instant("08:20"), max_delay=600),
            instant("09:00"),
            [],
            [("up", instant("08:30"))],
            id="too late",
        ),
        pytest.param(
            up_and_down(instant("08:20"), max_delay=600),
            instant("08:40"),
            [("up", instant("08:30"))],
            [],
            id="late-but-not-too-late",
        ),
        pytest.param(
            [
                candidate("up", "30 8 * * *", instant("08:00"), action={"replicas": 1000}),
                candidate("down", "0 11 * * *", instant("11:00"), action={"replicas": 1}, recorded=instant("11:00")),
            ],
            instant("12:00"),
            [],
            [("up", instant("08:30"))],
            id="nothing older than the applied firing",
        ),
        pytest.param(
            [candidate("old", "30 8 * * *", instant("08:20")), candidate("new", "30 8 * * *", instant("08:30"))],
            instant("08:40"),
            [("old", instant("08:30"))],
            [],
            id="rule that begins in the second of its firing supersedes nothing",
        ),
        pytest.param(
            [candidate("up", "30 8,9 * * *", instant("08:20"), applied=frozenset({instant("08:30")}))],
            instant("08:40"),
            [],
            [],
            id="applied but not recorded",
        ),
        pytest.param(
            [candidate("up", "30 8,9 * * *", instant("08:20"), applied=frozenset({instant("08:30")}))],
            instant("09:40"),
            [("up", instant("09:30"))],
            [],
            id="applied but not recorded until the next firing",
        ),
        pytest.param(up_and_down(instant("09:00")), instant("09:00"), [], [], id="before the rule existed"),
        pytest.param(
            [
                candidate("old", "30 8 * * *", instant("08:00")),
                candidate("new", "0 9 * * *", instant("08:00"), max_delay=60),
            ],
            instant("10:00"),
            [],
            [("old", instant("08:30")), ("new", instant("09:00"))],
            id="nothing older replaces a firing that is too late",
        ),
        pytest.param(
            [candidate("a", "0 9 * * *", instant("08:00")), candidate("b", "0 9 * * *", instant("08:00"))],
            instant("09:00"),
            [("b", instant("09:00"))],
            [("a", instant("09:00"))],
            id="last-listed-wins-a-tie",
        ),
        pytest.param(
            [
                candidate("both", "0 9 * * *", instant("08:00"), action={"min": 5, "max": 9}),
                candidate("max", "30 9 * * *", instant("08:00"), action={"max": 20}),
            ],
            instant("10:00"),
            [("both", instant("09:00")), ("max", instant("09:30"))],
            [],
            id="each field is decided separately",
        ),
        pytest.param(
            [candidate("gone", "30 8 * * *", instant("08:00"), ended=instant("08:50"))],
            instant("09:00"),
            [],
            [("gone", instant("08:30"))],
            id="suspended-before-it-could-be-applied",
        ),
        pytest.param(
            [candidate("gone", "30 8 * * *", instant("08:00"), ended=instant("08:20"))],
            instant("09:00"),
            [],
            [],
            id="suspended-before-it-was-due",
        ),
    ],
)
def test_latest_due_firing_of_each_field_is_applied(
    candidates: list[CandidateRule], now: int, applied: Listed, missed: Listed
) -> None:
    """It is applied unless it is too late; all other firings are missed."""
    decided = plan_firings(candidates, now)

    assert [(one.rule, one.at) for one in decided.executions] == applied
    assert [(one.rule, one.at) for one in decided.missed] == missed


def test_fields_of_a_later_firing_are_not_applied() -> None:
    """An earlier firing applies only its other fields."""
    decided = plan_firings(
        [
            candidate("both", "0 9 * * *", instant("08:00"), action={"min": 5, "max": 9}),
            candidate("max", "30 9 * * *", instant("08:00"), action={"max": 20}),
        ],
        instant("10:00"),
    )

    assert [dict(one.values) for one in decided.executions] == [{"min": 5}, {"max": 20}]


@pytest.mark.parametrize(
    ("candidates", "now", "expected_text"),
    [
        pytest.param(
            up_and_down(instant("08:20")),
            instant("11:30"),
            ["rule `down` fired at 2026-06-05T11:00:00Z before this could be applied"],
            id="superseded",
        ),
        pytest.param(
            [candidate("a", "0 9 * * *", instant("08:00")), candidate("b", "0 9 * * *", instant("08:00"))],
            instant("09:00"),
            ["rule `b` fires at the same time and wins, as it is listed last"],
            id="tie",
        ),
        pytest.param(
            up_and_down(instant("08:20"), max_delay=600),
            instant("09:00"),
            ["it came 1800 s late, and maxDelaySeconds is 600"],
            id="too-late",
        ),
        pytest.param(
            [candidate("m", "* * * * *", instant("08:00"), kept=2)],
            instant("09:00"),
            [
                "the rule fired again at 2026-06-05T09:00:00Z before this could be applied",
                "the rule fired again at 2026-06-05T08:59:00Z before this could be applied",
            ],
            id="many",
        ),
        pytest.param(
            [candidate("gone", "30 8 * * *", instant("08:00"), ended=instant("08:50"))],
            instant("09:00"),
            ["the rule was suspended, or changed to something that cannot be used, before this could be applied"],
            id="suspended",
        ),
    ],
)
def test_missed_firings_have_a_reason(candidates: list[CandidateRule], now: int, expected_text: list[str]) -> None:
    """As many are listed as the history keeps."""
    assert [one.because for one in plan_firings(candidates, now).missed] == expected_text


def test_next_firing_is_after_the_cursor() -> None:
    """The clock was set back from noon to nine: firings in between were applied and do not repeat."""
    decided = plan_firings([candidate("r", "0 * * * *", instant("12:00"))], instant("09:00"))

    assert decided.next == {"r": instant("13:00")}
    assert decided.requeue_at == instant("13:00")
    assert decided.settled == {"r": instant("12:00")}


def test_a_year_of_missed_minutes_is_counted_quickly() -> None:
    """Half a million firings are counted, and only as many listed as the history keeps."""
    (kept,) = plan_firings([candidate("m", "* * * * *", instant("09:00") - 365 * DAY, kept=1)], instant("09:00")).missed

    assert kept.earlier == 365 * 1440 - 2


@pytest.mark.parametrize(
    ("candidates", "now", "last"),
    [
        pytest.param(
            up_and_down(instant("08:20")), instant("08:30"), instant("11:00") - 1, id="next firing of the field"
        ),
        pytest.param(
            up_and_down(instant("08:20"), max_delay=90), instant("08:30"), instant("08:30") + 90, id="maximum delay"
        ),
        pytest.param(
            [
                candidate("min", "30 8 * * *", instant("08:20"), action={"min": 1}),
                candidate("max", "31 8 * * *", instant("08:20"), action={"max": 9}),
            ],
            instant("08:30"),
            instant("08:30", 6) - 1,
            id="other fields do not count",
        ),
        pytest.param(
            [CandidateRule("once", Firings.once(instant("08:30")), {"min": 1}, instant("08:20"))],
            instant("08:30"),
            None,
            id="no next firing",
        ),
    ],
)
def test_retry_deadline_of_a_firing(candidates: list[CandidateRule], now: int, last: int | None) -> None:
    """It ends with the maximum delay or before the next firing of the same field."""
    (execution,) = plan_firings(candidates, now).executions

    assert execution.last_try == last


def test_earlier_firings_are_settled_while_one_is_retried() -> None:
    """The cursor moves to the firing before it, or to the beginning of the rule."""
    (first,) = plan_firings([candidate("r", "30 8 * * *", instant("08:20"))], instant("08:30")).executions
    (second,) = plan_firings([candidate("r", "30 8 * * *", instant("08:20"))], instant("08:30", 6)).executions

    assert (first.settled_before, second.settled_before) == (instant("08:20"), instant("08:30"))


@pytest.mark.parametrize(
    ("schedule", "since", "recorded", "precedes", "applied"),
    [
        pytest.param("0 11 * * *", instant("08:00"), None, True, False, id="it fired later"),
        pytest.param("0 11 * * *", instant("11:00"), instant("11:00"), True, False, id="it fired later and is handled"),
        pytest.param("0 11 * * *", instant("11:15"), instant("11:00"), True, False, id="its cursor is past the firing"),
        pytest.param("0 11 * * *", instant("11:00"), None, True, True, id="it began in that second"),
        pytest.param("0 11 * * *", instant("11:15"), None, True, True, id="it did not exist yet"),
        pytest.param("0 8 * * *", instant("07:00"), None, True, True, id="it fired earlier"),
        pytest.param("30 8 * * *", instant("07:00"), None, True, True, id="this rule wins the tie"),
        pytest.param("30 8 * * *", instant("07:00"), None, False, False, id="the other rule wins the tie"),
    ],
)
def test_later_firing_of_another_object_supersedes(
    schedule: str, since: int, recorded: int | None, precedes: bool, applied: bool
) -> None:
    """Only the latest firing for a target and field is applied, whichever object it belongs to."""
    conflicting = ConflictingRule("other", "down", firings(schedule), {"replicas": 1}, since, recorded, precedes)
    decided = plan_firings([candidate("up", "30 8 * * *", instant("08:20"))], instant("11:30"), [conflicting])

    assert bool(decided.executions) == applied
    if not applied:
        assert "rule `down` of CronFederatedHPA `other`" in decided.missed[0].because


# Reference implementation: rules are predicates of minutes, and every minute is checked.


@dataclass(frozen=True)
class ReferenceRule:
    """A rule with a predicate of minutes that does not use the almanac."""

    candidate: CandidateRule
    fires: Callable[[int], bool]


def _every(step: int) -> tuple[str, Callable[[int], bool]]:
    return f"*/{step} * * * *", lambda t: t % MINUTE == 0 and (t % HOUR // MINUTE) % step == 0


def _hourly(minute: int) -> tuple[str, Callable[[int], bool]]:
    return f"{minute} * * * *", lambda t: t % HOUR == minute * MINUTE


def _daily(minute: int, hour: int) -> tuple[str, Callable[[int], bool]]:
    return f"{minute} {hour} * * *", lambda t: t % DAY == hour * HOUR + minute * MINUTE


START = instant("06:00")
timings = st.one_of(
    st.sampled_from((1, 7, 20)).map(_every),
    st.integers(0, 59).map(_hourly),
    st.builds(_daily, st.sampled_from((0, 30)), st.integers(6, 9)),
)
actions = st.sampled_from(({"min": 1}, {"max": 2}, {"min": 3, "max": 4}))


@st.composite
def reference_rules(draw: st.DrawFn, name: str) -> ReferenceRule:
    schedule, fires = draw(timings)
    since = START + draw(st.one_of(st.integers(-MINUTE, 3 * HOUR), st.integers(0, 36).map(lambda n: n * 5 * MINUTE)))
    made = candidate(
        name,
        schedule,
        since,
        action=draw(actions),
        recorded=draw(st.sampled_from((None, since))),
        applied=draw(st.frozensets(st.integers(0, 240).map(lambda n: START + n * MINUTE), max_size=5)),
        ended=draw(st.one_of(st.none(), st.none(), st.integers(since, since + 2 * HOUR))),
        max_delay=draw(st.one_of(st.none(), st.integers(1, HOUR))),
        kept=draw(st.integers(1, 3)),
    )
    return ReferenceRule(made, fires)


rules = st.lists(st.integers(), min_size=1, max_size=4).flatmap(
    lambda numbers: st.tuples(*(reference_rules(f"r{place}") for place in range(len(numbers))))
)


@given(rules, st.integers(0, 4 * HOUR))
def test_plan_matches_the_reference_implementation(reference: tuple[ReferenceRule, ...], after: int) -> None:
    """Executions, missed firings, their listing, settled times and next firings agree."""
    now = START + after
    owners: dict[str, tuple[str, int]] = {}
    due: dict[str, list[int]] = {one.candidate.name: [] for one in reference}
    for t in range(START - HOUR, now + 1):
        for one in reference:
            it = one.candidate
            if one.fires(t) and t <= (now if it.ended is None else it.ended):
                if t > it.since:
                    due[it.name].append(t)
                if it.ended is None and (t > it.since or t == it.recorded):
                    owners |= dict.fromkeys(it.action, (it.name, t))
    applied: dict[tuple[str, int], dict[str, int]] = {}
    for one in reference:
        for field, value in one.candidate.action.items():
            name, t = owners.get(field, ("", 0))
            mine = name == one.candidate.name and t in due[name] and t not in one.candidate.applied
            if mine and now - t <= (one.candidate.max_delay or now):
                applied.setdefault((name, t), {})[field] = value

    decided = plan_firings([one.candidate for one in reference], now)

    assert {(one.rule, one.at): dict(one.values) for one in decided.executions} == applied
    assert [one.at for one in decided.executions] == sorted(one.at for one in decided.executions)
    for one in reference:
        it = one.candidate
        missed = [t for t in reversed(due[it.name]) if (it.name, t) not in applied and t not in it.applied]
        listed = [each for each in decided.missed if each.rule == it.name]
        assert [each.at for each in listed] == missed[: it.kept]
        assert sum(each.earlier for each in listed) == len(missed) - len(listed)
        assert decided.settled[it.name] == max(due[it.name], default=it.since)
        coming = next(t for t in range(max(now, it.since) + 1, now + 2 * DAY) if one.fires(t))
        assert decided.next.get(it.name) == (coming if it.ended is None else None)
