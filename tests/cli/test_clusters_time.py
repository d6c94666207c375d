"""The present of objects in a cluster is the time of the cluster, not of this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.api_server import served_objects
from tests.cli.conftest import Run

from springtide.apis.meta.times import parse_instant

PRESENT = "2031-02-03T12:34:56Z"
OBJECTS = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: peak, namespace: shop}
spec:
  schedule:
    defaultReplicas: 2
    behaviors:
    - {name: day, replicas: 6, start: {hours: 9}, end: {hours: 18}}
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata: {name: once, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  rules:
  - {name: sale, at: "2031-02-03T12:00:00Z", targetReplicas: 5}
"""
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    present = parse_instant(PRESENT)
    with served_objects(tmp_path_factory.mktemp("cluster"), OBJECTS, clock=lambda: present) as path:
        yield path


@pytest.fixture
def ask(kubeconfig: Path, run: Run) -> Ask:
    def asked(*words: str) -> Any:
        return json.loads(run(*words, "--kubeconfig", str(kubeconfig), "-n", "shop", "-o", "json").stdout)

    return asked


def test_explain_uses_the_time_of_the_cluster(ask: Ask) -> None:
    document = ask("explain", "metricsproducer/peak")

    assert document["at"] == PRESENT
    assert document["wants"]["replicas"] == 6
    assert document["next"][0]["at"] == "2031-02-03T18:00:00Z"


@pytest.mark.parametrize(
    ("options", "begins"),
    [
        pytest.param((), "2031-02-03T12:34:00Z", id="the cluster's present, in whole minutes"),
        pytest.param(("--from", "now"), "2031-02-03T12:34:00Z", id="now"),
        pytest.param(("--from", "2030-01-01"), "2030-01-01T00:00:00Z", id="another time"),
    ],
)
def test_a_preview_starts_at(ask: Ask, options: tuple[str, ...], begins: str) -> None:
    (document,) = ask("preview", "metricsproducer/peak", *options)["objects"]

    assert document["from"] == begins


def test_validation_uses_the_time_of_the_cluster(ask: Ask) -> None:
    problems = ask("check", "cronfederatedhpa/once")["problems"]

    assert any("past" in problem["message"] for problem in problems), problems
