"""Records of volumes, claims, storage classes and CSI nodes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from springtide.apis.core.nodes import NamespaceView, namespace_record
from springtide.apis.core.pod_record import pod_details_of
from springtide.apis.core.volumes import (
    CSINodeView,
    StorageClassRecord,
    StorageClassView,
    VolumeClaimRecord,
    VolumeClaimView,
    VolumeRecord,
    VolumeView,
    csi_node_record,
    default_class,
    ephemeral_claim_record,
    storage_class_record,
    volume_claim_record,
    volume_record,
)
from springtide.quantity import Quantity

LEGACY = "volume.beta.kubernetes.io/storage-class"


def claim(
    spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: Any
) -> VolumeClaimRecord:
    value = {"metadata": {"name": "c", "namespace": "shop", **metadata}, "spec": spec or {}, "status": status}
    return volume_claim_record(msgspec.convert(value, VolumeClaimView))


def volume(spec: dict[str, Any], **metadata: Any) -> VolumeRecord:
    value = {"metadata": {"name": "v", **metadata}, "spec": spec}
    return volume_record(msgspec.json.decode(msgspec.json.encode(value), type=VolumeView))


def storage_class(provisioner: str = "d", **more: Any) -> StorageClassRecord:
    value = {"metadata": {"name": "s", **more.pop("metadata", {})}, "provisioner": provisioner, **more}
    return storage_class_record(msgspec.convert(value, StorageClassView))


def plain(part: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(part))


def test_a_whole_claim() -> None:
    """Class, size, access, volume, node and deletion of a claim are kept."""
    made = claim(
        {
            "accessModes": ["ReadWriteOncePod"],
            "resources": {"requests": {"storage": "10Gi"}},
            "selector": {"matchLabels": {"tier": "db"}},
            "storageClassName": "fast",
            "volumeMode": "Block",
            "volumeName": "v",
        },
        {"phase": "Bound"},
        annotations={"volume.kubernetes.io/selected-node": "n1", "example.com/other": "x"},
        deletionTimestamp="2026-01-01T00:00:00Z",
    )

    assert (made.namespace, made.name, made.storage_class, made.volume_name) == ("shop", "c", "fast", "v")
    assert made.requested == Quantity.parse("10Gi")
    assert made.selector is not None
    assert (made.volume_mode, made.selected_node) == ("Block", "n1")
    assert made.bound
    assert made.for_one_pod
    assert made.deleting


@pytest.mark.parametrize(
    ("spec", "status", "annotations", "bound"),
    [
        pytest.param({"volumeName": "v"}, {"phase": "Bound"}, {}, True, id="bound"),
        pytest.param({"volumeName": "v"}, None, {"pv.kubernetes.io/bind-completed": "yes"}, True, id="completed"),
        pytest.param({"volumeName": "v"}, {"phase": "Pending"}, {}, False, id="only-named"),
        pytest.param({}, {"phase": "Bound"}, {}, False, id="no-volume"),
        pytest.param({}, {"phase": "Pending"}, {}, False, id="pending"),
    ],
)
def test_whether_a_claim_is_bound(
    spec: dict[str, Any], status: dict[str, Any] | None, annotations: dict[str, str], bound: bool
) -> None:
    """A claim that names a volume is bound only once the volume controller is done."""
    assert claim(spec, status, annotations=annotations).bound is bound


@pytest.mark.parametrize(
    ("spec", "annotations", "expected"),
    [
        pytest.param({}, {}, None, id="default"),
        pytest.param({"storageClassName": ""}, {}, "", id="none"),
        pytest.param({"storageClassName": "a"}, {LEGACY: "b"}, "b", id="annotation"),
    ],
)
def test_classes_of_claims(spec: dict[str, Any], annotations: dict[str, str], expected: str | None) -> None:
    """No class and the default class differ, and the old annotation goes first."""
    assert claim(spec, annotations=annotations).storage_class == expected


def test_claims_that_do_not_exist_yet() -> None:
    """The claim of an ephemeral volume is made of the pod."""
    spec = {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}
    details = pod_details_of(
        {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]}, "web-0"
    )

    assert [ephemeral_claim_record("shop", one) for one in details.ephemeral_claims] == [
        VolumeClaimRecord("shop", "web-0-v", "fast", access_modes=("ReadWriteOnce",))
    ]


def test_a_whole_volume() -> None:
    """Driver, handle, nodes, labels and claim of a volume are kept."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    made = volume(
        {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "10Gi"},
            "claimRef": {"namespace": "shop", "name": "c", "uid": "u"},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            "storageClassName": "fast",
        },
        labels={"topology.kubernetes.io/zone": "a"},
    )

    assert (made.name, made.driver, made.handle) == ("v", "ebs.csi.aws.com", "vol-1")
    assert plain(made.node_affinity) == {"nodeSelectorTerms": [term]}
    assert made.labels == {"topology.kubernetes.io/zone": "a"}
    assert (made.claim, made.storage_class, made.access_modes) == (("shop", "c"), "fast", ("ReadWriteOnce",))
    assert made.capacity == Quantity.parse("10Gi")
    assert (made.phase, made.deleting) == ("", False)


@pytest.mark.parametrize(
    ("source", "driver", "handle"),
    [
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://a/vol-1"}}, "ebs.csi.aws.com", "vol-1", id="migrated-ebs"
        ),
        pytest.param({"gcePersistentDisk": {"pdName": "d"}}, "pd.csi.storage.gke.io", "d", id="migrated-gce"),
        pytest.param({"local": {"path": "/d"}}, "", "", id="local"),
        pytest.param({"iscsi": {"iqn": "d"}}, "", "d", id="iscsi"),
        pytest.param({"nfs": {"server": "s", "path": "/"}, "capacity": {"storage": "much"}}, "", "", id="nfs"),
    ],
)
def test_drivers_of_volumes(source: dict[str, Any], driver: str, handle: str) -> None:
    """Disks of the plugins before CSI are attached by the drivers that replaced them, other volumes by none."""
    made = volume(source)

    assert (made.driver, made.handle) == (driver, handle)


@pytest.mark.parametrize(
    ("made", "driver", "waits", "provisions"),
    [
        pytest.param(storage_class(), "d", False, True, id="immediate"),
        pytest.param(storage_class(volumeBindingMode="WaitForFirstConsumer"), "d", True, True, id="waits"),
        pytest.param(storage_class("kubernetes.io/aws-ebs"), "ebs.csi.aws.com", False, True, id="migrated"),
        pytest.param(
            storage_class("kubernetes.io/no-provisioner"), "kubernetes.io/no-provisioner", False, False, id="static"
        ),
    ],
)
def test_storage_classes(made: StorageClassRecord, driver: str, waits: bool, provisions: bool) -> None:
    """The driver, when claims are bound, and whether volumes are made for them."""
    assert (made.driver, made.waits_for_pod, made.provisions) == (driver, waits, provisions)


def test_topologies_of_storage_classes() -> None:
    """Where volumes can be provisioned is kept."""
    term = {"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}

    (made,) = storage_class(allowedTopologies=[term]).allowed_topologies

    assert plain(made) == term


def test_the_default_class() -> None:
    """The newest default is the one, whatever the order; without one there is none."""
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    old, new, other = (
        storage_class(metadata={"name": name, "annotations": annotations, "creationTimestamp": time})
        for name, time in (("a", "2026-01-01T00:00:00Z"), ("c", "2026-01-02T00:00:00Z"), ("b", "2026-01-02T00:00:00Z"))
    )

    assert default_class([old, new, other, storage_class()]) == other
    assert default_class([other, new, old]) == other
    assert default_class([storage_class()]) is None


def test_limits_of_csi_nodes() -> None:
    """A driver without a count has no limit."""
    drivers = [
        {"name": "a", "nodeID": "n", "allocatable": {"count": 25}},
        {"name": "b", "allocatable": {}},
        {"name": "c"},
    ]
    made = csi_node_record(msgspec.convert({"metadata": {"name": "n1"}, "spec": {"drivers": drivers}}, CSINodeView))

    assert (made.name, dict(made.limits), made.drivers) == ("n1", {"a": 25}, ("a", "b", "c"))


def test_namespaces() -> None:
    """Labels of namespaces are kept, for affinity terms that select by them."""
    made = namespace_record(msgspec.convert({"metadata": {"name": "shop", "labels": {"team": "a"}}}, NamespaceView))

    assert (made.name, made.labels, made.deleting) == ("shop", {"team": "a"}, False)
