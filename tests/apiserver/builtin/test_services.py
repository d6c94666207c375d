"""Services: what can be reached, and at which ports."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.builtin.samples import judged, lines, thing

_RANGE = "must be between 1 and 65535, inclusive"


def _service(*ports: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return thing("Service", spec={"ports": list(ports), **spec})


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(_service({"port": 80}), id="one-port"),
        pytest.param(_service({"port": 80, "name": "a"}, {"port": 81, "name": "b"}), id="two-ports"),
        pytest.param(_service({"port": 80, "targetPort": "web"}), id="port-by-name"),
        pytest.param(_service(clusterIP="None"), id="headless"),
        pytest.param(_service(type="ExternalName", externalName="db.example.com."), id="elsewhere"),
    ],
)
def test_accepted(item: dict[str, Any]) -> None:
    assert lines(judged(item)) == []


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(_service(), ["spec.ports: Required value"], id="no-ports"),
        pytest.param(
            _service({}),
            [
                f"spec.ports[0].port: Invalid value: 0: {_RANGE}",
                f"spec.ports[0].targetPort: Invalid value: 0: {_RANGE}",
            ],
            id="port-without-a-number",
        ),
        pytest.param(
            _service({"port": 65536, "targetPort": 1}),
            [f"spec.ports[0].port: Invalid value: 65536: {_RANGE}"],
            id="port-too-large",
        ),
        pytest.param(
            _service({"port": 1, "name": "a"}, {"port": 2}),
            ["spec.ports[1].name: Required value"],
            id="name-missing",
        ),
        pytest.param(
            _service({"port": 1, "name": "a"}, {"port": 2, "name": "a"}),
            ['spec.ports[1].name: Duplicate value: "a"'],
            id="name-twice",
        ),
        pytest.param(
            _service({"port": 1, "targetPort": "80"}),
            ['spec.ports[0].targetPort: Invalid value: "80": must contain at least one letter (a-z)'],
            id="name-without-a-letter",
        ),
        pytest.param(
            _service(type="ExternalName"),
            ["spec.externalName: Required value"],
            id="elsewhere-but-where",
        ),
    ],
)
def test_refused(item: dict[str, Any], expected: list[str]) -> None:
    assert lines(judged(item)) == expected
