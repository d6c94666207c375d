"""Reads from a cluster what the explanation of one object needs: the object, its target, events and related objects.

The object itself must exist. Everything else is optional: a request that the API server refuses becomes a note of the
explanation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import LoadedObject, load_tree
from springtide.apis.references import SCALING_KINDS, ObjectKey, object_key
from springtide.assembly.cluster_reader import ReadableCluster, UnknownNameError, as_written
from springtide.cluster.errors import ApiError, NotFound
from springtide.cluster.events import EVENTS
from springtide.cluster.pausing import ANNOTATION, CONFIG_MAPS, SWITCH_NAME, means_paused
from springtide.cluster.resources import Key, Object, Resource
from springtide.controllers.explain import EXPLAINERS, TARGETS
from springtide.controllers.explanation import ExplanationInput, PastEvent, TargetState, instant_of, scaled_by

_OWN_NAMESPACE = "springtide-system"
_BOUNDS = {
    "HorizontalPodAutoscaler": ("minReplicas", "maxReplicas"),
    "FederatedHPA": ("minReplicas", "maxReplicas"),
    "ScaledObject": ("minReplicaCount", "maxReplicaCount"),
}
_CLUSTER_WIDE = (
    ("springtide.dev", "Calendar"),
    ("springtide.dev", "Grant"),
    ("autoscaling.karpenter.sh", "MetricsProducer"),
    ("autoscaling.karpenter.sh", "HorizontalAutoscaler"),
    ("autoscaling.karpenter.sh", "ScalableNodeGroup"),
)
"""Kinds that are read from all namespaces; where that is forbidden, from the object's namespace only."""
_USERS_OF_CALENDARS = (("autoscaling.x-k8s.io", "CapacityBuffer"), ("karpenter.sh", "NodePool"))
"""Kinds that are read only to find the objects that depend on a Calendar."""
_EVENTS = 5


async def read_explanation_input(
    cluster: ReadableCluster, word: str, name: str, *, at: int | None, default_zone: str
) -> ExplanationInput:
    """Read an object and everything related to it, to explain it at a time or now, by the cluster's clock.

    Raises `UnknownNameError` where the object does not exist or its kind has no explanation.
    """
    resource = cluster.named(word)
    if (resource.group, resource.kind) not in (*EXPLAINERS, *TARGETS):
        listed = ", ".join(kind.lower() for _, kind in (*EXPLAINERS, *TARGETS))
        raise UnknownNameError(f"a {resource.kind} cannot be explained", f"these can: {listed}")
    item = await cluster.get(resource, name, cluster.namespace)
    now = cluster.now
    time = now if at is None else at
    reader = _RelatedReader(cluster, ValidationContext(now=time, default_zone=default_zone, deep_search=False))
    loaded = reader.loaded(item)
    assert loaded is not None  # noqa: S101 - all kinds with an explanation are known
    others = await reader.others(loaded)

    async def read(loaded: LoadedObject, item: Object, above: tuple[ObjectKey, ...] = ()) -> ExplanationInput:
        explained = (loaded.kind.group, loaded.kind.kind) in EXPLAINERS
        key = object_key(loaded)
        # Two autoscalers could name each other.
        scaling = [pair for pair in others if scaled_by(pair[0]) == key and object_key(pair[0]) not in (*above, key)]
        return ExplanationInput(
            object=loaded,
            status=item.get("status") or {},
            at=time,
            default_zone=default_zone,
            others=tuple(other for other, _ in others if object_key(other) != key),
            scalers=() if explained else tuple([await read(*pair, (*above, key)) for pair in scaling]),
            target=await reader.target(loaded) if explained else _state_of(loaded, item),
            events=tuple(await reader.events(item)),
            paused=await reader.paused(item) if explained else "",
            unseen=frozenset(reader.unseen),
            present=time == now,
            read_at=now,
        )

    found = await read(loaded, item)
    return replace(found, unknown=tuple(dict.fromkeys(reader.unknown)))


class _RelatedReader:
    def __init__(self, cluster: ReadableCluster, context: ValidationContext) -> None:
        self._cluster = cluster
        self._context = context
        self.unknown: list[str] = []
        self.unseen: list[str] = []

    def loaded(self, item: Object) -> LoadedObject | None:
        found = load_tree(as_written(item), self._context)
        return found if isinstance(found, LoadedObject) else None

    async def others(self, loaded: LoadedObject) -> list[tuple[LoadedObject, Object]]:
        """Read all objects that may be related to an object, without the object itself."""
        users = _USERS_OF_CALENDARS if loaded.kind.kind == "Calendar" else ()
        heads = dict.fromkeys((*_CLUSTER_WIDE, *SCALING_KINDS, *users))
        found: list[tuple[LoadedObject, Object]] = []
        for group, kind in heads:
            resource = self._cluster.known(group, kind)
            if resource is None:
                continue
            for item in await self._listed(resource, loaded.namespace or "", (group, kind) in _CLUSTER_WIDE):
                other = self.loaded(item)
                if other is not None and object_key(other) != object_key(loaded):
                    found.append((other, item))
        return found

    async def _listed(self, resource: Resource, namespace: str, everywhere: bool) -> Sequence[Object]:
        try:
            return await self._cluster.list(resource, "" if everywhere else namespace)
        except ApiError as refusal:
            if not (everywhere and resource.namespaced):
                self.unknown.append(f"{resource.plural} are not considered: {refusal}")
                self.unseen.append(resource.kind)
                return ()
        return await self._listed(resource, namespace, everywhere=False)

    async def target(self, loaded: LoadedObject) -> TargetState | None:
        """Read the state of the scale target."""
        target = scaled_by(loaded)
        if target is None:
            return None
        reference = loaded.value["spec"]["scaleTargetRef"]
        resource = self._cluster.discovery.resource_of(str(reference.get("apiVersion", "v1")), target.kind)
        if resource is None:
            trouble = f"the cluster knows no kind {target.kind} in {reference.get('apiVersion', 'v1')}"
            return TargetState(str(target), trouble=trouble)
        try:
            return await self._state(resource, target)
        except NotFound:
            return TargetState(str(target), trouble=await self._why_not_found(resource, target))
        except ApiError as refusal:
            self.unknown.append(f"{target} is not considered: {refusal}")
            return None

    async def _state(self, resource: Resource, target: ObjectKey) -> TargetState:
        key = Key(target.namespace or "", target.name)
        if target.kind in _BOUNDS:
            spec = (await self._cluster.transport.get(resource, key)).get("spec") or {}
            named = zip(("min", "max"), _BOUNDS[target.kind], strict=True)
            return TargetState(str(target), {word: spec[field] for word, field in named if field in spec})
        scale = await self._cluster.transport.get(resource, key, subresource="scale")
        desired = (scale.get("spec") or {}).get("replicas", 0)
        return TargetState(str(target), {"replicas": desired}, (scale.get("status") or {}).get("replicas", 0))

    async def _why_not_found(self, resource: Resource, target: ObjectKey) -> str:
        try:
            await self._cluster.get(resource, target.name, target.namespace or "")
        except UnknownNameError as missing:
            return f"{missing} ({missing.hint})" if missing.hint else str(missing)
        return f"a {resource.kind} has no scale subresource"

    async def events(self, item: Object) -> list[PastEvent]:
        """Read the latest events about the object, newest first."""
        metadata = item["metadata"]
        fields = f"involvedObject.uid={metadata['uid']}"
        try:
            found = await self._cluster.list(EVENTS, metadata.get("namespace", "default"), fields=fields)
        except ApiError as refusal:
            self.unknown.append(f"events are not considered: {refusal}")
            return []
        past = [happened for event in found if (happened := _past_event(event)) is not None]
        return sorted(past, key=lambda event: (-event.at, event.what))[:_EVENTS]

    async def paused(self, item: Object) -> str:
        """Say what pauses the object; empty where nothing does."""
        value = (item["metadata"].get("annotations") or {}).get(ANNOTATION)
        if means_paused(value):
            return f'the annotation {ANNOTATION}: "{value}" pauses it; remove it to go on'
        try:
            switch = await self._cluster.transport.get(CONFIG_MAPS, Key(_OWN_NAMESPACE, SWITCH_NAME))
        except ApiError:
            return ""  # most users have no access to it, and most clusters are not paused
        if means_paused((switch.get("data") or {}).get("paused")):
            return f"the ConfigMap {_OWN_NAMESPACE}/{SWITCH_NAME} pauses everything"
        return ""


def _state_of(loaded: LoadedObject, item: Object) -> TargetState:
    """Return the state of a workload or of an autoscaler's bounds."""
    spec = item.get("spec") or {}
    fields = zip(("min", "max"), _BOUNDS.get(loaded.kind.kind, ()), strict=False)
    values = {word: spec[field] for word, field in fields if field in spec}
    if loaded.kind.kind not in _BOUNDS:
        values = {"replicas": spec.get("replicas", 1)}
    return TargetState(str(object_key(loaded)), values, (item.get("status") or {}).get("replicas"))


def _past_event(event: Object) -> PastEvent | None:
    at = next(
        (
            found
            for name in ("lastTimestamp", "eventTime", "firstTimestamp")
            if (found := instant_of(event.get(name))) is not None
        ),
        None,
    )
    if at is None:
        return None
    count = event.get("count") or 1
    times = f" ({count} times)" if count > 1 else ""
    return PastEvent(
        at, f"{event.get('reason', '')}: {event.get('message', '')}{times}", event.get("type") == "Warning"
    )
