"""The same rules, second by second: slow, obvious, and sharing no code with the engine.

It writes down every second what was recommended in it and how many replicas were added by us, and looks back at each of
the seconds of a window. Times at which something becomes possible are found by waiting.

The engine against an oracle that shares no code with it, and what must hold whatever happens.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from springtide.scaling import (
    ChangePolicy,
    DirectionLimits,
    PolicySelect,
    ReplicaHistory,
    ScalingBehavior,
    ScalingBounds,
    ScalingMove,
    move,
)

PATIENCE = 400
"""Seconds that are waited at most: longer than any window or period of the tests."""


@dataclass
class Diary:
    """What happened in each second."""

    began: int | None = None
    said: dict[int, int] = field(default_factory=dict)
    added: dict[int, int] = field(default_factory=dict)

    def say(self, now: int, replicas: int) -> None:
        """Record a recommendation; the one before held until now."""
        if self.began is None:
            self.began = now
        else:
            last = max(self.said)
            for second in range(last + 1, now):
                self.said[second] = self.said[last]
        self.said[now] = replicas

    def heard(self, now: int, window: int) -> list[int | None]:
        """List the recommendation of each second of a window before now; None for unknown seconds."""
        last = max(self.said)
        return [
            self.said.get(second, self.said[last] if second > last else None) for second in range(now - window, now)
        ]


def stable(diary: Diary, here: int, there: int, rules: DirectionLimits, bounds: tuple[int, int], now: int) -> int:
    """Step from here to there, one replica at a time, while no recommendation forbids it."""
    said = diary.heard(now, rules.window)
    place = here
    while place != there:
        further = place + (1 if there > here else -1)
        for one in said:
            inside = None if one is None else min(max(one, bounds[0]), bounds[1])
            if inside is None or (inside < further if there > here else inside > further):
                return place
        place = further
    return place


def reach(diary: Diary, here: int, there: int, rules: DirectionLimits, now: int) -> int:
    """Step from here to there, one replica at a time, while one policy allows it, or all do."""
    place = here
    while place != there:
        further = place + (1 if there > here else -1)
        allowed = []
        for policy in rules.policies:
            start = here
            for second, change in diary.added.items():
                if now - policy.period < second <= now:
                    start -= change
            if policy.percent:
                most = 1
                while most * 100 < start * policy.value:
                    most += 1
            else:
                most = policy.value
            allowed.append((further - start if there > here else start - further) <= most)
        if rules.policies and not (all(allowed) if rules.select is PolicySelect.MIN else any(allowed)):
            return place
        place = further
    return place


@dataclass(frozen=True)
class Answer:
    """The result of the oracle."""

    replicas: int
    window_until: int | None
    speed_until: int | None


def answer(
    diary: Diary, current: int, wanted: int, behaviour: ScalingBehavior, bounds: tuple[int, int], now: int
) -> Answer:
    """Return the next number, and when more is allowed. Records the recommendation."""
    diary.say(now, wanted)
    here, there = (min(max(number, bounds[0]), bounds[1]) for number in (current, wanted))
    if here != current:
        diary.added[now] = diary.added.get(now, 0) + here - current
    if here == there:
        return Answer(here, None, None)
    rules = behaviour.up if there > here else behaviour.down
    if rules.select is PolicySelect.DISABLED:
        return Answer(here, None, None)
    calm = stable(diary, here, there, rules, bounds, now)
    window_until = None
    if calm != there:
        window_until = next(
            now + wait for wait in range(1, PATIENCE) if stable(diary, here, there, rules, bounds, now + wait) != calm
        )
    done = reach(diary, here, calm, rules, now)
    if done != here:
        diary.added[now] = diary.added.get(now, 0) + done - here
    speed_until = None
    if done != calm:
        speed_until = next(
            now + wait for wait in range(1, PATIENCE) if reach(diary, done, calm, rules, now + wait) != done
        )
    return Answer(done, window_until, speed_until)


_POLICIES = st.builds(
    ChangePolicy, value=st.integers(1, 150), period=st.integers(1, 120), percent=st.booleans()
) | st.builds(ChangePolicy, value=st.integers(1, 4), period=st.integers(1, 120))
_RULES = st.builds(
    DirectionLimits,
    window=st.sampled_from([0, 1, 15, 60, 200]),
    select=st.sampled_from(PolicySelect),
    policies=st.lists(_POLICIES, max_size=2).map(tuple),
)
_BEHAVIOURS = st.builds(ScalingBehavior, up=_RULES, down=_RULES)
_BOUNDS = st.tuples(st.integers(0, 10), st.integers(0, 30)).map(lambda pair: ScalingBounds(pair[0], pair[0] + pair[1]))


@dataclass(frozen=True)
class Look:
    """One evaluation."""

    after: int
    """Seconds since the last one."""
    wanted: int
    meddled: int | None = None
    """The number that another writer has set meanwhile."""


_LOOKS = st.lists(
    st.builds(
        Look, after=st.integers(1, 90), wanted=st.integers(0, 45), meddled=st.none() | st.none() | st.integers(0, 45)
    ),
    min_size=1,
    max_size=12,
)


def _play(
    looks: list[Look], behaviour: ScalingBehavior, bounds: ScalingBounds
) -> list[tuple[int, int, Look, ScalingMove]]:
    """Apply every move of the engine; return instants, numbers before, evaluations and moves."""
    now, current, history = 1_000, 5, ReplicaHistory()
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
@example([Look(1, 3), Look(60, 3)], ScalingBehavior(down=DirectionLimits(60)), ScalingBounds(0, 10))
@example(
    [Look(1, 9), Look(1, 9)],
    ScalingBehavior(up=DirectionLimits(0, policies=(ChangePolicy(2, 60),))),
    ScalingBounds(0, 10),
)
def test_the_engine_agrees_with_the_oracle(
    looks: list[Look], behaviour: ScalingBehavior, bounds: ScalingBounds
) -> None:
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
def test_invariants(looks: list[Look], behaviour: ScalingBehavior, bounds: ScalingBounds) -> None:
    """Within bounds, only towards the recommendation, and no limit that is over."""
    for now, current, look, moved in _play(looks, behaviour, bounds):
        here, there = bounds.clamp(current), bounds.clamp(look.wanted)

        assert min(here, there) <= moved.replicas <= max(here, there)
        assert moved.again is None or moved.again > now
        assert (moved.replicas == there) or moved.disabled or moved.again is not None


@settings(max_examples=150, deadline=None)
@given(_LOOKS, st.integers(1, 200), _BOUNDS)
def test_no_scale_down_below_the_window(looks: list[Look], window: int, bounds: ScalingBounds) -> None:
    """Except for what is outside the bounds."""
    played = _play(looks, ScalingBehavior(down=DirectionLimits(window)), bounds)
    for now, current, _, moved in played:
        if moved.replicas < bounds.clamp(current):
            assert played[0][0] <= now - window
            recent = [look.wanted for at, _, look, _ in played if now - window < at <= now]
            assert moved.replicas >= bounds.clamp(max(recent))


@settings(max_examples=150, deadline=None)
@given(_LOOKS, st.integers(1, 5), st.integers(1, 120))
def test_no_change_within_a_period_exceeds_its_policy(looks: list[Look], value: int, period: int) -> None:
    """The change since the start of a period is within the policy; without other writers."""
    rules = DirectionLimits(0, policies=(ChangePolicy(value, period),))
    left_alone = [Look(look.after, look.wanted) for look in looks]
    played = _play(left_alone, ScalingBehavior(up=rules, down=rules), ScalingBounds(0, 50))
    for now, current, _, moved in played:
        began = next(before for at, before, _, _ in played if at > now - period)
        if moved.replicas > current:
            assert moved.replicas - began <= value
        if moved.replicas < current:
            assert began - moved.replicas <= value


@settings(max_examples=100, deadline=None)
@given(_LOOKS, _BEHAVIOURS, _BOUNDS, st.integers(0, 45))
def test_requeues_are_enough_to_converge(
    looks: list[Look], behaviour: ScalingBehavior, bounds: ScalingBounds, goal: int
) -> None:
    """Evaluated only at the named instants, it reaches the recommendation, unless the direction is disabled."""
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
