"""When each HorizontalAutoscaler is reconciled: when it is due, or at once after a change that concerns it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Result
from springtide.cluster.pausing import ANNOTATION as PAUSED
from springtide.cluster.pausing import means_paused
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.controllers.conflicts import (
    ALL_HORIZONTAL_AUTOSCALERS,
    BY_TARGET,
    HORIZONTAL_AUTOSCALERS,
    AutoscalerRecord,
    ScaleTargetKey,
    ScaleTargets,
)
from springtide.controllers.grant.state import Grants
from springtide.controllers.horizontal_autoscaler.metric_index import MetricIndex
from springtide.controllers.horizontal_autoscaler.scaling_history import ALL_AUTOSCALERS, written_state
from springtide.metrics.reading.port import MetricReader
from springtide.metrics.series import SeriesStore


@dataclass(frozen=True, slots=True)
class LastReconcile:
    """When an autoscaler was reconciled last, and when it is due again."""

    written: tuple[Any, ...]
    made: int
    due: int
    settling: bool = False
    """Whether the metrics do not show the last change yet: until the next reconcile is due, their changes mean
    nothing."""

    @classmethod
    def of(cls, autoscaler: Object, now: int, due: int, *, settling: bool = False) -> LastReconcile:
        """Note a reconcile that has just ended."""
        return cls(written_state(autoscaler), now, due, settling)

    def suffices(self, autoscaler: Object, now: int, *, metrics_changed: bool) -> bool:
        """Return whether nothing has to be read now.

        That is so before the next reconcile is due, if no user has changed the object and the clock was not set back.
        A change of a metric counts at once, unless the metrics are still settling.
        """
        early = self.made <= now < self.due and (self.settling or not metrics_changed)
        return early and written_state(autoscaler) == self.written


class DueTimes:
    """The last reconcile of every autoscaler; enqueues autoscalers whose metrics, Grants or conflicts change."""

    def __init__(self, context: ControllerContext, reader: MetricReader) -> None:
        self._context = context
        self._last: dict[Key, LastReconcile] = {}
        self._changed: set[Key] = set()
        """Autoscalers whose metrics, Grants or conflicts have changed since their last reconcile."""
        index = MetricIndex(reader)
        context.follow(ALL_AUTOSCALERS, index.follow)
        context.follow(ALL_AUTOSCALERS, self._follow_pause)
        context.subscribe(Grants, lambda _: self._enqueue(index.of_grants()))
        context.subscribe(ScaleTargets, self._enqueue_conflicting)
        context.subscribe(SeriesStore, lambda change: self._enqueue(index.of_series(*change)))

    def begin(self, key: Key, autoscaler: Object, now: int) -> Result | None:
        """Begin a reconcile; where none is due, gives when to try again."""
        last = self._last.get(key)
        if last is not None and last.suffices(autoscaler, now, metrics_changed=key in self._changed):
            return _requeue_at(last.due, now)
        # Dropped first: a reconcile that fails is made again, and changes from here on count.
        self.forget(key)
        return None

    def end(self, key: Key, reconcile: LastReconcile, now: int) -> Result:
        """Keep a reconcile that succeeded; gives when the next one is due."""
        self._last[key] = reconcile
        return _requeue_at(reconcile.due, now)

    def forget(self, key: Key) -> None:
        """Drop an autoscaler: it is due at once."""
        self._last.pop(key, None)
        self._changed.discard(key)

    def _follow_pause(self, delta: Delta[Object]) -> None:
        """Reconcile at once after a pause: much may have changed meanwhile."""
        if delta.new is None or _is_paused(delta.old) != _is_paused(delta.new):
            self._last.pop(delta.key, None)

    def _enqueue_conflicting(self, change: tuple[ScaleTargetKey, AutoscalerRecord]) -> None:
        target, changed = change
        keys = self._context.store(ALL_HORIZONTAL_AUTOSCALERS).keys_by(BY_TARGET, target)
        self._enqueue(key for key in keys if (changed.kind, changed.name) != (HORIZONTAL_AUTOSCALERS.kind, key.name))

    def _enqueue(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._changed.add(key)
            self._context.enqueue(key)


def _requeue_at(due: int, now: int) -> Result:
    """Requeue after a delay and not at an instant, as the clock may be set back meanwhile."""
    return Result(requeue_after=due - now)


def _is_paused(autoscaler: Object | None) -> bool:
    annotations = (autoscaler or {}).get("metadata", {}).get("annotations") or {}
    return means_paused(annotations.get(PAUSED))
