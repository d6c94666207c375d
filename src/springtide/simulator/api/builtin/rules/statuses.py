"""The numbers in the status of workloads: never negative, and no part greater than the whole."""

from __future__ import annotations

from collections.abc import Iterator

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import invalid
from springtide.simulator.api.builtin.rules.making import AT_LEAST_ZERO, Rule


def counts(*names: str) -> Rule:
    """Make a rule: these numbers of a status are not negative."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
        status = item.get("status") or {}
        for name in names:
            number = status.get(name)
            if number is not None and number < 0:
                yield invalid(f"status.{name}", number, AT_LEAST_ZERO)

    return rule


def parts_of_replicas(*names: str, ready: str = "readyReplicas") -> Rule:
    """Make a rule: these numbers are not greater than `replicas`; what is available is `ready`, as messages say it."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
        status = item.get("status") or {}
        replicas, available = status.get("replicas") or 0, status.get("availableReplicas") or 0
        for name in names:
            number = status.get(name) or 0
            if number > replicas:
                yield invalid(f"status.{name}", number, "cannot be greater than status.replicas")
        if available > (status.get("readyReplicas") or 0):
            yield invalid("status.availableReplicas", available, f"cannot be greater than {ready}")

    return rule


def only_grows(name: str) -> Rule:
    """Make a rule: this number of a status does not become smaller."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:
        number = (item.get("status") or {}).get(name) or 0
        if old is not None and number < ((old.get("status") or {}).get(name) or 0):
            yield invalid(f"status.{name}", number, "cannot be decremented")

    return rule
