"""Validation of labels and label selectors in specs."""

from __future__ import annotations

from collections.abc import Iterator

from springtide.apiserver.field_errors import forbidden, invalid, required
from springtide.apiserver.names import label_value_problem, qualified_name_problems
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object


def label_name(name: str, path: str) -> Iterator[StatusCause]:
    """Validate the key of a label."""
    yield from (invalid(path, name, problem) for problem in qualified_name_problems(name))


def labels(listed: Object | None, path: str) -> Iterator[StatusCause]:
    """Validate a map of labels."""
    for name, value in (listed or {}).items():
        yield from label_name(name, path)
        if problem := label_value_problem(value or ""):
            yield invalid(path, value, problem)


def label_selector(selector: Object | None, path: str) -> Iterator[StatusCause]:
    """Validate a LabelSelector."""
    if selector is None:
        return
    yield from labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, entry in enumerate(selector.get("matchExpressions") or ()):
        requirement, here = entry or {}, f"{path}.matchExpressions[{index}]"
        yield from requirement_values(requirement, here)
        yield from label_name(requirement.get("key") or "", f"{here}.key")
        for number, value in enumerate(requirement.get("values") or ()):
            if problem := label_value_problem(value or ""):
                yield invalid(f"{here}.values[{number}]", value, problem)


def requirement_values(requirement: Object, path: str, *, compared: bool = False) -> Iterator[StatusCause]:
    """Validate the operator of a requirement and the number of its values; `compared` allows Gt and Lt."""
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif compared and operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
