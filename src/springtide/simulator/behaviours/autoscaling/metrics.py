"""The metrics that the HorizontalPodAutoscaler reads: a protocol, and scripted values for scenarios.

All values are whole thousandths of the unit of the metric, as in the arithmetic of Kubernetes: 250 is a quarter of a
core, 1,000 is one message in a queue or one byte.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from springtide.quantity import Quantity

Selects: TypeAlias = Callable[[Mapping[str, str]], bool]
"""Whether a series is selected, by its labels."""


class Metrics(Protocol):
    """Readings at an instant; metrics that do not exist are missing."""

    def of_pods(self, metric: str, namespace: str, pods: Sequence[str], container: str, now: int) -> Mapping[str, int]:
        """Read a metric of pods by name: `cpu`, `memory` or a custom one; optionally of one container."""
        ...

    def of_object(self, metric: str, namespace: str, kind: str, name: str, now: int) -> int | None:
        """Read a metric of one object."""
        ...

    def external(self, metric: str, namespace: str, selects: Selects, now: int) -> int | None:
        """Read an external metric: the sum of the selected series."""
        ...


class NoPodMetrics:
    """Metrics without any readings."""

    def of_pods(self, metric: str, namespace: str, pods: Sequence[str], container: str, now: int) -> Mapping[str, int]:  # noqa: ARG002
        """Return no reading."""
        return {}

    def of_object(self, metric: str, namespace: str, kind: str, name: str, now: int) -> int | None:  # noqa: ARG002
        """Return no reading."""
        return None

    def external(self, metric: str, namespace: str, selects: Selects, now: int) -> int | None:  # noqa: ARG002
        """Return no reading."""
        return None


@dataclass(frozen=True, slots=True)
class MetricSteps:
    """A step function of time; no value before the first instant."""

    instants: tuple[int, ...]
    values: tuple[int, ...]
    """Thousandths."""

    @classmethod
    def of(cls, *steps: tuple[int, str | int]) -> MetricSteps:
        """Create steps from instants and quantities, such as `(0, "500m"), (3600, 2)`; in any order."""
        ordered = sorted(steps, key=lambda step: step[0])
        return cls(tuple(at for at, _ in ordered), tuple(Quantity.parse(value).milli for _, value in ordered))

    def at(self, now: int) -> int | None:
        """Return the value at an instant."""
        index = bisect_right(self.instants, now) - 1
        return self.values[index] if index >= 0 else None


@dataclass(frozen=True, slots=True)
class ScriptedMetrics:
    """Scripted readings, by metric name or `NAMESPACE/METRIC`.

    A load is the total over all pods, whatever their number; a value in `per_pod` is that of each pod.
    """

    loads: Mapping[str, MetricSteps] = field(default_factory=dict)
    per_pod: Mapping[str, MetricSteps] = field(default_factory=dict)
    objects: Mapping[str, MetricSteps] = field(default_factory=dict)
    """By `KIND/NAME/METRIC`, or `NAMESPACE/KIND/NAME/METRIC`."""
    externals: Mapping[str, MetricSteps] = field(default_factory=dict)

    def of_pods(self, metric: str, namespace: str, pods: Sequence[str], container: str, now: int) -> Mapping[str, int]:  # noqa: ARG002
        """Divide a load evenly among the pods, the remainder to the first ones; or return the value per pod."""
        each = _read(self.per_pod, namespace, metric, now)
        if each is not None:
            return dict.fromkeys(pods, each)
        load = _read(self.loads, namespace, metric, now)
        if load is None or not pods:
            return {}
        share, rest = divmod(load, len(pods))
        return {name: share + (index < rest) for index, name in enumerate(sorted(pods))}

    def of_object(self, metric: str, namespace: str, kind: str, name: str, now: int) -> int | None:
        """Return the scripted value of an object."""
        return _read(self.objects, namespace, f"{kind}/{name}/{metric}", now)

    def external(self, metric: str, namespace: str, selects: Selects, now: int) -> int | None:  # noqa: ARG002
        """Return the scripted value of an external metric; it has one series without labels."""
        return _read(self.externals, namespace, metric, now)


def _read(scripts: Mapping[str, MetricSteps], namespace: str, name: str, now: int) -> int | None:
    steps = scripts.get(f"{namespace}/{name}") or scripts.get(name)
    return None if steps is None else steps.at(now)
