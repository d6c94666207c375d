"""What of a new object is its author's: not what the server adds to it of its own accord.

Defaults belong to who wrote the object. What depends on more than the object does not: the patience of pods with nodes
in trouble, the selector and the labels that a job gets with its uid; nor does a status that somebody else will write.
"""

from __future__ import annotations

from typing import TypeAlias

from springtide.cluster.resources import Object
from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.api.values import found, removed, replaced

_Path: TypeAlias = tuple[str, ...]

_LABELS = ("metadata", "labels")
_TEMPLATE_LABELS = ("spec", "template", "metadata", "labels")

_ADDED_TO: dict[tuple[str, str], dict[_Path, tuple[_Path, ...]]] = {
    ("", "Pod"): {("spec", "tolerations"): (("spec", "tolerations"),)},
    ("batch", "Job"): {
        _LABELS: (_LABELS, _TEMPLATE_LABELS),
        _TEMPLATE_LABELS: (_TEMPLATE_LABELS,),
        ("spec", "selector"): (("spec", "selector"),),
    },
}
"""By kind, the fields that the server adds to, and where to look in turn for what the author gave them."""


def authored(kind: ServedKind, born: Object, body: Object) -> Object:
    """Give a new object as its author has made it; `body` is what they wrote, before anything was filled in."""
    item = removed(born, ("status",)) if "status" in kind.subresources else born
    for path, sources in _ADDED_TO.get((kind.resource.group, kind.resource.kind), {}).items():
        given = next(filter(None, (found(body, source) for source in sources)), None)
        item = removed(item, path) if given is None else replaced(item, path, given)
    return item
