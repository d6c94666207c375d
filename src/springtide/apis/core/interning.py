"""Sharing of equal labels: most pods of a cluster carry one of a few sets of labels, which is kept in memory once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from types import MappingProxyType

_MOST_SHARED = 16_384
"""How many sets are shared: labels that differ on every object must not be kept for ever."""

NO_LABELS: Mapping[str, str] = MappingProxyType({})


def intern_labels(labels: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return a read-only mapping equal to these labels, the same object for equal labels."""
    return _shared(tuple(sorted(labels.items()))) if labels else NO_LABELS


def intern_strings(labels: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return a read-only mapping equal to these labels, of which only the strings are shared: for labels of nodes."""
    return MappingProxyType({intern(key): intern(value) for key, value in labels.items()}) if labels else NO_LABELS


@lru_cache(maxsize=_MOST_SHARED)
def _shared(pairs: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return intern_strings(dict(pairs))
