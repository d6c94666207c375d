"""Our simulated nodes with a real scheduler and a real controller-manager: what these decide, ours carry out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import pytest
from tests.e2e.control_plane import ControlPlane
from tests.e2e.objects import conditions, read, read_all, write
from tests.e2e.simulated_kubelets import machines, node
from tests.e2e.waiting import eventually, in_background

from springtide.cluster.errors import TooManyRequests
from springtide.cluster.http import HttpTransport, load_kubeconfig
from springtide.cluster.resources import Object, Resource
from springtide.cluster.transport import Write
from springtide.simulator.behaviours import node_lost_patch

PODS = Resource("", "v1", "pods", "Pod")
POOL = {"springtide.dev/e2e": "nodes"}
"""The label of the nodes of these tests: other tests may have nodes in the same cluster."""
ALIVE = ("--field-selector=status.phase=Running",)


@pytest.fixture(scope="module")
def namespace(plane: ControlPlane) -> Iterator[str]:
    """Have two nodes that live, and a namespace."""
    plane.kubectl("create", "namespace", "machines")
    with in_background(lambda: machines(plane)):
        write(plane, node("machine-1", **POOL), node("machine-2", **POOL))
        yield "machines"
        plane.kubectl("delete", "namespace", "machines")
        plane.kubectl("delete", "node", "--selector=springtide.dev/e2e=nodes")


def deployment(namespace: str, name: str, replicas: int) -> Object:
    """Write a deployment whose pods leave a node that is lost after a second."""
    impatient = [
        {"key": f"node.kubernetes.io/{trouble}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
        for trouble in ("not-ready", "unreachable")
    ]
    spec: dict[str, Any] = {
        "nodeSelector": POOL,
        "tolerations": impatient,
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": "100m"}}}],
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def pods(plane: ControlPlane, namespace: str, app: str, *arguments: str) -> list[Object]:
    """Read the pods of a deployment that are not about to go."""
    found = read_all(plane, "pods", "--namespace", namespace, f"--selector=app={app}", *arguments)
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def test_a_deployment_becomes_available_and_scales(plane: ControlPlane, namespace: str) -> None:
    """The controller-manager makes pods, the scheduler binds them, and our kubelets run them."""
    write(plane, deployment(namespace, "web", 3))
    plane.kubectl("rollout", "status", "deployment/web", "--namespace", namespace, "--timeout=60s")

    assert conditions(read(plane, "deployment", "web", namespace))["Available"]["status"] == "True"
    assert {pod["spec"]["nodeName"] for pod in pods(plane, namespace, "web")} <= {"machine-1", "machine-2"}

    def running(replicas: int) -> bool:
        return len(pods(plane, namespace, "web", *ALIVE)) == replicas

    for replicas in (5, 1):
        plane.kubectl("scale", "deployment/web", f"--replicas={replicas}", "--namespace", namespace)
        eventually(f"{replicas} pods run", partial(running, replicas))


def test_a_rollout_replaces_all_pods(plane: ControlPlane, namespace: str) -> None:
    write(plane, deployment(namespace, "rolled", 2))
    plane.kubectl("rollout", "status", "deployment/rolled", "--namespace", namespace, "--timeout=60s")
    before = {pod["metadata"]["uid"] for pod in pods(plane, namespace, "rolled")}
    plane.kubectl("set", "image", "deployment/rolled", "app=app:2", "--namespace", namespace)
    plane.kubectl("rollout", "status", "deployment/rolled", "--namespace", namespace, "--timeout=60s")

    def replaced() -> bool:
        now = pods(plane, namespace, "rolled")
        return len(now) == 2 and all(pod["metadata"]["uid"] not in before for pod in now)

    eventually("only new pods are left", replaced)


def test_an_eviction_refused_by_a_budget_gets_the_reason(plane: ControlPlane, namespace: str) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guarded", "namespace": namespace},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
    }
    write(plane, budget, deployment(namespace, "guarded", 1))
    plane.kubectl("rollout", "status", "deployment/guarded", "--namespace", namespace, "--timeout=60s")
    eventually(
        "the budget has counted",
        lambda: ((read(plane, "pdb", "guarded", namespace) or {}).get("status") or {}).get("currentHealthy") == 1,
    )
    (pod,) = pods(plane, namespace, "guarded")

    async def evict() -> None:
        async with HttpTransport(load_kubeconfig(plane.admin), random=Random(1)) as transport:
            name = pod["metadata"]["name"]
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
            await transport.create(PODS, body, Write("e2e"), namespace=namespace, name=name, subresource="eviction")

    with pytest.raises(TooManyRequests, match="Cannot evict pod as it would violate the pod's disruption budget"):
        asyncio.run(evict())


def test_pods_of_a_lost_node_run_on_another_node(plane: ControlPlane, namespace: str) -> None:
    """And those that were on it go when it does: no kubelet was there to stop them."""
    write(plane, deployment(namespace, "moving", 4))
    plane.kubectl("rollout", "status", "deployment/moving", "--namespace", namespace, "--timeout=60s")
    hit = {
        pod["metadata"]["name"] for pod in pods(plane, namespace, "moving") if pod["spec"]["nodeName"] == "machine-1"
    }
    assert hit, "the scheduler spreads pods"
    patch = node_lost_patch(int(time.time())).body
    plane.kubectl("annotate", "node", "machine-1", *(f"{k}={v}" for k, v in patch["metadata"]["annotations"].items()))

    def moved() -> bool:
        running = pods(plane, namespace, "moving", *ALIVE)
        return len(running) == 4 and {pod["spec"]["nodeName"] for pod in running} == {"machine-2"}

    eventually("four pods run on the other node", moved)
    ready = conditions(read(plane, "node", "machine-1"))["Ready"]
    left = {pod["metadata"]["name"] for pod in read_all(plane, "pods", "--namespace", namespace)}

    assert ready["status"] == "Unknown"
    assert hit <= left

    plane.kubectl("delete", "node", "machine-1")
    eventually(
        "the pods of the lost node are gone",
        lambda: not hit & {pod["metadata"]["name"] for pod in read_all(plane, "pods", "--namespace", namespace)},
    )
    write(plane, node("machine-1", **POOL))
