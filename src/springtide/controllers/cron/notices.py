"""Events about CronFederatedHPAs: what was scaled, what failed, what was missed, and what stands in the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from springtide.cluster.conditions import Condition, Truth
from springtide.cluster.events import Recorder, normal, warning
from springtide.cluster.resources import Key
from springtide.controllers.cron.history import News
from springtide.controllers.cron.records import CRON_FEDERATED_HPAS, CronRecord
from springtide.controllers.cron.words import failed_in_words, scaled_in_words


class Notices:
    """Tells people of what happened, and once of what is wrong."""

    def __init__(self, events: Recorder) -> None:
        self._events = events
        self._told: dict[tuple[Key, str], str] = {}
        """What was said last about the conditions of objects, for clusters whose schema has no place for them."""

    def tell(
        self,
        record: CronRecord,
        before: Iterable[Mapping[str, Any]],
        conditions: Iterable[Condition],
        news: News,
        target: str,
    ) -> None:
        """Tell of a pass whose records are written."""
        for rule, successes in news.successes.items():
            for success in successes:
                words = scaled_in_words(target, rule, success.values, success.executed - success.at)
                self._events.record(CRON_FEDERATED_HPAS, record.origin, normal("Scaled", words))
        for rule, failures in news.failures.items():
            for failure in failures:
                told = warning("Missed" if failure.missed else "ScaleFailed", failed_in_words(rule, failure))
                self._events.record(CRON_FEDERATED_HPAS, record.origin, told)
        known = {entry.get("type"): entry.get("message") for entry in before}
        for condition in conditions:
            self._tell_once(record, known.get(condition.type), condition)

    def forget(self, key: Key) -> None:
        """Forget an object that is gone."""
        for place in [place for place in self._told if place[0] == key]:
            del self._told[place]

    def _tell_once(self, record: CronRecord, known: str | None, condition: Condition) -> None:
        place = record.origin.key, condition.type
        if condition.status is not Truth.FALSE:
            self._told.pop(place, None)
        elif condition.message not in (known, self._told.get(place)):
            self._told[place] = condition.message
            self._events.record(CRON_FEDERATED_HPAS, record.origin, warning(condition.reason, condition.message))
