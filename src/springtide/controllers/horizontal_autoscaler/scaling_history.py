"""What the controller keeps of an autoscaler between two reconciles, during one leadership term.

Recommendations are lost with the process, which is safe: the target is not scaled before a whole stabilization window
has been seen again. Changes of the scale count against policies, so the status keeps them over a restart: otherwise a
policy of so much in half an hour would allow it once more after each restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import instant_in
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler
from springtide.cluster.controller import Cached
from springtide.cluster.resources import Key, Object, Selection
from springtide.controllers.conflicts import HORIZONTAL_AUTOSCALERS
from springtide.controllers.validated import Validated, try_validation, validated
from springtide.scaling import RecommendationSteps, ReplicaChanges, ReplicaHistory

ALL_AUTOSCALERS = Cached(Selection(HORIZONTAL_AUTOSCALERS), trial=try_validation)

LONGEST_GAP = 180
"""Seconds without a reconcile after which recommendations are forgotten: what the metrics recommended is not known."""
NEW_FOR = 30
"""Seconds from its first decision in a leadership term for which an autoscaler counts as new."""
_MOST_LISTED = 50
"""How many certain and how many doubtful changes the status lists. Older ones are added to the oldest that is listed,
with the time of that one: so they count longer, never shorter."""


@dataclass(frozen=True, slots=True)
class Rescale:
    """A change of a scale that was sent to the API server."""

    at: int
    before: int
    after: int
    because: str


@dataclass(slots=True)
class ScalingHistory:
    """The past of one autoscaler with one target."""

    subject: tuple[str, str]
    """The UIDs of the two; with another one, the past does not count."""
    history: ReplicaHistory = field(default_factory=ReplicaHistory)
    in_flight: Rescale | None = None
    """A change that was sent and not answered; whether it took effect shows when the scale is read again."""
    last_scale: int | None = None
    """When the scale was changed last."""
    decided_at: int | None = None
    first_decided_at: int | None = None

    def decided(self, history: ReplicaHistory, now: int) -> None:
        """Keep the history that a decision gives."""
        self.history = history
        self.decided_at = now
        if self.first_decided_at is None:
            self.first_decided_at = now

    def is_new(self, now: int) -> bool:
        """Return whether the first decision of this leadership term was made just now."""
        return self.first_decided_at is None or 0 <= now - self.first_decided_at < NEW_FOR

    def forget_after_gap(self, now: int) -> None:
        """Forget recommendations if the last decision is too long ago: they do not cover a whole window."""
        if self.decided_at is not None and now - self.decided_at > LONGEST_GAP:
            self.history = replace(self.history, recommendations=RecommendationSteps())

    def done(self, rescale: Rescale) -> None:
        """Keep a change that took effect."""
        self.history = self.history.changed(rescale.at, rescale.before, rescale.after)
        self.last_scale = rescale.at
        self.in_flight = None

    def resolve_in_flight(self, asked: int) -> Rescale | None:
        """Find out from the present scale whether the change in flight took effect; gives the change if it did."""
        rescale, self.in_flight = self.in_flight, None
        if rescale is None or asked != rescale.after:
            return None
        self.done(rescale)
        return rescale


class ScalingHistories:
    """The histories of all autoscalers."""

    def __init__(self) -> None:
        self._histories: dict[Key, ScalingHistory] = {}

    def get(self, key: Key, autoscaler: Object, target_uid: str, asked: int, now: int, *, keep: int) -> ScalingHistory:
        """Return the past of an autoscaler and its target, which is empty if either is new; the status begins it."""
        subject = (str(autoscaler["metadata"].get("uid", "")), target_uid)
        history = self._histories.get(key)
        if history is None:
            changes = restore_changes(autoscaler.get("status") or {}, asked, now, keep=keep)
            history = self._histories[key] = ScalingHistory(subject, ReplicaHistory(changes=changes))
        elif history.subject != subject:
            history = self._histories[key] = ScalingHistory(subject)
        return history

    def forget(self, key: Key) -> None:
        """Drop an autoscaler that is gone."""
        self._histories.pop(key, None)


class SpecCache:
    """Validated autoscalers; validation takes longer than the rest of a reconcile, and depends on no time."""

    def __init__(self, default_zone: str) -> None:
        self._default_zone = default_zone
        self._read: dict[Key, tuple[tuple[Any, ...], Validated[HorizontalAutoscaler]]] = {}

    def read(self, key: Key, autoscaler: Object, now: int) -> Validated[HorizontalAutoscaler]:
        """Return the view and the errors of an autoscaler."""
        known = self._read.get(key)
        if known is not None and known[0] == written_state(autoscaler):
            return known[1]
        verdict = validated(autoscaler, HorizontalAutoscaler, now=now, default_zone=self._default_zone)
        self._read[key] = written_state(autoscaler), verdict
        return verdict

    def forget(self, key: Key) -> None:
        """Drop an object that is gone."""
        self._read.pop(key, None)


def written_state(autoscaler: Object) -> tuple[Any, ...]:
    """Return what changes whenever a user writes the object; extensions may be in annotations."""
    metadata = autoscaler["metadata"]
    return metadata.get("uid"), metadata.get("generation"), metadata.get("annotations")


def recent_changes_field(changes: ReplicaChanges, now: int, *, keep: int) -> list[Object] | None:
    """Write `recentChanges`: the changes of the last so many seconds; None where there are none."""
    counting = changes.as_of(now, keep=keep)
    entries = [
        *_change_entries(counting.made),
        *({**entry, "doubtful": True} for entry in _change_entries(counting.doubtful)),
    ]
    return sorted(entries, key=lambda entry: str(entry["time"])) or None


def restore_changes(status: Object, asked: int, now: int, *, keep: int) -> ReplicaChanges:
    """Read `recentChanges` after a restart; nothing where no policy needs it.

    Where the target is asked for another number than the status says, it was changed since: perhaps by this controller,
    whose process ended before it could write the status. So the difference counts as a change of now.
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
