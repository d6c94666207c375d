"""What a pod asks for as a whole."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.apis.core.pods import PodSpec
from springtide.apis.core.resources import pod_requests


def container(name: str, requests: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests or {}}, **more}


def sidecar(name: str, cpu: str) -> dict[str, Any]:
    return container(name, {"cpu": cpu}, restartPolicy="Always")


def asked(spec: dict[str, Any]) -> dict[str, str]:
    return {name: str(amount) for name, amount in pod_requests(msgspec.convert(spec, PodSpec)).items()}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [{"name": "a"}]}, {}, id="nothing"),
        pytest.param(
            {"containers": [container("a", {"cpu": "100m", "memory": "1Gi"}), container("b", {"cpu": 1})]},
            {"cpu": "1100m", "memory": "1Gi"},
            id="containers-add-up",
        ),
        pytest.param(
            {"containers": [{"name": "a", "resources": {"limits": {"cpu": 8, "memory": "8G"}}}]},
            {"cpu": "8", "memory": "8G"},
            id="limits-replace-missing-requests",
        ),
        pytest.param(
            {"containers": [{"name": "a", "resources": {"limits": {"cpu": 8}, "requests": {"cpu": 2}}}]},
            {"cpu": "2"},
            id="requests-before-limits",
        ),
        pytest.param(
            {"containers": [container("m", {"cpu": 1})], "initContainers": [container("i", {"cpu": 4})]},
            {"cpu": "4"},
            id="init-container-runs-alone",
        ),
        pytest.param(
            {
                "containers": [container("m", {"cpu": 1})],
                "initContainers": [sidecar("s", "500m"), container("i", {"cpu": 4})],
            },
            {"cpu": "4500m"},
            id="init-container-beside-an-earlier-sidecar",
        ),
        pytest.param(
            {
                "containers": [container("m", {"cpu": 1})],
                "initContainers": [container("i", {"cpu": 4}), sidecar("s", "500m")],
            },
            {"cpu": "4"},
            id="init-container-before-a-sidecar",
        ),
        pytest.param(
            {
                "containers": [container("m", {"cpu": 1})],
                "initContainers": [sidecar("s", "500m"), sidecar("t", "250m")],
            },
            {"cpu": "1750m"},
            id="sidecars-beside-containers",
        ),
        pytest.param(
            {"containers": [container("m", {"cpu": 1})], "overhead": {"cpu": "250m", "memory": "120Mi"}},
            {"cpu": "1250m", "memory": "120Mi"},
            id="overhead-on-top",
        ),
        pytest.param(
            {
                "containers": [container("m", {"cpu": 1, "nvidia.com/gpu": 1})],
                "resources": {"requests": {"cpu": 2, "nvidia.com/gpu": 9}},
            },
            {"cpu": "2", "nvidia.com/gpu": "1"},
            id="pod-level-decides-what-it-may",
        ),
        pytest.param(
            {"containers": [container("m", {"cpu": 1})], "resources": {"limits": {"cpu": 4, "memory": "4Gi"}}},
            {"cpu": "1", "memory": "4Gi"},
            id="pod-level-limit-only-where-nothing-is-asked",
        ),
        pytest.param(
            {"containers": [container("m", {"cpu": 1})], "resources": {"requests": {"cpu": 2}}, "overhead": {"cpu": 1}},
            {"cpu": "3"},
            id="overhead-on-top-of-pod-level",
        ),
        pytest.param(
            {
                "containers": [{"name": "m", "resources": {"limits": {"hugepages-2Mi": "4Mi"}}}],
                "resources": {"limits": {"hugepages-2Mi": "8Mi"}},
            },
            {"hugepages-2Mi": "8Mi"},
            id="pod-level-limit-of-huge-pages",
        ),
    ],
)
def test_pod_requests(spec: dict[str, Any], expected: dict[str, str]) -> None:
    """A pod asks for what it needs at its most demanding moment."""
    assert expected == asked(spec)


amounts = st.integers(0, 5000)


@given(
    mains=st.lists(amounts, min_size=1, max_size=3), starters=st.lists(st.tuples(st.booleans(), amounts), max_size=5)
)
def test_agrees_with_a_replay_of_the_start(mains: list[int], starters: list[tuple[bool, int]]) -> None:
    """The most that runs at once, moment by moment."""
    running, most = 0, 0
    for stays, amount in starters:
        most = max(most, running + amount)
        running += amount if stays else 0
    most = max(most, running + sum(mains))
    spec = {
        "containers": [container(f"m{i}", {"cpu": f"{amount}m"}) for i, amount in enumerate(mains)],
        "initContainers": [
            sidecar(f"i{i}", f"{amount}m") if stays else container(f"i{i}", {"cpu": f"{amount}m"})
            for i, (stays, amount) in enumerate(starters)
        ],
    }

    assert most == pod_requests(msgspec.convert(spec, PodSpec))["cpu"].milli
