"""How the simulated machines behave: delays and sizes, documented one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_DOMAIN = "simulator.springtide.dev"

BOOT_SECONDS = f"{_DOMAIN}/boot-seconds"
"""Annotation of a node: how long it takes to become ready after it was made."""
LOST = f"{_DOMAIN}/lost"
"""Annotation of a node: nothing is heard of it since this instant (RFC 3339); remove it, and the node is back."""
START_SECONDS = f"{_DOMAIN}/start-seconds"
"""Annotation of a pod: how long its containers take to start once it is bound to a node that is ready."""
RUN_SECONDS = f"{_DOMAIN}/run-seconds"
"""Annotation of a pod that is not restarted for ever: how long its containers run before they exit."""
EXIT_CODE = f"{_DOMAIN}/exit-code"
"""Annotation of a pod: what its containers exit with; 0 if not set."""
UNREADY = f"{_DOMAIN}/unready"
"""Annotation of a pod: while it is there, the readiness probe of the pod fails."""


@dataclass(frozen=True, slots=True)
class Delay:
    """A number of whole seconds, or a range of which every object draws one of its own."""

    least: int
    most: int | None = None
    """Not set: always `least`."""


@dataclass(frozen=True, slots=True)
class BehaviourSettings:
    """What differs from one simulated cluster to the next."""

    seed: str = "springtide"
    """What delays are drawn with: another seed draws other ones, the same seed the same ones on every machine."""

    node_boot: Delay = Delay(30)
    """Seconds from the creation of a Node object until it is Ready. Longer: capacity comes later after a scale-up."""

    node_grace: int = 40
    """Seconds without a word from a node until its Ready condition turns Unknown, as the node controller waits."""

    node_capacity: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType(
            {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}
        )
    )
    """What a node has of resources about which its object says nothing."""

    eviction_seconds: int = 300
    """How long pods stay on nodes that are not ready or not reachable, where they do not say so themselves."""

    pod_start: Delay = Delay(2)
    """Seconds from the binding of a pod until its containers run and are ready: image, volumes and probes."""

    job_run: Delay = Delay(60)
    """Seconds that the containers of a Job's pods run where no annotation says how long."""


DEFAULT = BehaviourSettings()
