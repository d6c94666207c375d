"""Reads objects from a cluster by the names that kubectl knows: those that are requested, and those related to them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import msgspec

from springtide.apis import scheme
from springtide.apis.karpenter.pool_nodes import PoolNodes, count_pool_nodes
from springtide.apis.kinds import Kind, KindVersion, ValidationContext
from springtide.apis.objects import LoadedObject, load_tree
from springtide.apis.references import SCALING_KINDS, ObjectKey, ReferenceRole, is_readable, object_key, references_of
from springtide.apis.scheduled.producer import MetricsProducer
from springtide.apis.schema import nearest
from springtide.assembly.manifests import ClusterChoice, UnreadableSource
from springtide.cluster.errors import ApiError, ClusterError, NotFound, Unauthorized
from springtide.cluster.http import HttpSettings, HttpTransport, RetrySettings, find_access
from springtide.cluster.http.discovery import ServerDiscovery, discover
from springtide.cluster.resources import Key, Object, Resource, Selection

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_NODES = Resource("", "v1", "nodes", "Node", namespaced=False)

_PAGE = 500
# A user is waiting: two attempts are enough to report a failure.
_SETTINGS = HttpSettings(component="cli", retries=RetrySettings(attempts=2))


class UnknownNameError(LookupError):
    """A kind, an object or a namespace that the cluster does not have."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class ReadableCluster:
    """A connection to a cluster, and what its API server serves."""

    transport: HttpTransport
    discovery: ServerDiscovery
    namespace: str
    """The default namespace."""

    @property
    def now(self) -> int:
        """The time of the API server; it can have a clock of its own, and the local one can be wrong."""
        server_time = self.transport.server_time
        return int(time.time()) if server_time is None else server_time

    def named(self, word: str) -> Resource:
        """Find a resource by kind, plural or short name, as kubectl does; raises `UnknownNameError`."""
        found = self.discovery.named(word)
        if found is not None:
            # The server may prefer a version that Springtide does not know, and serve another one that it knows.
            return self.known(found.group, found.kind) or found
        names = dict.fromkeys(
            name
            for served in self.discovery.served
            for name in (served.resource.plural, served.singular, *served.short_names)
            if name
        )
        close = nearest(word, names)
        hint = f"did you mean {close}?" if close else "`kubectl api-resources` lists what there is"
        if close is None and scheme.nearest_kind(word) is not None:
            hint = "install the CRDs first: `springtide crds | kubectl apply -f -`"
        raise UnknownNameError(f'the cluster knows no kind "{word}"', hint)

    def known(self, group: str, kind: str) -> Resource | None:
        """Find the resource of a kind, in a version that the cluster serves and Springtide knows, if there is one."""
        for candidate in scheme.KINDS:
            if (candidate.group, candidate.kind) != (group, kind):
                continue
            for version in sorted(candidate.versions, key=lambda version: not version.storage):
                found = self.discovery.resource_of(candidate.api_version(version), kind)
                if found is not None:
                    return found
        return None

    async def list(self, resource: Resource, namespace: str = "", *, fields: str = "") -> list[Object]:
        """List all objects of a resource, in one namespace or in all."""
        selection = Selection(resource, namespace if resource.namespaced else "", fields=fields)
        found: list[Object] = []
        token = ""
        while True:
            page = await self.transport.list(selection, limit=_PAGE, continue_=token)
            found += (_with_type(item, resource) for item in page.items)
            token = page.continue_
            if not token:
                return found

    async def get(self, resource: Resource, name: str, namespace: str) -> Object:
        """Read one object; raises `UnknownNameError`, with a hint at a similar name."""
        key = Key(namespace if resource.namespaced else "", name)
        try:
            return _with_type(await self.transport.get(resource, key), resource)
        except NotFound:
            pass
        where = f" in namespace {namespace}" if resource.namespaced else ""
        others = [item["metadata"]["name"] for item in await self.list(resource, namespace)]
        if resource.namespaced and not others:
            with suppress(ApiError):  # reading namespaces may be forbidden
                await self.expect_namespace(namespace)
        elsewhere = await self._namespaces_with(resource, name) if resource.namespaced else []
        close = nearest(name, others)
        hint = f"did you mean {close}?" if close else "" if others else f"there is none{where} at all"
        if elsewhere:
            hint = f"namespace {elsewhere[0]} has one: add `-n {elsewhere[0]}`"
        raise UnknownNameError(f"there is no {resource.kind} `{name}`{where}", hint)

    async def _namespaces_with(self, resource: Resource, name: str) -> Sequence[str]:
        """List the namespaces that have an object of this name, as far as the rights reach."""
        try:
            items = await self.list(resource)
        except ApiError:
            return []
        return [item["metadata"]["namespace"] for item in items if item["metadata"]["name"] == name]

    async def expect_namespace(self, name: str) -> None:
        """Raise `UnknownNameError` where the namespace does not exist."""
        try:
            await self.transport.get(_NAMESPACES, Key("", name))
        except NotFound:
            others = [item["metadata"]["name"] for item in await self.list(_NAMESPACES)]
            close = nearest(name, others)
            hint = f"did you mean {close}?" if close else "`kubectl get namespaces` lists those there are"
            raise UnknownNameError(f"there is no namespace `{name}`", hint) from None


@asynccontextmanager
async def connect(choice: ClusterChoice) -> AsyncIterator[ReadableCluster]:
    """Connect to a cluster and discover what it serves; raises `ClusterError`."""
    found = find_access(choice.kubeconfig, choice.context)
    async with HttpTransport(found, settings=_SETTINGS, random=Random()) as transport:  # noqa: S311 - spreads retries
        try:
            discovery = await discover(transport)
        except Unauthorized as refusal:
            message = f"{found.server} does not accept the credentials of {found.origin}"
            raise Unauthorized(f"{message}: {refusal}") from refusal
        yield ReadableCluster(transport, discovery, choice.namespace or found.namespace)


def _with_type(item: Object, resource: Resource) -> Object:
    """Add `apiVersion` and kind, which items of a list can lack."""
    return {**item, "apiVersion": resource.api_version, "kind": resource.kind}


LABEL = "cluster"
KindFilter = Callable[[Kind, KindVersion], bool]
_AT_ONCE = 16
_NODE_GROUP_API, _NODE_GROUP = "autoscaling.karpenter.sh", "ScalableNodeGroup"


@dataclass(slots=True)
class ClusterObjects:
    """Objects that were read, and what could not be read."""

    now: int
    """The time of the cluster."""
    requested: list[LoadedObject] = field(default_factory=list)
    related: list[LoadedObject] = field(default_factory=list)
    """Objects that the requested ones refer to, and those that may scale the same targets."""
    unread: list[UnreadableSource] = field(default_factory=list)
    unseen: list[ObjectKey] = field(default_factory=list)
    """Objects that could not be read, so that their existence is unknown."""
    notes: list[str] = field(default_factory=list)


def read_cluster_objects(
    names: Sequence[str], choice: ClusterChoice, context: Callable[[int], ValidationContext], wanted: KindFilter
) -> ClusterObjects:
    """Read the named objects, or all objects of the kinds that `wanted` selects, and the objects related to them.

    `context` gives the validation context for the time of the cluster.
    """
    return asyncio.run(_read_cluster_objects(names, choice, context, wanted))


async def _read_cluster_objects(
    names: Sequence[str], choice: ClusterChoice, context: Callable[[int], ValidationContext], wanted: KindFilter
) -> ClusterObjects:
    objects = ClusterObjects(now=int(time.time()))
    try:
        async with connect(choice) as cluster:
            objects.now = cluster.now
            reader = _ObjectReader(cluster, choice, context(objects.now), objects)
            for name, before in zip(names, ("", *names), strict=False):
                await reader.read_named(name, before)
            if not names:
                await reader.read_all(wanted)
            if not objects.requested and not objects.unread:
                await reader.explain_nothing()
            await reader.read_related()
    except ClusterError as failure:
        objects.unread.append(UnreadableSource(LABEL, str(failure)))
    return objects


@dataclass(frozen=True, slots=True)
class ReadPoolNodes:
    """The nodes of some pools, and what could not be read."""

    pools: dict[str, PoolNodes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    refusal: str = ""
    """Why no nodes could be read."""


def read_pool_nodes(pools: Sequence[str], choice: ClusterChoice) -> ReadPoolNodes:
    """Count the nodes of pools in a cluster."""
    return asyncio.run(_read_pool_nodes(pools, choice))


async def _read_pool_nodes(pools: Sequence[str], choice: ClusterChoice) -> ReadPoolNodes:
    notes: list[str] = []
    claims: list[Object] | None = None
    try:
        async with connect(choice) as cluster:
            nodes = await cluster.list(_NODES)
            resource = cluster.known("karpenter.sh", "NodeClaim")
            try:
                claims = await cluster.list(resource) if resource is not None else None
            except ApiError as refusal:
                notes.append(f"NodeClaims are not considered, and nodes counted by their labels: {refusal}")
    except ClusterError as failure:
        return ReadPoolNodes(refusal=f"the nodes cannot be counted: {failure}")
    return ReadPoolNodes({pool: count_pool_nodes(pool, nodes, claims) for pool in pools}, tuple(notes))


def place_of(loaded: LoadedObject) -> str:
    """Name an object of the cluster in place of a file."""
    where = f"{loaded.namespace}/" if loaded.namespace is not None else ""
    return f"{LABEL}:{where}{loaded.kind.kind.lower()}/{loaded.name}"


class _ObjectReader:
    """Reads objects into a `ClusterObjects`; one that cannot be read is reported and does not stop the others."""

    def __init__(
        self, cluster: ReadableCluster, choice: ClusterChoice, context: ValidationContext, objects: ClusterObjects
    ) -> None:
        self._cluster = cluster
        self._namespace = "" if choice.all_namespaces else cluster.namespace
        self._all_namespaces = choice.all_namespaces
        self._context = context
        self._objects = objects
        self._seen: set[ObjectKey] = set()

    async def read_named(self, name: str, before: str = "") -> None:
        """Read `KIND/NAME`, or all of `KIND` or `KIND,KIND`; `before` is the argument before it."""
        word, slash, one = name.partition("/")
        for kind in word.split(","):
            try:
                if not kind or "/" in one or bool(slash) != bool(one):
                    raise UnknownNameError(f'"{name}" is not KIND/NAME or KIND', "write such as metricsproducer/peak")
                resource = self._cluster.named(kind)
                if scheme.find_kind(resource.api_version, resource.kind) is None:
                    raise UnknownNameError(f"{resource} ({resource.api_version}) is not a kind that Springtide checks")
                if slash:
                    await self._read_one(resource, one)
                else:
                    self._take(await self._cluster.list(resource, self._namespace), self._objects.requested)
            except UnknownNameError as missing:
                either = "files and a cluster do not mix: leave out the options of the cluster to read this file"
                hint = either if Path(name).exists() else missing.hint
                if not slash and not hint.startswith("did you mean") and self._is_kind(before):
                    hint = f"write kind and name with a slash: {before}/{name}"
                self._objects.unread.append(UnreadableSource(LABEL, str(missing), hint))
            except ApiError as refusal:
                self._objects.unread.append(UnreadableSource(LABEL, str(refusal)))

    def _is_kind(self, word: str) -> bool:
        with suppress(UnknownNameError):
            return bool(word) and bool(self._cluster.named(word))
        return False

    async def _read_one(self, resource: Resource, name: str) -> None:
        if not self._all_namespaces or not resource.namespaced:
            self._take([await self._cluster.get(resource, name, self._namespace)], self._objects.requested)
            return
        found = await self._cluster.list(resource, fields=f"metadata.name={name}")
        if not found:
            raise UnknownNameError(f"there is no {resource.kind} `{name}` in any namespace")
        self._take(found, self._objects.requested)

    async def read_all(self, wanted: KindFilter) -> None:
        """Read every kind of Springtide that is served; cluster-scoped kinds only together with all namespaces."""
        for kind in scheme.KINDS:
            resource = None if kind.builtin else self._cluster.known(kind.group, kind.kind)
            if resource is None or not (resource.namespaced or self._all_namespaces):
                continue
            found = scheme.find_kind(resource.api_version, resource.kind)
            if found is None or not wanted(*found):
                continue
            try:
                self._take(await self._cluster.list(resource, self._namespace), self._objects.requested)
            except ApiError as refusal:
                self._objects.unread.append(UnreadableSource(LABEL, str(refusal)))

    async def explain_nothing(self) -> None:
        """Say why nothing was found: a namespace that does not exist is an error."""
        if self._all_namespaces:
            self._objects.notes.append("no such objects in any namespace")
            return
        name = self._namespace
        try:
            await self._cluster.expect_namespace(name)
        except UnknownNameError as missing:
            self._objects.unread.append(UnreadableSource(LABEL, str(missing), missing.hint))
        except ApiError as refusal:
            self._objects.notes.append(f"no such objects in namespace {name}, if it exists: {refusal}")
        else:
            self._objects.notes.append(f"no such objects in namespace {name}; -A reads all namespaces")

    async def read_related(self) -> None:
        """Read the objects that the requested ones refer to, and those that may conflict with them."""
        await self._read_scalers()
        await self._read_node_groups()
        # Of other objects that scale only the calendars are needed: they say when those act.
        references = [reference for loaded in self._objects.requested for reference in references_of(loaded)]
        for scaler in self._objects.related:
            references += (reference for reference in references_of(scaler) if reference.role is ReferenceRole.CALENDAR)
        targets = dict.fromkeys(
            reference.target
            for reference in references
            if is_readable(reference.target) and reference.target not in self._seen
        )
        limit = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(*(self._read_target(target, limit) for target in targets))

    async def _read_scalers(self) -> None:
        """Read what may scale the same targets, and what may follow the schedules, in the same namespaces."""
        scaling = [loaded for loaded in self._objects.requested if _scales_or_is_followed(loaded)]
        namespaces = [""] if self._all_namespaces and scaling else dict.fromkeys(one.namespace or "" for one in scaling)
        only_schedules = all(isinstance(loaded.view, MetricsProducer) for loaded in scaling)
        what = "follows the schedule" if only_schedules else "scales the same target"
        for namespace in namespaces:
            for group, kind in SCALING_KINDS:
                resource = self._cluster.known(group, kind)
                if resource is None:
                    continue
                refusal = await self._read_related_of(resource, namespace)
                if refusal is not None:
                    self._objects.notes.append(f"cannot tell whether a {kind} {what}: {refusal}")

    async def _read_node_groups(self) -> None:
        """Read the ScalableNodeGroups of all namespaces: two of them in any namespaces can scale one group."""
        asked = [loaded for loaded in self._objects.requested if loaded.kind.kind == _NODE_GROUP]
        resource = self._cluster.known(_NODE_GROUP_API, _NODE_GROUP) if asked else None
        if resource is None:
            return
        namespaces = dict.fromkeys(one.namespace or "" for one in asked)
        refusal = await self._read_related_of(resource, "")
        # A user may be allowed to read some namespaces only.
        for namespace in namespaces if refusal is not None else ():
            await self._read_related_of(resource, namespace)
        if refusal is not None:
            note = f"cannot tell whether a {_NODE_GROUP} of another namespace has the same node group: {refusal}"
            self._objects.notes.append(note)

    async def _read_related_of(self, resource: Resource, namespace: str) -> ApiError | None:
        try:
            self._take(await self._cluster.list(resource, namespace), self._objects.related)
        except ApiError as refusal:
            return refusal
        return None

    async def _read_target(self, target: ObjectKey, limit: asyncio.Semaphore) -> None:
        resource = self._cluster.known(target.group, target.kind)
        if resource is None:
            return
        async with limit:
            try:
                found = await self._cluster.transport.get(resource, Key(target.namespace or "", target.name))
            except NotFound:
                return
            except ApiError as refusal:
                self._objects.unseen.append(target)
                self._objects.notes.append(f"cannot tell whether {target} exists: {refusal}")
                return
        self._take([{**found, "apiVersion": resource.api_version, "kind": resource.kind}], self._objects.related)

    def _take(self, items: Sequence[Object], into: list[LoadedObject]) -> None:
        # Warnings about related objects are not reported, so the costly search for them is left out.
        requested = into is self._objects.requested
        context = self._context if requested else msgspec.structs.replace(self._context, deep_search=False)
        for item in items:
            loaded = load_tree(as_written(item), context)
            if isinstance(loaded, LoadedObject) and object_key(loaded) not in self._seen:
                self._seen.add(object_key(loaded))
                into.append(loaded)


def _scales_or_is_followed(loaded: LoadedObject) -> bool:
    if isinstance(loaded.view, MetricsProducer):
        return loaded.view.spec.schedule is not None
    return (loaded.kind.group, loaded.kind.kind) in SCALING_KINDS


def as_written(item: Object) -> Object:
    """Remove what the user did not write: the status and the managed fields."""
    metadata = {name: part for name, part in item["metadata"].items() if name != "managedFields"}
    return {**{name: part for name, part in item.items() if name != "status"}, "metadata": metadata}
