"""What autoscalers say, read anew only when somebody has written them: judging one takes longer than all the rest."""

from __future__ import annotations

from typing import Any

from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler
from springtide.cluster.resources import Key, Object
from springtide.controllers.judged import Judged, judged


def written(autoscaler: Object) -> tuple[Any, ...]:
    """Give what tells whether people have written an object since; extensions may stand in annotations."""
    metadata = autoscaler["metadata"]
    return metadata.get("uid"), metadata.get("generation"), metadata.get("annotations")


class Specs:
    """Autoscalers as they were judged; nothing in them depends on the time."""

    def __init__(self, default_zone: str) -> None:
        self._default_zone = default_zone
        self._read: dict[Key, tuple[tuple[Any, ...], Judged[HorizontalAutoscaler]]] = {}

    def read(self, key: Key, autoscaler: Object, now: int) -> Judged[HorizontalAutoscaler]:
        """Give what an object means, and what is wrong with it."""
        known = self._read.get(key)
        if known is not None and known[0] == written(autoscaler):
            return known[1]
        verdict = judged(autoscaler, HorizontalAutoscaler, now=now, default_zone=self._default_zone)
        self._read[key] = written(autoscaler), verdict
        return verdict

    def forget(self, key: Key) -> None:
        """Forget an object, which is gone."""
        self._read.pop(key, None)
