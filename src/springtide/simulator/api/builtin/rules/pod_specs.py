"""What pods ask for, wherever a pod is described: containers, their ports, their mounts, their resources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import duplicate, forbidden, invalid, not_found, required, unsupported
from springtide.simulator.api.builtin.rules.amounts import amounts, container_resource, pod_resource, requirements
from springtide.simulator.api.builtin.rules.making import Rule, field_of
from springtide.simulator.api.builtin.rules.ports import port_name, port_number
from springtide.simulator.api.names import label_problem, label_value_problem, qualified_name_problem

_LONGEST = 2**31 - 1
_REQUIRED = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def describes_pods(path: str) -> Rule:
    """Make a rule: what stands at a path describes a pod that can run."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:
        spec = field_of(item, path)
        if spec is not None and spec != field_of(old, path):
            claims = field_of(item, "spec.volumeClaimTemplates") or ()
            yield from _pod(spec, path, [field_of(claim, "metadata.name") for claim in claims])

    return rule


def _pod(spec: Object, path: str, claims: list[str]) -> Iterator[Cause]:
    """Judge a pod; `claims` are volumes that its workload makes for it, in the place of its own of that name."""
    volumes: list[str] = []
    for index, volume in _entries(spec, "volumes"):
        name, here = volume.get("name") or "", f"{path}.volumes[{index}].name"
        yield from _judged(label_problem, name, here)
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
    yield from requirements(spec.get("resources"), f"{path}.resources", pod_resource)
    for name, value in (spec.get("nodeSelector") or {}).items():
        yield from _judged(qualified_name_problem, name, f"{path}.nodeSelector")
        yield from _judged(label_value_problem, value, f"{path}.nodeSelector")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LONGEST:
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, f"must be between 1 and {_LONGEST}, inclusive")
    for index, toleration in _entries(spec, "tolerations"):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")
    for index, constraint in _entries(spec, "topologySpreadConstraints"):
        if (skew := constraint.get("maxSkew")) is not None and skew <= 0:
            here = f"{path}.topologySpreadConstraints[{index}].maxSkew"
            yield invalid(here, skew, "must be greater than zero")
    yield from _node_affinity(spec, path)
    # The server judges an overhead as limits, and says so.
    yield from amounts(spec.get("overhead"), f"{path}.overhead.limits", container_resource)


def _node_affinity(spec: Object, path: str) -> Iterator[Cause]:
    for index, term in _entries(field_of(spec, _REQUIRED) or {}, "nodeSelectorTerms"):
        for number, wanted in _entries(term, "matchExpressions"):
            here = f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}].matchExpressions[{number}]"
            yield from _requirement(wanted, here)
    for index, preferred in _entries(field_of(spec, "affinity.nodeAffinity") or {}, _PREFERRED):
        here = f"{path}.affinity.nodeAffinity.{_PREFERRED}[{index}]"
        weight = preferred.get("weight") or 0
        if not 1 <= weight <= 100:
            yield invalid(f"{here}.weight", weight, "must be in the range 1-100")
        for number, wanted in _entries(preferred.get("preference") or {}, "matchExpressions"):
            yield from _requirement(wanted, f"{here}.preference.matchExpressions[{number}]")


def _requirement(wanted: Object, path: str) -> Iterator[Cause]:
    operator, values = wanted.get("operator") or "", wanted.get("values") or []
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
    yield from _judged(qualified_name_problem, wanted.get("key") or "", f"{path}.key")


def _container(container: Object, volumes: list[str], path: str) -> Iterator[Cause]:
    yield from _judged(label_problem, container.get("name") or "", f"{path}.name")
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
    yield from requirements(container.get("resources"), f"{path}.resources")


def _port(port: Object, path: str, names: list[str]) -> Iterator[Cause]:
    if name := port.get("name"):
        problems = tuple(port_name(name, f"{path}.name"))
        yield from problems
        if not problems and name in names:
            yield duplicate(f"{path}.name", name)
    for field in ("containerPort", "hostPort"):
        number = port.get(field)
        if number:
            yield from port_number(number, f"{path}.{field}")


def _toleration(toleration: Object, path: str) -> Iterator[Cause]:
    key, value = toleration.get("key") or "", toleration.get("value") or ""
    operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
    if key:
        yield from _judged(qualified_name_problem, key, f"{path}.key")
    elif operator != "Exists":
        message = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, message)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("", "Equal"):
        yield from _judged(label_value_problem, value, f"{path}.operator")
    elif operator == "Exists":
        if value:
            yield invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        supported = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
        yield unsupported(f"{path}.operator", operator, *supported)


def _judged(problem: Callable[[str], str], text: str, path: str) -> Iterator[Cause]:
    """Ask what is wrong with a text; none is asked for elsewhere."""
    if text and (found := problem(text)):
        yield invalid(path, text, found)


def _entries(holder: Object, name: str) -> Iterator[tuple[int, Any]]:
    return ((index, entry) for index, entry in enumerate(holder.get(name) or ()) if entry is not None)
