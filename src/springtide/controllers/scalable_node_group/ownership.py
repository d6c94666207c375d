"""Which of several ScalableNodeGroups scales a group: the oldest that may.

Two objects with different `replicas` would scale one group back and forth for ever. An object that no Grant covers, or
that has errors, never owns a group: otherwise any user could block the owner of a group by naming it in an older
object.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache

from springtide.apis.scheduled.node_group import GroupId, may_be_same, read_group_id
from springtide.apis.validation import ANNOTATION, merge_extensions
from springtide.cluster.resources import Key, Object, key_of

BY_GROUP = "type and place of the group"
"""The index that finds the objects whose ids may name one group."""
_MOST_CACHED = 16_384
"""How many different type, id and extensions are cached as they were read."""


def group_index(item: Object) -> Iterable[Hashable]:
    """Return the index values of an object."""
    found = group_of(item)
    return () if found is None else ((type(found).__name__, found.place),)


def group_of(item: Object) -> GroupId | None:
    """Read which group an object names; None where it names none."""
    type_, id_ = _group_fields(item)
    return None if type_ is None or id_ is None else read_group_id(type_, id_)


def id_of(item: Object) -> str | None:
    """Return the id of the group of an object, as its author wrote it; None where there is none."""
    return _group_fields(item)[1]


def younger_objects(item: Object, others: Iterable[Object]) -> Iterator[Object]:
    """Return the objects for the same group that are younger than one."""
    return _same_group(item, others, lambda other: _age(other) > _age(item))


def owner_of_group(item: Object, others: Iterable[Object], may_scale: Callable[[Object], bool]) -> Key | None:
    """Name the oldest object that scales the group of an object in its place; None where the object scales it."""
    older = _same_group(item, others, lambda other: _age(other) < _age(item) and may_scale(other))
    oldest = min(older, key=_age, default=None)
    return key_of(oldest) if oldest is not None else None


def _same_group(item: Object, others: Iterable[Object], matches: Callable[[Object], bool]) -> Iterator[Object]:
    """Return the other objects whose ids may name the group of one, as far as they match.

    Users can write any number of objects that name a group, so the cheap check comes first.
    """
    own = group_of(item)
    for other in others:
        if not matches(other):
            continue
        named = group_of(other)
        if own is not None and named is not None and may_be_same(own, named):
            yield other


def _group_fields(item: Object) -> tuple[str | None, str | None]:
    annotations = item["metadata"].get("annotations") or {}
    spec = item.get("spec") or {}
    return _type_and_id(_text(spec.get("type")), _text(spec.get("id")), annotations.get(ANNOTATION))


@lru_cache(maxsize=_MOST_CACHED)
def _type_and_id(type_: str | None, id_: str | None, extensions: str | None) -> tuple[str | None, str | None]:
    """Read type and id, which extensions may set; cached, as every object is compared with each of its duplicates."""
    written: Object = {"spec": {"type": type_, "id": id_}}
    if extensions is not None:
        written["metadata"] = {"annotations": {ANNOTATION: extensions}}
    spec = merge_extensions(written)[0]["spec"]
    return _text(spec.get("type")), _text(spec.get("id"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _age(item: Object) -> tuple[str, Key]:
    """Order objects by their creation; those of one second by namespace and name."""
    return item["metadata"].get("creationTimestamp") or "", key_of(item)
