"""Pod records: what is kept of a pod, what equal pods share, and how little that is."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest

from springtide.apis.core.pod_record import (
    POD_ANNOTATIONS,
    EphemeralClaim,
    HostPort,
    InlineDisk,
    PodRecord,
    PodView,
    pod_class_of,
    pod_details_of,
    pod_record,
)


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


def container(cpu: str, name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}


def has(cpu: str, allocated: str | None = None, name: str = "main") -> dict[str, Any]:
    """Return what a kubelet reports of a container."""
    reported: dict[str, Any] = {"name": name, "resources": {"requests": {"cpu": cpu}}}
    return {**reported, "allocatedResources": {"cpu": allocated}} if allocated else reported


INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        pytest.param({"containers": [container("1")]}, {}, None, id="nothing-reported"),
        pytest.param({"containers": [container("1")]}, {"containerStatuses": [has("1", "1")]}, None, id="not-resized"),
        pytest.param({"containers": [container("1")]}, {"containerStatuses": [has("1000m")]}, None, id="other-words"),
        pytest.param({"containers": [container("2")]}, {"containerStatuses": [has("1", "1")]}, None, id="growing"),
        pytest.param({"containers": [container("1")]}, {"containerStatuses": [has("3", "2")]}, "3", id="shrinking"),
        pytest.param({"containers": [container("1")]}, {"containerStatuses": [has("1", "2")]}, "2", id="allocated"),
        pytest.param(
            {"containers": [container("8")]},
            {"containerStatuses": [has("1", "2")], "conditions": INFEASIBLE},
            "2",
            id="infeasible",
        ),
        pytest.param(
            {"containers": [container("8")]},
            {"containerStatuses": [has("1", "2")], "conditions": DEFERRED},
            None,
            id="deferred",
        ),
        pytest.param(
            {"containers": [container("1")]},
            {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "9"}}]},
            None,
            id="allocated-but-nothing-used",
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("1", "s", restartPolicy="Always"), container("1", "i")],
            },
            {
                "containerStatuses": [has("1")],
                "initContainerStatuses": [has("2", name="s"), has("9", name="i")],
            },
            "3",
            id="sidecars-only",
        ),
        pytest.param(
            {"containers": [container("1")], "resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "1"}},
            {"resources": {"requests": {"cpu": "4"}}, "allocatedResources": {"cpu": "3"}},
            "5",
            id="whole-pod",
        ),
        pytest.param(
            {"containers": [container("1")], "resources": {"requests": {"cpu": "8"}}},
            {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}, "conditions": INFEASIBLE},
            "3",
            id="whole-pod-infeasible",
        ),
        pytest.param(
            {"containers": [container("1")]},
            {"resources": {"requests": {"cpu": "4"}}, "containerStatuses": [has("1")]},
            None,
            id="whole-pod-reported-but-not-requested",
        ),
        pytest.param({"containers": [container("1")]}, {"containerStatuses": [has("much")]}, None, id="not-a-quantity"),
    ],
)
def test_requests_while_a_pod_is_resized(spec: dict[str, Any], status: dict[str, Any], expected: str | None) -> None:
    """The largest of requested, allocated and actual amounts counts; pods of a template still share their class."""
    made = record(spec, status)

    assert (made.details.resized is None) == (expected is None)
    assert made.pod_class is record(spec).pod_class
    if expected is not None:
        assert str(made.requests["cpu"]) == expected
    else:
        assert made.requests is made.pod_class.requests


def test_ports_on_the_network_of_the_host() -> None:
    """All ports of the containers are ports of the node, also in templates, where the API server does not set them."""
    ports = [{"containerPort": 80}, {"containerPort": 53, "hostPort": 54, "protocol": "UDP"}]
    containers = [{"name": "c", "ports": ports}]

    assert record({"containers": containers}).pod_class.host_ports == (HostPort(54, "UDP"),)
    assert record({"containers": containers, "hostNetwork": True}).pod_class.host_ports == (
        HostPort(80),
        HostPort(54, "UDP"),
    )


def test_the_class_of_a_spec_is_that_of_the_pod() -> None:
    """Names, images and ports that are not of the node make no other class, and neither do volumes."""
    spec = {"containers": [container("1")], "nodeSelector": {"a": "b"}}
    varied = {
        "containers": [container("1", "other", image="x", env=[], ports=[{"containerPort": 80}])],
        "nodeSelector": {"a": "b"},
        "volumes": [{"name": "v"}],
        "nodeName": "n1",
    }

    assert pod_class_of(spec) is pod_class_of(varied)
    assert pod_class_of(spec) is record(varied).pod_class


def test_priority_of_manifests() -> None:
    """A manifest names its priority class only; the API server sets the number."""
    named, live = (
        pod_class_of({"containers": [], "priorityClassName": "high", **more}) for more in ({}, {"priority": 0})
    )

    assert (named.priority_class_name, named.has_priority, named.priority) == ("high", False, 0)
    assert live.has_priority


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
    assert record({"volumes": [{"name": "v", **volume}]}).details.claims == claims


def test_ephemeral_claims_keep_what_they_will_request() -> None:
    """Of a claim that does not exist yet, its template decides."""
    spec = {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"metadata": {}, "spec": spec}}}]
    (claim,) = record({"volumes": volumes}).details.ephemeral_claims

    assert (claim.name, claim.spec.storage_class_name, claim.spec.access_modes) == (
        "web-0-v",
        "fast",
        ("ReadWriteOnce",),
    )
    assert isinstance(claim, EphemeralClaim)
    assert pod_details_of({"volumes": volumes}, "web-0").ephemeral_claims == (claim,)
    assert pod_details_of({"volumes": 1}).claims == ()


EBS = {"awsElasticBlockStore": {"volumeID": "aws://a/vol-1"}}


@pytest.mark.parametrize(
    ("volume", "disk", "driver"),
    [
        pytest.param(EBS, InlineDisk("awsElasticBlockStore", "vol-1"), "ebs.csi.aws.com", id="ebs"),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
            InlineDisk("gcePersistentDisk", "d", read_only=True),
            "pd.csi.storage.gke.io",
            id="gce",
        ),
        pytest.param(
            {"azureDisk": {"diskName": "d", "diskURI": "/d"}},
            InlineDisk("azureDisk", "/d"),
            "disk.csi.azure.com",
            id="azure",
        ),
        pytest.param(
            {"azureFile": {"secretName": "s", "shareName": "d"}},
            InlineDisk("azureFile", "s/d"),
            "file.csi.azure.com",
            id="azure-file",
        ),
        pytest.param(
            {"vsphereVolume": {"volumePath": "d"}},
            InlineDisk("vsphereVolume", "d"),
            "csi.vsphere.vmware.com",
            id="vsphere",
        ),
        pytest.param({"iscsi": {"iqn": "d", "lun": 0}}, InlineDisk("iscsi", "d"), "", id="iscsi"),
        pytest.param(
            {"rbd": {"image": "d", "monitors": ["m"]}}, InlineDisk("rbd", "rbd/d", monitors=("m",)), "", id="rbd"
        ),
    ],
)
def test_disks_within_pods(volume: dict[str, Any], disk: InlineDisk, driver: str) -> None:
    """Disks of the plugins before CSI are kept, with the driver that attaches them."""
    details = record({"volumes": [{"name": "v", **volume}]}).details

    assert details.disks == (disk,)
    assert details.disks[0].driver == driver


def test_csi_volumes_within_pods_are_not_kept() -> None:
    """They count for no limit."""
    assert record({"volumes": [{"name": "v", "csi": {"driver": "d"}}]}).details is record().details


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        pytest.param(
            InlineDisk("awsElasticBlockStore", "d", read_only=True),
            InlineDisk("awsElasticBlockStore", "d", read_only=True),
            True,
            id="ebs-read-only",
        ),
        pytest.param(
            InlineDisk("gcePersistentDisk", "d", read_only=True),
            InlineDisk("gcePersistentDisk", "d", read_only=True),
            False,
            id="gce-read-only",
        ),
        pytest.param(
            InlineDisk("gcePersistentDisk", "d"), InlineDisk("gcePersistentDisk", "d", read_only=True), True, id="gce"
        ),
        pytest.param(InlineDisk("iscsi", "d"), InlineDisk("iscsi", "e"), False, id="others"),
        pytest.param(InlineDisk("iscsi", "d"), InlineDisk("rbd", "d"), False, id="other-plugin"),
        pytest.param(InlineDisk("azureDisk", "d"), InlineDisk("azureDisk", "d"), False, id="azure"),
        pytest.param(
            InlineDisk("rbd", "d", monitors=("a", "b")), InlineDisk("rbd", "d", monitors=("b",)), True, id="rbd"
        ),
        pytest.param(
            InlineDisk("rbd", "d", monitors=("a",)), InlineDisk("rbd", "d", monitors=("b",)), False, id="other-ceph"
        ),
    ],
)
def test_conflicts_of_disks(one: InlineDisk, other: InlineDisk, conflict: bool) -> None:
    """Two pods with one disk cannot share a node, except where all read and the plugin allows that."""
    assert one.conflicts_with(other) is conflict
    assert other.conflicts_with(one) is conflict


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
