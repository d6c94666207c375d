"""A cluster that a command reads from: what it serves, and objects of it by the names that people give them.

Objects of a cluster for `check` and `preview`: those that are asked for, and those that they have to do with.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import msgspec

from springtide.apis import scheme as registry
from springtide.apis.kinds import Kind, KindVersion, ValidationContext
from springtide.apis.objects import LoadedObject, load_tree
from springtide.apis.references import SCALING_KINDS, ObjectKey, ReferenceRole, is_readable, object_key, references_of
from springtide.apis.schema import nearest
from springtide.assembly.manifests import ClusterChoice, UnreadableSource
from springtide.cluster.errors import ApiError, ClusterError, NotFound, Unauthorized
from springtide.cluster.http import HttpSettings, HttpTransport, RetrySettings, find_access
from springtide.cluster.http.discovery import ServerDiscovery, discover
from springtide.cluster.resources import Key, Object, Resource, Selection

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)

_PAGE = 500
# Somebody waits for the answer: two tries tell as much as four.
_SETTINGS = HttpSettings(component="cli", retries=RetrySettings(attempts=2))


class UnknownNameError(LookupError):
    """A name of which the cluster knows nothing; the message and the hint are for people."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class ReadableCluster:
    """An open connection."""

    transport: HttpTransport
    discovery: ServerDiscovery
    namespace: str
    """The namespace that is meant where none is named."""

    @property
    def now(self) -> int:
        """What time it is there: a cluster may have a clock of its own, and this machine's may be wrong."""
        told = self.transport.server_time
        return int(time.time()) if told is None else told

    def named(self, word: str) -> Resource:
        """Find the resource that a word means: a kind, a plural, or a short name, as kubectl knows them."""
        found = self.discovery.named(word)
        if found is not None:
            # The server may prefer a version of which we know nothing, and serve one that we know.
            return self.known(found.group, found.kind) or found
        names = dict.fromkeys(
            name
            for served in self.discovery.served
            for name in (served.resource.plural, served.singular, *served.short_names)
            if name
        )
        close = nearest(word, names)
        hint = f"did you mean {close}?" if close else "`kubectl api-resources` lists what there is"
        if close is None and registry.nearest_kind(word) is not None:
            hint = "install the CRDs first: `springtide crds | kubectl apply -f -`"
        raise UnknownNameError(f'the cluster knows no kind "{word}"', hint)

    def known(self, group: str, kind: str) -> Resource | None:
        """Find a kind in the version of it that the cluster serves and that we read; None where there is none."""
        for candidate in registry.KINDS:
            if (candidate.group, candidate.kind) != (group, kind):
                continue
            for version in sorted(candidate.versions, key=lambda version: not version.storage):
                found = self.discovery.resource_of(candidate.api_version(version), kind)
                if found is not None:
                    return found
        return None

    async def list(self, resource: Resource, namespace: str = "", *, fields: str = "") -> list[Object]:
        """Read all objects of a resource, in one namespace or in all of them."""
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
        """Read one object; `NoSuchThing` tells of a name that is close."""
        key = Key(namespace if resource.namespaced else "", name)
        try:
            return _with_type(await self.transport.get(resource, key), resource)
        except NotFound:
            pass
        where = f" in namespace {namespace}" if resource.namespaced else ""
        others = [item["metadata"]["name"] for item in await self.list(resource, namespace)]
        if resource.namespaced and not others:
            with suppress(ApiError):  # whether it is there may not be ours to know
                await self.expect_namespace(namespace)
        close = nearest(name, others)
        hint = f"did you mean {close}?" if close else "" if others else f"there is none{where} at all"
        raise UnknownNameError(f"there is no {resource.kind} `{name}`{where}", hint)

    async def expect_namespace(self, name: str) -> None:
        """Raise `NoSuchThing` where there is no such namespace."""
        try:
            await self.transport.get(_NAMESPACES, Key("", name))
        except NotFound:
            others = [item["metadata"]["name"] for item in await self.list(_NAMESPACES)]
            close = nearest(name, others)
            hint = f"did you mean {close}?" if close else "`kubectl get namespaces` lists those there are"
            raise UnknownNameError(f"there is no namespace `{name}`", hint) from None


@asynccontextmanager
async def connect(choice: ClusterChoice) -> AsyncIterator[ReadableCluster]:
    """Connect to the cluster that is meant, and ask what it serves; `ClusterError` where that cannot be."""
    found = find_access(choice.kubeconfig, choice.context)
    async with HttpTransport(found, settings=_SETTINGS, random=Random()) as transport:  # noqa: S311 - spreads retries
        try:
            discovery = await discover(transport)
        except Unauthorized as refusal:
            why = f"{found.server} does not accept the credentials of {found.origin}"
            raise Unauthorized(f"{why}: {refusal}") from refusal
        yield ReadableCluster(transport, discovery, choice.namespace or found.namespace)


def _with_type(item: Object, resource: Resource) -> Object:
    """Let an object say what it is: members of a list need not."""
    return {**item, "apiVersion": resource.api_version, "kind": resource.kind}


LABEL = "cluster"
KindFilter = Callable[[Kind, KindVersion], bool]
_AT_ONCE = 16


@dataclass(slots=True)
class ClusterObjects:
    """What was read."""

    now: int
    """What time it was there."""
    asked: list[LoadedObject] = field(default_factory=list)
    companions: list[LoadedObject] = field(default_factory=list)
    """What the others refer to, and what may contend with them: known, but not judged."""
    unread: list[UnreadableSource] = field(default_factory=list)
    unseen: list[ObjectKey] = field(default_factory=list)
    """Targets that may be there or not: we could not look."""
    notes: list[str] = field(default_factory=list)


def read_cluster_objects(
    names: Sequence[str], choice: ClusterChoice, context: Callable[[int], ValidationContext], wanted: KindFilter
) -> ClusterObjects:
    """Read what is asked for; without names every object of our kinds that is wanted.

    `context` says, for what time it is in the cluster, what objects are judged by.
    """
    return asyncio.run(_read_cluster_objects(names, choice, context, wanted))


async def _read_cluster_objects(
    names: Sequence[str], choice: ClusterChoice, context: Callable[[int], ValidationContext], wanted: KindFilter
) -> ClusterObjects:
    gathering = ClusterObjects(now=int(time.time()))
    try:
        async with connect(choice) as cluster:
            gathering.now = cluster.now
            reading = _ObjectReader(cluster, choice, context(gathering.now), gathering)
            for name, before in zip(names, ("", *names), strict=False):
                await reading.read_named(name, before)
            if not names:
                await reading.read_all(wanted)
            if not gathering.asked and not gathering.unread:
                await reading.explain_nothing()
            await reading.read_companions()
    except ClusterError as failure:
        gathering.unread.append(UnreadableSource(LABEL, str(failure)))
    return gathering


def place_of(loaded: LoadedObject) -> str:
    """Say which object of the cluster it is, where others name a file."""
    where = f"{loaded.namespace}/" if loaded.namespace is not None else ""
    return f"{LABEL}:{where}{loaded.kind.kind.lower()}/{loaded.name}"


class _ObjectReader:
    """One pass over a cluster; what cannot be read is told, and keeps nothing else from being read."""

    def __init__(
        self, cluster: ReadableCluster, choice: ClusterChoice, context: ValidationContext, gathered: ClusterObjects
    ) -> None:
        self._cluster = cluster
        self._namespace = "" if choice.everywhere else cluster.namespace
        self._everywhere = choice.everywhere
        self._context = context
        self._gathered = gathered
        self._seen: set[ObjectKey] = set()

    async def read_named(self, name: str, before: str = "") -> None:
        """Read `KIND/NAME`, or all of `KIND` or `KIND,KIND`; `before` is the word that stands before it."""
        word, slash, one = name.partition("/")
        for kind in word.split(","):
            try:
                if not kind or "/" in one or bool(slash) != bool(one):
                    raise UnknownNameError(f'"{name}" is not KIND/NAME or KIND', "write such as metricsproducer/peak")
                resource = self._cluster.named(kind)
                if registry.find_kind(resource.api_version, resource.kind) is None:
                    raise UnknownNameError(f"{resource} ({resource.api_version}) is not a kind that Springtide judges")
                if slash:
                    await self._read_one(resource, one)
                else:
                    self._take(await self._cluster.list(resource, self._namespace), self._gathered.asked)
            except UnknownNameError as missing:
                mixed = "files and a cluster do not mix: leave out the options of the cluster to read this file"
                hint = mixed if Path(name).exists() else missing.hint
                if not slash and not hint.startswith("did you mean") and self._is_kind(before):
                    hint = f"`{before}` is a kind, and takes its name behind a slash: {before}/{name}"
                self._gathered.unread.append(UnreadableSource(LABEL, str(missing), hint))
            except ApiError as refusal:
                self._gathered.unread.append(UnreadableSource(LABEL, str(refusal)))

    def _is_kind(self, word: str) -> bool:
        with suppress(UnknownNameError):
            return bool(word) and bool(self._cluster.named(word))
        return False

    async def _read_one(self, resource: Resource, name: str) -> None:
        if not self._everywhere or not resource.namespaced:
            self._take([await self._cluster.get(resource, name, self._namespace)], self._gathered.asked)
            return
        found = await self._cluster.list(resource, fields=f"metadata.name={name}")
        if not found:
            raise UnknownNameError(f"there is no {resource.kind} `{name}` in any namespace")
        self._take(found, self._gathered.asked)

    async def read_all(self, wanted: KindFilter) -> None:
        """Read every kind of ours that is served; those outside namespaces only if all namespaces are meant."""
        for kind in registry.KINDS:
            resource = None if kind.builtin else self._cluster.known(kind.group, kind.kind)
            if resource is None or not (resource.namespaced or self._everywhere):
                continue
            found = registry.find_kind(resource.api_version, resource.kind)
            if found is None or not wanted(*found):
                continue
            try:
                self._take(await self._cluster.list(resource, self._namespace), self._gathered.asked)
            except ApiError as refusal:
                self._gathered.unread.append(UnreadableSource(LABEL, str(refusal)))

    async def explain_nothing(self) -> None:
        """Say why nothing was found: a namespace that does not exist is a slip, and no reason to be content."""
        if self._everywhere:
            self._gathered.notes.append("there is nothing of it in any namespace")
            return
        name = self._namespace
        try:
            await self._cluster.expect_namespace(name)
        except UnknownNameError as missing:
            self._gathered.unread.append(UnreadableSource(LABEL, str(missing), missing.hint))
        except ApiError as refusal:
            self._gathered.notes.append(f"there is nothing of it in namespace {name}, if that exists: {refusal}")
        else:
            self._gathered.notes.append(f"there is nothing of it in namespace {name}: -A looks into all of them")

    async def read_companions(self) -> None:
        """Read what the objects refer to, and what scales in the same namespaces."""
        await self._read_rivals()
        # Of rivals only the calendars count: they say when rivals act.
        references = [reference for loaded in self._gathered.asked for reference in references_of(loaded)]
        for rival in self._gathered.companions:
            references += (reference for reference in references_of(rival) if reference.role is ReferenceRole.CALENDAR)
        targets = dict.fromkeys(
            reference.target
            for reference in references
            if is_readable(reference.target) and reference.target not in self._seen
        )
        turns = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(*(self._read_target(target, turns) for target in targets))

    async def _read_rivals(self) -> None:
        scaling = [loaded for loaded in self._gathered.asked if (loaded.kind.group, loaded.kind.kind) in SCALING_KINDS]
        namespaces = [""] if self._everywhere and scaling else dict.fromkeys(one.namespace or "" for one in scaling)
        for namespace in namespaces:
            for group, kind in SCALING_KINDS:
                resource = self._cluster.known(group, kind)
                if resource is None:
                    continue
                try:
                    self._take(await self._cluster.list(resource, namespace), self._gathered.companions)
                except ApiError as refusal:
                    self._gathered.notes.append(f"whether a {kind} scales the same is not known: {refusal}")

    async def _read_target(self, target: ObjectKey, turns: asyncio.Semaphore) -> None:
        resource = self._cluster.known(target.group, target.kind)
        if resource is None:
            return
        async with turns:
            try:
                found = await self._cluster.transport.get(resource, Key(target.namespace or "", target.name))
            except NotFound:
                return
            except ApiError as refusal:
                self._gathered.unseen.append(target)
                self._gathered.notes.append(f"whether there is a {target} is not known: {refusal}")
                return
        self._take([{**found, "apiVersion": resource.api_version, "kind": resource.kind}], self._gathered.companions)

    def _take(self, items: Sequence[Object], into: list[LoadedObject]) -> None:
        # Nobody is told what is surprising about companions, so it is not searched for.
        asked = into is self._gathered.asked
        context = self._context if asked else msgspec.structs.replace(self._context, deep_search=False)
        for item in items:
            loaded = load_tree(as_written(item), context)
            if isinstance(loaded, LoadedObject) and object_key(loaded) not in self._seen:
                self._seen.add(object_key(loaded))
                into.append(loaded)


def as_written(item: Object) -> Object:
    """Leave out of an object what its author did not write: the status, and who owns which field."""
    metadata = {name: part for name, part in item["metadata"].items() if name != "managedFields"}
    return {**{name: part for name, part in item.items() if name != "status"}, "metadata": metadata}
