"""Validation of pods and pod templates, and of updates of pods: few fields of a pod can be changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from springtide.apiserver import pods
from springtide.apiserver.builtin.rules.resources import (
    container_resource,
    pod_resource,
    validate_quantities,
    validate_requirements,
)
from springtide.apiserver.builtin.validation import ObjectRule, field_of, without_fields
from springtide.apiserver.field_errors import duplicate, forbidden, invalid, not_found, required, unsupported
from springtide.apiserver.names import label_problem, label_value_problem, qualified_name_problem
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object

_RANGE = "must be between 1 and 65535, inclusive"
_MAX_NAME_LENGTH = 15


def port_number(number: int, path: str) -> Iterator[StatusCause]:
    """Validate the number of a port."""
    if not 1 <= number <= 65535:
        yield invalid(path, number, _RANGE)


def port_name(name: str, path: str) -> Iterator[StatusCause]:
    """Validate the name of a port."""
    yield from (invalid(path, name, problem) for problem in _name_problems(name))


def _name_problems(name: str) -> Iterator[str]:
    if len(name) > _MAX_NAME_LENGTH:
        yield f"must be no more than {_MAX_NAME_LENGTH} characters"
    if not re.fullmatch("[-a-z0-9]+", name):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", name):
        yield "must contain at least one letter (a-z)"
    if "--" in name:
        yield "must not contain consecutive hyphens"
    if name.startswith("-") or name.endswith("-"):
        yield "must not begin or end with a hyphen"


_MAX_SECONDS = 2**31 - 1
_REQUIRED = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def valid_pod_spec(path: str) -> ObjectRule:
    """Return a rule: the pod spec at a path must be valid."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:
        spec = field_of(item, path)
        if spec is not None and spec != field_of(old, path):
            claims = field_of(item, "spec.volumeClaimTemplates") or ()
            yield from _pod(spec, path, [field_of(claim, "metadata.name") for claim in claims])

    return rule


def _pod(spec: Object, path: str, claims: list[str]) -> Iterator[StatusCause]:
    """Validate a pod spec; `claims` are the names of volume claim templates, which replace volumes of the same name."""
    volumes: list[str] = []
    for index, volume in _entries(spec, "volumes"):
        name, here = volume.get("name") or "", f"{path}.volumes[{index}].name"
        yield from _report(label_problem, name, here)
        if name in volumes:
            yield duplicate(here, name)
        volumes.append(name)
    names: list[str] = []
    for group in ("containers", "initContainers"):
        for index, container in _entries(spec, group):
            here = f"{path}.{group}[{index}]"
            yield from _container(container, [*volumes, *claims], here)
            name = container.get("name")
            if name and name in names:
                yield duplicate(f"{here}.name", name)
            names.append(name)
    yield from validate_requirements(spec.get("resources"), f"{path}.resources", pod_resource)
    for name, value in (spec.get("nodeSelector") or {}).items():
        yield from _report(qualified_name_problem, name, f"{path}.nodeSelector")
        yield from _report(label_value_problem, value, f"{path}.nodeSelector")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MAX_SECONDS:
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, f"must be between 1 and {_MAX_SECONDS}, inclusive")
    for index, toleration in _entries(spec, "tolerations"):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")
    for index, constraint in _entries(spec, "topologySpreadConstraints"):
        if (skew := constraint.get("maxSkew")) is not None and skew <= 0:
            here = f"{path}.topologySpreadConstraints[{index}].maxSkew"
            yield invalid(here, skew, "must be greater than zero")
    yield from _node_affinity(spec, path)
    # The server validates overhead with the messages for limits.
    yield from validate_quantities(spec.get("overhead"), f"{path}.overhead.limits", container_resource)


def _node_affinity(spec: Object, path: str) -> Iterator[StatusCause]:
    for index, term in _entries(field_of(spec, _REQUIRED) or {}, "nodeSelectorTerms"):
        for number, requirement in _entries(term, "matchExpressions"):
            here = f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}].matchExpressions[{number}]"
            yield from _requirement(requirement, here)
    for index, preferred in _entries(field_of(spec, "affinity.nodeAffinity") or {}, _PREFERRED):
        here = f"{path}.affinity.nodeAffinity.{_PREFERRED}[{index}]"
        weight = preferred.get("weight") or 0
        if not 1 <= weight <= 100:
            yield invalid(f"{here}.weight", weight, "must be in the range 1-100")
        for number, requirement in _entries(preferred.get("preference") or {}, "matchExpressions"):
            yield from _requirement(requirement, f"{here}.preference.matchExpressions[{number}]")


def _requirement(requirement: Object, path: str) -> Iterator[StatusCause]:
    operator, values = requirement.get("operator") or "", requirement.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    elif operator:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from _report(qualified_name_problem, requirement.get("key") or "", f"{path}.key")


def _container(container: Object, volumes: list[str], path: str) -> Iterator[StatusCause]:
    yield from _report(label_problem, container.get("name") or "", f"{path}.name")
    ports: list[str] = []
    for index, port in _entries(container, "ports"):
        here = f"{path}.ports[{index}]"
        yield from _port(port, here, ports)
        ports.append(port.get("name") or "")
    for index, variable in _entries(container, "env"):
        if variable.get("value") and variable.get("valueFrom"):
            here = f"{path}.env[{index}].valueFrom"
            yield invalid(here, "", "may not be specified when `value` is not empty")
    points: list[str] = []
    for index, mount in _entries(container, "volumeMounts"):
        here, name, point = f"{path}.volumeMounts[{index}]", mount.get("name") or "", mount.get("mountPath")
        if name and name not in volumes:
            yield not_found(f"{here}.name", name)
        if point and point in points:
            yield invalid(f"{here}.mountPath", point, "must be unique")
        points.append(point or "")
    yield from validate_requirements(container.get("resources"), f"{path}.resources")


def _port(port: Object, path: str, names: list[str]) -> Iterator[StatusCause]:
    if name := port.get("name"):
        problems = tuple(port_name(name, f"{path}.name"))
        yield from problems
        if not problems and name in names:
            yield duplicate(f"{path}.name", name)
    for field in ("containerPort", "hostPort"):
        number = port.get(field)
        if number:
            yield from port_number(number, f"{path}.{field}")


def _toleration(toleration: Object, path: str) -> Iterator[StatusCause]:
    key, value = toleration.get("key") or "", toleration.get("value") or ""
    operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
    if key:
        yield from _report(qualified_name_problem, key, f"{path}.key")
    elif operator != "Exists":
        message = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, message)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("", "Equal"):
        yield from _report(label_value_problem, value, f"{path}.operator")
    elif operator == "Exists":
        if value:
            yield invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        supported = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
        yield unsupported(f"{path}.operator", operator, *supported)


def _report(problem: Callable[[str], str], text: str, path: str) -> Iterator[StatusCause]:
    """Report the problem of a string, if it is not empty."""
    if text and (found := problem(text)):
        yield invalid(path, text, found)


def _entries(holder: Object, name: str) -> Iterator[tuple[int, Any]]:
    return ((index, entry) for index, entry in enumerate(holder.get(name) or ()) if entry is not None)


_CONTAINERS = ("containers", "initContainers")
_MUTABLE = ("activeDeadlineSeconds", "ephemeralContainers", "schedulingGates", "tolerations")
_MUTABLE_PATHS = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
_REQUIRED_TERMS = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def immutable_pod_spec(pod: Object, old: Object | None) -> Iterator[StatusCause]:
    """Reject changes of a pod other than of images, deadline, tolerations and scheduling gates."""
    if old is None:
        return
    spec, before = pod["spec"], old["spec"]
    for name in _CONTAINERS:
        if len(spec.get(name) or ()) != len(before.get(name) or ()):
            yield forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
    yield from _deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    yield from _tolerations(spec.get("tolerations") or [], before.get("tolerations") or [])
    yield from _gates(spec.get("schedulingGates") or [], before.get("schedulingGates") or [])
    if before.get("schedulingGates"):
        yield from _narrowed_placement(spec, before)
    if _immutable_part(pod, before) != _immutable_part(old, before):
        yield forbidden("spec", f"pod updates may not change fields other than {','.join(_MUTABLE_PATHS)}")


def _deadline(new: int | None, old: int | None) -> Iterator[StatusCause]:
    path = "spec.activeDeadlineSeconds"
    if new is None and old is not None:
        yield invalid(path, None, "must not update from a positive integer to nil value")
    elif new is not None and old is not None and new > old:
        yield invalid(path, new, "must be less than or equal to previous value")


def _tolerations(new: list[Any], old: list[Any]) -> Iterator[StatusCause]:
    """Validate tolerations: an update may add some and change `tolerationSeconds`."""
    tolerated = [without_fields(toleration, ("tolerationSeconds",)) for toleration in new]
    if any(without_fields(toleration, ("tolerationSeconds",)) not in tolerated for toleration in old):
        yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _gates(new: list[Any], old: list[Any]) -> Iterator[StatusCause]:
    known = [gate["name"] for gate in old]
    for index, gate in enumerate(new):
        if gate["name"] not in known:
            path = f"spec.schedulingGates[{index}].name"
            yield forbidden(path, f"only deletion is allowed, but found new scheduling gate '{gate['name']}'")


def _narrowed_placement(spec: Object, before: Object) -> Iterator[StatusCause]:
    """Validate node selector and affinity of a gated pod: an update may narrow them but not widen them."""
    selector, had = spec.get("nodeSelector") or None, before.get("nodeSelector") or {}
    if any((selector or {}).get(name) != value for name, value in had.items()):
        message = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid("spec.nodeSelector", selector, message)
    terms, known = field_of(spec, _REQUIRED_TERMS), field_of(before, _REQUIRED_TERMS)
    if not known or terms == known:
        return
    path = f"spec.{_REQUIRED_TERMS}"
    if len(terms or ()) != len(known):
        yield invalid(path, terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (term, was) in enumerate(zip(terms, known, strict=True)):
        if not _only_grows(term, was):
            yield invalid(f"{path}[{index}]", term, "only additions are allowed (no mutations or deletions)")


def _only_grows(term: Object, was: Object) -> bool:
    """Whether a term keeps all its requirements, in order. A term without requirements cannot change."""
    parts = [(term.get(name) or [], was.get(name) or []) for name in ("matchExpressions", "matchFields")]
    if not any(had for _, had in parts):
        return not any(now for now, _ in parts)
    return all(now[: len(had)] == had for now, had in parts)


def _immutable_part(pod: Object, before: Object) -> Object:
    """Return a spec without the fields that an update may change."""
    spec = pod["spec"]
    fixed = without_fields(spec, (*_MUTABLE, *_CONTAINERS, *_set_by_binding(pod, before)))
    for name in _CONTAINERS:
        fixed[name] = [{**container, "image": ""} for container in spec.get(name) or ()]
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and fixed.get("terminationGracePeriodSeconds") == 1:
        fixed["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    if before.get("schedulingGates"):
        fixed.pop("nodeSelector", None)
        fixed["affinity"] = without_fields(spec.get("affinity") or {}, ("nodeAffinity",))
    return fixed


def _set_by_binding(pod: Object, before: Object) -> tuple[str, ...]:
    """Return the fields that a binding sets: the node name, in the same write as the condition PodScheduled.

    No other write of a spec changes the status, so this combination is always a binding.
    """
    if before.get("nodeName"):
        return ()
    scheduled = pods.condition(pod, "PodScheduled") or {}
    return ("nodeName",) if scheduled.get("status") == "True" else ()
