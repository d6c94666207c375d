"""What a MetricsProducer is called in the API.

What is kept of every MetricsProducer: all that is read and written of it, packed.

Of ten thousand objects as the API tells them, with the fields that each manager owns, a process would hold hundreds of
megabytes. Their specs and statuses are read a few times a day, so they are kept as the JSON that they came from.

Which metrics a producer will have, before anybody has looked closely at it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from springtide.apis.validation import ANNOTATION
from springtide.cluster.controller import Cached
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.metrics.series import HELP

METRICS_PRODUCERS = Resource("autoscaling.karpenter.sh", "v1alpha1", "metricsproducers", "MetricsProducer")


class WrittenProducer(msgspec.Struct, frozen=True, gc=False):
    """What the author of a producer has written, packed; producers with equal ones mean the same."""

    spec: bytes
    extensions: str | None
    """The annotation that holds fields for which the cluster's schema has no place."""


class ProducerRecord(msgspec.Struct, frozen=True, gc=False):
    """A MetricsProducer, packed."""

    namespace: str
    name: str
    uid: str
    version: str
    generation: int
    written: WrittenProducer
    packed_status: bytes

    @property
    def key(self) -> Key:
        """Which object this is."""
        return Key(self.namespace, self.name)

    def status(self) -> Object:
        """Unpack the status."""
        unpacked: Object = msgspec.json.decode(self.packed_status)
        return unpacked

    def as_read(self) -> Object:
        """Give the object as it is judged: what its author wrote."""
        metadata: Object = {"namespace": self.namespace, "name": self.name}
        if self.written.extensions is not None:
            metadata["annotations"] = {ANNOTATION: self.written.extensions}
        return {
            "apiVersion": METRICS_PRODUCERS.api_version,
            "kind": METRICS_PRODUCERS.kind,
            "metadata": metadata,
            "spec": msgspec.json.decode(self.written.spec),
        }

    def as_origin(self, status: Object) -> Object:
        """Give the object as a write of its status is computed from it."""
        metadata = {
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": self.version,
            "generation": self.generation,
        }
        return {"metadata": metadata, "status": status}


def _record(item: Any) -> ProducerRecord:
    metadata = item["metadata"]
    return ProducerRecord(
        metadata.get("namespace", ""),
        metadata["name"],
        metadata.get("uid", ""),
        metadata.get("resourceVersion", ""),
        metadata.get("generation", 0),
        WrittenProducer(msgspec.json.encode(item.get("spec")), (metadata.get("annotations") or {}).get(ANNOTATION)),
        msgspec.json.encode(item.get("status") or {}),
    )


ALL_PRODUCERS = Cached(Selection(METRICS_PRODUCERS), record=_record)


_PREFIXES = {
    "schedule": "karpenter_scheduled_",
    "queue": "karpenter_queue_",
    "reservedCapacity": "karpenter_reserved_capacity_",
}
_METRICS = {source: tuple(name for name in HELP if name.startswith(prefix)) for source, prefix in _PREFIXES.items()}
_SOURCES = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NOTHING = b"null"


def expected_metrics(spec: bytes) -> tuple[str, ...]:
    """Name the metrics of whatever sources a spec has, right or wrong; of pending capacity there are none yet."""
    try:
        sources = _SOURCES.decode(spec)
    except msgspec.MsgspecError:
        return ()
    return tuple(
        metric
        for source, metrics in _METRICS.items()
        if bytes(sources.get(source, _NOTHING)) != _NOTHING
        for metric in metrics
    )
