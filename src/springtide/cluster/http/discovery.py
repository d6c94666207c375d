"""Discovery: the resources that a server serves, with their kinds, short names and verbs.

Servers since 1.26 list everything in two aggregated responses. Older and partial servers are asked group by group.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from springtide.cluster.errors import ApiError, NotFound, ServerError
from springtide.cluster.http.rest_client import JSON
from springtide.cluster.resources import Resource

log = logging.getLogger(__name__)

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_ACCEPT = f"{AGGREGATED},{JSON}"
T = TypeVar("T")


class Fetcher(Protocol):
    """Reads paths that are not objects."""

    async def fetch(self, path: str, *, accept: str = JSON) -> bytes:
        """Return the response to a GET."""
        ...


@dataclass(frozen=True, slots=True)
class ServedResource:
    """A resource as a server describes it."""

    resource: Resource
    singular: str = ""
    short_names: tuple[str, ...] = ()
    verbs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ServerDiscovery:
    """All resources of a server, in its order: preferred groups and versions first."""

    served: tuple[ServedResource, ...]
    server_version: str = ""

    def resource_of(self, api_version: str, kind: str) -> Resource | None:
        """Find the resource of an apiVersion and kind."""
        for served in self.served:
            if served.resource.api_version == api_version and served.resource.kind == kind:
                return served.resource
        return None

    def named(self, name: str) -> Resource | None:
        """Find a resource as kubectl does: `deploy`, `Deployment`, `deployments.apps` or `deployments.v1.apps`."""
        word, _, rest = name.partition(".")
        for called in (_called_fully, _called_shortly):
            for served in self.served:
                resource = served.resource
                if called(served, word.lower()) and rest in (
                    "",
                    resource.group,
                    f"{resource.version}.{resource.group}",
                ):
                    return resource
        return None


def _called_fully(served: ServedResource, word: str) -> bool:
    return word in (served.resource.plural, served.singular, served.resource.kind.lower())


def _called_shortly(served: ServedResource, word: str) -> bool:
    return word in served.short_names


async def discover(transport: Fetcher) -> ServerDiscovery:
    """Read the resources of a server."""
    version = _read(await transport.fetch("/version"), _Version, "/version")
    served: list[ServedResource] = []
    for root in ("/api", "/apis"):
        try:
            answer = await transport.fetch(root, accept=_ACCEPT)
        except NotFound:
            continue
        served += await _everything(transport, root, answer)
    return ServerDiscovery(tuple(served), version.git_version)


async def _everything(transport: Fetcher, root: str, answer: bytes) -> Sequence[ServedResource]:
    listed = _read(answer, _Root, root)
    if listed.kind == "APIGroupDiscoveryList":
        return [*_aggregated(listed.items)]
    versions = [f"{root}/{version}" for version in listed.versions]
    versions += [f"{root}/{version.group_version}" for group in listed.groups for version in _preferred_first(group)]
    parts = await asyncio.gather(*(_one_version(transport, path) for path in versions))
    return [served for part in parts for served in part]


def _aggregated(groups: Sequence[_Group]) -> Iterator[ServedResource]:
    for group in groups:
        for version in group.versions:
            for known in version.resources:
                kind = known.response_kind
                resource = Resource(
                    group.metadata.name, version.version, known.resource, kind.kind, known.scope == "Namespaced"
                )
                yield ServedResource(
                    resource, known.singular_resource, tuple(known.short_names), frozenset(known.verbs)
                )


async def _one_version(transport: Fetcher, path: str) -> list[ServedResource]:
    try:
        answer = await transport.fetch(path)
    except ApiError as error:
        # An extension server that is down takes its own kinds with it, and no others.
        log.warning("what %s serves is not known: %s", path, error)
        return []
    listed = _read(answer, _ResourceList, path)
    group, _, version = listed.group_version.rpartition("/")
    return [
        ServedResource(
            Resource(group, version, known.name, known.kind, known.namespaced),
            known.singular_name or known.kind.lower(),
            tuple(known.short_names),
            frozenset(known.verbs),
        )
        for known in listed.resources
        if "/" not in known.name
    ]


def _preferred_first(group: _ListedGroup) -> list[_GroupVersion]:
    preferred = group.preferred_version.group_version
    return sorted(group.versions, key=lambda version: version.group_version != preferred)


def _read(answer: bytes, shape: type[T], path: str) -> T:
    try:
        return msgspec.json.decode(answer, type=shape)
    except msgspec.DecodeError as error:
        raise ServerError(f"the server's answer at {path} cannot be read: {error}") from error


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


class _Kind(msgspec.Struct):
    kind: str = ""


class _Known(msgspec.Struct, rename="camel"):
    resource: str
    response_kind: _Kind = msgspec.field(default_factory=_Kind)
    scope: str = ""
    singular_resource: str = ""
    verbs: list[str] = []
    short_names: list[str] = []


class _GroupVersionResources(msgspec.Struct):
    version: str
    resources: list[_Known] = []


class _Metadata(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    versions: list[_GroupVersionResources] = []


class _GroupVersion(msgspec.Struct, rename="camel"):
    group_version: str = ""


class _ListedGroup(msgspec.Struct, rename="camel"):
    versions: list[_GroupVersion] = []
    preferred_version: _GroupVersion = msgspec.field(default_factory=_GroupVersion)


class _Root(msgspec.Struct):
    """One of three answers: everything, the groups, or the versions of the group without a name."""

    kind: str
    items: list[_Group] = []
    groups: list[_ListedGroup] = []
    versions: list[str] = []


class _Listed(msgspec.Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool = False
    singular_name: str = ""
    verbs: list[str] = []
    short_names: list[str] = []


class _ResourceList(msgspec.Struct, rename="camel"):
    group_version: str
    resources: list[_Listed] = []
