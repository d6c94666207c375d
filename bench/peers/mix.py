"""The pods, instance types and pool of Karpenter's scheduling benchmark, as raw Kubernetes objects.

The distributions are those of Karpenter's benchmark, the random numbers are Python's: the numbers of pods of each part
are equal, single requests and labels differ. Karpenter's scheduler and ours get exactly these objects. Needs no Go.
"""

from __future__ import annotations

import random
import uuid
from typing import Any, Final

ZONES: Final = ("test-zone-1", "test-zone-2", "test-zone-3")
SIZES: Final = (1_000, 5_000, 10_000)
"""Numbers of pods of the mix that are measured."""
PREFERENCES: Final = 4_000
"""Number of pods with preferences that is measured."""

_ZONE: Final = "topology.kubernetes.io/zone"
_HOSTNAME: Final = "kubernetes.io/hostname"
_OFFERINGS: Final = (
    ("test-zone-1", "spot"),
    ("test-zone-2", "spot"),
    ("test-zone-1", "on-demand"),
    ("test-zone-2", "on-demand"),
    ("test-zone-3", "on-demand"),
)
_LABEL_VALUES: Final = "abcdefg"
_MILLI_CPUS: Final = (100, 250, 500, 1000, 1500)
_MEBIBYTES: Final = (100, 256, 512, 1024, 2048, 4096)
_PREFERENCE_REQUESTS: Final = {"cpu": "100m", "memory": "4096Mi"}
"""What Karpenter's benchmark of preferences draws for all of its pods when it runs alone."""


def mix_pods(count: int, seed: int = 42) -> list[dict[str, Any]]:
    """Return the mix: five equal parts with different constraints; what does not divide by five has none.

    The parts are: no constraint; spread over zones; spread over nodes; affinity to the own kind by zone; anti-affinity
    to each other by node, which needs a node for each of its pods.
    """
    draw = _Draw(seed)
    part = count // 5
    pods = [draw.pod("generic", draw.labels()) for _ in range(part)]
    for name, key in (("zone-spread", _ZONE), ("host-spread", _HOSTNAME)):
        pods += [draw.pod(name, draw.labels(), topologySpreadConstraints=[draw.spread(key)]) for _ in range(part)]
    for _ in range(part):
        labels = {"my-affinity": draw.label()}
        pods.append(draw.pod("zone-affinity", labels, affinity={"podAffinity": _required(_ZONE, labels)}))
    for _ in range(part):
        labels = {"app": "nginx"}
        pods.append(draw.pod("anti-affinity", labels, affinity={"podAntiAffinity": _required(_HOSTNAME, labels)}))
    pods += [draw.pod("rest", draw.labels()) for _ in range(count - len(pods))]
    return pods


def preference_pods(count: int = PREFERENCES) -> list[dict[str, Any]]:
    """Return equal pods that prefer a zone, a zone without each other (impossible) and a node without each other."""
    draw = _Draw(42)
    labels = {"app": "nginx"}
    zone = {"key": _ZONE, "operator": "In", "values": ["test-zone-1"]}
    affinity = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [zone]}},
            ]
        },
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 10, "podAffinityTerm": _term(_ZONE, labels)},
                {"weight": 1, "podAffinityTerm": _term(_HOSTNAME, labels)},
            ]
        },
    }
    return [draw.pod("preference", labels, _PREFERENCE_REQUESTS, affinity=affinity) for _ in range(count)]


def karpenter_types(count: int = 400) -> list[dict[str, Any]]:
    """Return instance types of 1, 2, … `count` cpu, 2 GiB and 10 pods per cpu, as a document for `plan --types`."""
    return [_type(number) for number in range(count)]


def pool() -> dict[str, Any]:
    """Return the NodePool that all nodes come from; its limits bind nothing."""
    requirements = {
        "kubernetes.io/os": ["linux"],
        "kubernetes.io/arch": ["amd64"],
        "karpenter.sh/capacity-type": ["spot", "on-demand"],
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {
            "limits": {"cpu": "10000000", "memory": "10000000Gi"},
            "template": {
                "spec": {
                    "nodeClassRef": {"group": "springtide.dev", "kind": "NodeClass", "name": "default"},
                    "requirements": [
                        {"key": key, "operator": "In", "values": values} for key, values in requirements.items()
                    ],
                }
            },
        },
    }


def _type(number: int) -> dict[str, Any]:
    name, cpu = f"fake-it-{number}", number + 1
    price = round(0.1 * cpu + 0.1 * 2 * cpu * 2**30 / 1e9, 9)
    return {
        "name": name,
        "labels": {
            "node.kubernetes.io/instance-type": name,
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
        },
        "capacity": {"cpu": str(cpu), "memory": f"{2 * cpu}Gi", "pods": str(10 * cpu)},
        "overhead": {"cpu": "100m", "memory": "10Mi"},
        "offerings": [
            {"zone": zone, "capacityType": capacity_type, "price": price, "available": True}
            for zone, capacity_type in _OFFERINGS
        ],
    }


def _term(key: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": key}


def _required(key: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [_term(key, labels)]}


class _Draw:
    """Draws pods one after the other from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        # Karpenter breaks ties of equal pods by uid, so uids must not follow the order of the pods.
        self._uids = random.Random(seed + 1)
        self._count = 0

    def label(self) -> str:
        return self._random.choice(_LABEL_VALUES)

    def labels(self) -> dict[str, str]:
        return {"my-label": self.label()}

    def spread(self, key: str) -> dict[str, Any]:
        """Return a spread constraint; what it selects is drawn apart from the pod's own label."""
        return {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": self.labels()},
        }

    def requests(self) -> dict[str, str]:
        return {
            "cpu": f"{self._random.choice(_MILLI_CPUS)}m",
            "memory": f"{self._random.choice(_MEBIBYTES)}Mi",
        }

    def pod(
        self, name: str, labels: dict[str, str], requests: dict[str, str] | None = None, **constraints: Any
    ) -> dict[str, Any]:
        number = self._count
        self._count += 1
        container = {"name": "main", "image": "pause", "resources": {"requests": requests or self.requests()}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{number}",
                "namespace": "default",
                "uid": str(uuid.UUID(int=self._uids.getrandbits(128), version=4)),
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": labels,
            },
            "spec": {"containers": [container], **constraints},
            "status": {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
            },
        }
