"""What is said about Grants and NodeClasses."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.manifests import problems_of, shown

from springtide.apis.springtide import KINDS, fixes

NODE_GROUP = "arn:aws:autoscaling:*:*:*:autoScalingGroupName/team-a-*"
QUEUE = "arn:aws:sqs:*:*:team-a-*"


def manifest(kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "springtide.dev/v1alpha1", "kind": kind, "metadata": {"name": "it"}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {
                "namespaces": ["team-a"],
                "nodeGroups": [NODE_GROUP],
                "queues": [QUEUE],
                "urls": ["https://prom.example.com/"],
            },
            [],
            id="everything",
        ),
        pytest.param({"namespaces": ["team-*"], "queues": [QUEUE]}, [], id="pattern-of-namespaces"),
        pytest.param({"namespaces": ["team-a"]}, ["warning spec"], id="nothing-allowed"),
        pytest.param({"queues": [QUEUE]}, ["error spec.namespaces"], id="without-namespaces"),
        pytest.param({"namespaces": [], "queues": [QUEUE]}, ["error spec.namespaces"], id="to-an-empty-list"),
        pytest.param({"namespaces": ["Team A"], "queues": [QUEUE]}, ["error spec.namespaces[0]"], id="not-a-namespace"),
        pytest.param({"namespaces": ["*"], "nodeGroups": [NODE_GROUP]}, [], id="some-groups-for-all-namespaces"),
        pytest.param({"namespaces": ["team-a"], "nodeGroups": ["*"]}, [], id="all-groups-for-a-namespace"),
        pytest.param(
            {"namespaces": ["*"], "nodeGroups": [NODE_GROUP, "*"], "queues": ["*"]},
            ["warning spec.nodeGroups[1]", "warning spec.queues[0]"],
            id="all-groups-for-all-namespaces",
        ),
        pytest.param({"namespaces": ["a"], "urls": ["prom.example.com/"]}, ["error spec.urls[0]"], id="no-scheme"),
        pytest.param({"namespaces": ["a"], "urls": ["ftp://example.com/"]}, ["error spec.urls[0]"], id="other-scheme"),
        pytest.param({"namespaces": ["a"], "urls": ["https:///metrics"]}, ["error spec.urls[0]"], id="no-host"),
        pytest.param({"namespaces": ["a"], "urls": ["https://[::1/"]}, ["error spec.urls[0]"], id="broken-address"),
        pytest.param({"namespaces": ["a"], "urls": ["https://*.example.com/"]}, ["error spec.urls[0]"], id="wildcard"),
        pytest.param({"namespaces": ["a"], "urls": ["https://prom.example.com"]}, [], id="whole-origin"),
        pytest.param({"namespaces": ["a"], "urls": ["https://h/#x"]}, ["error spec.urls[0]"], id="fragment"),
        pytest.param({"namespaces": ["a"], "urls": ["https://u:p@h/"]}, ["error spec.urls[0]"], id="password"),
        pytest.param({"namespaces": ["a"], "urls": ["https://h/a/../b"]}, ["error spec.urls[0]"], id="way-round"),
        pytest.param({"namespaces": ["a"], "urls": ["https://bücher.example/"]}, ["error spec.urls[0]"], id="umlaut"),
        pytest.param({"namespaces": ["a"], "urls": ["http://[::1]:9090/"]}, [], id="address-of-a-machine"),
    ],
)
def test_grants(spec: dict[str, Any], expected: list[str]) -> None:
    """Each grant has exactly these problems."""
    assert expected == shown(problems_of(manifest("Grant", **spec)))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"provider": "simulated"}, [], id="simulated"),
        pytest.param({"provider": "cluster-api", "parameters": {"namespace": "capi"}}, [], id="cluster-api"),
        pytest.param({"provider": "aws", "parameters": {"anything": "goes"}}, [], id="aws"),
        pytest.param({"provider": "azure"}, ["error spec.provider"], id="not-ours"),
        pytest.param({}, ["error spec.provider"], id="missing"),
        pytest.param(
            {"provider": "aws", "parameters": {"nodes": 3}}, ["error spec.parameters.nodes"], id="not-a-string"
        ),
    ],
)
def test_node_classes(spec: dict[str, Any], expected: list[str]) -> None:
    """Each node class has exactly these problems."""
    assert expected == shown(problems_of(manifest("NodeClass", **spec)))


def test_all_are_cluster_scoped() -> None:
    """None of these kinds is in a namespace, and `kubectl get springtide` lists them all."""
    assert {(kind.scope, kind.categories) for kind in KINDS} == {("Cluster", ("springtide",))}


def test_there_is_nothing_to_repair() -> None:
    """What is written stays as it is."""
    value = manifest("Grant", namespaces=["a"])

    assert value == fixes(value).value


def test_a_password_is_not_repeated() -> None:
    """Messages go into logs and conditions."""
    (found,) = problems_of(manifest("Grant", namespaces=["a"], urls=["https://user:secret@prom.example.com/"]))

    assert "secret" not in found.message + found.hint
    assert "prom.example.com" in found.message


@pytest.mark.parametrize(
    ("url", "said"),
    [
        pytest.param("ftp://example.com/", "must begin with http:// or https:// and a host", id="other-scheme"),
        pytest.param("https:///metrics", "must begin with http:// or https:// and a host", id="no-host"),
        pytest.param("https://h/a/../b", "is ambiguous", id="way-round"),
    ],
)
def test_a_url_says_what_is_wrong_with_it(url: str, said: str) -> None:
    """The first reason is given, and only that."""
    (problem,) = problems_of(manifest("Grant", namespaces=["a"], urls=[url]))

    assert said in problem.message
