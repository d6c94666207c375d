"""The same rules, second by second: slow, obvious, and sharing no code with the engine.

It writes down every second what was recommended in it and how many replicas were added by us, and looks back at each of
the seconds of a window. Times at which something becomes possible are found by waiting.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from springtide.scaling import Behaviour, Rules, Select

PATIENCE = 400
"""Seconds that are waited at most: longer than any window or period of the tests."""


@dataclass
class Diary:
    """What happened in which second."""

    began: int | None = None
    said: dict[int, int] = field(default_factory=dict)
    added: dict[int, int] = field(default_factory=dict)

    def say(self, now: int, replicas: int) -> None:
        """Take down a recommendation; what was said before was still true until now."""
        if self.began is None:
            self.began = now
        else:
            last = max(self.said)
            for second in range(last + 1, now):
                self.said[second] = self.said[last]
        self.said[now] = replicas

    def heard(self, now: int, window: int) -> list[int | None]:
        """List what was said in each second of a window before now; None in seconds of which nobody knows."""
        last = max(self.said)
        return [
            self.said.get(second, self.said[last] if second > last else None) for second in range(now - window, now)
        ]


def stable(diary: Diary, here: int, there: int, rules: Rules, bounds: tuple[int, int], now: int) -> int:
    """Walk from here to there, one replica at a time, as long as nothing that was said forbids it."""
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


def reach(diary: Diary, here: int, there: int, rules: Rules, now: int) -> int:
    """Walk from here to there, one replica at a time, as long as one policy allows it, or all."""
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
        if rules.policies and not (all(allowed) if rules.select is Select.MIN else any(allowed)):
            return place
        place = further
    return place


@dataclass(frozen=True)
class Answer:
    """What the oracle says."""

    replicas: int
    window_until: int | None
    speed_until: int | None


def answer(diary: Diary, current: int, wanted: int, behaviour: Behaviour, bounds: tuple[int, int], now: int) -> Answer:
    """Say what to do now, and when more can be done. Takes the recommendation down."""
    diary.say(now, wanted)
    here, there = (min(max(number, bounds[0]), bounds[1]) for number in (current, wanted))
    if here != current:
        diary.added[now] = diary.added.get(now, 0) + here - current
    if here == there:
        return Answer(here, None, None)
    rules = behaviour.up if there > here else behaviour.down
    if rules.select is Select.DISABLED:
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
