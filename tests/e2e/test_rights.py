"""The rights that the chart gives, held against what our processes ask for: an audit log says what that was.

Everything is on, and there is something to do for every controller. Nothing that is asked for is refused, and no right
is granted without being used.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.e2e.assets import Assets
from tests.e2e.control_plane import ControlPlane, running
from tests.e2e.objects import calendar, install_crds, read, read_all, write
from tests.e2e.processes import Program, free_ports
from tests.e2e.springtide_process import NAMESPACE, springtide, started
from tests.e2e.waiting import eventually
from tests.e2e.workloads import deployment, target

from springtide.apis.forecast import format_instant
from springtide.cluster.resources import Object

CHART = Path(__file__).parents[2] / "charts" / "springtide"
RELEASE = "springtide"
METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/karpenter_scheduled_capacity"
KARMADA = "autoscaling.karmada.io/v1alpha1"
KARPENTER = "autoscaling.karpenter.sh/v1alpha1"


class Right(NamedTuple):
    """A verb on a resource."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}.{self.group}" if self.group else f"{self.verb} {self.resource}"


SELDOM = {
    Right("", "events", "get"): "an event that was made before, by a process that is gone, is looked at first",
    Right("", "events", "patch"): "an event that happens again is counted up",
    Right("", "secrets", "patch"): "certificates are renewed after weeks",
}
"""What a run of a minute does not need, and why it is needed all the same."""


@dataclass(frozen=True, slots=True)
class Released:
    """A release at work."""

    plane: ControlPlane
    program: Program

    def requests(self) -> list[Object]:
        """Return everything that was asked for so far."""
        lines = self.plane.audit_log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]

    def used(self) -> set[Right]:
        """Return the rights that were made use of so far."""
        return {
            Right(about.get("apiGroup", ""), _resource(about), request["verb"])
            for request in self.requests()
            if (about := request.get("objectRef")) is not None
        }


def _resource(about: Object) -> str:
    return f"{about['resource']}/{about['subresource']}" if "subresource" in about else str(about["resource"])


@pytest.fixture(scope="module")
def released(assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Released]:
    """Run a release with everything on and something to do, in a cluster that keeps an audit log of it."""
    folder = tmp_path_factory.mktemp("rights")
    user = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"
    with running(assets, folder, audited=user) as plane:
        install_crds(plane)
        write(plane, *stand_ins())
        kubeconfig = install(plane)
        program = process(plane, folder, kubeconfig)
        with started(program):
            eventually("external metrics are available", lambda: plane.answers(METRIC))
            write(plane, *work(int(time.time())))
            yield Released(plane, program)


def install(plane: ControlPlane) -> Path:
    """Install the chart with everything on, and give the kubeconfig of its service account."""
    webhooks, external = free_ports(2)
    values = {
        "webhooks.enabled": "true",
        "webhooks.port": webhooks,
        "webhooks.service.port": webhooks,
        "webhooks.service.externalName": "localhost",
        "externalMetrics.enabled": "true",
        "externalMetrics.port": external,
        "externalMetrics.service.port": external,
        "externalMetrics.service.externalName": "localhost",
    }
    settings = [f"--set={name}={value}" for name, value in values.items()]
    where = (f"--namespace={NAMESPACE}", "--create-namespace", "--skip-crds")
    plane.run("helm", "install", RELEASE, CHART, *where, *settings)
    token = plane.kubectl("create", "token", RELEASE, "--namespace", NAMESPACE, "--duration=1h").stdout.strip()
    return plane.kubeconfig_of_token("chart", token, namespace=NAMESPACE)


def process(plane: ControlPlane, folder: Path, kubeconfig: Path) -> Program:
    """Prepare what a container of the chart's Deployment would run, on loopback, in a pod with an address."""
    (pod, *_) = eventually("the pods of the release", lambda: read_all(plane, "pods", f"--namespace={NAMESPACE}"))
    (container,) = pod["spec"]["containers"]
    here = [f"--{what}-host=127.0.0.1" for what in ("metrics", "health", "webhook", "external-metrics")]
    given = (
        *container["args"],
        "--kubeconfig",
        kubeconfig,
        *here,
        "--metrics-port=0",
        "--health-port=0",
        "--log-format=text",
    )
    return springtide("controllers", folder, *given, address="192.0.2.1")


def stand_ins() -> Iterator[Object]:
    """Write CRDs that stand for those of other projects."""
    for group, version, plural, kind in (
        ("cluster.x-k8s.io", "v1beta2", "machinedeployments", "MachineDeployment"),
        ("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject"),
    ):
        scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        served: Object = {
            "name": version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema, "status": schema}}},
            "subresources": {"status": {}, "scale": scale},
        }
        yield {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            # Groups of Kubernetes itself want to know who has approved of them.
            "metadata": {
                "name": f"{plural}.{group}",
                "annotations": {"api-approved.kubernetes.io": "unapproved, it stands in"},
            },
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
                "versions": [served],
            },
        }


def work(now: int) -> Iterator[Object]:
    """Write something to do for every controller, soon."""
    yield calendar("worked", "2100-01-01")
    yield of("springtide.dev/v1alpha1", "Grant", "worked", {"namespaces": ["default"], "nodeGroups": ["default/*"]})
    yield of("cluster.x-k8s.io/v1beta2", "MachineDeployment", "workers", {"replicas": 1})
    yield of(KARPENTER, "ScalableNodeGroup", "workers", {"type": "ClusterAPI", "id": "default/workers", "replicas": 1})
    yield of(KARPENTER, "MetricsProducer", "schedule", {"schedule": {"defaultReplicas": 3, "behaviors": []}})
    yield of(
        KARPENTER,
        "HorizontalAutoscaler",
        "followed",
        {
            "scaleTargetRef": target("followed"),
            "minReplicas": 1,
            "maxReplicas": 9,
            "metrics": [
                {
                    "prometheus": {
                        "query": 'karpenter_scheduled_capacity{name="schedule"}',
                        "target": {"type": "AverageValue", "value": "1"},
                    }
                }
            ],
        },
    )
    yield deployment("followed")
    yield deployment("fired")
    bounds = {"scaleTargetRef": target("bounded"), "minReplicas": 1, "maxReplicas": 10}
    yield of("autoscaling/v2", "HorizontalPodAutoscaler", "bounded", bounds)
    yield of(KARMADA, "FederatedHPA", "bounded", bounds)
    yield of("keda.sh/v1alpha1", "ScaledObject", "bounded", {"scaleTargetRef": {"name": "bounded"}})
    soon = format_instant(now + 10)
    for name, what, sets in (
        ("deployment", target("fired"), {"targetReplicas": 2}),
        ("node-group", reference(KARPENTER, "ScalableNodeGroup", "workers"), {"targetReplicas": 3}),
        ("hpa", reference("autoscaling/v2", "HorizontalPodAutoscaler", "bounded"), {"targetMaxReplicas": 20}),
        ("federated", reference(KARMADA, "FederatedHPA", "bounded"), {"targetMaxReplicas": 20}),
        ("scaled-object", reference("keda.sh/v1alpha1", "ScaledObject", "bounded"), {"targetMaxReplicas": 20}),
    ):
        rules = [{"name": "soon", "at": soon, **sets}]
        yield of(KARMADA, "CronFederatedHPA", name, {"scaleTargetRef": what, "rules": rules})


def of(version: str, kind: str, name: str, spec: Object) -> Object:
    """Write an object of the namespace default, or of none."""
    namespace = {} if kind == "Grant" else {"namespace": "default"}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **namespace}, "spec": spec}


def reference(version: str, kind: str, name: str) -> dict[str, str]:
    """Refer to an object."""
    return {"apiVersion": version, "kind": kind, "name": name}


def granted(plane: ControlPlane) -> set[Right]:
    """Return every right that the release has, as far as it was made for it."""
    chosen = f"--selector=app.kubernetes.io/instance={RELEASE}"
    roles = [
        *read_all(plane, "clusterroles", chosen),
        *read_all(plane, "roles", chosen, f"--namespace={NAMESPACE}"),
    ]
    return {
        Right(group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def missing(rights: set[Right], used: set[Right]) -> list[str]:
    """Name the rights that were not made use of, but for those that are by custom or seldom."""

    def needed(right: Right) -> bool:
        by_custom = right.verb == "get" and right._replace(verb="list") in rights
        return not by_custom and right not in SELDOM and not any(_covers(right, one) for one in used)

    return sorted(str(right) for right in rights if needed(right))


def _covers(right: Right, used: Right) -> bool:
    if right.resource.startswith("*/"):
        used = used._replace(resource=f"*/{used.resource.partition('/')[2]}")
    return right == used


def test_every_permission_is_used(released: Released) -> None:
    """Who may list objects may read each, by custom; all else that is granted is needed."""
    rights = granted(released.plane)
    unused: list[Any] = ["everything"]

    def all_used() -> bool:
        unused[:] = missing(rights, released.used())
        return not unused

    try:
        eventually("every right is made use of", all_used, patience=90)
    except AssertionError as late:
        raise AssertionError(f"not used: {', '.join(unused)}") from late


def test_no_request_is_forbidden(released: Released) -> None:
    """No request was forbidden, and all controllers have done their work."""
    plane = released.plane
    eventually("a rule has fired", lambda: _replicas(read(plane, "deployment", "fired")) == 2)
    eventually("an autoscaler has followed", lambda: _replicas(read(plane, "deployment", "followed")) == 3)
    eventually("a group has grown", lambda: _replicas(read(plane, "machinedeployment", "workers")) == 3)
    refused = [request for request in released.requests() if request.get("responseStatus", {}).get("code") == 403]

    assert refused == []
    assert "forbidden" not in released.program.log.read_text()


def _replicas(found: Object | None) -> int | None:
    return None if found is None else found["spec"].get("replicas")
