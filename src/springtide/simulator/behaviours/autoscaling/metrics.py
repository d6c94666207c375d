"""Where the autoscaler reads what is going on: a port, and scripts for scenarios.

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
"""Tells by the labels of a series whether it is meant."""


class Metrics(Protocol):
    """Readings as of an instant; what nobody measures is missing."""

    def of_pods(self, metric: str, namespace: str, pods: Sequence[str], container: str, now: int) -> Mapping[str, int]:
        """Read a metric of pods, by their names: `cpu`, `memory` or a custom one; of one container if it is named."""
        ...

    def of_object(self, metric: str, namespace: str, kind: str, name: str, now: int) -> int | None:
        """Read a metric of one object."""
        ...

    def external(self, metric: str, namespace: str, selects: Selects, now: int) -> int | None:
        """Read a metric that belongs to no object: the sum of its series that are meant."""
        ...


class NoMetrics:
    """Nothing is measured."""

    def of_pods(self, metric: str, namespace: str, pods: Sequence[str], container: str, now: int) -> Mapping[str, int]:  # noqa: ARG002
        """Read nothing."""
        return {}

    def of_object(self, metric: str, namespace: str, kind: str, name: str, now: int) -> int | None:  # noqa: ARG002
        """Read nothing."""
        return None

    def external(self, metric: str, namespace: str, selects: Selects, now: int) -> int | None:  # noqa: ARG002
        """Read nothing."""
        return None


@dataclass(frozen=True, slots=True)
class MetricSteps:
    """Values over time: each holds from its instant on; before the first there is none."""

    instants: tuple[int, ...]
    values: tuple[int, ...]
    """Thousandths."""

    @classmethod
    def of(cls, *steps: tuple[int, str | int]) -> MetricSteps:
        """Write steps as instants and quantities, such as `(0, "500m"), (3600, 2)`; in any order."""
        ordered = sorted(steps, key=lambda step: step[0])
        return cls(tuple(at for at, _ in ordered), tuple(Quantity.parse(value).milli for _, value in ordered))

    def at(self, now: int) -> int | None:
        """Give the value that holds."""
        index = bisect_right(self.instants, now) - 1
        return self.values[index] if index >= 0 else None


@dataclass(frozen=True, slots=True)
class ScriptedMetrics:
    """Readings from a script; names are of metrics, or `NAMESPACE/METRIC` where they differ between namespaces.

    A load is shared: what a hundred pods use together, two hundred use together as well. A value per pod is not: each
    pod has it, however many there are.
    """

    loads: Mapping[str, MetricSteps] = field(default_factory=dict)
    per_pod: Mapping[str, MetricSteps] = field(default_factory=dict)
    objects: Mapping[str, MetricSteps] = field(default_factory=dict)
    """By `KIND/NAME/METRIC`, or `NAMESPACE/KIND/NAME/METRIC`."""
    externals: Mapping[str, MetricSteps] = field(default_factory=dict)

    def of_pods(self, metric: str, namespace: str, pods: Sequence[str], container: str, now: int) -> Mapping[str, int]:  # noqa: ARG002
        """Share a load evenly among the pods, the first ones bearing what cannot be divided; or give each its value."""
        each = _read(self.per_pod, namespace, metric, now)
        if each is not None:
            return dict.fromkeys(pods, each)
        load = _read(self.loads, namespace, metric, now)
        if load is None or not pods:
            return {}
        share, rest = divmod(load, len(pods))
        return {name: share + (index < rest) for index, name in enumerate(sorted(pods))}

    def of_object(self, metric: str, namespace: str, kind: str, name: str, now: int) -> int | None:
        """Read the script of an object."""
        return _read(self.objects, namespace, f"{kind}/{name}/{metric}", now)

    def external(self, metric: str, namespace: str, selects: Selects, now: int) -> int | None:  # noqa: ARG002
        """Read the script of a metric, which has one series, without labels, whatever is meant."""
        return _read(self.externals, namespace, metric, now)


def _read(scripts: Mapping[str, MetricSteps], namespace: str, name: str, now: int) -> int | None:
    steps = scripts.get(f"{namespace}/{name}") or scripts.get(name)
    return None if steps is None else steps.at(now)
