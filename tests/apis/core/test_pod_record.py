"""Pod records: what is kept of a pod, what equal pods share, and how little that is."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest

from springtide.apis.core.pod_record import POD_ANNOTATIONS, HostPort, PodDetails, PodRecord, PodView, pod_record


def record(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: Any) -> PodRecord:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-0", "namespace": "shop", **metadata},
        "spec": {"containers": [{"name": "main"}], **(spec or {})},
        "status": status or {},
    }
    return pod_record(msgspec.json.decode(msgspec.json.encode(pod), type=PodView))


def test_a_pod_without_anything_has_the_defaults() -> None:
    """A pod of one container and nothing else is the default record."""
    made = record()

    assert msgspec.structs.replace(made, pod_class=msgspec.structs.replace(made.pod_class, text=b"")) == PodRecord()


def test_requests_are_those_of_the_whole_pod() -> None:
    """Init containers, sidecars and overhead count; a limit without a request is its own request."""
    made = record(
        {
            "initContainers": [
                {"name": "a", "resources": {"requests": {"memory": "2Gi"}}},
                {"name": "b", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
            ],
            "containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}}}],
            "overhead": {"cpu": "50m"},
        }
    )

    assert {name: str(amount) for name, amount in made.pod_class.requests.items()} == {"cpu": "1150m", "memory": "2Gi"}
    assert not made.pod_class.unreadable


def test_requests_that_are_no_quantities() -> None:
    """A pod that no API server accepts still has a record, which says that its requests are unreadable."""
    made = record({"containers": [{"name": "c", "resources": {"requests": {"cpu": "much"}}}]})

    assert dict(made.pod_class.requests) == {}
    assert made.pod_class.unreadable


def test_what_decides_where_a_pod_can_run() -> None:
    """Selector, affinity, spread, tolerations, host ports, gates and priority are decoded."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    expression = {"key": "arch", "operator": "In", "values": ["arm64"]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [expression]}]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchFields": [{**expression, "key": "metadata.name"}]}}
            ],
        },
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": term}],
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, "namespaces": ["shop"]}]},
    }
    made = record(
        {
            "nodeSelector": {"pool": "a"},
            "affinity": affinity,
            "topologySpreadConstraints": [{"maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway", **term}],
            "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}],
            "schedulingGates": [{"name": "example.com/wait"}],
            "resourceClaims": [{"name": "gpu"}],
            "priority": 7,
            "preemptionPolicy": "Never",
            "schedulerName": "other",
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "c",
                    "ports": [{"containerPort": 80}, {"containerPort": 53, "hostPort": 53, "protocol": "UDP"}],
                }
            ],
        }
    ).pod_class

    assert made.node_selector == {"pool": "a"}
    assert msgspec.json.decode(msgspec.json.encode(made.affinity)) == affinity
    assert made.topology_spread[0].max_skew == 2
    assert made.topology_spread[0].when_unsatisfiable == "ScheduleAnyway"
    assert (made.tolerations[0].operator, made.tolerations[0].toleration_seconds) == ("Exists", 9)
    assert made.host_ports == (HostPort(53, "UDP"),)
    assert made.scheduling_gates == ("example.com/wait",)
    assert made.resource_claims
    assert (made.priority, made.preemption_policy, made.scheduler_name) == (7, "Never", "other")
    assert made.termination_grace_seconds == 0


@pytest.mark.parametrize(
    ("volume", "claims"),
    [
        pytest.param({"persistentVolumeClaim": {"claimName": "data-web-0"}}, ("data-web-0",), id="claim"),
        pytest.param({"ephemeral": {"volumeClaimTemplate": {}}}, ("web-0-v",), id="ephemeral"),
        pytest.param({"emptyDir": {}}, (), id="no-claim"),
    ],
)
def test_claims_of_volumes(volume: dict[str, Any], claims: tuple[str, ...]) -> None:
    """Volumes count by the claim that they use; that of an ephemeral volume is named after pod and volume."""
    assert record({"volumes": [{"name": "v", **volume}]}).details == PodDetails(claims)


def test_identity_and_state() -> None:
    """Owner, node, phase, readiness, nomination, deletion and creation are those of the pod."""
    made = record(
        {"nodeName": "n1"},
        {
            "phase": "Pending",
            "nominatedNodeName": "n2",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
                {"type": "Ready", "status": "True"},
            ],
        },
        labels={"app": "web"},
        annotations={POD_ANNOTATIONS[0]: "request", "example.com/other": "x"},
        creationTimestamp="2026-05-28T20:26:40Z",
        deletionTimestamp="2026-05-28T20:27:40Z",
        ownerReferences=[
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "1"},
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "2", "controller": True},
        ],
    )

    assert (made.node, made.labels, made.created_at) == ("n1", {"app": "web"}, 1_780_000_000)
    assert made.owner is not None
    assert (made.owner.kind, made.owner.name, made.owner.uid) == ("StatefulSet", "web", "2")
    assert (made.state.phase, made.state.nominated_node) == ("Pending", "n2")
    assert made.state.ready
    assert made.state.unschedulable
    assert made.state.deleted_at == 1_780_000_060
    assert made.is_terminating
    assert not made.is_finished
    assert made.details.annotations == {POD_ANNOTATIONS[0]: "request"}


def test_pods_of_one_template_share_what_they_have_in_common() -> None:
    """Class, labels, owner and state of equal pods are the same objects."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "2", "controller": True}
    spec = {"nodeSelector": {"pool": "a"}, "tolerations": [{"operator": "Exists"}]}
    one, other = (
        record(
            {**spec, "nodeName": node}, {"phase": "Running"}, name=node, labels={"app": "web"}, ownerReferences=[owner]
        )
        for node in ("n1", "n2")
    )

    assert one.pod_class is other.pod_class
    assert len({one.pod_class, other.pod_class, record().pod_class}) == 2
    assert one.labels is other.labels
    assert one.owner is other.owner
    assert one.state is other.state
    assert one.details is other.details


def test_a_record_is_small() -> None:
    """A record of a pod with a template, an owner and a status takes less than 150 bytes of its own."""
    count = 2_000
    record({"nodeName": "n"}, {"phase": "Running"}, labels={"app": "web"})
    tracemalloc.start()
    try:
        records = [
            record({"nodeName": "n"}, {"phase": "Running"}, labels={"app": "web"}, creationTimestamp=_time(n))
            for n in range(count)
        ]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(records) == count
    assert held / count < 150


def _time(second: int) -> str:
    return f"2026-05-28T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
