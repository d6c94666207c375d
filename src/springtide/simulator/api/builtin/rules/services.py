"""Services: what can be reached, and at which ports."""

from __future__ import annotations

from collections.abc import Iterator

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import duplicate, invalid, required
from springtide.simulator.api.builtin.rules.ports import port, port_number
from springtide.simulator.api.names import (
    label_problem,
    label_value_problem,
    qualified_name_problem,
    subdomain_problem,
)

_ELSEWHERE = "ExternalName"


def service(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    """Judge a service: it has ports, unless it only stands for a name, and they can be told apart."""
    spec = item.get("spec") or {}
    ports = [each or {} for each in spec.get("ports") or ()]
    if not ports and spec.get("clusterIP") != "None" and spec.get("type") != _ELSEWHERE:
        yield required("spec.ports")
    if spec.get("type") == _ELSEWHERE:
        yield from _external_name((spec.get("externalName") or "").removesuffix("."))
    names: set[str] = set()
    for index, each in enumerate(ports):
        yield from _service_port(each, f"spec.ports[{index}]", names, alone=len(ports) == 1)
    for name, value in (spec.get("selector") or {}).items():
        for text, problem in ((name, qualified_name_problem(name)), (value, label_value_problem(value or ""))):
            if problem:
                yield invalid("spec.selector", text, problem)


def _external_name(name: str) -> Iterator[Cause]:
    if not name:
        yield required("spec.externalName")
    elif problem := subdomain_problem(name):
        yield invalid("spec.externalName", name, problem)


def _service_port(given: Object, path: str, names: set[str], *, alone: bool) -> Iterator[Cause]:
    name = given.get("name")
    if name:
        if problem := label_problem(name):
            yield invalid(f"{path}.name", name, problem)
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
    elif not alone:
        yield required(f"{path}.name")
    yield from port_number(given.get("port") or 0, f"{path}.port")
    yield from port(given.get("targetPort") or 0, f"{path}.targetPort")
