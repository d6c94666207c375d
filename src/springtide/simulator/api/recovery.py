"""What a server does with objects of an earlier life: it serves their kinds, and does to the end what was cut in two.

Every single change is stored as a whole, but some requests make several. The end of an object that nothing holds, and
the end of a CRD with the objects of its kind, must not stop half way, because nobody would ask for it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from springtide.cluster.port import Write
from springtide.simulator.api.deletion import held

if TYPE_CHECKING:
    from springtide.simulator.api.definitions import Definitions
    from springtide.simulator.api.server import ApiServer

_WRITE = Write("kube-apiserver", "the server ended before this was done")


def recover(server: ApiServer, definitions: Definitions) -> None:
    """Serve the CRDs that are there, let go what is held by nothing and marked to go, and end CRDs that are going."""
    definitions.restore()
    for identity, collection in server.storage.collections():
        kind = server.catalogue.of_collection(identity)
        for key, item in list(collection.live.items()):
            if kind is not None and "deletionTimestamp" in item["metadata"] and not held(item):
                server.delete(kind.resource, key, _WRITE)
    definitions.resume(_WRITE)
