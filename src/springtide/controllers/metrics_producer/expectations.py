"""Which metrics a producer will have, before anybody has looked closely at it."""

from __future__ import annotations

import msgspec

from springtide.metrics.series import HELP

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
