"""Which of several objects scales a group: the oldest that may.

Two objects with different wishes for one group would fight over it for ever. An object that no grant covers, or that
has errors, never counts: else anybody could stop the owner of a group by naming it first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache

from springtide.apis.scheduled.node_group import GroupId, may_be_same, read_group_id
from springtide.apis.validation import ANNOTATION, merge_extensions
from springtide.cluster.resources import Key, Object, key_of
from springtide.cluster.store import Store

BY_GROUP = "type and place of the group"
"""Finds the objects whose ids may mean one group."""
_MOST_CACHED = 16_384
"""Of how many different objects it is remembered which group they name."""


def group_index(item: Object) -> Iterable[Hashable]:
    """Give the values that an object is found under."""
    found = group_of(item)
    return () if found is None else ((type(found).__name__, found.place),)


def group_of(item: Object) -> GroupId | None:
    """Read which group an object is for; None where it does not say."""
    type_, id_ = _named(item)
    return None if type_ is None or id_ is None else read_group_id(type_, id_)


def id_of(item: Object) -> str | None:
    """Give the id of the group of an object, as it is written; None where there is none."""
    return _named(item)[1]


def _named(item: Object) -> tuple[str | None, str | None]:
    annotations = item["metadata"].get("annotations") or {}
    spec = item.get("spec") or {}
    return _type_and_id(_text(spec.get("type")), _text(spec.get("id")), annotations.get(ANNOTATION))


@lru_cache(maxsize=_MOST_CACHED)
def _type_and_id(type_: str | None, id_: str | None, extensions: str | None) -> tuple[str | None, str | None]:
    """Read type and id, which extensions may say; once, for every object is looked at again for each of its rivals."""
    written: Object = {"spec": {"type": type_, "id": id_}}
    if extensions is not None:
        written["metadata"] = {"annotations": {ANNOTATION: extensions}}
    spec = merge_extensions(written)[0]["spec"]
    return _text(spec.get("type")), _text(spec.get("id"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def younger_objects(item: Object, store: Store[Object]) -> Iterator[Object]:
    """Give the objects that may have to make way for one, since they are for the same group and were made later."""
    return _others(item, store, lambda other: _age(other) > _age(item))


def owner_of_group(item: Object, store: Store[Object], may_scale: Callable[[Object], bool]) -> Key | None:
    """Name the oldest of those that rule over the group of an object before it; None where the object rules itself."""
    older = _others(item, store, lambda other: _age(other) < _age(item) and may_scale(other))
    oldest = min(older, key=_age, default=None)
    return key_of(oldest) if oldest is not None else None


def _others(item: Object, store: Store[Object], meant: Callable[[Object], bool]) -> Iterator[Object]:
    """Give the other objects that are, or may be, for the group of one, and that are meant.

    Anybody can write any number of objects that name a group: what is quickly told of them is asked first.
    """
    own = group_of(item)
    for place in group_index(item):
        for other in store.by(BY_GROUP, place):
            if not meant(other):
                continue
            theirs = group_of(other)
            if own is not None and theirs is not None and may_be_same(own, theirs):
                yield other


def _age(item: Object) -> tuple[str, Key]:
    """Order objects by when they were made; of those of one second, by their names."""
    return item["metadata"].get("creationTimestamp") or "", key_of(item)
