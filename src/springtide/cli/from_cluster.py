"""Objects of a cluster for `check` and `preview`: those that are asked for, and those that they have to do with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from springtide.apis import registry
from springtide.apis.fields import Context
from springtide.apis.kinds import Kind, Version
from springtide.apis.objects import LoadedObject, load_tree
from springtide.apis.references import SCALING_KINDS, Role, Target, identity, is_readable, references_of
from springtide.cli.cluster_options import ClusterChoice
from springtide.cli.connecting import Cluster, NoSuchThing, connected
from springtide.cli.inputs import Unread
from springtide.cluster.errors import ApiError, ClusterError, NotFound
from springtide.cluster.resources import Key, Object, Resource

LABEL = "cluster"
Wanted = Callable[[Kind, Version], bool]
_AT_ONCE = 16


@dataclass(slots=True)
class Gathered:
    """What was read."""

    now: int
    """What time it was there."""
    asked: list[LoadedObject] = field(default_factory=list)
    companions: list[LoadedObject] = field(default_factory=list)
    """What the others refer to, and what may contend with them: known, but not judged."""
    unread: list[Unread] = field(default_factory=list)
    unseen: list[Target] = field(default_factory=list)
    """Targets that may be there or not: we could not look."""
    notes: list[str] = field(default_factory=list)


def gather(names: Sequence[str], choice: ClusterChoice, context: Callable[[int], Context], wanted: Wanted) -> Gathered:
    """Read what is asked for; without names every object of our kinds that is wanted.

    `context` says, for what time it is in the cluster, what objects are judged by.
    """
    return asyncio.run(_gathered(names, choice, context, wanted))


async def _gathered(
    names: Sequence[str], choice: ClusterChoice, context: Callable[[int], Context], wanted: Wanted
) -> Gathered:
    gathering = Gathered(now=int(time.time()))
    try:
        async with connected(choice) as cluster:
            gathering.now = cluster.now
            reading = _Reading(cluster, choice, context(gathering.now), gathering)
            for name, before in zip(names, ("", *names), strict=False):
                await reading.read_named(name, before)
            if not names:
                await reading.read_all(wanted)
            if not gathering.asked and not gathering.unread:
                await reading.explain_nothing()
            await reading.read_companions()
    except ClusterError as failure:
        gathering.unread.append(Unread(LABEL, str(failure)))
    return gathering


def place_of(loaded: LoadedObject) -> str:
    """Say which object of the cluster it is, where others name a file."""
    where = f"{loaded.namespace}/" if loaded.namespace is not None else ""
    return f"{LABEL}:{where}{loaded.kind.kind.lower()}/{loaded.name}"


class _Reading:
    """One pass over a cluster; what cannot be read is told, and keeps nothing else from being read."""

    def __init__(self, cluster: Cluster, choice: ClusterChoice, context: Context, gathered: Gathered) -> None:
        self._cluster = cluster
        self._namespace = "" if choice.everywhere else cluster.namespace
        self._everywhere = choice.everywhere
        self._context = context
        self._gathered = gathered
        self._seen: set[Target] = set()

    async def read_named(self, name: str, before: str = "") -> None:
        """Read `KIND/NAME`, or all of `KIND` or `KIND,KIND`; `before` is the word that stands before it."""
        word, slash, one = name.partition("/")
        for kind in word.split(","):
            try:
                if not kind or "/" in one or bool(slash) != bool(one):
                    raise NoSuchThing(f'"{name}" is not KIND/NAME or KIND', "write such as metricsproducer/peak")
                resource = self._cluster.named(kind)
                if registry.find(resource.api_version, resource.kind) is None:
                    raise NoSuchThing(f"{resource} ({resource.api_version}) is not a kind that Springtide judges")
                if slash:
                    await self._read_one(resource, one)
                else:
                    self._take(await self._cluster.list(resource, self._namespace), self._gathered.asked)
            except NoSuchThing as missing:
                mixed = "files and a cluster do not mix: leave out the options of the cluster to read this file"
                hint = mixed if Path(name).exists() else missing.hint
                if not slash and not hint.startswith("did you mean") and self._is_kind(before):
                    hint = f"`{before}` is a kind, and takes its name behind a slash: {before}/{name}"
                self._gathered.unread.append(Unread(LABEL, str(missing), hint))
            except ApiError as refusal:
                self._gathered.unread.append(Unread(LABEL, str(refusal)))

    def _is_kind(self, word: str) -> bool:
        with suppress(NoSuchThing):
            return bool(word) and bool(self._cluster.named(word))
        return False

    async def _read_one(self, resource: Resource, name: str) -> None:
        if not self._everywhere or not resource.namespaced:
            self._take([await self._cluster.get(resource, name, self._namespace)], self._gathered.asked)
            return
        found = await self._cluster.list(resource, fields=f"metadata.name={name}")
        if not found:
            raise NoSuchThing(f"there is no {resource.kind} `{name}` in any namespace")
        self._take(found, self._gathered.asked)

    async def read_all(self, wanted: Wanted) -> None:
        """Read every kind of ours that is served; those outside namespaces only if all namespaces are meant."""
        for kind in registry.KINDS:
            resource = None if kind.builtin else self._cluster.known(kind.group, kind.kind)
            if resource is None or not (resource.namespaced or self._everywhere):
                continue
            found = registry.find(resource.api_version, resource.kind)
            if found is None or not wanted(*found):
                continue
            try:
                self._take(await self._cluster.list(resource, self._namespace), self._gathered.asked)
            except ApiError as refusal:
                self._gathered.unread.append(Unread(LABEL, str(refusal)))

    async def explain_nothing(self) -> None:
        """Say why nothing was found: a namespace that does not exist is a slip, and no reason to be content."""
        if self._everywhere:
            self._gathered.notes.append("there is nothing of it in any namespace")
            return
        name = self._namespace
        try:
            await self._cluster.expect_namespace(name)
        except NoSuchThing as missing:
            self._gathered.unread.append(Unread(LABEL, str(missing), missing.hint))
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
            references += (reference for reference in references_of(rival) if reference.role is Role.CALENDAR)
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

    async def _read_target(self, target: Target, turns: asyncio.Semaphore) -> None:
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
        context = self._context if asked else msgspec.structs.replace(self._context, thorough=False)
        for item in items:
            loaded = load_tree(as_written(item), context)
            if isinstance(loaded, LoadedObject) and identity(loaded) not in self._seen:
                self._seen.add(identity(loaded))
                into.append(loaded)


def as_written(item: Object) -> Object:
    """Leave out of an object what its author did not write: the status, and who owns which field."""
    metadata = {name: part for name, part in item["metadata"].items() if name != "managedFields"}
    return {**{name: part for name, part in item.items() if name != "status"}, "metadata": metadata}
