"""Who else scales the target of a CronFederatedHPA: an autoscaler that would undo what rules set, and the other way.

Four kinds of autoscalers are looked at, with as little of each in memory as the question needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from springtide.apis.karmada.targets import CronTarget, TargetKind
from springtide.cluster.conditions import Condition, Truth
from springtide.cluster.controller import Cached, Permission
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.store import Delta
from springtide.cluster.tools import Tools
from springtide.controllers.cron.records import ALL_CRONS, BY_TARGET, TargetName

HORIZONTAL_POD_AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
FEDERATED_HPAS = Resource("autoscaling.karmada.io", "v1alpha1", "federatedhpas", "FederatedHPA")
HORIZONTAL_AUTOSCALERS = Resource(
    "autoscaling.karpenter.sh", "v1alpha1", "horizontalautoscalers", "HorizontalAutoscaler"
)
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject")

_KEDA_DEFAULTS = {"apiVersion": "apps/v1", "kind": "Deployment"}
_WITH_BOUNDS = (FEDERATED_HPAS.kind, HORIZONTAL_POD_AUTOSCALERS.kind, SCALED_OBJECTS.kind)


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """An autoscaler, and what it scales."""

    kind: str
    name: str
    target: TargetName | None
    made_by: str = ""
    """The ScaledObject that this is made for, and brought back to by KEDA."""


def _reader(resource: Resource, defaults: Mapping[str, str]) -> Callable[[Object], Autoscaler]:
    def read(item: Object) -> Autoscaler:
        metadata = item["metadata"]
        spec: Any = item.get("spec") or {}
        reference = {**defaults, **(spec.get("scaleTargetRef") or {})}
        owners = metadata.get("ownerReferences") or ()
        made_by = next((one["name"] for one in owners if one.get("kind") == SCALED_OBJECTS.kind), "")
        target = TargetName.of(metadata.get("namespace", ""), reference)
        return Autoscaler(resource.kind, metadata["name"], target, made_by)

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

PERMISSIONS = (
    Permission(HORIZONTAL_POD_AUTOSCALERS, ("get", "list", "watch", "patch")),
    Permission(FEDERATED_HPAS, ("get", "list", "watch", "patch")),
    Permission(SCALED_OBJECTS, ("get", "list", "watch", "patch")),
    Permission(HORIZONTAL_AUTOSCALERS, ("get", "list", "watch")),
)


def wake_the_opposed(tools: Tools) -> None:
    """Wake objects whose target an autoscaler begins or ceases to scale."""

    def told(delta: Delta[Autoscaler]) -> None:
        for one in (delta.old, delta.new):
            if one is None:
                continue
            itself = TargetName(delta.key.namespace, _GROUPS[one.kind], one.kind, one.name)
            for target in (one.target, itself):
                for key in tools.store(ALL_CRONS).keys_by(BY_TARGET, target):
                    tools.wake(key)

    for cached in AUTOSCALERS:
        tools.follow(cached, told)


_GROUPS = {cached.selection.resource.kind: cached.selection.resource.group for cached in AUTOSCALERS}


def opposition(tools: Tools, target: TargetName | None) -> list[Autoscaler]:
    """Find the autoscalers that scale what rules scale; those that KEDA makes stand behind their ScaledObject."""
    if target is None:
        return []
    found: list[Autoscaler] = []
    for cached in AUTOSCALERS:
        found += tools.store(cached).by(BY_TARGET, target)
    if target.kind == HORIZONTAL_POD_AUTOSCALERS.kind:
        itself = tools.store(ALL_HPAS).get(Key(target.namespace, target.name))
        found += [itself] if itself is not None and itself.made_by else []
    named = {(one.kind, one.name) for one in found}
    return [one for one in found if (SCALED_OBJECTS.kind, one.made_by) not in named]


def unopposed(reference: CronTarget, others: Sequence[Autoscaler]) -> Condition:
    """Say whether the rules have their target for themselves, and what to do if not."""
    target = f"{reference.kind} `{reference.name}`"
    names = [_in_words(one) for one in others]
    if not names:
        message = f"nobody else is known to scale {target}"
        return Condition("Unopposed", Truth.TRUE, "NoOtherAutoscaler", message)
    if reference.target_kind is not TargetKind.WORKLOAD:
        message = f"{target} is made by {names[0]}, which undoes what rules set: let `scaleTargetRef` name that instead"
        return Condition("Unopposed", Truth.FALSE, "AlsoScaled", message)
    message = (
        f"{target} is also scaled by {' and by '.join(names)}, and each undoes what the other sets: {_hint(others)}"
    )
    return Condition("Unopposed", Truth.FALSE, "AlsoScaled", message)


def _hint(others: Sequence[Autoscaler]) -> str:
    for one in others:
        if one.made_by or one.kind in _WITH_BOUNDS:
            name = _in_words(one)
            return (
                f"let `scaleTargetRef` name {name}, and rules set its bounds with"
                " `targetMinReplicas` and `targetMaxReplicas`"
            )
    return "remove one of the two, or let the autoscaler follow a schedule of a MetricsProducer as well"


def _in_words(one: Autoscaler) -> str:
    return f"{SCALED_OBJECTS.kind} `{one.made_by}`" if one.made_by else f"{one.kind} `{one.name}`"
