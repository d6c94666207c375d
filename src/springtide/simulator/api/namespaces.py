"""The end of a namespace: its contents are deleted, and when the last object is gone, it goes too."""

from __future__ import annotations

from collections import Counter

from springtide.cluster.clock import Clock
from springtide.cluster.port import Propagation, Write
from springtide.cluster.resources import Key, Object, Selection
from springtide.simulator.api.admission import NAMESPACES
from springtide.simulator.api.backlog import Backlog
from springtide.simulator.api.beginnings import NAMESPACE_FINALIZER
from springtide.simulator.api.catalogue import identity_of
from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.api.lifecycle import Part
from springtide.simulator.api.server import ApiServer, Written
from springtide.simulator.api.timestamps import timestamp

MANAGER = "namespace-controller"

_IN_ORDER = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""What a namespace that is going tells when nothing holds it: reason and message of its conditions."""


class NamespaceDeleter:
    """Empties namespaces that are to be deleted."""

    def __init__(self, server: ApiServer, *, delay: float = 0.0) -> None:
        self._server = server
        self._delay = delay
        self._backlog: Backlog[str] = Backlog()
        for key, item in server.objects(NAMESPACES):
            self._note(key.name, item)
        server.observers.append(self._on_write)

    async def run(self, clock: Clock) -> None:
        """Empty namespaces for ever: what comes up is done `delay` seconds later."""
        while True:
            await self._backlog.filled()
            await clock.sleep(self._delay)
            self.empty()

    def empty(self) -> None:
        """Do what is to be done now."""
        while (name := self._backlog.take()) is not None:
            namespace = self._server.find(NAMESPACES, Key("", name))
            kind = self._server.catalogue.of_collection(NAMESPACES)
            if namespace is not None and kind is not None and "deletionTimestamp" in namespace["metadata"]:
                self._empty(kind, name, Write(MANAGER, f"namespace {name} is being deleted"))

    def _on_write(self, written: Written) -> None:
        if identity_of(written.resource) == NAMESPACES:
            self._note(written.key.name, written.new)
        elif written.new is None and written.key.namespace:
            self._note(written.key.namespace, self._server.find(NAMESPACES, Key("", written.key.namespace)))

    def _note(self, name: str, namespace: Object | None) -> None:
        if namespace is not None and "deletionTimestamp" in namespace["metadata"]:
            self._backlog.add(name)

    def _empty(self, kind: ServedKind, name: str, write: Write) -> None:
        key = Key("", name)
        for content in self._server.catalogue.stored():
            if content.resource.namespaced and "deletecollection" in content.verbs:
                selection = Selection(content.resource, namespace=name)
                self._server.deletecollection(selection, write, propagation=Propagation.BACKGROUND)
        counts, finalizers = self._remaining(name)

        def told(old: Object) -> Object:
            conditions = _conditions(old, counts, finalizers, timestamp(self._server.now()))
            return {**old, "status": {**(old.get("status") or {}), "phase": "Terminating", "conditions": conditions}}

        self._server.modify(kind, key, told, write, "patch/status", part=Part.STATUS)
        if not counts:

            def finalized(old: Object) -> Object:
                spec: Object = old.get("spec") or {}
                kept = [each for each in spec.get("finalizers") or () if each != NAMESPACE_FINALIZER]
                return {**old, "spec": {**spec, "finalizers": kept}}

            self._server.modify(kind, key, finalized, write, "update/finalize", part=Part.WHOLE)

    def _remaining(self, name: str) -> tuple[dict[str, int], Counter[str]]:
        """Count what is left in a namespace, by resource and by finalizer."""
        counts: dict[str, int] = {}
        finalizers: Counter[str] = Counter()
        for content in self._server.catalogue.stored():
            resource = content.resource
            items = (
                [item for _, item in self._server.objects(identity_of(resource), name)] if resource.namespaced else []
            )
            if items:
                counts[f"{resource.plural}.{resource.group}"] = len(items)
            for item in items:
                finalizers.update(item["metadata"].get("finalizers", ()))
        return counts, finalizers


def _conditions(namespace: Object, counts: dict[str, int], finalizers: Counter[str], now: str) -> list[Object]:
    """Tell what holds a namespace; the time of a condition's last change is kept where it says the same."""
    held: dict[str, tuple[str, str]] = {}
    if counts:
        listed = ", ".join(f"{resource} has {count} resource instances" for resource, count in counts.items())
        held["NamespaceContentRemaining"] = "SomeResourcesRemain", f"Some resources are remaining: {listed}"
    if finalizers:
        listed = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
        message = f"Some content in the namespace has finalizers remaining: {listed}"
        held["NamespaceFinalizersRemaining"] = "SomeFinalizersRemain", message
    present = {each["type"]: each for each in (namespace.get("status") or {}).get("conditions") or ()}
    conditions = []
    for name, in_order in _IN_ORDER.items():
        reason, message = held.get(name, in_order)
        fresh = {"type": name, "status": "True" if name in held else "False", "reason": reason, "message": message}
        old: Object = present.get(name, {})
        unchanged = old.items() >= fresh.items()
        conditions.append(fresh | {"lastTransitionTime": old["lastTransitionTime"] if unchanged else now})
    return conditions
