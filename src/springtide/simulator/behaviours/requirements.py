"""Selectors, as workloads write them over labels and pods over nodes: all requirements must hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from springtide.cluster.resources import Object


def selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Tell whether a LabelSelector selects these labels; one that is not there selects nothing."""
    if selector is None:
        return False
    wanted, expressions = selector.get("matchLabels"), selector.get("matchExpressions")
    return (not wanted or wanted.items() <= labels.items()) and (not expressions or all_hold(expressions, labels))


def all_hold(requirements: Iterable[Object] | None, values: Mapping[str, str]) -> bool:
    """Tell whether every requirement holds for the values that stand under their keys."""
    return all(_holds(requirement, values.get(requirement["key"])) for requirement in requirements or ())


def _holds(requirement: Object, value: str | None) -> bool:
    operator, listed = requirement["operator"], requirement.get("values") or ()
    if operator == "In":
        return value in listed
    if operator == "NotIn":
        return value not in listed
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    return _compares(operator, value, listed)


def _compares(operator: str, value: str | None, listed: Iterable[str]) -> bool:
    """Compare as numbers, for Gt and Lt; what is no number is neither greater nor smaller."""
    try:
        number, bound = int(value or ""), int(next(iter(listed), ""))
    except ValueError:
        return False
    return number > bound if operator == "Gt" else number < bound if operator == "Lt" else False
