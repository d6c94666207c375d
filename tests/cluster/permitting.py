"""A transport that lets through what RBAC rules allow, as an API server under RBAC does, and refuses the rest.

It judges by the rules of roles, not by the permissions they are made from: so whoever runs over it tests the
declarations, the generator, and what the chart holds.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from springtide.cluster.errors import Forbidden, NotFound
from springtide.cluster.port import (
    UNCONDITIONAL,
    Event,
    Page,
    Patch,
    PatchType,
    Precondition,
    Propagation,
    Transport,
    Write,
)
from springtide.cluster.resources import Key, Object, Resource, Selection

_BY_NAME = "metadata.name="


@dataclass(frozen=True)
class Asked:
    """What somebody wants to do, in the words of RBAC; the namespace is empty for all, the name where none is named."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        group = f".{self.group}" if self.group else ""
        return f"{self.verb} {self.resource}{group}"


class Permitting:
    """A connection of a bearer of roles."""

    def __init__(
        self,
        inner: Transport,
        *,
        cluster: Sequence[Mapping[str, Any]],
        namespace: Sequence[Mapping[str, Any]],
        own: str = "springtide-system",
        without: str = "",
    ) -> None:
        """`cluster` are rules for everywhere, `namespace` those for `own`; one right can be taken away."""
        self._inner = inner
        self._cluster = cluster
        self._namespace = namespace
        self._own = own
        self._without = without
        self.used: set[str] = set()
        """Everything that was asked and allowed."""
        self.refused: list[str] = []

    def _check(self, verb: str, resource: Resource, namespace: str, name: str = "", subresource: str = "") -> None:
        target = f"{resource.plural}/{subresource}" if subresource else resource.plural
        asked = Asked(verb, resource.group, target, namespace, name)
        rules = [*self._cluster, *(self._namespace if namespace == self._own else ())]
        if str(asked) != self._without and any(_allows(rule, asked) for rule in rules):
            self.used.add(str(asked))
            return
        self.refused.append(str(asked))
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        subject = f'{resource} "{name}"' if name else str(resource)
        raise Forbidden(
            f'{subject} is forbidden: User "tested" cannot {verb} resource "{target}" '
            f'in API group "{resource.group}" {where}'
        )

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        self._check("get", resource, key.namespace, key.name, subresource)
        return await self._inner.get(resource, key, subresource=subresource)

    async def list(
        self, selection: Selection, *, limit: int = 0, continue_: str = "", version: str = "", exact: bool = False
    ) -> Page:
        self._check("list", selection.resource, selection.namespace, _named(selection))
        return await self._inner.list(selection, limit=limit, continue_=continue_, version=version, exact=exact)

    async def watch(
        self, selection: Selection, *, version: str = "", initial_events: bool = False, timeout: float | None = None
    ) -> AsyncGenerator[Event, None]:
        self._check("watch", selection.resource, selection.namespace, _named(selection))
        stream = self._inner.watch(selection, version=version, initial_events=initial_events, timeout=timeout)
        async with aclosing(stream) as events:
            async for event in events:
                yield event

    async def create(
        self,
        resource: Resource,
        body: Object,
        write: Write,
        *,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
    ) -> Object:
        # RBAC does not see the name of what is created, which stands in the body; only what it is created below.
        self._check("create", resource, namespace, name, subresource)
        return await self._inner.create(resource, body, write, namespace=namespace, name=name, subresource=subresource)

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Patch,
        write: Write,
        *,
        subresource: str = "",
        precondition: Precondition = UNCONDITIONAL,
    ) -> Object:
        self._check("patch", resource, key.namespace, key.name, subresource)
        if patch.type is PatchType.APPLY and not subresource:
            try:
                await self._inner.get(resource, key)
            except NotFound:
                # An apply that makes an object needs the right to create one, too.
                self._check("create", resource, key.namespace, key.name)
        return await self._inner.patch(resource, key, patch, write, subresource=subresource, precondition=precondition)

    async def delete(
        self,
        resource: Resource,
        key: Key,
        write: Write,
        *,
        precondition: Precondition = UNCONDITIONAL,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        self._check("delete", resource, key.namespace, key.name)
        await self._inner.delete(
            resource, key, write, precondition=precondition, propagation=propagation, grace_seconds=grace_seconds
        )


def _allows(rule: Mapping[str, Any], asked: Asked) -> bool:
    names = rule.get("resourceNames") or ()
    return (
        asked.verb in rule["verbs"]
        and asked.group in rule["apiGroups"]
        and asked.resource in rule["resources"]
        and (not names or asked.name in names)
    )


def _named(selection: Selection) -> str:
    """Give the one name that a selection is about, as the API server reads it for its authorizers."""
    return selection.fields.removeprefix(_BY_NAME) if selection.fields.startswith(_BY_NAME) else ""
