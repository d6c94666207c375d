"""What every cluster has before anybody writes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from springtide.cluster.port import Write
from springtide.cluster.resources import Object, key_of
from springtide.simulator.api.admission import NAMESPACES, PRIORITY_CLASSES
from springtide.simulator.api.storage import CollectionId

if TYPE_CHECKING:
    from springtide.simulator.api.server import ApiServer

_WRITE = Write("kube-apiserver", "every cluster has it")

_ALWAYS_THERE: dict[CollectionId, tuple[Object, ...]] = {
    NAMESPACES: tuple(
        {"metadata": {"name": name}} for name in ("default", "kube-node-lease", "kube-public", "kube-system")
    ),
    PRIORITY_CLASSES: (
        {"metadata": {"name": "system-cluster-critical"}, "value": 2_000_000_000},
        {"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000},
    ),
}


def bootstrap(server: ApiServer) -> None:
    """Create the namespaces and priority classes that must be there and are not, as far as their kinds are served."""
    for identity, bodies in _ALWAYS_THERE.items():
        kind = server.catalogue.of_collection(identity)
        if kind is not None:
            for body in bodies:
                if server.find(identity, key_of(body)) is None:
                    server.create(kind.resource, body, _WRITE)
