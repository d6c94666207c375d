"""What may change in a pod once it exists: its images, its deadline, its tolerations and its gates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api import pods
from springtide.simulator.api.builtin.judging import forbidden, invalid
from springtide.simulator.api.builtin.rules.making import field_of, without

_CONTAINERS = ("containers", "initContainers")
_FREE = ("activeDeadlineSeconds", "ephemeralContainers", "schedulingGates", "tolerations")
_CHANGEABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
_REQUIRED_TERMS = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def pod_keeps_its_spec(pod: Object, old: Object | None) -> Iterator[Cause]:
    """Find what an update of a pod may not do."""
    if old is None:
        return
    spec, before = pod["spec"], old["spec"]
    for name in _CONTAINERS:
        if len(spec.get(name) or ()) != len(before.get(name) or ()):
            yield forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
    yield from _deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    yield from _tolerations(spec.get("tolerations") or [], before.get("tolerations") or [])
    yield from _gates(spec.get("schedulingGates") or [], before.get("schedulingGates") or [])
    if before.get("schedulingGates"):
        yield from _narrowed(spec, before)
    if _kept(pod, before) != _kept(old, before):
        yield forbidden("spec", f"pod updates may not change fields other than {','.join(_CHANGEABLE)}")


def _deadline(new: int | None, old: int | None) -> Iterator[Cause]:
    path = "spec.activeDeadlineSeconds"
    if new is None and old is not None:
        yield invalid(path, None, "must not update from a positive integer to nil value")
    elif new is not None and old is not None and new > old:
        yield invalid(path, new, "must be less than or equal to previous value")


def _tolerations(new: list[Any], old: list[Any]) -> Iterator[Cause]:
    """Judge tolerations: more of them may come, and each may last for another time."""
    tolerated = [without(toleration, ("tolerationSeconds",)) for toleration in new]
    if any(without(toleration, ("tolerationSeconds",)) not in tolerated for toleration in old):
        yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _gates(new: list[Any], old: list[Any]) -> Iterator[Cause]:
    known = [gate["name"] for gate in old]
    for index, gate in enumerate(new):
        if gate["name"] not in known:
            path = f"spec.schedulingGates[{index}].name"
            yield forbidden(path, f"only deletion is allowed, but found new scheduling gate '{gate['name']}'")


def _narrowed(spec: Object, before: Object) -> Iterator[Cause]:
    """Judge where a pod may run that is held back from being scheduled: that may be narrowed, not widened."""
    selector, had = spec.get("nodeSelector") or None, before.get("nodeSelector") or {}
    if any((selector or {}).get(name) != value for name, value in had.items()):
        message = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid("spec.nodeSelector", selector, message)
    terms, known = field_of(spec, _REQUIRED_TERMS), field_of(before, _REQUIRED_TERMS)
    if not known or terms == known:
        return
    path = f"spec.{_REQUIRED_TERMS}"
    if len(terms or ()) != len(known):
        yield invalid(path, terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (term, was) in enumerate(zip(terms, known, strict=True)):
        if not _only_grows(term, was):
            yield invalid(f"{path}[{index}]", term, "only additions are allowed (no mutations or deletions)")


def _only_grows(term: Object, was: Object) -> bool:
    """Tell whether a term asks for all that it asked for, in the same order; one that matches nothing stays."""
    parts = [(term.get(name) or [], was.get(name) or []) for name in ("matchExpressions", "matchFields")]
    if not any(had for _, had in parts):
        return not any(now for now, _ in parts)
    return all(now[: len(had)] == had for now, had in parts)


def _kept(pod: Object, before: Object) -> Object:
    """Leave out of a spec what may change, given what it was before."""
    spec = pod["spec"]
    kept = without(spec, (*_FREE, *_CONTAINERS, *_freed_by_binding(pod, before)))
    for name in _CONTAINERS:
        kept[name] = [{**container, "image": ""} for container in spec.get(name) or ()]
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and kept.get("terminationGracePeriodSeconds") == 1:
        kept["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    if before.get("schedulingGates"):
        kept.pop("nodeSelector", None)
        kept["affinity"] = without(spec.get("affinity") or {}, ("nodeAffinity",))
    return kept


def _freed_by_binding(pod: Object, before: Object) -> tuple[str, ...]:
    """A binding sets the node of a pod that has none, and says in the same write that the pod is scheduled.

    No other write of a spec touches the status, so a pod that nobody has bound does not say that.
    """
    if before.get("nodeName"):
        return ()
    scheduled = pods.condition(pod, "PodScheduled") or {}
    return ("nodeName",) if scheduled.get("status") == "True" else ()
