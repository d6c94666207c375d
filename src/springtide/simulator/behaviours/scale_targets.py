"""How kinds that are named in a reference are called in the API: for whoever reads or sets the scale of another."""

from __future__ import annotations

from springtide.cluster.controller import Cached
from springtide.cluster.resources import Object, Resource, Selection
from springtide.cluster.tools import Tools
from springtide.simulator.behaviours.kinds import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)

CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
ALL_DEFINITIONS = Cached(Selection(CUSTOM_RESOURCE_DEFINITIONS))
"""To be watched by whoever asks for a resource here."""

_BUILT_IN = {
    (resource.group, resource.kind): resource
    for resource in (DAEMON_SETS, DEPLOYMENTS, JOBS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS)
}


def resource_of(tools: Tools, reference: Object) -> Resource | None:
    """Find the resource that a reference with `apiVersion` and `kind` means; None where there is no such kind."""
    group, _, version = str(reference.get("apiVersion", "")).rpartition("/")
    known = _BUILT_IN.get((group, reference["kind"]))
    if known is not None:
        return known
    for definition in tools.store(ALL_DEFINITIONS).values():
        spec = definition["spec"]
        names = spec["names"]
        versions = [each["name"] for each in spec["versions"] if each.get("served")]
        if spec["group"] == group and names["kind"] == reference["kind"] and version in versions:
            return Resource(group, version, names["plural"], names["kind"], spec.get("scope") == "Namespaced")
    return None
