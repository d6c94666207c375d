"""HorizontalAutoscalers as they are kept in memory.

What autoscalers say, read anew only when somebody has written them: judging one takes longer than all the rest.

What the status of an autoscaler tells already.

What is remembered of an autoscaler between two looks at it, for as long as we lead.

What was recommended is lost with the process, and that is safe: nothing moves before a whole window of its direction
has been seen again. What was changed is not, where policies count it: the status keeps it.

Changes that still count against policies, as the status keeps them over a restart.

A policy of so much in half an hour would allow it anew at every restart, if only the process knew what was done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import instant_in
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler
from springtide.cluster.conditions import ConditionStatus
from springtide.cluster.controller import Cached
from springtide.cluster.events import EventContent
from springtide.cluster.resources import Key, Object, Selection
from springtide.controllers.conflicts import HORIZONTAL_AUTOSCALERS
from springtide.controllers.validated import Validated, validated
from springtide.scaling import RecommendationSteps, ReplicaChanges, ReplicaHistory

ALL_AUTOSCALERS = Cached(Selection(HORIZONTAL_AUTOSCALERS))


def written_state(autoscaler: Object) -> tuple[Any, ...]:
    """Give what tells whether people have written an object since; extensions may stand in annotations."""
    metadata = autoscaler["metadata"]
    return metadata.get("uid"), metadata.get("generation"), metadata.get("annotations")


class SpecCache:
    """Autoscalers as they were judged; nothing in them depends on the time."""

    def __init__(self, default_zone: str) -> None:
        self._default_zone = default_zone
        self._read: dict[Key, tuple[tuple[Any, ...], Validated[HorizontalAutoscaler]]] = {}

    def read(self, key: Key, autoscaler: Object, now: int) -> Validated[HorizontalAutoscaler]:
        """Give what an object means, and what is wrong with it."""
        known = self._read.get(key)
        if known is not None and known[0] == written_state(autoscaler):
            return known[1]
        verdict = validated(autoscaler, HorizontalAutoscaler, now=now, default_zone=self._default_zone)
        self._read[key] = written_state(autoscaler), verdict
        return verdict

    def forget(self, key: Key) -> None:
        """Forget an object, which is gone."""
        self._read.pop(key, None)


def has_condition(autoscaler: Object, type_: str, truth: ConditionStatus) -> bool:
    """Tell whether a condition has a status."""
    return any(entry.get("type") == type_ and entry.get("status") == truth for entry in _conditions_of(autoscaler))


def is_reported(autoscaler: Object, trouble: EventContent) -> bool:
    """Tell whether people know of a trouble: a condition begins with its words, and may go on with others."""
    return any(
        entry.get("status") == ConditionStatus.FALSE
        and entry.get("reason") == trouble.reason
        and str(entry.get("message", "")).startswith(trouble.message)
        for entry in _conditions_of(autoscaler)
        if entry.get("type") != "Ready"
    )


def _conditions_of(autoscaler: Object) -> list[Object]:
    return (autoscaler.get("status") or {}).get("conditions") or []


@dataclass(frozen=True, slots=True)
class LastReconcile:
    """A look at an autoscaler: what was written then, and when the next one is due."""

    of: tuple[Any, ...]
    made: int
    due: int
    settling: bool = False
    """Whether the metrics do not show yet what was done: until the next look is due, their changes mean nothing."""

    @classmethod
    def at(cls, autoscaler: Object, now: int, due: int, *, settling: bool = False) -> LastReconcile:
        """Take down a look."""
        return cls(written_state(autoscaler), now, due, settling)

    def suffices(self, autoscaler: Object, now: int, *, woken: bool) -> bool:
        """Tell whether it need not be looked again: not yet, and nobody but us has written; and the clock goes on.

        Somebody who is woken looks at once, unless what was done must show first.
        """
        early = self.made <= now < self.due and (self.settling or not woken)
        return early and written_state(autoscaler) == self.of


@dataclass(frozen=True, slots=True)
class Rescale:
    """A change of a scale that was sent."""

    at: int
    before: int
    after: int
    because: str


@dataclass(slots=True)
class ScalingHistory:
    """The past of one autoscaler with one target."""

    subject: tuple[str, str]
    """The identities of the two; with another one, there is no past."""
    history: ReplicaHistory = field(default_factory=ReplicaHistory)
    under_way: Rescale | None = None
    """What was sent and not answered: whether it took effect shows when the scale is read again."""
    last_scale: int | None = None
    """When the scale was changed last."""
    looked: int | None = None
    """When it was decided last."""

    def decided(self, history: ReplicaHistory, now: int) -> None:
        """Take down what is known after a decision."""
        self.history = history
        self.looked = now

    def gap(self, now: int, longest: int) -> None:
        """Forget what was recommended before a time in which nobody looked: it has not been seen for a whole window."""
        if self.looked is not None and now - self.looked > longest:
            self.history = replace(self.history, recommendations=RecommendationSteps())

    def done(self, rescale: Rescale) -> None:
        """Take down that a change took effect."""
        self.history = self.history.changed(rescale.at, rescale.before, rescale.after)
        self.last_scale = rescale.at
        self.under_way = None

    def settle(self, asked: int) -> Rescale | None:
        """Find out what became of a change without an answer, from what is asked for now; gives it if it was made."""
        rescale, self.under_way = self.under_way, None
        if rescale is None or asked != rescale.after:
            return None
        self.done(rescale)
        return rescale


_MOST_LISTED = 50
"""Entries of a status, of those that are doubtful and of the others. Of more, the oldest are told as one, made when the
last of them was: so they count longer."""


def recent_changes_field(changes: ReplicaChanges, now: int, *, keep: int) -> list[Object] | None:
    """Write those changes down that are no older than so many seconds; None where there are none."""
    counting = changes.as_of(now, keep=keep)
    entries = [
        *_change_entries(counting.made),
        *({**entry, "doubtful": True} for entry in _change_entries(counting.doubtful)),
    ]
    return sorted(entries, key=lambda entry: str(entry["time"])) or None


def restore_changes(status: Object, asked: int, now: int, *, keep: int) -> ReplicaChanges:
    """Read what was changed before we began; nothing where no policy asks about it.

    Where the target is asked for another number than was told last, somebody has changed it since: perhaps we, and the
    process died before it was told. So that counts as made now.
    """
    if not keep:
        return ReplicaChanges()
    found = [
        (at, int(entry["change"]), bool(entry.get("doubtful")))
        for entry in status.get("recentChanges") or ()
        if (at := instant_in(entry["time"])) is not None
    ]
    made, doubtful = (tuple((at, change) for at, change, doubt in found if doubt is sort) for sort in (False, True))
    last = status.get("desiredReplicas")
    unknown = ((now, asked - last),) if last is not None and last != asked else ()
    return ReplicaChanges(made, (*doubtful, *unknown))


def _change_entries(changes: Sequence[tuple[int, int]]) -> list[Object]:
    ordered = sorted(changes)
    older, newer = ordered[:-_MOST_LISTED], ordered[-_MOST_LISTED:]
    if older:
        newer[0] = newer[0][0], newer[0][1] + sum(change for _, change in older)
    return [{"time": format_instant(at), "change": change} for at, change in newer]
