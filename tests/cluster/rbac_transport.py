"""A transport that authorizes requests by RBAC rules, as an API server does.

It uses the rules of roles, not the permissions that they are generated from: so a test with it checks the declared
permissions, the generator, and the chart.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from springtide.cluster.errors import Forbidden, NotFound
from springtide.cluster.resources import Resource
from springtide.cluster.transport import ApiRequest, PatchType, Transport, WatchEvent, WrappingTransport

T = TypeVar("T")

_BY_NAME = "metadata.name="


@dataclass(frozen=True)
class Asked:
    """A request in the terms of RBAC; the namespace is empty for all, the name for a request without one."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        group = f".{self.group}" if self.group else ""
        return f"{self.verb} {self.resource}{group}"


class RbacTransport(WrappingTransport):
    """A connection with the rules of some roles."""

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
        super().__init__(inner)
        self._cluster = cluster
        self._namespace = namespace
        self._own = own
        self._without = without
        self.used: set[str] = set()
        """All requests that were allowed."""
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

    async def intercept(self, request: ApiRequest, send: Callable[[], Awaitable[T]]) -> T:
        # RBAC does not see the name of what is created, which stands in the body; only what it is created below.
        self._check(request.verb, request.resource, request.key.namespace, _name(request), request.subresource)
        if request.patch is not None and request.patch.type is PatchType.APPLY and not request.subresource:
            try:
                await self.inner.get(request.resource, request.key)
            except NotFound:
                # An apply that makes an object needs the right to create one, too.
                self._check("create", request.resource, request.key.namespace, request.key.name)
        return await send()

    async def intercept_watch(
        self, request: ApiRequest, events: AsyncGenerator[WatchEvent, None]
    ) -> AsyncGenerator[WatchEvent, None]:
        async with aclosing(events) as stream:
            self._check(request.verb, request.resource, request.key.namespace, _name(request))
            async for event in stream:
                yield event


def _allows(rule: Mapping[str, Any], asked: Asked) -> bool:
    names = rule.get("resourceNames") or ()
    return (
        asked.verb in rule["verbs"]
        and asked.group in rule["apiGroups"]
        and asked.resource in rule["resources"]
        and (not names or asked.name in names)
    )


def _name(request: ApiRequest) -> str:
    """Return the one name that a request is about, as the API server reads it for its authorizers."""
    return request.fields.removeprefix(_BY_NAME) if request.fields.startswith(_BY_NAME) else request.key.name
