"""What may change in a pod once it exists: its images, its deadline, its tolerations and its gates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import forbidden, invalid

_CONTAINERS = ("containers", "initContainers")
_FREE = ("activeDeadlineSeconds", "ephemeralContainers", "schedulingGates", "tolerations")
_CHANGEABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)


def pod_keeps_its_spec(pod: Object, old: Object | None) -> Iterator[Cause]:
    """Find what an update of a pod may not do."""
    if old is None or pod["spec"] == old["spec"]:
        return
    spec, before = pod["spec"], old["spec"]
    for name in _CONTAINERS:
        if len(spec.get(name) or ()) != len(before.get(name) or ()):
            yield forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
    yield from _deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    yield from _tolerations(spec.get("tolerations") or [], before.get("tolerations") or [])
    yield from _gates(spec.get("schedulingGates") or [], before.get("schedulingGates") or [])
    if _kept(spec, before) != _kept(before, before):
        yield forbidden("spec", f"pod updates may not change fields other than {','.join(_CHANGEABLE)}")


def _deadline(new: int | None, old: int | None) -> Iterator[Cause]:
    path = "spec.activeDeadlineSeconds"
    if new is None and old is not None:
        yield invalid(path, None, "must not update from a positive integer to nil value")
    elif new is not None and old is not None and new > old:
        yield invalid(path, new, "must be less than or equal to previous value")


def _tolerations(new: list[Any], old: list[Any]) -> Iterator[Cause]:
    if any(toleration not in new for toleration in old):
        yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _gates(new: list[Any], old: list[Any]) -> Iterator[Cause]:
    for gate in new:
        if gate not in old:
            yield forbidden(
                "spec.schedulingGates", f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            )


def _kept(spec: Object, before: Object) -> Object:
    """Leave out of a spec what may change, given what it was before."""
    free = (*_FREE, *_CONTAINERS, *_freed_by_gates(before), *_freed_by_binding(before))
    kept = {name: value for name, value in spec.items() if name not in free}
    for name in _CONTAINERS:
        kept[name] = [{**container, "image": ""} for container in spec.get(name) or ()]
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and kept.get("terminationGracePeriodSeconds") == 1:
        kept["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    return kept


def _freed_by_gates(before: Object) -> tuple[str, ...]:
    """Where a pod may run can be narrowed as long as something holds it back from being scheduled."""
    return ("affinity", "nodeSelector") if before.get("schedulingGates") else ()


def _freed_by_binding(before: Object) -> tuple[str, ...]:
    """A binding sets the node of a pod that has none."""
    return () if before.get("nodeName") else ("nodeName",)
