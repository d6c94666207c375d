"""One copy of what repeats: most pods of a cluster carry the same few sets of labels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from types import MappingProxyType

_MOST_SHARED = 16_384
"""Some labels are different on every object; those must not be kept for ever."""

NO_LABELS: Mapping[str, str] = MappingProxyType({})


def intern_labels(labels: Mapping[str, str] | None) -> Mapping[str, str]:
    """Give labels that are equal to these, and the same object for all who ask for equal ones."""
    return _shared(tuple(sorted(labels.items()))) if labels else NO_LABELS


@lru_cache(maxsize=_MOST_SHARED)
def _shared(pairs: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return MappingProxyType({intern(key): intern(value) for key, value in pairs})
