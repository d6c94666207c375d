"""The subresources: other ways to look at an object, and other things to do with it.

Each is a pure function in a module of its own; here they meet the server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from springtide.cluster.errors import BadRequest
from springtide.cluster.port import Precondition, Propagation, Write
from springtide.cluster.resources import Key, Object
from springtide.simulator.api import eviction, pods
from springtide.simulator.api.answers import no_such_resource, not_found
from springtide.simulator.api.beginnings import SERVER
from springtide.simulator.api.binding import bound
from springtide.simulator.api.bodies import body_of, leaf, part
from springtide.simulator.api.deletion import check_delete
from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.api.lifecycle import Part
from springtide.simulator.api.scale import scale_of, scale_view, scaled
from springtide.simulator.api.storage import CollectionId
from springtide.simulator.api.structure import ANYTHING, Node
from springtide.simulator.api.timestamps import timestamp

if TYPE_CHECKING:
    from springtide.simulator.api.server import ApiServer

_BUDGETS = CollectionId("policy", "poddisruptionbudgets")
_SUCCESS: Object = {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success"}
_TYPES: dict[str, Object] = {
    "binding": {"apiVersion": "v1", "kind": "Binding"},
    "eviction": {"apiVersion": "policy/v1", "kind": "Eviction"},
}
_EVICTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


class Subresources:
    """Writes what is not written as a whole."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def structure(self, kind: ServedKind, subresource: str) -> Node:
        """Give the structure of what is patched through a subresource."""
        return ANYTHING if subresource == "scale" else kind.structure

    def change(
        self,
        kind: ServedKind,
        key: Key,
        make: Callable[[Object], Any],
        write: Write,
        verb: str,
        subresource: str,
        precondition: Precondition,
    ) -> Object:
        """Change an object through one of its subresources, or as a whole."""
        modify = self._server.modify
        match subresource:
            case "":
                return modify(kind, key, make, write, verb, precondition=precondition)
            case "status":
                return modify(kind, key, make, write, f"{verb}/status", part=Part.STATUS, precondition=precondition)
            case "scale":

                def rescaled(old: Object) -> Object:
                    return scaled(kind, old, make(scale_of(kind, old)))

                view = scale_view(kind)
                return view.of(
                    modify(kind, key, rescaled, write, f"{verb}/scale", precondition=precondition, view=view)
                )
            case "finalize":

                def finalized(old: Object) -> Object:
                    finalizers = leaf(part(body_of("Namespace", make(old), key.name), "spec"), "finalizers", list, [])
                    return {**old, "spec": {"finalizers": finalizers} if finalizers else {}}

                return modify(
                    kind, key, finalized, write, f"{verb}/finalize", part=Part.WHOLE, precondition=precondition
                )
            case _:
                raise no_such_resource()

    def body(self, key: Key, body: Any, subresource: str) -> Object:
        """Give the body of a creation with its type, which it may leave out."""
        if subresource not in _TYPES:
            raise no_such_resource()
        typed = _TYPES[subresource]
        given = body_of(typed["kind"], body, key.name)
        part(given, "metadata")
        return typed | given

    def create(self, kind: ServedKind, key: Key, body: Any, write: Write, subresource: str) -> Object:
        """Do to an object what is written as a creation: evict it, or bind it."""
        match subresource:
            case "eviction":
                return self._evict(kind, key, body, write)
            case "binding":
                now = timestamp(self._server.now())
                self._server.modify(
                    kind, key, lambda pod: bound(pod, body, now), write, "create/binding", part=Part.WHOLE, owned=True
                )
                return _SUCCESS
            case _:
                raise no_such_resource()

    def _evict(self, kind: ServedKind, key: Key, body: Any, write: Write) -> Object:
        options = part(body_of("Eviction", body, key.name), "deleteOptions")
        policy = leaf(options, "propagationPolicy", str, "")
        if policy and policy not in list(Propagation):
            raise BadRequest(f"propagationPolicy is {policy!r}, expected one of {', '.join(Propagation)}")
        write = replace(write, dry_run=write.dry_run or bool(options.get("dryRun")))
        pod = self._server.find(CollectionId("", "pods"), key)
        if pod is None:
            raise not_found(kind.resource, key.name)
        wanted = part(options, "preconditions")
        precondition = Precondition(leaf(wanted, "resourceVersion", str, ""), leaf(wanted, "uid", str, ""))
        check_delete(pod, precondition, kind.resource)
        grace = None if options.get("gracePeriodSeconds") is None else leaf(options, "gracePeriodSeconds", int, 0)
        if not eviction.needs_no_budget(pod):
            self._spend(pod, write)
        self._server.modify(
            kind,
            key,
            lambda old: pods.with_condition(old, _EVICTED, timestamp(self._server.now())),
            write,
            "create/eviction",
            part=Part.WHOLE,
            owned=True,
        )
        self._server.delete(
            kind.resource,
            key,
            write,
            propagation=Propagation(policy) if policy else None,
            grace_seconds=grace,
        )
        return _SUCCESS

    def _spend(self, pod: Object, write: Write) -> None:
        """Take one disruption from the budget of a pod, where it has one and that counts this pod."""
        namespace = pod["metadata"]["namespace"]
        budget = eviction.budget_of(pod, [item for _, item in self._server.objects(_BUDGETS, namespace)])
        if budget is None or eviction.needs_no_allowance(pod, budget):
            return
        now = timestamp(self._server.now())
        kind = self._server.catalogue.of_kind(budget["apiVersion"], budget["kind"])
        if kind is None:
            raise no_such_resource()
        key = Key(namespace, budget["metadata"]["name"])
        spending = replace(write, manager=SERVER, because=f"pod {pod['metadata']['name']} is evicted")
        self._server.modify(
            kind, key, lambda old: eviction.spent(old, pod, now), spending, "update/status", part=Part.STATUS
        )
