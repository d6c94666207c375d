"""Which autoscalers scale a target: the one answer to "who else scales this?" for all kinds and for `explain`.

Two autoscalers of one target undo each other's changes for ever, and only a user can choose between them. So a
controller that finds a conflict changes nothing because of it, and reports it in the condition `Unopposed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from springtide.apis.meta.scaling import expected_api_version
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.controller import Cached
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.state import SharedState
from springtide.cluster.store import Delta

HORIZONTAL_POD_AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
FEDERATED_HPAS = Resource("autoscaling.karmada.io", "v1alpha1", "federatedhpas", "FederatedHPA")
HORIZONTAL_AUTOSCALERS = Resource(
    "autoscaling.karpenter.sh", "v1alpha1", "horizontalautoscalers", "HorizontalAutoscaler"
)
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject")
WITH_BOUNDS = (FEDERATED_HPAS.kind, HORIZONTAL_POD_AUTOSCALERS.kind, SCALED_OBJECTS.kind)
"""Kinds whose minimum and maximum the rules of a CronFederatedHPA can set."""

BY_TARGET = "target"
"""The index of objects that scale something by what they scale."""
CONFLICT_CONDITION = "Unopposed"

_KEDA_DEFAULTS = {"apiVersion": "apps/v1", "kind": "Deployment"}


@dataclass(frozen=True, slots=True)
class ScaleTargetKey:
    """An object that is scaled, whatever version of its kind a reference names."""

    namespace: str
    group: str
    kind: str
    name: str

    @classmethod
    def of(cls, namespace: str, reference: Any) -> ScaleTargetKey | None:
        """Read a `scaleTargetRef`; None where it names nothing."""
        if not isinstance(reference, dict) or not reference.get("kind") or not reference.get("name"):
            return None
        kind = str(reference["kind"])
        version = reference.get("apiVersion") or expected_api_version(kind, None) or ""
        return cls(namespace, str(version).rpartition("/")[0], kind, str(reference["name"]))


@dataclass(frozen=True, slots=True)
class AutoscalerRecord:
    """An autoscaler, and what it scales."""

    kind: str
    name: str
    target: ScaleTargetKey | None
    made_by: str = ""
    """The ScaledObject that KEDA made this autoscaler for; KEDA reverts any other change of it."""

    def __str__(self) -> str:
        return f"{SCALED_OBJECTS.kind} `{self.made_by}`" if self.made_by else f"{self.kind} `{self.name}`"


def _reader(resource: Resource, defaults: Mapping[str, str]) -> Callable[[Object], AutoscalerRecord]:
    def read(item: Object) -> AutoscalerRecord:
        metadata = item["metadata"]
        spec: Any = item.get("spec")
        named = spec.get("scaleTargetRef") if isinstance(spec, dict) else None
        reference = {**defaults, **(named if isinstance(named, dict) else {})}
        owners = metadata.get("ownerReferences") or ()
        made_by = next((one["name"] for one in owners if one.get("kind") == SCALED_OBJECTS.kind), "")
        target = ScaleTargetKey.of(metadata.get("namespace", ""), reference)
        return AutoscalerRecord(resource.kind, metadata["name"], target, made_by)

    return read


def _cached(resource: Resource, defaults: Mapping[str, str] | None = None) -> Cached:
    return Cached(
        Selection(resource),
        record=_reader(resource, defaults or {}),
        indexes={BY_TARGET: lambda one: () if one.target is None else (one.target,)},
    )


ALL_HPAS = _cached(HORIZONTAL_POD_AUTOSCALERS)
ALL_FEDERATED_HPAS = _cached(FEDERATED_HPAS)
ALL_HORIZONTAL_AUTOSCALERS = _cached(HORIZONTAL_AUTOSCALERS)
ALL_SCALED_OBJECTS = _cached(SCALED_OBJECTS, _KEDA_DEFAULTS)
AUTOSCALERS = (ALL_HPAS, ALL_FEDERATED_HPAS, ALL_HORIZONTAL_AUTOSCALERS, ALL_SCALED_OBJECTS)

_RECORDS = {cached.selection.resource.kind: cached.record for cached in AUTOSCALERS}


class ScaleTargets(SharedState[tuple[ScaleTargetKey, AutoscalerRecord]]):
    """Which autoscalers scale which target; a change is a target, and the autoscaler that scales it now or before.

    An autoscaler is a target as well: rules may set its bounds. Status writes change no record.
    """

    optional_sources = AUTOSCALERS

    def apply(self, cached: Cached, delta: Delta[AutoscalerRecord]) -> None:
        """Notify readers of the targets of an autoscaler before and after a change."""
        group = cached.selection.resource.group
        for one in dict.fromkeys((delta.old, delta.new)):
            if one is None:
                continue
            self.publish((ScaleTargetKey(delta.key.namespace, group, one.kind, one.name), one))
            if one.target is not None:
                self.publish((one.target, one))

    def autoscalers_of(self, target: ScaleTargetKey | None) -> list[AutoscalerRecord]:
        """Find the autoscalers of a target."""
        if target is None:
            return []
        found: list[AutoscalerRecord] = []
        for cached in AUTOSCALERS:
            found += self.store(cached).by(BY_TARGET, target)
        if target.kind == HORIZONTAL_POD_AUTOSCALERS.kind:
            itself = self.store(ALL_HPAS).get(Key(target.namespace, target.name))
            found += [itself] if itself is not None and itself.made_by else []
        return _without_generated(found)


def autoscalers_among(items: Iterable[Object], target: ScaleTargetKey) -> list[AutoscalerRecord]:
    """Find the autoscalers of a target among some objects, as `ScaleTargets` does in the caches."""
    records = [_RECORDS[item["kind"]](item) for item in items if item["kind"] in _RECORDS]
    found = [one for one in records if one.target == target]
    if target.kind == HORIZONTAL_POD_AUTOSCALERS.kind:
        found += [one for one in records if one.made_by and one.kind == target.kind and one.name == target.name]
    return _without_generated(found)


def _without_generated(found: Sequence[AutoscalerRecord]) -> list[AutoscalerRecord]:
    """Leave out the HorizontalPodAutoscalers that KEDA made for a ScaledObject that is in the list as well."""
    named = {(one.kind, one.name) for one in found}
    return [one for one in found if (SCALED_OBJECTS.kind, one.made_by) not in named]


def conflict_condition(target: str, others: Sequence[AutoscalerRecord], remedy: str) -> Condition:
    """Say whether other autoscalers scale a target, and what a user should do about it."""
    if not others:
        message = f"no other autoscaler is known to scale {target}"
        return Condition(CONFLICT_CONDITION, ConditionStatus.TRUE, "NoOtherAutoscaler", message)
    names = " and by ".join(str(one) for one in others)
    message = f"{target} is also scaled by {names}, and each undoes what the other sets: {remedy}"
    return Condition(CONFLICT_CONDITION, ConditionStatus.FALSE, "AlsoScaled", message)
