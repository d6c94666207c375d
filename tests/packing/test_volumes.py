"""What the claims and disks of pods resolve to, and that deltas give the same as building anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.packing import clusters, oracle

from springtide.apis.core.pod_record import EphemeralClaim, InlineDisk, PodDetails, pod_details_of
from springtide.apis.core.volumes import (
    CSINodeRecord,
    CSINodeView,
    StorageClassRecord,
    StorageClassView,
    VolumeClaimRecord,
    VolumeClaimView,
    VolumeRecord,
    VolumeView,
    csi_node_record,
    storage_class_record,
    volume_claim_record,
    volume_record,
)
from springtide.packing.columns import AffinityTerms, Labels, NodeColumns, NodeRule, Resources
from springtide.packing.shapes import NO_VOLUMES, VolumeNeeds
from springtide.packing.volumes import Volumes

Json = dict[str, Any]

ZONE, REGION, HOST = "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
EBS, EFS = "ebs.csi.aws.com", "efs.csi.aws.com"
NO_ZONES = tuple((key, "DoesNotExist", ()) for key in (OLD_REGION, OLD_ZONE, REGION, ZONE))
"""What a node without zone and region meets."""


def requirement(key: str, *values: str, operator: str = "In") -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def terms(*found: Json | list[Json]) -> list[Json]:
    return [{"matchExpressions": one if isinstance(one, list) else [one]} for one in found]


def claim(name: str = "data", volume: str = "", **changes: Any) -> VolumeClaimRecord:
    """Make the record of a claim; with a volume it is bound."""
    metadata: Json = {"name": name, "namespace": "default"}
    spec: Json = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "wait",
        "resources": {"requests": {"storage": "10Gi"}},
    }
    if volume:
        spec["volumeName"] = volume
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    metadata |= changes.pop("metadata", {})
    return volume_claim_record(msgspec.convert({"metadata": metadata, "spec": spec | changes}, VolumeClaimView))


def volume(
    name: str = "pv",
    *,
    affinity: list[Json] | None = None,
    labels: dict[str, str] | None = None,
    csi: tuple[str, str] | None = None,
    phase: str = "Bound",
    deleted: str | None = None,
    **changes: Any,
) -> VolumeRecord:
    """Make the record of a volume."""
    spec: Json = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}, "storageClassName": "wait"}
    if affinity is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": affinity}}
    if csi is not None:
        spec["csi"] = {"driver": csi[0], "volumeHandle": csi[1]}
    whole = {
        "metadata": {"name": name, "labels": labels or {}, "deletionTimestamp": deleted},
        "spec": spec | changes,
        "status": {"phase": phase},
    }
    return volume_record(msgspec.convert(whole, VolumeView))


def free(name: str, *hosts: str, size: str = "10Gi", **changes: Any) -> VolumeRecord:
    """Make the record of a local volume that can be bound."""
    affinity = terms(requirement(HOST, *hosts)) if hosts else None
    return volume(
        name, affinity=affinity, phase="Available", capacity={"storage": size}, storageClassName="local", **changes
    )


def storage_class(
    name: str = "wait", provisioner: str = EBS, mode: str = "WaitForFirstConsumer", *zones: str, default: bool = False
) -> StorageClassRecord:
    """Make the record of a storage class, of some zones only if they are given."""
    metadata: Json = {"name": name}
    if default:
        metadata["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    whole: Json = {"metadata": metadata, "provisioner": provisioner, "volumeBindingMode": mode}
    if zones:
        whole["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    return storage_class_record(msgspec.convert(whole, StorageClassView))


def csi_node(name: str = "node", **limits: int | None) -> CSINodeRecord:
    """Make the record of the drivers of a node; `ebs` and `efs` stand for their drivers."""
    drivers = [
        {"name": {"ebs": EBS, "efs": EFS}[driver]} | ({} if count is None else {"allocatable": {"count": count}})
        for driver, count in limits.items()
    ]
    return csi_node_record(msgspec.convert({"metadata": {"name": name}, "spec": {"drivers": drivers}}, CSINodeView))


WAIT = storage_class()
LOCAL = storage_class("local", "kubernetes.io/no-provisioner")
IMMEDIATE = storage_class("immediate", EBS, "Immediate")

Record = VolumeClaimRecord | VolumeRecord | StorageClassRecord | CSINodeRecord


def put(volumes: Volumes, *records: Record) -> None:
    """Add records of any kind."""
    for record in records:
        if isinstance(record, VolumeClaimRecord):
            volumes.put_claim(record)
        elif isinstance(record, VolumeRecord):
            volumes.put_volume(record)
        elif isinstance(record, StorageClassRecord):
            volumes.put_class(record)
        else:
            volumes.put_csi_node(record)


def pod(*claims: str, ephemeral: dict[str, Json] | None = None, disks: Iterable[InlineDisk] = ()) -> PodDetails:
    """Make the details of a pod with claims, ephemeral ones by their spec."""
    created = tuple(
        EphemeralClaim(name, msgspec.convert(spec, type(EphemeralClaim("").spec)))
        for name, spec in (ephemeral or {}).items()
    )
    return PodDetails(claims=(*claims, *(ephemeral or {})), ephemeral_claims=created, disks=tuple(disks))


def needs_of(details: PodDetails, *records: Record, assume_created: bool = False) -> VolumeNeeds:
    """Return what the volumes of the only pod resolve to."""
    volumes = Volumes()
    put(volumes, *records)
    volumes.use(("default", "a"), "default", details)
    return volumes.needs(("default", "a"), "default", details, assume_created=assume_created)


def listed(key: str, *values: str) -> AffinityTerms:
    return ((((key, "In", values),), ()),)


def binding(*reaches: AffinityTerms) -> tuple[tuple[str, AffinityTerms], ...]:
    return tuple(("VolumeBinding", reach) for reach in reaches)


IN_A = listed(ZONE, "a")
NODE_1 = (((), (("metadata.name", "In", ("node-1",)),)),)
BOUND_A = (claim(volume="pv"), volume(affinity=terms(requirement(ZONE, "a"))))

RULES = {
    "no volumes": (pod(), (), NO_VOLUMES),
    "bound volume of a zone": (pod("data"), BOUND_A, VolumeNeeds(binding(IN_A))),
    "bound volume for all nodes": (pod("data"), (claim(volume="pv"), volume()), NO_VOLUMES),
    "bound volume of a node": (
        pod("data"),
        (claim(volume="pv"), volume(affinity=terms(requirement(HOST, "node-1")))),
        VolumeNeeds(binding(listed(HOST, "node-1"))),
    ),
    "terms of one label are merged": (
        pod("data"),
        (claim(volume="pv"), volume(affinity=terms(requirement(ZONE, "b"), requirement(ZONE, "a", "b")))),
        VolumeNeeds(binding(listed(ZONE, "a", "b"))),
    ),
    "terms of several labels are kept": (
        pod("data"),
        (claim(volume="pv"), volume(affinity=terms([requirement(ZONE, "a"), requirement(HOST, "x")]))),
        VolumeNeeds(binding(((((HOST, "In", ("x",)), (ZONE, "In", ("a",))), ()),))),
    ),
    "names of nodes match no volume": (
        pod("data"),
        (claim(volume="pv"), volume(affinity=[{"matchFields": [requirement("metadata.name", "x")]}])),
        VolumeNeeds(blocked="VolumeBinding"),
    ),
    "affinity without terms": (
        pod("data"),
        (claim(volume="pv"), volume(affinity=[])),
        VolumeNeeds(blocked="VolumeBinding"),
    ),
    "equal claims count once": (
        pod("data", "more"),
        (*BOUND_A, claim("more", "pv-2"), volume("pv-2", affinity=terms(requirement(ZONE, "a")))),
        VolumeNeeds(binding(IN_A)),
    ),
    "different zones": (
        pod("data", "more"),
        (*BOUND_A, claim("more", "pv-2"), volume("pv-2", affinity=terms(requirement(ZONE, "b")))),
        VolumeNeeds(binding(IN_A, listed(ZONE, "b"))),
    ),
    "zone label": (
        pod("data"),
        (claim(volume="pv"), volume(labels={ZONE: "b__ a"})),
        VolumeNeeds((("VolumeZone", ((NO_ZONES, ()), (((ZONE, "In", ("a", "b")),), ()))),)),
    ),
    "zone label with an empty value": (
        pod("data"),
        (claim(volume="pv"), volume(labels={ZONE: "a__"})),
        NO_VOLUMES,
    ),
    "zone labels of two volumes": (
        pod("data", "more"),
        (
            *(claim(volume="pv"), volume(labels={ZONE: "a__b"})),
            *(claim("more", "pv-2"), volume("pv-2", labels={ZONE: "b__c"})),
        ),
        VolumeNeeds((("VolumeZone", ((NO_ZONES, ()), (((ZONE, "In", ("b",)),), ()))),)),
    ),
    "zone labels that exclude each other": (
        pod("data", "more"),
        (
            *(claim(volume="pv"), volume(labels={ZONE: "a"})),
            *(claim("more", "pv-2"), volume("pv-2", labels={ZONE: "b"})),
        ),
        VolumeNeeds((("VolumeZone", ((NO_ZONES, ()),)),)),
    ),
    "deprecated region label": (
        pod("data"),
        (claim(volume="pv"), volume(labels={OLD_REGION: "r"})),
        VolumeNeeds(
            (
                (
                    "VolumeZone",
                    (
                        (NO_ZONES, ()),
                        (((OLD_REGION, "DoesNotExist", ()), (REGION, "In", ("r",))), ()),
                        (((OLD_REGION, "In", ("r",)),), ()),
                    ),
                ),
            )
        ),
    ),
    "zone label of an ephemeral volume": (
        pod(ephemeral={"data": {}}),
        (claim(volume="pv"), volume(labels={ZONE: "a"})),
        NO_VOLUMES,
    ),
    "waiting, provisioned anywhere": (pod("data"), (claim(), WAIT), NO_VOLUMES),
    "waiting, provisioned in zones": (
        pod("data"),
        (claim(), storage_class("wait", EBS, "WaitForFirstConsumer", "b", "a")),
        VolumeNeeds(binding(listed(ZONE, "a", "b"))),
    ),
    "waiting, or an existing volume": (
        pod("data"),
        (
            claim(),
            storage_class("wait", EBS, "WaitForFirstConsumer", "b"),
            volume(affinity=terms(requirement(ZONE, "a")), phase="Available"),
        ),
        VolumeNeeds(binding(listed(ZONE, "a", "b"))),
    ),
    "waiting, provisioned for a node": (
        pod("data"),
        (
            claim(metadata={"annotations": {"volume.kubernetes.io/selected-node": "node-1"}}),
            storage_class("wait", EBS, "WaitForFirstConsumer", "a"),
        ),
        VolumeNeeds(binding(NODE_1, IN_A)),
    ),
    "existing volumes": (
        pod("data"),
        (claim(storageClassName="local"), LOCAL, free("x", "node-2"), free("y", "node-1")),
        VolumeNeeds(binding(listed(HOST, "node-1", "node-2"))),
    ),
    "existing volumes, one everywhere": (
        pod("data"),
        (claim(storageClassName="local"), LOCAL, free("x", "node-2"), free("y")),
        NO_VOLUMES,
    ),
    "existing volumes that do not suit": (
        pod("data"),
        (
            claim(storageClassName="local", selector={"matchLabels": {"disk": "fast"}}),
            LOCAL,
            free("small", "node-1", size="9Gi", labels={"disk": "fast"}),
            free("block", "node-2", volumeMode="Block", labels={"disk": "fast"}),
            free("other-modes", "node-3", accessModes=["ReadOnlyMany"], labels={"disk": "fast"}),
            free("unselected", "node-4", labels={"disk": "slow"}),
            free("of-another", "node-5", claimRef={"namespace": "default", "name": "x"}, labels={"disk": "fast"}),
            free(
                "deleting",
                "node-6",
                labels={"disk": "fast"},
                deleted="2026-01-01T00:00:00Z",
            ),
            free("suits", "node-7", size="1Ti", labels={"disk": "fast"}),
            volume("released", labels={"disk": "fast"}, phase="Released", storageClassName="local"),
            volume("of-another-class", labels={"disk": "fast"}, phase="Available"),
        ),
        VolumeNeeds(binding(listed(HOST, "node-7"))),
    ),
    "a reserved volume only": (
        pod("data"),
        (
            claim(storageClassName="local"),
            LOCAL,
            free("x", "node-1", claimRef={"namespace": "default", "name": "data"}),
            free("y", "node-2"),
        ),
        VolumeNeeds(binding(listed(HOST, "node-1"))),
    ),
    "no existing volume": (pod("data"), (claim(storageClassName="local"), LOCAL), VolumeNeeds(blocked="VolumeBinding")),
    "two existing volumes on one node": (
        pod("data", "more"),
        (
            claim(storageClassName="local"),
            claim("more", storageClassName="local"),
            LOCAL,
            *(free("x", "node-1"), free("y", "node-1"), free("z", "node-2")),
        ),
        VolumeNeeds(binding(listed(HOST, "node-1"), listed(HOST, "node-1", "node-2"))),
    ),
    "the larger existing volume is left": (
        pod("large", "small"),
        (
            claim("large", storageClassName="local", resources={"requests": {"storage": "20Gi"}}),
            claim("small", storageClassName="local"),
            LOCAL,
            *(free("x", "node-1", size="20Gi"), free("y", "node-1", size="10Gi"), free("z", "node-2", size="20Gi")),
        ),
        VolumeNeeds(binding(listed(HOST, "node-1"), listed(HOST, "node-1", "node-2"))),
    ),
    "no node has two existing volumes": (
        pod("data", "more"),
        (
            *(claim(storageClassName="local"), claim("more", storageClassName="local"), LOCAL),
            *(free("x", "node-1"), free("z", "node-2")),
        ),
        VolumeNeeds(blocked="VolumeBinding"),
    ),
    "two existing volumes, one everywhere": (
        pod("data", "more"),
        (
            *(claim(storageClassName="local"), claim("more", storageClassName="local"), LOCAL),
            *(free("x", "node-1"), free("z")),
        ),
        VolumeNeeds(binding(listed(HOST, "node-1"))),
    ),
    "two existing volumes of different labels": (
        pod("data", "more"),
        (
            *(claim(storageClassName="local"), claim("more", storageClassName="local"), LOCAL),
            free("x", "node-1"),
            volume("y", affinity=terms(requirement(ZONE, "a")), phase="Available", storageClassName="local"),
        ),
        VolumeNeeds(
            binding(
                ((((HOST, "In", ("node-1",)),), ()), (((ZONE, "In", ("a",)),), ())),
                ((((HOST, "In", ("node-1",)), (ZONE, "In", ("a",))), ()),),
            )
        ),
    ),
    "attached volumes": (
        pod("data", "more"),
        (
            *(claim(volume="pv"), volume(csi=(EBS, "vol-1"))),
            *(claim("more", "pv-2"), volume("pv-2", csi=(EBS, "vol-2"))),
            csi_node(ebs=25),
        ),
        VolumeNeeds(attached=((EBS, 2),)),
    ),
    "one volume by two claims": (
        pod("data", "more"),
        (
            *(claim(volume="pv"), volume(csi=(EBS, "vol-1"))),
            *(claim("more", "pv-2"), volume("pv-2", csi=(EBS, "vol-1"))),
            csi_node(ebs=25),
        ),
        VolumeNeeds(attached=((EBS, 1),)),
    ),
    "drivers without limit": (
        pod("data"),
        (claim(volume="pv"), volume(csi=(EFS, "vol-1")), csi_node(ebs=25, efs=None)),
        NO_VOLUMES,
    ),
    "a waiting claim is attached": (pod("data"), (claim(), WAIT, csi_node(ebs=25)), VolumeNeeds(attached=((EBS, 1),))),
    "a disk is attached": (
        pod(disks=[InlineDisk("awsElasticBlockStore", "vol-1"), InlineDisk("rbd", "rbd/image")]),
        (csi_node(ebs=25),),
        VolumeNeeds(attached=((EBS, 1),)),
    ),
    "a volume of an older plugin is attached": (
        pod("data", disks=[InlineDisk("awsElasticBlockStore", "vol-1")]),
        (claim(volume="pv"), volume(awsElasticBlockStore={"volumeID": "aws://a/vol-1"}), csi_node(ebs=25)),
        VolumeNeeds(attached=((EBS, 1),)),
    ),
    "a blocked pod attaches too": (
        pod("data"),
        (claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), WAIT, csi_node(ebs=25)),
        VolumeNeeds(attached=((EBS, 1),), blocked="VolumeBinding"),
    ),
}


@pytest.mark.parametrize(("details", "records", "expected"), RULES.values(), ids=RULES)
def test_needs(details: PodDetails, records: tuple[Record, ...], expected: VolumeNeeds) -> None:
    assert needs_of(details, *records) == expected
    assert needs_of(details, *reversed(records)) == expected
    if expected == NO_VOLUMES:
        assert needs_of(details, *records) is NO_VOLUMES


REFUSED = {
    "missing": (pod("data"), (), "claim data does not exist"),
    "of another namespace": (
        pod("data"),
        (claim(volume="pv", metadata={"namespace": "other"}), volume()),
        "claim data does not exist",
    ),
    "ephemeral, missing": (
        pod(ephemeral={"a-data": {}}),
        (),
        "claim a-data of its ephemeral volume does not exist yet",
    ),
    "deleting": (
        pod("data"),
        (claim(volume="pv", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), volume()),
        "claim data is being deleted",
    ),
    "volume missing": (
        pod("data"),
        (claim(volume="pv"), WAIT),
        "claim data is bound to volume pv, which does not exist",
    ),
    "volume named only": (
        pod("data"),
        (claim(volumeName="pv"), volume(), WAIT),
        "claim data is not bound yet to volume pv",
    ),
    "immediate": (
        pod("data"),
        (claim(storageClassName="immediate"), IMMEDIATE),
        "claim data is not bound yet, and does not wait for a pod",
    ),
    "no class, though there is a default": (
        pod("data"),
        (claim(storageClassName=None), storage_class(default=True)),
        "claim data is not bound and has no storage class",
    ),
    "class missing": (
        pod("data"),
        (claim(storageClassName="fast"),),
        "claim data has the storage class fast, which does not exist",
    ),
    "no existing volume": (
        pod("data"),
        (claim(storageClassName="local"), LOCAL),
        "claim data needs an existing volume of the storage class local, and none suits",
    ),
    "the first claim is named": (pod("ok", "first", "second"), (claim("ok"), WAIT), "claim first does not exist"),
}


@pytest.mark.parametrize(("details", "records", "because"), REFUSED.values(), ids=REFUSED)
def test_claims_that_no_node_takes(details: PodDetails, records: tuple[Record, ...], because: str) -> None:
    needs = needs_of(details, *records)
    assert (needs.blocked, needs.because, needs.topologies) == ("VolumeBinding", because, ())


def test_names_of_claims_are_not_compared() -> None:
    one, other = needs_of(pod("one")), needs_of(pod("other"))
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one) == repr(other)
    assert one.because != other.because


ASSUMED = {
    "of a class": (
        pod(ephemeral={"data": {"storageClassName": "wait"}}),
        (storage_class("wait", EBS, "WaitForFirstConsumer", "a"), csi_node(ebs=25)),
        VolumeNeeds(binding(IN_A), attached=((EBS, 1),)),
    ),
    "of the default class": (
        pod(ephemeral={"data": {}}),
        (storage_class("zonal", EBS, "WaitForFirstConsumer", "a", default=True), WAIT),
        VolumeNeeds(binding(IN_A)),
    ),
    "of a class that does not wait": (
        pod(ephemeral={"data": {"storageClassName": "immediate"}}),
        (storage_class("immediate", EBS, "Immediate", "a"),),
        VolumeNeeds(binding(IN_A)),
    ),
    "without a class": (pod(ephemeral={"data": {}}), (WAIT,), VolumeNeeds(blocked="VolumeBinding")),
    "exists already": (
        pod(ephemeral={"data": {}}),
        (claim(volume="pv"), volume(csi=(EBS, "vol-1")), csi_node(ebs=25)),
        VolumeNeeds(attached=((EBS, 1),)),
    ),
    "of a StatefulSet": (
        PodDetails(ephemeral_claims=pod(ephemeral={"data-db-0": {"storageClassName": "wait"}}).ephemeral_claims),
        (storage_class("wait", EBS, "WaitForFirstConsumer", "a"), csi_node(ebs=25)),
        VolumeNeeds(binding(IN_A), attached=((EBS, 1),)),
    ),
    "claims of all pods are shared": (
        pod("data", ephemeral={"own": {"storageClassName": "wait"}}),
        (claim(volume="pv"), volume(csi=(EBS, "vol-1")), WAIT, csi_node(ebs=25)),
        VolumeNeeds(attached=((EBS, 1),), shared=((EBS, "vol-1"),)),
    ),
    "other claims must exist": (pod("data"), (), VolumeNeeds(blocked="VolumeBinding")),
}


@pytest.mark.parametrize(("details", "records", "expected"), ASSUMED.values(), ids=ASSUMED)
def test_claims_of_a_template(details: PodDetails, records: tuple[Record, ...], expected: VolumeNeeds) -> None:
    volumes = Volumes()
    put(volumes, *records)
    assert volumes.needs(("default", "\0template"), "default", details, assume_created=True) == expected


def test_a_volume_of_two_pods_is_shared() -> None:
    volumes = Volumes()
    put(volumes, claim(volume="pv"), volume(csi=(EBS, "vol-1")), csi_node(ebs=25))
    details = pod("data")
    a, b, c = (("default", name) for name in "abc")
    alone, shared = VolumeNeeds(attached=((EBS, 1),)), VolumeNeeds(shared=((EBS, "vol-1"),))
    volumes.use(a, "default", details)
    assert (volumes.needs(a, "default", details), volumes.changed()) == (alone, [])
    volumes.use(b, "default", details)
    assert [volumes.needs(each, "default", details) for each in (a, b)] == [shared, shared]
    assert volumes.changed() == [a]
    volumes.use(c, "default", details)
    assert volumes.changed() == []
    volumes.release(a)
    volumes.release(c)
    assert (volumes.needs(b, "default", details), volumes.changed()) == (alone, [b])


def test_a_waiting_claim_of_two_pods_is_shared() -> None:
    volumes = Volumes()
    put(volumes, claim(), WAIT, csi_node(ebs=25))
    for name in "ab":
        volumes.use(("default", name), "default", pod("data"))
    needs = volumes.needs(("default", "a"), "default", pod("data"))
    assert needs == VolumeNeeds(shared=((EBS, "claim default/data"),))


def test_a_claim_for_one_pod() -> None:
    volumes = Volumes()
    put(volumes, claim(volume="pv", accessModes=["ReadWriteOncePod"]), volume())
    details, ephemeral = pod("data"), pod(ephemeral={"data": {}})
    a, b, c = (("default", name) for name in "abc")
    volumes.use(a, "default", details)
    volumes.use(b, "default", details)
    volumes.use(c, "default", ephemeral)
    assert volumes.needs(b, "default", details) == VolumeNeeds(exclusive=("default/data",))
    volumes.changed()
    volumes.use(a, "default", details, bound=True)
    assert volumes.changed() == [b, c]
    needs = volumes.needs(b, "default", details)
    assert needs == VolumeNeeds(blocked="VolumeRestrictions")
    assert needs.because == "claim data is for one pod, and another pod uses it"
    assert volumes.needs(a, "default", details) == VolumeNeeds(exclusive=("default/data",))
    assert volumes.needs(c, "default", ephemeral) is NO_VOLUMES
    volumes.release(a)
    assert volumes.changed() == [b, c]
    volumes.use(c, "default", ephemeral, bound=True)
    assert volumes.needs(b, "default", details) is NO_VOLUMES
    volumes.changed()
    volumes.use(("default", "d"), "default", details, bound=True)
    assert volumes.changed() == [b, c]
    assert volumes.needs(b, "default", details).blocked == "VolumeRestrictions"


def test_limits_of_nodes() -> None:
    volumes = Volumes()
    volumes.put_csi_node(csi_node("node-1", ebs=25, efs=None))
    assert volumes.limits("node-1") == {EBS: 25}
    assert volumes.limits("node-2") == {}
    volumes.remove_csi_node("node-1")
    assert volumes.limits("node-1") == {}


def test_only_what_uses_a_volume_has_changed() -> None:
    volumes = Volumes()
    put(volumes, *BOUND_A, claim("other", "pv-2"), volume("pv-2"), claim("waits", storageClassName="local"), LOCAL)
    for name in ("data", "other", "waits"):
        volumes.use(("default", name), "default", pod(name))
    assert volumes.changed() == []
    put(volumes, *BOUND_A, LOCAL, claim("unused"), csi_node(ebs=25))
    assert volumes.changed() == []
    volumes.put_volume(volume("pv-2", labels={ZONE: "a"}))
    assert volumes.changed() == [("default", "other")]
    volumes.put_volume(free("x", "node-1"))
    assert volumes.changed() == [("default", "waits")]
    volumes.put_volume(free("y", "node-2", claimRef={"namespace": "default", "name": "waits"}))
    assert volumes.changed() == [("default", "waits")]
    volumes.use(("default", "data"), "default", pod("data"))
    volumes.release(("default", "unknown"))
    assert volumes.changed() == []


def test_free_volumes_come_and_go() -> None:
    volumes = Volumes()
    put(volumes, claim(storageClassName="local"), claim("more", storageClassName="local"), LOCAL)
    a, one, both = ("default", "a"), pod("data"), pod("data", "more")
    put(volumes, free("x", "node-1"), free("y", "node-2"))
    assert volumes.needs(a, "default", one) == VolumeNeeds(binding(listed(HOST, "node-1", "node-2")))
    assert volumes.needs(a, "default", both) == VolumeNeeds(blocked="VolumeBinding")
    put(volumes, free("z", "node-2"))
    reaches = listed(HOST, "node-1", "node-2"), listed(HOST, "node-2")
    assert volumes.needs(a, "default", both) == VolumeNeeds(binding(*reaches))
    volumes.remove_volume("y")
    volumes.remove_volume("x")
    assert volumes.needs(a, "default", one) == VolumeNeeds(binding(listed(HOST, "node-2")))
    assert volumes.needs(a, "default", both) == VolumeNeeds(blocked="VolumeBinding")


# Deltas

_NAMES = st.sampled_from(("c0", "c1", "c2"))
_PODS = st.sampled_from([("default", name) for name in ("p0", "p1", "p2", "p3")])
_VOLUMES = st.sampled_from(("v0", "v1", "v2"))
_CLASSES = st.sampled_from(("wait", "local", "immediate"))
_CLAIMS = st.builds(
    lambda name, bound, storage_class, mode: claim(
        name, bound, storageClassName=storage_class, accessModes=["ReadWriteOnce", mode][mode != "" :]
    ),
    _NAMES,
    st.just("") | _VOLUMES,
    st.none() | _CLASSES,
    st.sampled_from(("", "ReadWriteOncePod")),
)
_ALL_VOLUMES = st.builds(
    lambda name, zone, csi, phase, reserved, storage_class: volume(
        name,
        affinity=terms(requirement(ZONE, zone)) if zone else None,
        labels={ZONE: zone} if zone == "b" else {},
        csi=csi,
        phase=phase,
        storageClassName=storage_class,
        accessModes=["ReadWriteOnce", "ReadWriteOncePod"],
        claimRef={"namespace": "default", "name": reserved} if reserved else None,
    ),
    _VOLUMES,
    st.sampled_from(("", "a", "b")),
    st.none() | st.tuples(st.sampled_from((EBS, EFS)), st.sampled_from(("h0", "h1"))),
    st.sampled_from(("Available", "Bound")),
    st.none() | _NAMES,
    _CLASSES,
)
_ALL_CLASSES = st.sampled_from(
    (
        WAIT,
        storage_class("wait", EFS, "WaitForFirstConsumer", "a"),
        LOCAL,
        storage_class("local", EBS, "WaitForFirstConsumer", "b", default=True),
        IMMEDIATE,
    )
)
_DETAILS = st.one_of(
    st.lists(_NAMES, max_size=2, unique=True).map(lambda names: pod(*names)),
    _NAMES.map(lambda name: pod(ephemeral={name: {}})),
    _NAMES.map(lambda name: pod(name, disks=[InlineDisk("awsElasticBlockStore", "h0")])),
)
_LIMITS = st.builds(
    lambda name, ebs, efs: csi_node(name, **({"ebs": 3} if ebs else {}), **({"efs": 3} if efs else {})),
    st.sampled_from(("n0", "n1")),
    st.booleans(),
    st.booleans(),
)
_DELTAS = st.one_of(
    st.tuples(st.just("put"), st.one_of(_CLAIMS, _ALL_VOLUMES, _ALL_CLASSES, _LIMITS)),
    st.tuples(st.just("remove_claim"), _NAMES),
    st.tuples(st.just("remove_volume"), _VOLUMES),
    st.tuples(st.just("remove_class"), _CLASSES),
    st.tuples(st.just("remove_csi_node"), st.sampled_from(("n0", "n1"))),
    st.tuples(st.just("use"), st.tuples(_PODS, _DETAILS, st.booleans())),
    st.tuples(st.just("release"), _PODS),
)
_START: tuple[Record, ...] = (
    *(WAIT, LOCAL, IMMEDIATE, csi_node("n0", ebs=3, efs=3)),
    *(claim("c0", "v0", accessModes=["ReadWriteOncePod"]), claim("c1"), claim("c2", storageClassName="local")),
    *(volume("v0", csi=(EBS, "h0")), free("v1", "x"), volume("v2", csi=(EBS, "h1"), phase="Available")),
)


class _Model:
    """What is there, of which `Volumes` is built anew."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], Record] = {}
        self.pods: dict[tuple[str, str], tuple[PodDetails, bool]] = {}

    def build(self) -> Volumes:
        volumes = Volumes()
        for key, (details, bound) in sorted(self.pods.items(), reverse=True):
            volumes.use(key, key[0], details, bound=bound)
        put(volumes, *(record for _, record in sorted(self.records.items(), key=lambda each: each[0])))
        return volumes

    def apply(self, volumes: Volumes, delta: str, value: Any) -> None:
        if delta == "put":
            self.records[type(value).__name__, value.name] = value
            put(volumes, value)
        elif delta == "use":
            key, details, bound = value
            self.pods[key] = (details, bound)
            volumes.use(key, key[0], details, bound=bound)
        elif delta == "release":
            self.pods.pop(value, None)
            volumes.release(value)
        elif delta == "remove_claim":
            self.records.pop(("VolumeClaimRecord", value), None)
            volumes.remove_claim("default", value)
        else:
            kind = {"remove_volume": "VolumeRecord", "remove_class": "StorageClassRecord"}.get(delta, "CSINodeRecord")
            self.records.pop((kind, value), None)
            getattr(volumes, delta)(value)


@given(st.lists(st.tuples(_DELTAS, st.booleans()), min_size=1, max_size=25))
@settings(max_examples=400)
def test_deltas_give_the_same_as_building_anew(deltas: list[tuple[tuple[str, Any], bool]]) -> None:
    model, volumes = _Model(), Volumes()
    answers: dict[tuple[str, str], VolumeNeeds] = {}
    start: list[tuple[str, Any]] = [("put", record) for record in _START]
    start += [("use", (("default", f"p{number}"), pod(f"c{number}"), False)) for number in range(3)]
    for (delta, value), checked in [*((each, False) for each in start), *deltas, (("release", ("", "")), True)]:
        model.apply(volumes, delta, value)
        if delta == "use":
            answers[value[0]] = volumes.needs(value[0], "default", value[1])
        if not checked:
            continue
        for key in volumes.changed():
            answers[key] = volumes.needs(key, "default", model.pods[key][0])
        expected = model.build()
        for key, (details, _) in model.pods.items():
            needs = expected.needs(key, "default", details)
            assert answers[key] == needs, key
            assert answers[key].because == needs.because
            whole = [each.needs(key, "default", details, assume_created=True) for each in (volumes, expected)]
            assert whole[0] == whole[1]


# Agreement with kube-scheduler's rules on raw objects


def _read(given: clusters.Json) -> Volumes:
    volumes = Volumes()
    for one in given["persistentVolumeClaims"]:
        volumes.put_claim(volume_claim_record(msgspec.convert(one, VolumeClaimView)))
    for one in given["persistentVolumes"]:
        volumes.put_volume(volume_record(msgspec.convert(one, VolumeView)))
    for one in given["storageClasses"]:
        volumes.put_class(storage_class_record(msgspec.convert(one, StorageClassView)))
    for one in given["csiNodes"]:
        volumes.put_csi_node(csi_node_record(msgspec.convert(one, CSINodeView)))
    return volumes


def _exceeds(limits: Iterable[tuple[str, int]], needs: VolumeNeeds, present: list[VolumeNeeds]) -> bool:
    """Return whether a pod attaches more to a node with these pods than it takes."""
    there = {disk for each in present for disk in each.shared}
    for driver, limit in limits:
        arriving = dict(needs.attached).get(driver, 0)
        arriving += sum(disk[0] == driver and disk not in there for disk in needs.shared)
        attached = sum(dict(each.attached).get(driver, 0) for each in present) + sum(
            disk[0] == driver for disk in there
        )
        if arriving and arriving + attached > limit:
            return True
    return False


@given(clusters.as_hypothesis(features={"volumes", "rwop", "csi-limits", "terminating", "finished"}))
@settings(max_examples=200)
def test_agrees_with_the_rules_on_objects(given: clusters.Json) -> None:
    cluster, volumes = oracle.Cluster.from_json(given), _read(given)
    nodes = NodeColumns(Resources(), Labels())
    for node in given["nodes"]:
        nodes.add(oracle.name_of(node), oracle.labels_of(node), (), {})
    details: dict[tuple[str, str], PodDetails] = {}
    for one in (*given["pods"], *given["pending"]):
        if not oracle.is_finished(one):
            key = oracle.namespace_of(one), oracle.name_of(one)
            details[key] = pod_details_of(one["spec"], key[1])
            volumes.use(key, key[0], details[key], bound=bool(one["spec"].get("nodeName")))
    needs = {key: volumes.needs(key, key[0], each) for key, each in details.items()}
    for one in cluster.pending():
        key = oracle.namespace_of(one), oracle.name_of(one)
        mask = NodeRule(volumes=needs[key].topologies).volume_mask(nodes)
        for row, node in enumerate(given["nodes"]):
            there = [needs[oracle.namespace_of(each), oracle.name_of(each)] for each in cluster.pods_on(node)]
            limits = volumes.limits(oracle.name_of(node)).items()
            refused = bool(needs[key].blocked) or not mask[row] or _exceeds(limits, needs[key], there)
            expected = [
                oracle.volume_binding(cluster, one, node, []),
                oracle.volume_zone(cluster, one, node, []),
                oracle.volume_restrictions(cluster, one, node, []),
                oracle.node_volume_limits(cluster, one, node, []),
            ]
            assert refused == any(expected), (key, oracle.name_of(node))
