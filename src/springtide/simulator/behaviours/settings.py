"""Settings of the simulated nodes and pods: delays and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_DOMAIN = "simulator.springtide.dev"

BOOT_SECONDS = f"{_DOMAIN}/boot-seconds"
"""Annotation of a node: seconds from its creation until it is ready."""
LOST = f"{_DOMAIN}/lost"
"""Annotation of a node: no heartbeats since this instant (RFC 3339); remove it to bring the node back."""
START_SECONDS = f"{_DOMAIN}/start-seconds"
"""Annotation of a pod: seconds that its containers take to start once it is bound to a ready node."""
RUN_SECONDS = f"{_DOMAIN}/run-seconds"
"""Annotation of a pod that is not always restarted: seconds that its containers run before they exit."""
EXIT_CODE = f"{_DOMAIN}/exit-code"
"""Annotation of a pod: the exit code of its containers; 0 if not set."""
UNREADY = f"{_DOMAIN}/unready"
"""Annotation of a pod: while present, the readiness probe of the pod fails."""


@dataclass(frozen=True, slots=True)
class Delay:
    """A number of seconds, or a range from which each object draws its own."""

    least: int
    most: int | None = None
    """Not set: always `least`."""


@dataclass(frozen=True, slots=True)
class BehaviourSettings:
    """The settings of a simulated cluster."""

    seed: str = "springtide"
    """The seed of random delays: the same seed draws the same delays on any machine."""

    node_boot: Delay = Delay(30)
    """Seconds from the creation of a Node object until it is Ready. Longer: capacity comes later after a scale-up."""

    node_grace: int = 40
    """Seconds without a heartbeat until the Ready condition of a node turns Unknown."""

    node_capacity: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType(
            {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}
        )
    )
    """The capacity of a node for resources that its object does not state."""

    eviction_seconds: int = 300
    """How long pods stay on nodes that are not ready or unreachable, if they have no toleration for it."""

    pod_start: Delay = Delay(2)
    """Seconds from the binding of a pod until its containers run and are ready: image, volumes and probes."""

    job_run: Delay = Delay(60)
    """Seconds that the containers of a Job's pods run, if no annotation sets it."""


DEFAULT = BehaviourSettings()
