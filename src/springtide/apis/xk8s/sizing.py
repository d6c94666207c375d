"""How many chunks a buffer has.

The larger of the fixed count and the share of the target, and never more than the limits hold. A share rounds up, so
that any share of any running workload is at least one chunk. All numbers are exact: shares of large workloads do not
wrap round at 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping

from springtide.apis.fields import INT32_MAX
from springtide.quantity import Quantity


class SizeError(ValueError):
    """A buffer whose size cannot be told; the message is the one that its condition shows."""


def chunk_count(
    *,
    replicas: int | None = None,
    percentage: int | None = None,
    target_replicas: int | None = None,
    limits: Mapping[str, Quantity] | None = None,
    requests: Mapping[str, Quantity] | None = None,
) -> int:
    """Count the chunks of a buffer.

    `target_replicas` is how many replicas the scaled target has, if there is one; `requests` is what a chunk asks for.
    Raises `SizeError` where nothing says a size, or where the limits name nothing that a chunk asks for.
    """
    wanted = _wanted(replicas, percentage, target_replicas)
    held = _held(limits, requests or {}) if limits else None
    sizes = [size for size in (wanted, held) if size is not None]
    if not sizes:
        msg = "replicas, percentage and limits are not defined"
        raise SizeError(msg)
    return min(*sizes, INT32_MAX)


def _wanted(replicas: int | None, percentage: int | None, target_replicas: int | None) -> int | None:
    sizes = []
    if replicas is not None:
        sizes.append(max(0, replicas))
    if percentage is not None and target_replicas is not None:
        sizes.append(-(-max(0, percentage) * max(0, target_replicas) // 100))
    return max(sizes, default=None)


def _held(limits: Mapping[str, Quantity], requests: Mapping[str, Quantity]) -> int:
    """Count how many chunks fit into all limits; resources that a chunk does not ask for limit nothing."""
    counts = [
        limit.milli // requests[name].milli
        for name, limit in limits.items()
        if limit.sign >= 0 and name in requests and requests[name].sign > 0
    ]
    if not counts:
        msg = "resources in configured limits not found in the pod template"
        raise SizeError(msg)
    return min(counts)
