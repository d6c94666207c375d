"""The engine against an oracle that shares no code with it, and what must hold whatever happens."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.scaling.oracle import Answer, Diary, answer

from springtide.scaling import Behaviour, Bounds, History, Move, Policy, Rules, Select, move

_POLICIES = st.builds(Policy, value=st.integers(1, 150), period=st.integers(1, 120), percent=st.booleans()) | st.builds(
    Policy, value=st.integers(1, 4), period=st.integers(1, 120)
)
_RULES = st.builds(
    Rules,
    window=st.sampled_from([0, 1, 15, 60, 200]),
    select=st.sampled_from(Select),
    policies=st.lists(_POLICIES, max_size=2).map(tuple),
)
_BEHAVIOURS = st.builds(Behaviour, up=_RULES, down=_RULES)
_BOUNDS = st.tuples(st.integers(0, 10), st.integers(0, 30)).map(lambda pair: Bounds(pair[0], pair[0] + pair[1]))


@dataclass(frozen=True)
class Look:
    """A look at the metrics."""

    after: int
    """Seconds since the last one."""
    wanted: int
    meddled: int | None = None
    """What somebody else has set the number to meanwhile."""


_LOOKS = st.lists(
    st.builds(
        Look, after=st.integers(1, 90), wanted=st.integers(0, 45), meddled=st.none() | st.none() | st.integers(0, 45)
    ),
    min_size=1,
    max_size=12,
)


def _play(looks: list[Look], behaviour: Behaviour, bounds: Bounds) -> list[tuple[int, int, Look, Move]]:
    """Do at every look what the engine says; gives instants, numbers before, looks and moves."""
    now, current, history = 1_000, 5, History()
    played = []
    for look in looks:
        now += look.after
        current = current if look.meddled is None else look.meddled
        moved = move(current, look.wanted, behaviour, bounds, history, now)
        history = moved.history
        if moved.replicas != current:
            history = history.changed(now, current, moved.replicas)
        played.append((now, current, look, moved))
        current = moved.replicas
    return played


@settings(max_examples=250, deadline=None)
@given(_LOOKS, _BEHAVIOURS, _BOUNDS)
@example([Look(1, 3), Look(60, 3)], Behaviour(down=Rules(60)), Bounds(0, 10))
@example([Look(1, 9), Look(1, 9)], Behaviour(up=Rules(0, policies=(Policy(2, 60),))), Bounds(0, 10))
def test_the_engine_says_what_the_oracle_says(looks: list[Look], behaviour: Behaviour, bounds: Bounds) -> None:
    diary = Diary()
    for now, current, look, moved in _play(looks, behaviour, bounds):
        expected = answer(diary, current, look.wanted, behaviour, (bounds.least, bounds.most), now)

        said = Answer(
            moved.replicas,
            moved.window.until if moved.window is not None else None,
            moved.speed.until if moved.speed is not None else None,
        )
        assert said == expected


@settings(max_examples=150, deadline=None)
@given(_LOOKS, _BEHAVIOURS, _BOUNDS)
def test_what_always_holds(looks: list[Look], behaviour: Behaviour, bounds: Bounds) -> None:
    """It stays within bounds, moves only towards what is wanted, and waits for nothing that is over."""
    for now, current, look, moved in _play(looks, behaviour, bounds):
        here, there = bounds.clamp(current), bounds.clamp(look.wanted)

        assert min(here, there) <= moved.replicas <= max(here, there)
        assert moved.again is None or moved.again > now
        assert (moved.replicas == there) or moved.disabled or moved.again is not None


@settings(max_examples=150, deadline=None)
@given(_LOOKS, st.integers(1, 200), _BOUNDS)
def test_nothing_is_taken_away_within_its_window(looks: list[Look], window: int, bounds: Bounds) -> None:
    """Whatever was recommended within the window stays, but for what lies outside the bounds."""
    played = _play(looks, Behaviour(down=Rules(window)), bounds)
    for now, current, _, moved in played:
        if moved.replicas < bounds.clamp(current):
            assert played[0][0] <= now - window
            recent = [look.wanted for at, _, look, _ in played if now - window < at <= now]
            assert moved.replicas >= bounds.clamp(max(recent))


@settings(max_examples=150, deadline=None)
@given(_LOOKS, st.integers(1, 5), st.integers(1, 120))
def test_no_period_sees_more_than_its_policy_allows(looks: list[Look], value: int, period: int) -> None:
    """It moves no farther than the policy says from where it was when the period began; nobody meddles."""
    rules = Rules(0, policies=(Policy(value, period),))
    left_alone = [Look(look.after, look.wanted) for look in looks]
    played = _play(left_alone, Behaviour(up=rules, down=rules), Bounds(0, 50))
    for now, current, _, moved in played:
        began = next(before for at, before, _, _ in played if at > now - period)
        if moved.replicas > current:
            assert moved.replicas - began <= value
        if moved.replicas < current:
            assert began - moved.replicas <= value


@settings(max_examples=100, deadline=None)
@given(_LOOKS, _BEHAVIOURS, _BOUNDS, st.integers(0, 45))
def test_it_arrives_by_waking_when_told(looks: list[Look], behaviour: Behaviour, bounds: Bounds, goal: int) -> None:
    """Woken only at the instants that it names, it reaches what is wanted, unless the direction is disabled."""
    played = _play(looks, behaviour, bounds)
    now, _, _, last = played[-1]
    current, history = last.replicas, last.history
    for _ in range(200):
        moved = move(current, goal, behaviour, bounds, history, now)
        history = moved.history.changed(now, current, moved.replicas)
        current = moved.replicas
        if moved.again is None:
            break
        now = moved.again

    assert current == bounds.clamp(goal) or moved.disabled
