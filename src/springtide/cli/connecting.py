"""A cluster that a command reads from: what it serves, and objects of it by the names that people give them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from random import Random

from springtide.apis import registry
from springtide.apis.suggestions import nearest
from springtide.cli.cluster_options import ClusterChoice
from springtide.cluster.errors import ApiError, NotFound, Unauthorized
from springtide.cluster.http import HttpSettings, HttpTransport, Retries, access
from springtide.cluster.http.discovery import Discovery, discover
from springtide.cluster.resources import Key, Object, Resource, Selection

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_PAGE = 500
# Somebody waits for the answer: two tries tell as much as four.
_SETTINGS = HttpSettings(component="cli", retries=Retries(attempts=2))


class NoSuchThing(LookupError):
    """A name of which the cluster knows nothing; the message and the hint are for people."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Cluster:
    """An open connection."""

    transport: HttpTransport
    discovery: Discovery
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
        if close is None and registry.kind_like(word) is not None:
            hint = "install the CRDs first: `springtide crds | kubectl apply -f -`"
        raise NoSuchThing(f'the cluster knows no kind "{word}"', hint)

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
            found += (_whole(item, resource) for item in page.items)
            token = page.continue_
            if not token:
                return found

    async def get(self, resource: Resource, name: str, namespace: str) -> Object:
        """Read one object; `NoSuchThing` tells of a name that is close."""
        key = Key(namespace if resource.namespaced else "", name)
        try:
            return _whole(await self.transport.get(resource, key), resource)
        except NotFound:
            pass
        where = f" in namespace {namespace}" if resource.namespaced else ""
        others = [item["metadata"]["name"] for item in await self.list(resource, namespace)]
        if resource.namespaced and not others:
            with suppress(ApiError):  # whether it is there may not be ours to know
                await self.expect_namespace(namespace)
        close = nearest(name, others)
        hint = f"did you mean {close}?" if close else "" if others else f"there is none{where} at all"
        raise NoSuchThing(f"there is no {resource.kind} `{name}`{where}", hint)

    async def expect_namespace(self, name: str) -> None:
        """Raise `NoSuchThing` where there is no such namespace."""
        try:
            await self.transport.get(_NAMESPACES, Key("", name))
        except NotFound:
            others = [item["metadata"]["name"] for item in await self.list(_NAMESPACES)]
            close = nearest(name, others)
            hint = f"did you mean {close}?" if close else "`kubectl get namespaces` lists those there are"
            raise NoSuchThing(f"there is no namespace `{name}`", hint) from None


@asynccontextmanager
async def connected(choice: ClusterChoice) -> AsyncIterator[Cluster]:
    """Connect to the cluster that is meant, and ask what it serves; `ClusterError` where that cannot be."""
    found = access(choice.kubeconfig, choice.context)
    async with HttpTransport(found, settings=_SETTINGS, random=Random()) as transport:  # noqa: S311 - spreads retries
        try:
            discovery = await discover(transport)
        except Unauthorized as refusal:
            why = f"{found.server} does not accept the credentials of {found.origin}"
            raise Unauthorized(f"{why}: {refusal}") from refusal
        yield Cluster(transport, discovery, choice.namespace or found.namespace)


def _whole(item: Object, resource: Resource) -> Object:
    """Let an object say what it is: members of a list need not."""
    return {**item, "apiVersion": resource.api_version, "kind": resource.kind}
