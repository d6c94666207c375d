"""MetricsProducers as the controller caches them: everything that it reads and writes, packed.

Ten thousand objects as the API returns them, with their managed fields, would take hundreds of megabytes. Specs and
statuses are read a few times a day, so they are kept as JSON.
"""

from __future__ import annotations

from typing import Any

import msgspec

from springtide.apis.meta.times import parse_instant
from springtide.apis.scheduled.producer import MetricsProducer
from springtide.apis.validation import ANNOTATION
from springtide.cluster.controller import Cached, Urgency
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.controllers.metrics_producer.compiled_spec import LISTED_CHANGES, QUICK_BUDGET, compile_with_calendars
from springtide.controllers.validated import validated
from springtide.metrics.series import HELP

METRICS_PRODUCERS = Resource("autoscaling.karpenter.sh", "v1alpha1", "metricsproducers", "MetricsProducer")


class WrittenProducer(msgspec.Struct, frozen=True, gc=False):
    """What users have written, packed; producers with equal values follow the same schedule or queue."""

    spec: bytes
    extensions: str | None
    """The annotation with the fields that the CRD of the cluster does not declare."""


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
        """Namespace and name."""
        return Key(self.namespace, self.name)

    def status(self) -> Object:
        """Unpack the status."""
        unpacked: Object = msgspec.json.decode(self.packed_status)
        return unpacked

    def urgency(self, now: int) -> Urgency:
        """Return whether the value changes by now, by the next change in the status; other sources are always due."""
        scheduled = self.status().get("scheduledCapacity")
        if not scheduled:
            return Urgency.UNKNOWN if self.packed_status == _EMPTY_STATUS else Urgency.DUE
        following = scheduled.get("nextValueTime")
        return Urgency.DUE if following is not None and parse_instant(following) <= now else Urgency.LATER

    def as_read(self) -> Object:
        """Return the object for validation: what users wrote."""
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
        """Return the object for a write of its status, with the resourceVersion as the precondition."""
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


def _try(item: Object, now: int, default_zone: str) -> None:
    """Validate a producer, and find the state of its schedule."""
    verdict = validated(_record(item).as_read(), MetricsProducer, now=now, default_zone=default_zone)
    schedule = verdict.sound.spec.schedule if verdict.sound is not None else None
    if schedule is not None:
        compile_with_calendars(schedule, default_zone, ()).at(now, LISTED_CHANGES, QUICK_BUDGET)


_EMPTY_STATUS = b"{}"
ALL_PRODUCERS = Cached(Selection(METRICS_PRODUCERS), record=_record, trial=_try)


_PREFIXES = {
    "schedule": "karpenter_scheduled_",
    "queue": "karpenter_queue_",
    "reservedCapacity": "karpenter_reserved_capacity_",
}
_METRICS = {source: tuple(name for name in HELP if name.startswith(prefix)) for source, prefix in _PREFIXES.items()}
_SOURCES = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NOTHING = b"null"


def expected_metrics(spec: bytes) -> tuple[str, ...]:
    """Name the metrics that a producer will export, with or without errors in its spec; none for pending capacity."""
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
