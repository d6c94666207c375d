"""Objects that a plan is made of, read from manifests, from a cluster or from both.

Objects of files replace those of the cluster that have the same name, so that a change can be planned before it is
applied. Manifests are validated as `springtide check` does. What an API server has written (it has a uid), and large
JSON, is decoded without that: ten thousands of pods take a second.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec

from springtide.apis.core.daemon_sets import DaemonSetView
from springtide.apis.core.nodes import NamespaceView, NodeView
from springtide.apis.core.pod_record import PodView
from springtide.apis.core.policies import LimitRangeView, PriorityClassView
from springtide.apis.core.volumes import CSINodeView, StorageClassView, VolumeClaimView, VolumeView
from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import load_tree
from springtide.apis.problems import format_path
from springtide.assembly.manifests import (
    ClusterChoice,
    LocatedProblem,
    ManifestSource,
    UnreadableSource,
    check_sources,
)
from springtide.packing.node_claims import NodeClaimView
from springtide.packing.snapshot import PodKey

Progress: TypeAlias = Callable[[str], None]
"""Is given a text that says what is being done now."""

_LARGE: Final = 1 << 20
"""Characters from which on JSON without uids is decoded without validation, too."""
_PAGE: Final = 1000


_VIEWS: Final[Mapping[tuple[str, str], type[Any]]] = {
    ("", "Pod"): PodView,
    ("", "Node"): NodeView,
    ("", "Namespace"): NamespaceView,
    ("", "LimitRange"): LimitRangeView,
    ("", "PersistentVolume"): VolumeView,
    ("", "PersistentVolumeClaim"): VolumeClaimView,
    ("", "ReplicationController"): dict,
    ("apps", "DaemonSet"): DaemonSetView,
    ("apps", "Deployment"): dict,
    ("apps", "ReplicaSet"): dict,
    ("apps", "StatefulSet"): dict,
    ("batch", "Job"): dict,
    ("karpenter.sh", "NodeClaim"): NodeClaimView,
    ("karpenter.sh", "NodePool"): dict,
    ("scheduling.k8s.io", "PriorityClass"): PriorityClassView,
    ("storage.k8s.io", "CSINode"): CSINodeView,
    ("storage.k8s.io", "StorageClass"): StorageClassView,
}
"""What is read, and as what it is decoded."""
WORKLOADS: Final = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Job")
"""Deployments come before the ReplicaSets that they own."""
_CLUSTER_SCOPED: Final = (
    "Node",
    "Namespace",
    "PersistentVolume",
    "NodeClaim",
    "NodePool",
    "PriorityClass",
    "CSINode",
    "StorageClass",
)


@dataclass(slots=True)
class Collected:
    """Objects by kind, namespace and name, and what went wrong while they were read."""

    objects: dict[str, dict[PodKey, Any]] = field(default_factory=dict)
    manifests: set[tuple[str, PodKey]] = field(default_factory=set)
    """Those that no API server has seen: nothing has set their defaults."""
    problems: list[LocatedProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unreadable: bool = False

    def put(self, kind: str, key: PodKey, value: Any, *, manifest: bool) -> None:
        """Add an object; it replaces an earlier one of the same name."""
        namespace = "" if kind in _CLUSTER_SCOPED else key[0] or "default"
        key = (namespace, key[1])
        self.objects.setdefault(kind, {})[key] = value
        if manifest:
            self.manifests.add((kind, key))
        else:
            self.manifests.discard((kind, key))

    def of(self, kind: str) -> dict[PodKey, Any]:
        """Return the objects of a kind."""
        return self.objects.get(kind, {})


# Files


def collect_files(
    sources: Sequence[ManifestSource],
    unread: Sequence[UnreadableSource],
    into: Collected,
    context: ValidationContext,
    progress: Progress,
) -> None:
    """Read manifests; what cannot be read is reported and does not stop the others."""
    validated = []
    for number, source in enumerate(sources, 1):
        progress(f"reading {source.name}" + (f" ({number} of {len(sources)})" if len(sources) > 1 else ""))
        if not _collect_json(source, into, context):
            validated.append(source)
    found = check_sources(validated, unread, context)
    into.unreadable = into.unreadable or found.unreadable
    for manifest in found.manifests:
        loaded = manifest.object
        key = (loaded.namespace or "", loaded.name)
        kind = loaded.kind.kind
        wanted = _VIEWS.get((loaded.kind.group, kind))
        has_uid = bool((loaded.value.get("metadata") or {}).get("uid"))
        if wanted is None:
            continue
        try:
            value = _decoded(wanted, loaded.value, key[1])
        except (ValueError, TypeError) as failure:
            if loaded.sound:
                into.problems.append(located(manifest.file, kind, key, str(failure)))
            continue
        into.put(kind, key, value, manifest=not has_uid)
    # Warnings are left to `springtide check`: most are about what a plan does not need.
    into.problems += (problem for problem in found.problems if problem.severity == "error")


def _decoded(view: type[Any], value: dict[str, Any], name: str) -> Any:
    """Decode a tree as a view; raises `ValueError`."""
    if view is dict:
        return value
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and not metadata.get("name") and name:
        value = {**value, "metadata": {**metadata, "name": f"{name}1"}}  # the name is only generated
    return msgspec.convert(value, view)


class _PeekMetadata(msgspec.Struct):
    name: str = ""
    namespace: str | None = None
    uid: str | None = None


class _Peek(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: _PeekMetadata | None = None
    items: list[msgspec.Raw] | None = None


_PEEK = msgspec.json.Decoder(_Peek)


def _collect_json(source: ManifestSource, into: Collected, context: ValidationContext) -> bool:
    """Read JSON of an API server, or large JSON, without validation; False if this is something else."""
    if source.text.lstrip()[:1] != "{":
        return False
    try:
        peeked = list(_members(msgspec.Raw(source.text.encode())))
    except msgspec.MsgspecError:
        return False
    from_server = all(head.metadata is not None and head.metadata.uid for head, _ in peeked)
    if not peeked or not (from_server or len(source.text) > _LARGE):
        return False
    decoders = {view: msgspec.json.Decoder(view) for view in {*_VIEWS.values()}}
    for head, raw in peeked:
        group, _, _ = head.api_version.rpartition("/")
        view = _VIEWS.get((group, head.kind))
        if view is None:
            continue
        metadata = head.metadata or _PeekMetadata()
        key = (metadata.namespace or "", metadata.name)
        try:
            value = decoders[view].decode(raw)
        except msgspec.MsgspecError as failure:
            into.problems += _problems_of(source.name, head.kind, key, msgspec.json.decode(raw), failure, context)
            continue
        if view is dict:
            value = {**value, "apiVersion": head.api_version, "kind": head.kind}
        into.put(head.kind, key, value, manifest=not metadata.uid)
    return True


def _members(raw: msgspec.Raw) -> Iterator[tuple[_Peek, msgspec.Raw]]:
    """Yield the objects of a JSON text, each with its identity: of a List the items."""
    head = _PEEK.decode(raw)
    if not head.kind.endswith("List") or head.items is None:
        yield head, raw
        return
    for item in head.items:
        inner = _PEEK.decode(item)
        if not inner.kind and not inner.api_version:
            inner.kind, inner.api_version = head.kind.removesuffix("List"), head.api_version
        if inner.items is not None and inner.kind.endswith("List"):
            yield from _members(item)
        else:
            yield inner, item


def _problems_of(
    file: str, kind: str, key: PodKey, value: Any, failure: Exception, context: ValidationContext
) -> Iterator[LocatedProblem]:
    """Find why an object cannot be decoded."""
    loaded = load_tree(value, context) if isinstance(value, dict) else None
    found = [problem for problem in loaded.problems if problem.severity == "error"] if loaded is not None else []
    for problem in found:
        yield located(file, kind, key, problem.message, format_path(problem.path), problem.hint)
    if not found:
        yield located(file, kind, key, str(failure))


def located(file: str, kind: str, key: PodKey, message: str, path: str = "", hint: str = "") -> LocatedProblem:
    """Make a problem of an object whose line is not known."""
    where = f"{key[0]}/" if key[0] else ""
    return LocatedProblem(
        file=f"{file}:{where}{kind.lower()}/{key[1]}",
        kind=kind,
        namespace=key[0] or None,
        name=key[1],
        path=path,
        message=message,
        hint=hint,
    )


# Clusters


def collect_cluster(choice: ClusterChoice, into: Collected, progress: Progress) -> None:
    """Read all that matters for a plan from a cluster; a kind that may not be read gives a note."""
    asyncio.run(_collect_cluster(choice, into, progress))


async def _collect_cluster(choice: ClusterChoice, into: Collected, progress: Progress) -> None:
    # Imported late: planning from files needs no HTTP client.
    from springtide.assembly.cluster_reader import LABEL, UnknownNameError, connect
    from springtide.cluster.errors import ApiError, ClusterError
    from springtide.cluster.resources import Resource, Selection, key_of

    read: Counter[str] = Counter()

    async def collect(kind: str, resource: Resource, view: type[Any], namespace: str = "") -> None:
        selection, token = Selection(resource, namespace, view=view), ""
        while True:
            page = await cluster.transport.list(selection, limit=_PAGE, continue_=token)
            for item in page.items:
                into.put(kind, key_of(item), item, manifest=False)
            read[resource.plural] += len(page.items)
            counts = ", ".join(f"{read[name]:,} {name}" for name in ("nodes", "pods") if read[name])
            progress(f"reading the cluster: {counts or 'connected'}")
            token = page.continue_
            if not token:
                return

    async def collect_or_note(group: str, kind: str, view: type[Any]) -> None:
        resource = cluster.known(group, kind)
        if resource is None:
            return
        try:
            try:
                await collect(kind, resource, view)
            except ApiError:
                if kind != "Pod" or not choice.namespace:
                    raise
                await collect(kind, resource, view, choice.namespace)
                into.notes.append(
                    f"only pods of namespace {choice.namespace} may be read: nodes may have less room than planned with"
                )
        except ApiError as refusal:
            into.notes.append(f"{resource.plural} are not considered: {refusal}")

    try:
        progress("connecting to the cluster")
        async with connect(choice) as cluster:
            if choice.namespace:
                await cluster.expect_namespace(choice.namespace)
            wanted = [(group, kind, view) for (group, kind), view in _VIEWS.items() if kind not in WORKLOADS]
            await asyncio.gather(*(collect_or_note(*each) for each in wanted))
    except UnknownNameError as missing:
        into.unreadable = True
        into.problems.append(LocatedProblem(file=LABEL, message=str(missing), hint=missing.hint))
    except ClusterError as failure:
        into.unreadable = True
        into.problems.append(LocatedProblem(file=LABEL, message=str(failure)))
