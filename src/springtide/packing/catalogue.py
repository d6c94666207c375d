"""Instance types: what a machine offers to pods, where it can be bought, and at which price.

The built-in catalogue describes no real cloud. It is there so that plans can be computed, compared and tested without
one; its prices follow a formula that this module documents. Users describe their own types in a file (`read_types`).

Importing this module is cheap. What reads a file imports the schemas, and is imported only when a file is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from springtide.quantity import Quantity

if TYPE_CHECKING:
    from springtide.apis.yaml import PlacedProblem

CapacityType: TypeAlias = Literal["on-demand", "spot", "reserved"]

CAPACITY_TYPES: Final[tuple[CapacityType, ...]] = ("on-demand", "spot", "reserved")
"""All capacity types, in the order in which the offerings of a zone are listed."""

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
REGION_LABEL: Final = "topology.kubernetes.io/region"
CAPACITY_TYPE_LABEL: Final = "karpenter.sh/capacity-type"
NODEPOOL_LABEL: Final = "karpenter.sh/nodepool"
INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
ARCH_LABEL: Final = "kubernetes.io/arch"
OS_LABEL: Final = "kubernetes.io/os"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"

FAMILY_LABEL: Final = "springtide.dev/instance-family"
GENERATION_LABEL: Final = "springtide.dev/instance-generation"
CPU_LABEL: Final = "springtide.dev/instance-cpu"
MEMORY_LABEL: Final = "springtide.dev/instance-memory-gib"
GPU_MODEL_LABEL: Final = "springtide.dev/instance-gpu-model"
GPU_COUNT_LABEL: Final = "springtide.dev/instance-gpu-count"
GPU_MEMORY_LABEL: Final = "springtide.dev/instance-gpu-memory-gib"
"""Memory of one accelerator. Values of numeric labels are plain whole numbers, so that Gt and Lt can be used."""

WELL_KNOWN_LABELS: Final = (
    ZONE_LABEL,
    REGION_LABEL,
    CAPACITY_TYPE_LABEL,
    NODEPOOL_LABEL,
    INSTANCE_TYPE_LABEL,
    ARCH_LABEL,
    OS_LABEL,
    FAMILY_LABEL,
    GENERATION_LABEL,
    CPU_LABEL,
    MEMORY_LABEL,
    GPU_MODEL_LABEL,
    GPU_COUNT_LABEL,
    GPU_MEMORY_LABEL,
)
"""Labels that new nodes get from their pool, type or offering, whether or not the pool mentions them."""

STABLE_LABELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "failure-domain.beta.kubernetes.io/zone": ZONE_LABEL,
        "failure-domain.beta.kubernetes.io/region": REGION_LABEL,
        "beta.kubernetes.io/instance-type": INSTANCE_TYPE_LABEL,
        "beta.kubernetes.io/arch": ARCH_LABEL,
        "beta.kubernetes.io/os": OS_LABEL,
    }
)
"""The present name of each label that Kubernetes has renamed."""

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
GPU: Final = "nvidia.com/gpu"
HUGE_PAGES: Final = "hugepages-"
"""The prefix of the resources of huge pages; the rest of the name is the size of a page."""
_RESOURCE_ORDER: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)

NANO_PER_DOLLAR: Final = 10**9


def relabelled(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels with the present names, sorted; where a label has both names, the value of the present one wins."""
    renamed = {STABLE_LABELS[key]: value for key, value in labels.items() if key in STABLE_LABELS}
    renamed |= {key: value for key, value in labels.items() if key not in STABLE_LABELS}
    return {key: renamed[key] for key in sorted(renamed)}


def in_resource_order(amounts: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Return amounts in the order of the packer's columns: cpu, memory, ephemeral storage, pods, others by name."""
    names = [name for name in _RESOURCE_ORDER if name in amounts]
    return {name: amounts[name] for name in (*names, *sorted(name for name in amounts if name not in _RESOURCE_ORDER))}


@dataclass(frozen=True, slots=True)
class Offering:
    """A place and a capacity type in which an instance type can be bought."""

    zone: str
    capacity_type: CapacityType
    price: int
    """Nano-dollars per hour."""
    available: bool = True
    """Whether new nodes may be created from it."""
    count: int | None = None
    """How many nodes of a reserved offering are left; None for the other capacity types, which have no end."""


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A kind of machine: its labels, its resources, and its offerings. Its mappings are read-only."""

    name: str
    labels: Mapping[str, str]
    capacity: Mapping[str, Quantity]
    """What the machine has."""
    overhead: Mapping[str, Quantity]
    """What the kubelet and the system reserve of it."""
    offerings: tuple[Offering, ...]

    def __post_init__(self) -> None:
        for name in ("labels", "capacity", "overhead"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[type[InstanceType], tuple[Any, ...]]:
        # Read-only mappings cannot be pickled, and a plan may be computed in another process.
        mappings = (dict(self.labels), dict(self.capacity), dict(self.overhead))
        return InstanceType, (self.name, *mappings, self.offerings)

    @property
    def allocatable(self) -> dict[str, Quantity]:
        """What pods may request: the capacity without the overhead, and the memory without huge pages; never negative.

        The kubelet reserves the memory of huge pages at start, so it is not available as ordinary memory.
        """
        left = {
            name: amount - self.overhead[name] if name in self.overhead else amount
            for name, amount in self.capacity.items()
        }
        for name, amount in self.capacity.items():
            if name.startswith(HUGE_PAGES) and MEMORY in left:
                left[MEMORY] -= amount
        return {name: amount if amount.sign >= 0 else _NOTHING for name, amount in left.items()}


_NOTHING: Final = Quantity(0)


# The built-in catalogue

ZONES: Final = ("zone-a", "zone-b", "zone-c")
"""The zones of the built-in catalogue."""

_SIZES: Final = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 56, 64, 80, 96)
"""Numbers of CPUs of the families without accelerators."""
_ARM64_SINCE: Final = 2
_GPU_COUNTS: Final = (1, 2, 4, 8)
_CPUS_PER_GPU: Final = (4, 12)

_GIB_PRICE: Final = 4_500_000
_GENERATION_PERMILLE: Final = {1: 1000, 2: 950, 3: 910, 4: 880}
_ARCH_PERMILLE: Final = {"amd64": 1000, "arm64": 800}
_ZONE_PERMILLE: Final = (1000, 1005, 1010)
_LEAST_SPOT_PERMILLE: Final = 300
_SPOT_SPREAD: Final = 101


@dataclass(frozen=True, slots=True)
class _Family:
    """Machines with one ratio of memory to CPUs."""

    name: str
    number: int
    gib_per_cpu: int
    cpu_price: int
    """Nano-dollars per hour of one CPU of the first generation, amd64."""


@dataclass(frozen=True, slots=True)
class _Gpu:
    """The accelerator of one generation of a family."""

    model: str
    gib: int
    price: int


_FAMILIES: Final = (_Family("g", 0, 4, 30_000_000), _Family("c", 1, 2, 33_500_000), _Family("m", 2, 8, 27_000_000))
_GPU_FAMILIES: Final = (
    (
        _Family("xs", 3, 4, 30_000_000),
        (_Gpu("nvidia-t4", 16, 350_000_000), _Gpu("nvidia-l4", 24, 520_000_000)),
    ),
    (
        _Family("xm", 4, 4, 30_000_000),
        (_Gpu("nvidia-a10", 24, 800_000_000), _Gpu("nvidia-l40s", 48, 1_300_000_000)),
    ),
    (
        _Family("xl", 5, 8, 27_000_000),
        (_Gpu("nvidia-a100", 80, 3_200_000_000), _Gpu("nvidia-h100", 80, 6_000_000_000)),
    ),
)
"""The families with accelerators: small, medium and large ones, by generation."""


@cache
def built_in() -> tuple[InstanceType, ...]:
    """Return the built-in catalogue, sorted by name.

    The families are g (1 CPU to 4 GiB), c (1 to 2) and m (1 to 8), in four generations, from the second on also for
    arm64; and xs, xm and xl with 1 to 8 accelerators, in two generations. Names are FAMILY-CPUxGIB in the first
    generation (`g-4x16`), with the generation in the later ones (`g2-4x16`), and an `a` for arm64 (`g2a-4x16`).

    An hour on demand costs (CPUs × price of the family + GiB × 0.0045 dollars) × factor of the generation (1, 0.95,
    0.91, 0.88) × factor of the architecture (arm64: 0.8) + price of the accelerators, all × factor of the zone (1,
    1.005, 1.01). Spot costs 30 to 40 % of that, by a remainder that differs between types and between zones.
    """
    return tuple(sorted(_built_in_types(), key=lambda each: each.name))


def _built_in_types() -> Iterator[InstanceType]:
    for family in _FAMILIES:
        for generation in _GENERATION_PERMILLE:
            for arch in ("amd64", "arm64") if generation >= _ARM64_SINCE else ("amd64",):
                for cpus in _SIZES:
                    yield _built_in_type(family, generation, arch, cpus)
    for family, models in _GPU_FAMILIES:
        for generation, gpu in enumerate(models, 1):
            for cpus_per_gpu in _CPUS_PER_GPU:
                for gpus in _GPU_COUNTS:
                    yield _built_in_type(family, generation, "amd64", gpus * cpus_per_gpu, gpu, gpus)


def _built_in_type(
    family: _Family, generation: int, arch: str, cpus: int, gpu: _Gpu | None = None, gpus: int = 0
) -> InstanceType:
    gib = cpus * family.gib_per_cpu
    variant = ("" if generation == 1 else str(generation)) + ("a" if arch == "arm64" else "")
    name = f"{family.name}{variant}-{cpus}x{gib}"
    labels = {
        INSTANCE_TYPE_LABEL: name,
        ARCH_LABEL: arch,
        OS_LABEL: "linux",
        FAMILY_LABEL: family.name,
        GENERATION_LABEL: str(generation),
        CPU_LABEL: str(cpus),
        MEMORY_LABEL: str(gib),
    }
    capacity = {
        CPU: _quantity(str(cpus)),
        MEMORY: _quantity(f"{gib}Gi"),
        EPHEMERAL_STORAGE: _quantity("100Gi"),
        PODS: _quantity("110"),
    }
    price = (cpus * family.cpu_price + gib * _GIB_PRICE) * _GENERATION_PERMILLE[generation] * _ARCH_PERMILLE[arch]
    price //= 10**6
    if gpu is not None:
        labels |= {GPU_MODEL_LABEL: gpu.model, GPU_COUNT_LABEL: str(gpus), GPU_MEMORY_LABEL: str(gpu.gib)}
        capacity[GPU] = _quantity(str(gpus))
        price += gpus * gpu.price
    overhead = {
        CPU: _quantity(f"{80 + cpus * 5 // 2}m"),
        # At most 5 % of every type with more than 8 CPUs.
        MEMORY: _quantity(f"{min(1024, 256 + gib * 1024 * 3 // 100)}Mi"),
        EPHEMERAL_STORAGE: _quantity("10Gi"),
    }
    mix = cpus * 37 + gib * 11 + generation * 53 + family.number * 29 + (arch == "arm64") * 17
    sorted_labels = {key: labels[key] for key in sorted(labels)}
    return InstanceType(name, sorted_labels, capacity, overhead, tuple(_built_in_offerings(price, mix)))


def _built_in_offerings(price: int, mix: int) -> Iterator[Offering]:
    for number, zone in enumerate(ZONES):
        on_demand = price * _ZONE_PERMILLE[number] // 1000
        yield Offering(zone, "on-demand", on_demand)
        yield Offering(zone, "spot", on_demand * (_LEAST_SPOT_PERMILLE + (mix + number * 71) % _SPOT_SPREAD) // 1000)


@cache
def _quantity(text: str) -> Quantity:
    return Quantity.parse(text)


# Files of types


class TypesError(ValueError):
    """A file of instance types that cannot be used: all of its problems, each with its place."""

    def __init__(self, name: str, problems: Iterable[PlacedProblem], *, unreadable: bool) -> None:
        from springtide.apis.problems import format_path  # imported late: files are rarely read

        self.name = name
        """The file."""
        self.problems = tuple(problems)
        """In the order of the file; paths begin with the position of the type in the list."""
        self.unreadable = unreadable
        """Whether a part of the file is not YAML."""
        super().__init__(
            "\n".join(
                ": ".join(filter(None, (f"{name}:{place.line}:{place.column}", format_path(found.path), found.message)))
                + (f"; {found.hint}" if found.hint else "")
                for found, place in self.problems
            )
        )


def read_types(text: str, *, name: str) -> tuple[InstanceType, ...]:
    """Read a list of instance types in YAML or JSON, sorted by name; `name` is that of the file, for messages.

    Every type gets the label of its name, and unless set amd64, linux, and 110 pods. Prices are dollars per hour.
    Raises `TypesError` with all problems.
    """
    from springtide.packing.types_file import read  # imported late: it imports the schemas

    return read(text, name=name)


def types_document(types: Iterable[InstanceType]) -> list[dict[str, Any]]:
    """Return types in the form that `read_types` reads."""
    return [
        {
            "name": each.name,
            "labels": dict(each.labels),
            "capacity": {name: str(amount) for name, amount in each.capacity.items()},
            "overhead": {name: str(amount) for name, amount in each.overhead.items()},
            "offerings": [_offering_document(offering) for offering in each.offerings],
        }
        for each in types
    ]


def _offering_document(offering: Offering) -> dict[str, Any]:
    document = {
        "zone": offering.zone,
        "capacityType": offering.capacity_type,
        # Prices have at most 15 digits, all of which a floating-point number keeps.
        "price": offering.price / NANO_PER_DOLLAR,
        "available": offering.available,
    }
    return document if offering.count is None else {**document, "count": offering.count}
