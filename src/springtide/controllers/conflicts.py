"""Who scales what: autoscalers of four kinds, with as little of each in memory as the question needs.

Two that scale one target undo each other's work for ever, and only people can choose; so whoever finds another one
tells them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from springtide.apis.meta.scaling import expected_api_version
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Cached
from springtide.cluster.resources import Key, Object, Resource, Selection

HORIZONTAL_POD_AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
FEDERATED_HPAS = Resource("autoscaling.karmada.io", "v1alpha1", "federatedhpas", "FederatedHPA")
HORIZONTAL_AUTOSCALERS = Resource(
    "autoscaling.karpenter.sh", "v1alpha1", "horizontalautoscalers", "HorizontalAutoscaler"
)
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject")

BY_TARGET = "target"
"""The index of those who scale something by what they scale."""

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
        """Read a reference as it stands in an object; None where it is none."""
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
    """The ScaledObject that this is made for, and brought back to by KEDA."""


def _reader(resource: Resource, defaults: Mapping[str, str]) -> Callable[[Object], AutoscalerRecord]:
    def read(item: Object) -> AutoscalerRecord:
        metadata = item["metadata"]
        spec: Any = item.get("spec") or {}
        reference = {**defaults, **(spec.get("scaleTargetRef") or {})}
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
"""All of them; a controller that asks here watches all, with `to_nobody`."""


def autoscalers_of(context: ControllerContext, target: ScaleTargetKey | None) -> list[AutoscalerRecord]:
    """Find the autoscalers of a target; those that KEDA makes stand behind their ScaledObject."""
    if target is None:
        return []
    found: list[AutoscalerRecord] = []
    for cached in AUTOSCALERS:
        found += context.store(cached).by(BY_TARGET, target)
    if target.kind == HORIZONTAL_POD_AUTOSCALERS.kind:
        itself = context.store(ALL_HPAS).get(Key(target.namespace, target.name))
        found += [itself] if itself is not None and itself.made_by else []
    named = {(one.kind, one.name) for one in found}
    return [one for one in found if (SCALED_OBJECTS.kind, one.made_by) not in named]
