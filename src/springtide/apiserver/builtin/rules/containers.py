"""Validation of containers: ports, environment, mounts, probes and resources."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from springtide.apiserver.builtin.rules.resources import validate_requirements
from springtide.apiserver.builtin.rules.volumes import no_backsteps
from springtide.apiserver.builtin.validation import AT_LEAST_ZERO, entries, field_of
from springtide.apiserver.field_errors import duplicate, forbidden, invalid, not_found, required, unsupported
from springtide.apiserver.names import label_problem
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


def report(problem: Callable[[str], str], text: str, path: str) -> Iterator[StatusCause]:
    """Report the problem of a string, if it is not empty."""
    if text and (found := problem(text)):
        yield invalid(path, text, found)


_MAX_ID = 2**31 - 1
_SOURCE_NAMES = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
"""The fields of handlers, in the order in which they are validated."""


def container(value: Object, mountable: Collection[str], path: str) -> Iterator[StatusCause]:
    """Validate a container; `mountable` are the names of the volumes of its pod."""
    yield from report(label_problem, value.get("name") or "", f"{path}.name")
    names: set[str] = set()
    for index, port in entries(value, "ports"):
        yield from _port(port, f"{path}.ports[{index}]", names)
        names.add(port.get("name") or "")
    for index, variable in entries(value, "env"):
        yield from _variable(variable, f"{path}.env[{index}]")
    yield from _mounts(value, mountable, f"{path}.volumeMounts")
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := value.get(kind)) is not None:
            yield from _probe(probe, kind, f"{path}.{kind}")
    for hook in ("postStart", "preStop"):
        if (handler := field_of(value, f"lifecycle.{hook}")) is not None:
            yield from _handler(handler, f"{path}.lifecycle.{hook}")
    yield from user_and_group(value.get("securityContext"), f"{path}.securityContext")
    yield from validate_requirements(value.get("resources"), f"{path}.resources")


def user_and_group(context: Object | None, path: str) -> Iterator[StatusCause]:
    """Validate the users and groups of a security context."""
    for field in ("runAsUser", "runAsGroup", "fsGroup"):
        number = (context or {}).get(field)
        if number is not None and not 0 <= number <= _MAX_ID:
            yield invalid(f"{path}.{field}", number, f"must be between 0 and {_MAX_ID}, inclusive")


def host_ports(containers: list[tuple[int, Object]], path: str) -> Iterator[StatusCause]:
    """Reject a port of the node that two containers of a pod take."""
    taken: set[str] = set()
    for index, holder in containers:
        for number, port in entries(holder, "ports"):
            if not port.get("hostPort"):
                continue
            text = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if text in taken:
                yield duplicate(f"{path}[{index}].ports[{number}].hostPort", text)
            taken.add(text)


def _port(port: Object, path: str, names: Collection[str]) -> Iterator[StatusCause]:
    if name := port.get("name"):
        problems = tuple(port_name(name, f"{path}.name"))
        yield from problems
        if not problems and name in names:
            yield duplicate(f"{path}.name", name)
    if not port.get("containerPort"):
        yield required(f"{path}.containerPort")
    for field in ("containerPort", "hostPort"):
        number = port.get(field)
        if number:
            yield from port_number(number, f"{path}.{field}")


def _variable(variable: Object, path: str) -> Iterator[StatusCause]:
    source = variable.get("valueFrom")
    if source is None:
        return
    count = sum(part is not None for part in source.values())
    if not count:
        yield invalid(f"{path}.valueFrom", "", f"must specify one of: {_SOURCE_NAMES}")
    elif variable.get("value"):
        yield invalid(f"{path}.valueFrom", "", "may not be specified when `value` is not empty")
    elif count > 1:
        yield invalid(f"{path}.valueFrom", "", "may not have more than one field specified at a time")


def _mounts(value: Object, mountable: Collection[str], path: str) -> Iterator[StatusCause]:
    points: set[str] = set()
    for index, mount in entries(value, "volumeMounts"):
        here, name, point = f"{path}[{index}]", mount.get("name") or "", mount.get("mountPath")
        if name and name not in mountable:
            yield not_found(f"{here}.name", name)
        if point and point in points:
            yield invalid(f"{here}.mountPath", point, "must be unique")
        points.add(point or "")
        if below := mount.get("subPath"):
            # The API server leaves out the position here.
            if below.startswith("/"):
                yield invalid(f"{path}.subPath", below, "must be a relative path")
            yield from no_backsteps(below, f"{path}.subPath")


def _probe(probe: Object, kind: str, path: str) -> Iterator[StatusCause]:
    yield from _handler(probe, path)
    for field in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        if (number := probe.get(field) or 0) < 0:
            yield invalid(f"{path}.{field}", number, AT_LEAST_ZERO)
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    successes = probe.get("successThreshold")
    if kind != "readinessProbe" and successes is not None and successes != 1:
        yield invalid(f"{path}.successThreshold", successes, "must be 1")
    if kind == "readinessProbe" and grace is not None:
        yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")


def _handler(holder: Object, path: str) -> Iterator[StatusCause]:
    given = [name for name in _HANDLERS if holder.get(name) is not None]
    if not given:
        yield required(path, "must specify a handler type")
        return
    for name in given[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 handler type")
    name, here = given[0], f"{path}.{given[0]}"
    action: Object = holder[name]
    if name == "exec" and not action.get("command"):
        yield required(f"{here}.command")
    if name in ("httpGet", "tcpSocket", "grpc"):
        yield from _port_or_name(action.get("port") or 0, f"{here}.port")
    if name == "httpGet" and (scheme := action.get("scheme")) not in ("HTTP", "HTTPS"):
        yield unsupported(f"{here}.scheme", scheme, "HTTP", "HTTPS")


def _port_or_name(port: int | str, path: str) -> Iterator[StatusCause]:
    yield from port_name(port, path) if isinstance(port, str) else port_number(port, path)
