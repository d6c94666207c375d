"""Reads from a cluster what an explanation is made from.

The object itself must be there. All else is looked at as far as we may: what is refused becomes a note, and the
explanation says less.
"""

from __future__ import annotations

from collections.abc import Sequence

from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import LoadedObject, load_tree
from springtide.apis.references import SCALING_KINDS, ObjectKey
from springtide.assembly.cluster_reader import ReadableCluster, UnknownNameError, as_written
from springtide.cluster.errors import ApiError, NotFound
from springtide.cluster.events import EVENTS
from springtide.cluster.pausing import ANNOTATION, CONFIG_MAPS, SWITCH_NAME
from springtide.cluster.resources import Key, Object, Resource
from springtide.controllers.explain import EXPLAINERS
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
"""Kinds of which objects of all namespaces may matter; if they may not be listed, those of one namespace do."""
_EVENTS = 5


async def read_facts(
    cluster: ReadableCluster, word: str, name: str, *, at: int | None, default_zone: str
) -> ExplanationInput:
    """Read an object and its surroundings, for a time or for the cluster's present.

    `NoSuchThing` where it is not there or cannot be explained.
    """
    resource = cluster.named(word)
    if (resource.group, resource.kind) not in EXPLAINERS:
        listed = ", ".join(kind.lower() for _, kind in EXPLAINERS)
        raise UnknownNameError(f"a {resource.kind} cannot be explained", f"these can: {listed}")
    item = await cluster.get(resource, name, cluster.namespace)
    now = cluster.now
    time = now if at is None else at
    gathering = _FactsReader(cluster, ValidationContext(now=time, default_zone=default_zone, deep_search=False))
    loaded = gathering.loaded(item)
    assert loaded is not None  # noqa: S101 - a kind that is explained is known
    others = await gathering.others(loaded)
    events = await gathering.events(item)
    return ExplanationInput(
        object=loaded,
        status=item.get("status") or {},
        at=time,
        default_zone=default_zone,
        others=tuple(others),
        target=await gathering.target(loaded),
        events=tuple(events),
        paused=await gathering.paused(item),
        unknown=tuple(gathering.unknown),
        unseen=frozenset(gathering.unseen),
        present=time == now,
    )


class _FactsReader:
    def __init__(self, cluster: ReadableCluster, context: ValidationContext) -> None:
        self._cluster = cluster
        self._context = context
        self.unknown: list[str] = []
        self.unseen: list[str] = []

    def loaded(self, item: Object) -> LoadedObject | None:
        found = load_tree(as_written(item), self._context)
        return found if isinstance(found, LoadedObject) else None

    async def others(self, loaded: LoadedObject) -> list[LoadedObject]:
        """Read everything that may have to do with an object, itself left out."""
        heads = dict.fromkeys((*_CLUSTER_WIDE, *SCALING_KINDS))
        found: list[LoadedObject] = []
        for group, kind in heads:
            resource = self._cluster.known(group, kind)
            if resource is None:
                continue
            for item in await self._listed(resource, loaded.namespace or "", (group, kind) in _CLUSTER_WIDE):
                other = self.loaded(item)
                if other is not None and _head(other) != _head(loaded):
                    found.append(other)
        return found

    async def _listed(self, resource: Resource, namespace: str, everywhere: bool) -> Sequence[Object]:
        try:
            return await self._cluster.list(resource, "" if everywhere else namespace)
        except ApiError as refusal:
            if not (everywhere and resource.namespaced):
                self.unknown.append(f"{resource.plural} are not looked at: {refusal}")
                self.unseen.append(resource.kind)
                return ()
        return await self._listed(resource, namespace, everywhere=False)

    async def target(self, loaded: LoadedObject) -> TargetState | None:
        """Read what the object scales."""
        wanted = scaled_by(loaded)
        if wanted is None:
            return None
        reference = loaded.value["spec"]["scaleTargetRef"]
        resource = self._cluster.discovery.resource_of(str(reference.get("apiVersion", "v1")), wanted.kind)
        if resource is None:
            trouble = f"the cluster knows no kind {wanted.kind} in {reference.get('apiVersion', 'v1')}"
            return TargetState(str(wanted), trouble=trouble)
        try:
            return await self._state(resource, wanted)
        except NotFound:
            return TargetState(str(wanted), trouble=await self._why_not_found(resource, wanted))
        except ApiError as refusal:
            self.unknown.append(f"{wanted} is not looked at: {refusal}")
            return None

    async def _state(self, resource: Resource, target: ObjectKey) -> TargetState:
        key = Key(target.namespace or "", target.name)
        if target.kind in _BOUNDS:
            spec = (await self._cluster.transport.get(resource, key)).get("spec") or {}
            named = zip(("min", "max"), _BOUNDS[target.kind], strict=True)
            return TargetState(str(target), {word: spec[field] for word, field in named if field in spec})
        scale = await self._cluster.transport.get(resource, key, subresource="scale")
        asked = (scale.get("spec") or {}).get("replicas", 0)
        return TargetState(str(target), {"replicas": asked}, (scale.get("status") or {}).get("replicas", 0))

    async def _why_not_found(self, resource: Resource, target: ObjectKey) -> str:
        try:
            await self._cluster.get(resource, target.name, target.namespace or "")
        except UnknownNameError as missing:
            return f"{missing} ({missing.hint})" if missing.hint else str(missing)
        return f"a {resource.kind} has no scale subresource"

    async def events(self, item: Object) -> list[PastEvent]:
        """Read what was told about the object lately, newest first."""
        metadata = item["metadata"]
        fields = f"involvedObject.uid={metadata['uid']}"
        try:
            found = await self._cluster.list(EVENTS, metadata.get("namespace", "default"), fields=fields)
        except ApiError as refusal:
            self.unknown.append(f"events are not looked at: {refusal}")
            return []
        told = [happening for event in found if (happening := _happening(event)) is not None]
        return sorted(told, key=lambda one: (-one.at, one.what))[:_EVENTS]

    async def paused(self, item: Object) -> str:
        """Tell who pauses the object, if anybody does."""
        if (item["metadata"].get("annotations") or {}).get(ANNOTATION) == "true":
            return f'the annotation {ANNOTATION}: "true" pauses it; remove it to go on'
        try:
            switch = await self._cluster.transport.get(CONFIG_MAPS, Key(_OWN_NAMESPACE, SWITCH_NAME))
        except ApiError:
            return ""  # most people may not look there, and most clusters are not paused
        if (switch.get("data") or {}).get("paused") == "true":
            return f"the ConfigMap {_OWN_NAMESPACE}/{SWITCH_NAME} pauses everything"
        return ""


def _head(loaded: LoadedObject) -> tuple[str, str, str | None, str]:
    return loaded.kind.group, loaded.kind.kind, loaded.namespace, loaded.name


def _happening(event: Object) -> PastEvent | None:
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
