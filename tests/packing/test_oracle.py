"""The reference filters by concrete cases: what kube-scheduler 1.36 answers for one pod on one node."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.packing import clusters
from tests.packing.oracle import (
    HOSTNAME,
    PREDICATES,
    Cluster,
    Json,
    Offering,
    amount,
    cheapest_plan,
    feasible_nodes,
    place_greedily,
    refusals,
    replay,
    requests_of,
)

ZONE = "topology.kubernetes.io/zone"
WEB = {"matchLabels": {"app": "web"}}
ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}

# Objects


def node(name: str = "n1", zone: str | None = "a", *, labels: Json | None = None, **given: Any) -> Json:
    """A node with 4 cpu, 8Gi and 10 pods; other amounts by their names, fields of the spec by theirs."""
    own = {HOSTNAME: name, **({ZONE: zone} if zone else {}), **(labels or {})}
    spec = {key: given.pop(key) for key in ("taints", "unschedulable") if key in given}
    amounts = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "10Gi", "pods": "10", **given.pop("amounts", {})}
    assert not given
    return {"metadata": {"name": name, "labels": own}, "spec": spec, "status": {"allocatable": amounts}}


def pod(
    name: str = "p", on: str | None = None, *, namespace: str = "default", app: str | None = "web", **given: Any
) -> Json:
    """A pod with one container; `requests`, `limits` and `ports` are the container's, the rest fields of the spec."""
    labels = {**({"app": app} if app else {}), **given.pop("labels", {})}
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels, **given.pop("meta", {})}
    container: Json = {"name": "main", "image": "pause", "resources": {}}
    for field in ("requests", "limits"):
        if field in given:
            container["resources"][field] = given.pop(field)
    if "ports" in given:
        container["ports"] = given.pop("ports")
    status = given.pop("status", {})
    spec = {"containers": [container], **({"nodeName": on} if on else {}), **given}
    return {"metadata": meta, "spec": spec, "status": status}


def init(requests: Json, *, sidecar: bool = False, name: str = "init", **given: Any) -> Json:
    return {
        "name": name,
        "image": "pause",
        "resources": {"requests": requests},
        **({"restartPolicy": "Always"} if sidecar else {}),
        **given,
    }


def port(number: int = 80, address: str = "", protocol: str = "") -> Json:
    made: Json = {"containerPort": number, "hostPort": number}
    return made | ({"hostIP": address} if address else {}) | ({"protocol": protocol} if protocol else {})


def spread(key: str = ZONE, skew: int = 1, selector: Json | None = WEB, **given: Any) -> Json:
    made: Json = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **given}
    return made if selector is None else {**made, "labelSelector": selector}


def term(key: str = ZONE, selector: Json | None = WEB, **given: Any) -> Json:
    made: Json = {"topologyKey": key, **given}
    return made if selector is None else {**made, "labelSelector": selector}


def near(*terms: Json) -> Json:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms: Json) -> Json:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def select(*terms: Json) -> Json:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def where(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def expressions(*requirements: Json) -> Json:
    return {"matchExpressions": list(requirements)}


def fields(operator: str, *values: str) -> Json:
    return {"matchFields": [where("metadata.name", operator, *values)]}


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Json:
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def pvc(name: str = "c", volume: str | None = None, storage_class: str | None = "wait", **given: Any) -> Json:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    meta = {"name": name, "namespace": "default", "annotations": annotations, **given.pop("meta", {})}
    modes = given.pop("modes", ["ReadWriteOnce"])
    spec = {"accessModes": modes, "resources": {"requests": {"storage": given.pop("size", "1Gi")}}, **given}
    if volume:
        spec["volumeName"] = volume
    if storage_class:
        spec["storageClassName"] = storage_class
    return {"metadata": meta, "spec": spec, "status": {"phase": "Bound" if volume else "Pending"}}


def pv(name: str = "v", zones: list[str] | None = None, *, storage_class: str = "wait", **given: Any) -> Json:
    meta = {"name": name, "labels": given.pop("labels", {})}
    spec = {
        "capacity": {"storage": given.pop("size", "1Gi")},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "csi": {"driver": "disk", "volumeHandle": name},
    }
    if zones is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [expressions(where(ZONE, "In", *zones))]}}
    status = {"phase": given.pop("phase", "Available")}
    return {"metadata": meta, "spec": spec | given, "status": status}


def storage_class(
    name: str = "wait", mode: str = "WaitForFirstConsumer", provisioner: str = "disk", **given: Any
) -> Json:
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **given}


def csi_node(count: int | None, name: str = "n1", driver: str = "disk") -> Json:
    allocatable = {} if count is None else {"allocatable": {"count": count}}
    return {"metadata": {"name": name}, "spec": {"drivers": [{"name": driver, "nodeID": name, **allocatable}]}}


def using(*claims: str, **given: Any) -> Json:
    volumes = [{"name": f"v{index}", "persistentVolumeClaim": {"claimName": one}} for index, one in enumerate(claims)]
    return pod(volumes=volumes, **given)


def space(name: str, **labels: str) -> Json:
    return {"metadata": {"name": name, "labels": labels}}


def answer(asking: Json, on: str = "n1", nodes: list[Json] | None = None, *others: Json, **pieces: Any) -> list[str]:
    """The refusals of a pod on one of the nodes, among other pods."""
    cluster = Cluster(nodes or [node()], others, **pieces)
    return refusals(cluster, asking, cluster.node(on))


# Nodes: cordons, names, taints, affinity

GPU_TAINT = taint("gpu", "big")


@pytest.mark.parametrize(
    ("tolerations", "given", "expected"),
    [
        pytest.param([], {"unschedulable": True}, ["NodeUnschedulable"], id="cordoned"),
        pytest.param(
            [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}],
            {"unschedulable": True},
            [],
            id="cordoned-tolerated",
        ),
        pytest.param(
            [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute"}],
            {"unschedulable": True},
            ["NodeUnschedulable"],
            id="cordoned-tolerated-with-another-effect",
        ),
        pytest.param([{"operator": "Exists"}], {"unschedulable": True}, [], id="cordoned-everything-tolerated"),
        pytest.param(
            [],
            {"unschedulable": True, "taints": [taint("node.kubernetes.io/unschedulable")]},
            ["NodeUnschedulable", "TaintToleration"],
            id="cordoned-and-tainted",
        ),
        pytest.param([], {"taints": [GPU_TAINT]}, ["TaintToleration"], id="no-schedule"),
        pytest.param([], {"taints": [taint("gpu", effect="NoExecute")]}, ["TaintToleration"], id="no-execute"),
        pytest.param([], {"taints": [taint("gpu", effect="PreferNoSchedule")]}, [], id="prefer-no-schedule"),
        pytest.param([{"key": "gpu", "value": "big"}], {"taints": [GPU_TAINT]}, [], id="equal-is-the-default"),
        pytest.param(
            [{"key": "gpu", "operator": "Equal", "value": "small"}],
            {"taints": [GPU_TAINT]},
            ["TaintToleration"],
            id="equal-other-value",
        ),
        pytest.param([{"key": "gpu", "operator": "Exists"}], {"taints": [GPU_TAINT]}, [], id="exists"),
        pytest.param(
            [{"key": "tpu", "operator": "Exists"}], {"taints": [GPU_TAINT]}, ["TaintToleration"], id="other-key"
        ),
        pytest.param(
            [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}],
            {"taints": [GPU_TAINT]},
            ["TaintToleration"],
            id="other-effect",
        ),
        pytest.param(
            [{"key": "gpu", "operator": "Exists"}],
            {"taints": [GPU_TAINT, taint("spot")]},
            ["TaintToleration"],
            id="one-of-two-tolerated",
        ),
        pytest.param(
            [{"operator": "Exists", "effect": "NoSchedule"}], {"taints": [GPU_TAINT]}, [], id="all-keys-of-an-effect"
        ),
        pytest.param(
            [{"key": "score", "operator": "Gt", "value": "5"}], {"taints": [taint("score", "6")]}, [], id="gt-above"
        ),
        pytest.param(
            [{"key": "score", "operator": "Gt", "value": "5"}],
            {"taints": [taint("score", "5")]},
            ["TaintToleration"],
            id="gt-equal",
        ),
        pytest.param(
            [{"key": "score", "operator": "Lt", "value": "5"}], {"taints": [taint("score", "-6")]}, [], id="lt-below"
        ),
        pytest.param(
            [{"key": "score", "operator": "Lt", "value": "5"}],
            {"taints": [taint("score", "low")]},
            ["TaintToleration"],
            id="lt-no-number",
        ),
        pytest.param(
            [{"key": "score", "operator": "Gt", "value": "5"}],
            {"taints": [taint("score", "007")]},
            ["TaintToleration"],
            id="gt-leading-zero-is-no-number",
        ),
        pytest.param(
            [{"key": "score", "operator": "Gt", "value": "5"}],
            {"taints": [taint("score", "9223372036854775808")]},
            ["TaintToleration"],
            id="gt-beyond-int64",
        ),
        pytest.param(
            [{"key": "score", "operator": "Gt", "value": "5"}],
            {"taints": [taint("score")]},
            ["TaintToleration"],
            id="gt-no-value",
        ),
    ],
)
def test_taints(tolerations: list[Json], given: Json, expected: list[str]) -> None:
    assert expected == answer(pod(tolerations=tolerations), "n1", [node(**given)])


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        pytest.param({"nodeSelector": {"disk": "ssd"}}, True, id="selector"),
        pytest.param({"nodeSelector": {"disk": "hdd"}}, False, id="selector-other-value"),
        pytest.param({"nodeSelector": {"arch": "arm"}}, False, id="selector-absent"),
        pytest.param({"affinity": select(expressions(where("disk", "In", "hdd", "ssd")))}, True, id="in"),
        pytest.param({"affinity": select(expressions(where("arch", "In", "arm")))}, False, id="in-absent"),
        pytest.param({"affinity": select(expressions(where("disk", "NotIn", "ssd")))}, False, id="not-in"),
        pytest.param({"affinity": select(expressions(where("arch", "NotIn", "arm")))}, True, id="not-in-absent"),
        pytest.param({"affinity": select(expressions(where("disk", "Exists")))}, True, id="exists"),
        pytest.param({"affinity": select(expressions(where("arch", "Exists")))}, False, id="exists-absent"),
        pytest.param({"affinity": select(expressions(where("disk", "DoesNotExist")))}, False, id="does-not-exist"),
        pytest.param(
            {"affinity": select(expressions(where("arch", "DoesNotExist")))}, True, id="does-not-exist-absent"
        ),
        pytest.param({"affinity": select(expressions(where("gen", "Gt", "4")))}, True, id="gt"),
        pytest.param({"affinity": select(expressions(where("gen", "Gt", "5")))}, False, id="gt-equal"),
        pytest.param({"affinity": select(expressions(where("gen", "Lt", "10")))}, True, id="lt-by-number"),
        pytest.param({"affinity": select(expressions(where("disk", "Gt", "1")))}, False, id="gt-label-is-no-number"),
        pytest.param({"affinity": select(expressions(where("arch", "Lt", "1")))}, False, id="lt-absent"),
        pytest.param({"affinity": select(expressions(where("padded", "Lt", "8")))}, True, id="lt-leading-zeros"),
        pytest.param(
            {"affinity": select(expressions(where("gen", "Gt", "x")), expressions(where("disk", "Exists")))},
            True,
            id="gt-value-is-no-number-spoils-its-term-only",
        ),
        pytest.param(
            {"affinity": select(expressions(where("disk", "Exists"), where("arch", "Exists")))},
            False,
            id="and-in-a-term",
        ),
        pytest.param(
            {"affinity": select(expressions(where("arch", "Exists")), expressions(where("disk", "Exists")))},
            True,
            id="or-of-terms",
        ),
        pytest.param({"affinity": select({})}, False, id="empty-term"),
        pytest.param({"affinity": select({}, expressions(where("disk", "Exists")))}, True, id="empty-term-and-another"),
        pytest.param({"affinity": select()}, False, id="no-terms"),
        pytest.param({"affinity": {"nodeAffinity": {}}}, True, id="nothing-required"),
        pytest.param({"affinity": select(fields("In", "n1"))}, True, id="name"),
        pytest.param({"affinity": select(fields("In", "n2"))}, False, id="other-name"),
        pytest.param({"affinity": select(fields("NotIn", "n1"))}, False, id="not-the-name"),
        pytest.param(
            {"affinity": select({**expressions(where("arch", "Exists")), **fields("In", "n1")})},
            False,
            id="name-and-expression",
        ),
        pytest.param(
            {"nodeSelector": {"disk": "hdd"}, "affinity": select(expressions(where("disk", "Exists")))},
            False,
            id="selector-and-affinity",
        ),
    ],
)
def test_node_affinity(spec: Json, fits: bool) -> None:
    given = node(labels={"disk": "ssd", "gen": "5", "padded": "007"})

    assert ([] if fits else ["NodeAffinity"]) == answer(pod(**spec), "n1", [given])


def test_a_pod_that_names_another_node_is_refused() -> None:
    assert answer(pod(nodeName="n2")) == ["NodeName"]


# Host ports


@pytest.mark.parametrize(
    ("wanted", "used", "fits"),
    [
        pytest.param([port()], [port()], False, id="same"),
        pytest.param([port()], [port(81)], True, id="other-number"),
        pytest.param([port()], [port(protocol="UDP")], True, id="other-protocol"),
        pytest.param([port(protocol="TCP")], [port()], False, id="tcp-is-the-default"),
        pytest.param([port(address="10.0.0.1")], [port(address="10.0.0.2")], True, id="other-address"),
        pytest.param([port(address="10.0.0.1")], [port()], False, id="all-addresses-used"),
        pytest.param([port(address="0.0.0.0")], [port(address="10.0.0.1")], False, id="all-addresses-wanted"),
        pytest.param([port(address="::")], [port(address="10.0.0.1")], True, id="all-of-ipv6-is-not-all"),
        pytest.param([port(address="::")], [port()], False, id="all-of-ipv6-and-all"),
        pytest.param([port(81), port(80)], [port()], False, id="second-port"),
        pytest.param([{"containerPort": 80}], [port()], True, id="no-host-port"),
    ],
)
def test_host_ports(wanted: list[Json], used: list[Json], fits: bool) -> None:
    assert ([] if fits else ["NodePorts"]) == answer(pod(ports=wanted), "n1", None, pod("q", "n1", ports=used))


@pytest.mark.parametrize(
    ("other", "fits"),
    [
        pytest.param(pod("q", "n1", initContainers=[init({}, ports=[port()])]), True, id="init-container"),
        pytest.param(pod("q", "n1", initContainers=[init({}, sidecar=True, ports=[port()])]), False, id="sidecar"),
        pytest.param(pod("q", "n2", ports=[port()]), True, id="on-another-node"),
        pytest.param(pod("q", ports=[port()]), True, id="pending"),
        pytest.param(pod("q", "n1", ports=[port()], status={"phase": "Succeeded"}), True, id="finished"),
        pytest.param(pod("q", "n1", ports=[port()], meta=ENDING), False, id="terminating"),
        pytest.param(pod("q", "n1", ports=[{"containerPort": 80}], hostNetwork=True), False, id="host-network"),
        pytest.param(pod("q", "n1", namespace="other", ports=[port()]), False, id="of-another-namespace"),
    ],
)
def test_whose_host_ports_count(other: Json, fits: bool) -> None:
    cluster = Cluster([node(), node("n2")], [other])

    assert ([] if fits else ["NodePorts"]) == refusals(cluster, pod(ports=[port()]), cluster.node("n1"))


# Resources


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("1500m", "3/2"),
        ("1Ki", 1024),
        ("1.5Gi", 1610612736),
        ("1e3", 1000),
        ("2E", 2 * 10**18),
        (".5", "1/2"),
        ("1n", "1/1000000000"),
        ("0.1n", "1/1000000000"),
        ("-2", -2),
        (3, 3),
    ],
)
def test_quantities(text: str | int, value: str | int) -> None:
    assert Fraction(value) == amount(text)


def test_a_text_that_is_no_quantity_is_an_error() -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        amount("1 Gi")


RESIZED = [{"name": "main", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(pod(), {}, id="nothing"),
        pytest.param(pod(requests={"cpu": "0.1", "memory": "1Ki"}), {"cpu": 100, "memory": 1024}, id="units"),
        pytest.param(pod(requests={"cpu": "1u", "memory": "1500m"}), {"cpu": 1, "memory": 2}, id="rounded-up"),
        pytest.param(
            pod(requests={"cpu": "500u"}, initContainers=[init({"cpu": "500u"}, sidecar=True)]),
            {"cpu": 1},
            id="rounded-after-the-sum",
        ),
        pytest.param(pod(limits={"cpu": "1"}, requests={"memory": "1"}), {"cpu": 1000, "memory": 1}, id="from-limits"),
        pytest.param(pod(limits={"cpu": "2"}, requests={"cpu": "1"}), {"cpu": 1000}, id="requests-before-limits"),
        pytest.param(
            pod(requests={"cpu": "1"}, initContainers=[init({"cpu": "3", "memory": "5"})]),
            {"cpu": 3000, "memory": 5},
            id="init-is-a-maximum",
        ),
        pytest.param(
            pod(requests={"cpu": "1"}, initContainers=[init({"cpu": "2"}), init({"cpu": "2"})]),
            {"cpu": 2000},
            id="inits-run-one-by-one",
        ),
        pytest.param(
            pod(requests={"cpu": "1"}, initContainers=[init({"cpu": "2"}, sidecar=True)]),
            {"cpu": 3000},
            id="sidecar-adds",
        ),
        pytest.param(
            pod(requests={"cpu": "1"}, initContainers=[init({"cpu": "2"}, sidecar=True), init({"cpu": "3"})]),
            {"cpu": 5000},
            id="init-after-sidecar",
        ),
        pytest.param(
            pod(requests={"cpu": "1"}, initContainers=[init({"cpu": "3"}), init({"cpu": "2"}, sidecar=True)]),
            {"cpu": 3000},
            id="init-before-sidecar",
        ),
        pytest.param(
            pod(requests={"cpu": "1"}, overhead={"cpu": "250m", "memory": "1"}),
            {"cpu": 1250, "memory": 1},
            id="overhead",
        ),
        pytest.param(
            pod(requests={"cpu": "1", "memory": "7"}, resources={"requests": {"cpu": "2"}}, overhead={"cpu": "1"}),
            {"cpu": 3000, "memory": 7},
            id="pod-level",
        ),
        pytest.param(
            pod(requests={"cpu": "1"}, resources={"limits": {"cpu": "2", "memory": "9"}}),
            {"cpu": 1000, "memory": 9},
            id="pod-level-limits",
        ),
        pytest.param(
            pod(requests={"example.com/gpu": "1", "hugepages-2Mi": "4Mi", "storage": "1"}),
            {"example.com/gpu": 1, "hugepages-2Mi": 4194304},
            id="extended-and-unknown",
        ),
        pytest.param(pod(requests={"cpu": "1"}, status={"containerStatuses": RESIZED}), {"cpu": 3000}, id="resized"),
        pytest.param(
            pod(
                requests={"cpu": "5"},
                status={
                    "containerStatuses": RESIZED,
                    "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
                },
            ),
            {"cpu": 3000},
            id="resize-infeasible",
        ),
        pytest.param(
            pod(
                requests={"cpu": "5"},
                status={
                    "containerStatuses": RESIZED,
                    "conditions": [{"type": "PodResizePending", "reason": "Deferred"}],
                },
            ),
            {"cpu": 5000},
            id="resize-deferred",
        ),
        pytest.param(
            pod(
                resources={"requests": {"cpu": "1"}},
                status={"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "1"}},
            ),
            {"cpu": 2000},
            id="pod-level-resized",
        ),
    ],
)
def test_requests(given: Json, expected: dict[str, int]) -> None:
    assert expected == requests_of(given, use_status=True)


def test_the_status_of_a_pod_without_a_node_does_not_count() -> None:
    assert requests_of(pod(requests={"cpu": "1"}, status={"containerStatuses": RESIZED})) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("wanted", "others", "amounts", "fits"),
    [
        pytest.param({"cpu": "4", "memory": "8Gi"}, [], {}, True, id="exactly-all"),
        pytest.param({"cpu": "4001m"}, [], {}, False, id="a-milli-too-much"),
        pytest.param({"memory": "1"}, [pod("q", "n1", requests={"memory": "8Gi"})], {}, False, id="a-byte-too-much"),
        pytest.param({"cpu": "3"}, [pod("q", "n1", requests={"cpu": "1001m"})], {}, False, id="with-others"),
        pytest.param(
            {"cpu": "0"}, [pod("q", "n1", requests={"cpu": "9"})], {}, True, id="zero-on-an-overcommitted-node"
        ),
        pytest.param({}, [pod("q", "n1", requests={"memory": "9Gi"})], {}, True, id="nothing-wanted"),
        pytest.param({"cpu": "1"}, [pod("q", "n1", requests={"memory": "9Gi"})], {}, True, id="only-what-is-wanted"),
        pytest.param({}, [pod("q", "n1")], {"pods": "1"}, False, id="too-many-pods"),
        pytest.param(
            {}, [pod("q", "n1", status={"phase": "Failed"})], {"pods": "1"}, True, id="ended-pods-do-not-count"
        ),
        pytest.param({}, [], {"pods": "0"}, False, id="no-pods-at-all"),
        pytest.param({"example.com/gpu": "1"}, [], {}, False, id="no-such-device"),
        pytest.param({"example.com/gpu": "0"}, [], {}, True, id="no-device-wanted"),
        pytest.param({"example.com/gpu": "1"}, [], {"example.com/gpu": "1"}, True, id="device"),
        pytest.param({"hugepages-2Mi": "4Mi"}, [], {"hugepages-2Mi": "2Mi"}, False, id="huge-pages"),
        pytest.param({"ephemeral-storage": "11Gi"}, [], {}, False, id="ephemeral-storage"),
        pytest.param({"cpu": "1"}, [], {"cpu": "999999u"}, True, id="allocatable-is-rounded-up"),
        pytest.param(
            {"cpu": "2"}, [pod("q", "n1", requests={"cpu": "1u"})], {"cpu": "2"}, False, id="each-pod-is-rounded"
        ),
        pytest.param(
            {"cpu": "2"},
            [pod("q", "n1", requests={"cpu": "1"}, status={"containerStatuses": RESIZED})],
            {},
            False,
            id="others-by-their-status",
        ),
        pytest.param(
            {"cpu": "4"},
            [pod("q", "n1", requests={"cpu": "1"}, meta=ENDING)],
            {},
            False,
            id="terminating",
        ),
    ],
)
def test_resources(wanted: Json, others: list[Json], amounts: Json, fits: bool) -> None:
    given = [node(amounts=amounts)]

    assert ([] if fits else ["NodeResourcesFit"]) == answer(pod(requests=wanted), "n1", given, *others)


# Volumes

NO_CLAIM = ["VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"]
ZONAL = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "b"]}]}]
LOCAL = storage_class("wait", provisioner="kubernetes.io/no-provisioner")


@pytest.mark.parametrize(
    ("claim", "volumes", "kind", "zone", "expected"),
    [
        pytest.param(pvc(volume="v"), [pv(zones=["a"])], storage_class(), "a", [], id="bound"),
        pytest.param(pvc(volume="v"), [pv(zones=["b"])], storage_class(), "a", ["VolumeBinding"], id="bound-elsewhere"),
        pytest.param(pvc(volume="v"), [pv()], storage_class(), None, [], id="bound-anywhere"),
        pytest.param(
            pvc(volume="v"), [], storage_class(), "a", ["VolumeBinding", "VolumeZone"], id="bound-to-a-missing-volume"
        ),
        pytest.param(pvc(volume="v"), [pv(labels={ZONE: "b"})], storage_class(), "a", ["VolumeZone"], id="zone-label"),
        pytest.param(pvc(volume="v"), [pv(labels={ZONE: "b__a"})], storage_class(), "a", [], id="one-of-two-zones"),
        pytest.param(pvc(volume="v"), [pv(labels={ZONE: "b"})], storage_class(), None, [], id="node-without-a-zone"),
        pytest.param(
            pvc(volume="v"),
            [pv(labels={"failure-domain.beta.kubernetes.io/zone": "a"})],
            storage_class(),
            "a",
            [],
            id="old-zone-label-on-a-new-node",
        ),
        pytest.param(
            pvc(volume="v"),
            [pv(labels={"topology.kubernetes.io/region": "r"})],
            storage_class(),
            "a",
            ["VolumeZone"],
            id="region-that-the-node-has-not",
        ),
        pytest.param(pvc(), [], storage_class(), "a", [], id="waiting"),
        pytest.param(pvc(), [], storage_class(allowedTopologies=ZONAL), "b", [], id="waiting-zonal"),
        pytest.param(
            pvc(), [], storage_class(allowedTopologies=ZONAL), "c", ["VolumeBinding"], id="waiting-other-zone"
        ),
        pytest.param(pvc(), [], storage_class(allowedTopologies=ZONAL), None, ["VolumeBinding"], id="waiting-no-zone"),
        pytest.param(
            pvc(), [], storage_class(mode="Immediate"), "a", ["VolumeBinding", "VolumeZone"], id="immediate-and-unbound"
        ),
        pytest.param(
            pvc(storage_class="none"), [], storage_class(), "a", ["VolumeBinding", "VolumeZone"], id="unknown-class"
        ),
        pytest.param(pvc(storage_class=None), [], storage_class(), "a", ["VolumeBinding", "VolumeZone"], id="no-class"),
        pytest.param(
            pvc(volumeName="v"), [pv(zones=["a"])], storage_class(), "a", ["VolumeBinding"], id="not-yet-bound"
        ),
        pytest.param(pvc(), [], LOCAL, "a", ["VolumeBinding"], id="local-without-volumes"),
        pytest.param(pvc(), [pv(zones=["a"])], LOCAL, "a", [], id="local"),
        pytest.param(pvc(), [pv(zones=["b"])], LOCAL, "a", ["VolumeBinding"], id="local-elsewhere"),
        pytest.param(pvc(size="2Gi"), [pv(zones=["a"])], LOCAL, "a", ["VolumeBinding"], id="local-too-small"),
        pytest.param(pvc(), [pv(phase="Released")], LOCAL, "a", ["VolumeBinding"], id="local-not-available"),
        pytest.param(pvc(), [pv(storage_class="other")], LOCAL, "a", ["VolumeBinding"], id="local-of-another-class"),
        pytest.param(pvc(modes=["ReadWriteMany"]), [pv()], LOCAL, "a", ["VolumeBinding"], id="local-other-access-mode"),
        pytest.param(pvc(volumeMode="Block"), [pv()], LOCAL, "a", ["VolumeBinding"], id="local-other-volume-mode"),
        pytest.param(pvc(selector=WEB), [pv()], LOCAL, "a", ["VolumeBinding"], id="local-not-selected"),
        pytest.param(
            pvc(),
            [pv(claimRef={"namespace": "default", "name": "d"})],
            LOCAL,
            "a",
            ["VolumeBinding"],
            id="local-reserved",
        ),
        pytest.param(
            pvc(),
            [pv(claimRef={"namespace": "default", "name": "c"}, phase="Bound")],
            LOCAL,
            "a",
            [],
            id="reserved-for-it",
        ),
        pytest.param(
            pvc(meta={"annotations": {"volume.kubernetes.io/selected-node": "n1"}}),
            [],
            storage_class(),
            "a",
            [],
            id="selected",
        ),
        pytest.param(
            pvc(meta={"annotations": {"volume.kubernetes.io/selected-node": "n2"}}),
            [],
            storage_class(),
            "a",
            ["VolumeBinding"],
            id="selected-for-another-node",
        ),
        pytest.param(
            pvc(meta=ENDING),
            [],
            storage_class(),
            "a",
            ["VolumeBinding"],
            id="claim-being-deleted",
        ),
        pytest.param(pvc("d"), [], storage_class(), "a", NO_CLAIM, id="missing-claim"),
    ],
)
def test_claims(claim: Json, volumes: list[Json], kind: Json, zone: str | None, expected: list[str]) -> None:
    nodes = [node(zone=zone)]

    assert expected == answer(using("c"), "n1", nodes, pvcs=[claim], pvs=volumes, storage_classes=[kind])


def test_two_claims_do_not_share_a_local_volume() -> None:
    pieces: Any = {"pvcs": [pvc("c"), pvc("d")], "storage_classes": [LOCAL]}

    assert answer(using("c", "d"), pvs=[pv()], **pieces) == ["VolumeBinding"]
    assert answer(using("c", "d"), pvs=[pv(), pv("w")], **pieces) == []


def test_an_ephemeral_volume_needs_the_claim_of_its_pod() -> None:
    asking = pod(volumes=[{"name": "data", "ephemeral": {"volumeClaimTemplate": {}}}])
    owned = pvc("p-data", meta={"ownerReferences": [{"controller": True, "uid": "uid-p"}]})

    assert answer(asking, pvcs=[owned], storage_classes=[storage_class()]) == []
    assert answer(asking, pvcs=[pvc("p-data")], storage_classes=[storage_class()]) == [
        "NodeVolumeLimits",
        "VolumeBinding",
    ]
    assert answer(asking, storage_classes=[storage_class()]) == ["NodeVolumeLimits", "VolumeBinding"]


def test_binding_a_pod_binds_its_claims() -> None:
    cluster = Cluster([node(), node("n2")], [], pvcs=[pvc("c"), pvc("d")], pvs=[pv()], storage_classes=[LOCAL])

    assert replay(cluster, [(using("c"), "n1"), (using("d", name="q"), "n2")]) == [("q", "n2", ["VolumeBinding"])]


def test_a_claim_that_two_pods_share_waits_on_the_node_of_the_first() -> None:
    cluster = Cluster([node(), node("n2")], [], pvcs=[pvc("c")], storage_classes=[storage_class()])
    steps = [(using("c"), "n1"), (using("c", name="q"), "n2"), (using("c", name="r"), "n1")]

    assert replay(cluster, steps) == [("q", "n2", ["VolumeBinding"])]


ONCE = pvc("c", "v", modes=["ReadWriteOncePod"])


@pytest.mark.parametrize(
    ("claim", "other", "expected"),
    [
        pytest.param(ONCE, using("c", name="q", on="n2"), ["VolumeRestrictions"], id="in-use-on-any-node"),
        pytest.param(ONCE, using("c", name="q"), [], id="wanted-by-a-pending-pod"),
        pytest.param(ONCE, using("c", name="q", on="n2", status={"phase": "Failed"}), [], id="used-by-an-ended-pod"),
        pytest.param(ONCE, using("c", name="q", on="n2", namespace="other"), [], id="same-name-in-another-namespace"),
        pytest.param(
            ONCE,
            using("c", name="q", on="n2", meta=ENDING),
            ["VolumeRestrictions"],
            id="terminating",
        ),
        pytest.param(pvc("c", "v"), using("c", name="q", on="n1"), [], id="read-write-once"),
    ],
)
def test_read_write_once_pod(claim: Json, other: Json, expected: list[str]) -> None:
    assert expected == answer(using("c"), "n1", [node(), node("n2")], other, pvcs=[claim], pvs=[pv()])


def test_disks_of_the_old_kinds_are_mounted_once() -> None:
    def mounting(name: str, disk: Json, on: str | None = None) -> Json:
        return pod(name, on, volumes=[{"name": "d", **disk}])

    ebs: Json = {"awsElasticBlockStore": {"volumeID": "x"}}
    shared: Json = {"gcePersistentDisk": {"pdName": "x", "readOnly": True}}

    assert answer(mounting("p", ebs), "n1", None, mounting("q", ebs, "n1")) == ["VolumeRestrictions"]
    assert answer(mounting("p", shared), "n1", None, mounting("q", shared, "n1")) == []


@pytest.mark.parametrize(
    ("limit", "asking", "others", "fits"),
    [
        pytest.param(1, ["c"], [], True, id="within"),
        pytest.param(1, ["c"], [["d"]], False, id="reached"),
        pytest.param(1, ["c", "d"], [], False, id="both-of-one-pod"),
        pytest.param(1, ["c"], [["c"]], True, id="the-same-volume-counts-once"),
        pytest.param(2, ["c"], [["d"], ["d"]], True, id="shared-by-others"),
        pytest.param(None, ["c"], [["d"]], True, id="no-limit"),
        pytest.param(1, [], [["c"], ["d"]], True, id="nothing-to-attach"),
        pytest.param(1, ["waiting"], [["c"]], False, id="a-volume-to-come"),
        pytest.param(1, ["other"], [["c"]], True, id="another-driver"),
    ],
)
def test_volume_limits(limit: int | None, asking: list[str], others: list[list[str]], fits: bool) -> None:
    claims = [pvc("c", "v"), pvc("d", "w"), pvc("waiting"), pvc("other", storage_class="file")]
    kinds = [storage_class(), storage_class("file", provisioner="file")]
    present = [using(*names, name=f"q{index}", on="n1") for index, names in enumerate(others)]
    pieces: Any = {"pvcs": claims, "pvs": [pv(), pv("w")], "storage_classes": kinds, "csi_nodes": [csi_node(limit)]}

    assert ([] if fits else ["NodeVolumeLimits"]) == answer(using(*asking), "n1", None, *present, **pieces)


def test_a_node_without_csi_node_has_no_limits() -> None:
    pieces: Any = {"pvcs": [pvc("c", "v")], "pvs": [pv()], "csi_nodes": [csi_node(0, "n2")]}

    assert answer(using("c"), **pieces) == []


# Topology spread

THREE = [node("n1", "a"), node("n2", "b"), node("n3", "c")]


def webs(*on: str, **given: Any) -> list[Json]:
    """One web pod on each of the nodes."""
    return [pod(f"w{index}", name, **given) for index, name in enumerate(on)]


@pytest.mark.parametrize(
    ("constraints", "others", "feasible"),
    [
        pytest.param([spread()], [], "n1 n2 n3", id="nothing-there"),
        pytest.param([spread()], webs("n1"), "n2 n3", id="one-ahead"),
        pytest.param([spread(skew=2)], webs("n1"), "n1 n2 n3", id="skew-of-two"),
        pytest.param([spread()], webs("n1", "n2", "n3"), "n1 n2 n3", id="all-even"),
        pytest.param([spread()], webs("n1", namespace="other"), "n1 n2 n3", id="another-namespace"),
        pytest.param([spread()], webs("n1", meta=ENDING), "n1 n2 n3", id="terminating"),
        pytest.param([spread()], webs("n1", status={"phase": "Succeeded"}), "n1 n2 n3", id="finished"),
        pytest.param([spread(selector=None)], webs("n1", "n1"), "n1 n2 n3", id="no-selector-matches-nothing"),
        pytest.param([spread(selector={})], webs("n1", "n1"), "n1 n2 n3", id="an-empty-selector-counts-nothing"),
        pytest.param(
            [spread(selector={"matchLabels": {"app": "db"}})],
            webs("n1", app="db"),
            "n1 n2 n3",
            id="not-itself-one-ahead",
        ),
        pytest.param(
            [spread(selector={"matchLabels": {"app": "db"}})],
            webs("n1", "n1", app="db"),
            "n2 n3",
            id="not-itself-two-ahead",
        ),
        pytest.param([spread(whenUnsatisfiable="ScheduleAnyway")], webs("n1", "n1"), "n1 n2 n3", id="schedule-anyway"),
        pytest.param([spread(minDomains=4)], webs("n1", "n2", "n3"), "", id="too-few-domains"),
        pytest.param([spread(minDomains=4)], [], "n1 n2 n3", id="too-few-domains-first"),
        pytest.param([spread(minDomains=3)], webs("n1", "n2", "n3"), "n1 n2 n3", id="enough-domains"),
        pytest.param([spread("rack")], [], "", id="key-on-no-node"),
        pytest.param([spread(), spread(HOSTNAME)], webs("n1"), "n2 n3", id="two-constraints"),
        pytest.param([spread(), spread("rack")], [], "", id="one-key-of-two"),
        pytest.param(
            [spread(matchLabelKeys=["version"])], webs("n1", labels={"version": "v2"}), "n1 n2 n3", id="another-version"
        ),
        pytest.param(
            [spread(matchLabelKeys=["version"])], webs("n1", labels={"version": "v1"}), "n2 n3", id="same-version"
        ),
        pytest.param([spread(matchLabelKeys=["none"])], webs("n1"), "n2 n3", id="label-key-that-the-pod-has-not"),
        pytest.param(
            [spread(selector={}, matchLabelKeys=["version"])],
            webs("n1", labels={"version": "v1"}),
            "n2 n3",
            id="label-key-and-empty-selector",
        ),
        pytest.param(
            [spread(selector=None, matchLabelKeys=["version"])],
            webs("n1", "n1", labels={"version": "v1"}),
            "n1 n2 n3",
            id="label-key-without-selector",
        ),
    ],
)
def test_spread(constraints: list[Json], others: list[Json], feasible: str) -> None:
    asking = pod(labels={"version": "v1"}, topologySpreadConstraints=constraints)

    assert feasible.split() == feasible_nodes(Cluster(THREE, others), asking)


TAINTED = [node("n1", "a"), node("n2", "b", taints=[taint("gpu")])]
SELECTED = {"nodeSelector": {ZONE: "a"}}


@pytest.mark.parametrize(
    ("nodes", "given", "others", "expected"),
    [
        pytest.param(TAINTED, spread(), webs("n1"), ["PodTopologySpread"], id="taints-are-ignored"),
        pytest.param(TAINTED, spread(nodeTaintsPolicy="Honor"), webs("n1"), [], id="taints-honored"),
        pytest.param(
            [node("n1", "a"), node("n2", "b", unschedulable=True)],
            spread(nodeTaintsPolicy="Honor"),
            webs("n1"),
            ["PodTopologySpread"],
            id="a-cordon-is-no-taint",
        ),
        pytest.param(THREE, spread() | {"select": SELECTED}, webs("n1"), [], id="affinity-honored"),
        pytest.param(
            THREE,
            spread(nodeAffinityPolicy="Ignore") | {"select": SELECTED},
            webs("n1"),
            ["PodTopologySpread"],
            id="affinity-ignored",
        ),
        pytest.param(
            [node("n1", "a"), node("n2", None)], spread(), webs("n1"), [], id="a-node-without-the-key-is-no-domain"
        ),
        pytest.param([node("n1", "a"), node("n2", "a")], spread(), webs("n2", "n2"), [], id="one-domain-of-two-nodes"),
        pytest.param(
            [node("n1", "a"), node("n2", "b"), node("n3", "b", taints=[taint("gpu")])],
            spread(nodeTaintsPolicy="Honor"),
            webs("n1", "n3"),
            ["PodTopologySpread"],
            id="pods-on-excluded-nodes-do-not-count",
        ),
    ],
)
def test_which_nodes_are_domains(nodes: list[Json], given: Json, others: list[Json], expected: list[str]) -> None:
    constraint = {key: value for key, value in given.items() if key != "select"}
    asking = pod(topologySpreadConstraints=[constraint], **given.get("select", {}))

    assert expected == answer(asking, "n1", nodes, *others)


def test_nodes_without_all_keys_of_all_constraints_are_left_out() -> None:
    nodes = [node("n1", "a", labels={"rack": "1"}), node("n2", "b")]
    both = [spread(), spread("rack", 9)]

    assert answer(pod(topologySpreadConstraints=both), "n1", nodes, *webs("n1")) == []
    assert answer(pod(topologySpreadConstraints=both[:1]), "n1", nodes, *webs("n1")) == ["PodTopologySpread"]


# Pod affinity

PAIR = [node("n1", "a"), node("n2", "a"), node("n3", "b"), node("n4", None)]
SPACES = [space("default"), space("other", team="x"), space("third", team="y")]
DB = {"matchLabels": {"app": "db"}}
V1 = {"version": "v1"}
V2 = {"version": "v2"}


@pytest.mark.parametrize(
    ("affinity", "others", "feasible"),
    [
        pytest.param(near(term()), [], "n1 n2 n3", id="first-of-its-own-group"),
        pytest.param(near(term(selector=DB)), [], "", id="first-of-another-group"),
        pytest.param(near(term()), webs("n1"), "n1 n2", id="same-zone"),
        pytest.param(near(term(HOSTNAME)), webs("n1"), "n1", id="same-node"),
        pytest.param(near(term()), webs("n4"), "n1 n2 n3", id="a-match-on-a-node-without-the-key-is-none"),
        pytest.param(near(term()), webs("n1", meta=ENDING), "n1 n2", id="terminating-counts"),
        pytest.param(near(term()), webs("n1", status={"phase": "Failed"}), "n1 n2 n3", id="ended-does-not-count"),
        pytest.param(near(term()), webs("n1", namespace="other"), "n1 n2 n3", id="another-namespace"),
        pytest.param(near(term(selector={})), webs("n3", app="x"), "n3", id="empty-selector"),
        pytest.param(near(term(selector=None)), webs("n1"), "", id="no-selector"),
        pytest.param(
            near(term(), term(selector=DB)), [*webs("n1"), pod("d", "n1", app="db")], "", id="all-terms-by-one-pod"
        ),
        pytest.param(near(term(), term(HOSTNAME)), webs("n2"), "n2", id="two-keys"),
        pytest.param(near(term(), term(HOSTNAME)), webs("n4"), "", id="two-keys-of-which-one-is-found"),
        pytest.param(apart(term()), webs("n1"), "n3 n4", id="other-zone"),
        pytest.param(apart(term(HOSTNAME)), webs("n1"), "n2 n3 n4", id="other-node"),
        pytest.param(apart(term(selector=None)), webs("n1"), "n1 n2 n3 n4", id="apart-from-nothing"),
        pytest.param(apart(term(selector={})), webs("n1", app="x"), "n3 n4", id="apart-from-all"),
        pytest.param(
            apart(term(), term(HOSTNAME, DB)), [*webs("n1"), pod("d", "n3", app="db")], "n4", id="any-anti-term"
        ),
        pytest.param(apart(term()), webs("n4"), "n1 n2 n3 n4", id="apart-from-a-node-without-the-key"),
        pytest.param(apart(term()), webs("n1", meta=ENDING), "n3 n4", id="apart-from-terminating"),
        pytest.param(
            {}, [pod("x", "n1", app="x", affinity=apart(term()))], "n3 n4", id="anti-affinity-of-a-pod-that-is-there"
        ),
        pytest.param(
            {}, [pod("x", "n1", app="x", affinity=near(term(selector=DB)))], "n1 n2 n3 n4", id="affinity-of-one"
        ),
        pytest.param(
            {},
            [pod("x", "n1", app="x", affinity=apart(term()), status={"phase": "Failed"})],
            "n1 n2 n3 n4",
            id="anti-affinity-of-an-ended-pod",
        ),
        pytest.param(
            {},
            [pod("x", "n1", namespace="other", affinity=apart(term()))],
            "n1 n2 n3 n4",
            id="anti-affinity-of-another-namespace",
        ),
        pytest.param(
            {},
            [pod("x", "n1", namespace="other", affinity=apart(term(namespaces=["default"])))],
            "n3 n4",
            id="anti-affinity-of-another-namespace-that-names-ours",
        ),
        pytest.param(apart(term(namespaces=["other"])), webs("n1"), "n1 n2 n3 n4", id="named-namespaces-replace-ours"),
        pytest.param(apart(term(namespaces=["other"])), webs("n1", namespace="other"), "n3 n4", id="named-namespace"),
        pytest.param(apart(term(namespaceSelector={})), webs("n1", namespace="third"), "n3 n4", id="all-namespaces"),
        pytest.param(
            apart(term(namespaceSelector={})),
            webs("n1", namespace="unknown"),
            "n3 n4",
            id="all-namespaces-even-unknown",
        ),
        pytest.param(
            apart(term(namespaceSelector={"matchLabels": {"team": "x"}})),
            [*webs("n1", namespace="third"), pod("o", "n3", namespace="other")],
            "n1 n2 n4",
            id="selected-namespaces",
        ),
        pytest.param(
            apart(term(namespaceSelector={"matchLabels": {"team": "x"}}, namespaces=["third"])),
            [*webs("n1", namespace="third"), pod("o", "n3", namespace="other")],
            "n4",
            id="selected-and-named-namespaces",
        ),
        pytest.param(
            apart(term(namespaceSelector={"matchLabels": {"team": "x"}})),
            webs("n1", namespace="unknown"),
            "n1 n2 n3 n4",
            id="unknown-namespaces-are-not-selected",
        ),
        pytest.param(
            apart(term(namespaceSelector=expressions(where("team", "DoesNotExist")))),
            webs("n1", namespace="third"),
            "n3 n4",
            id="a-selector-that-matches-no-labels-selects-all-namespaces",
        ),
        pytest.param(
            {},
            [
                pod(
                    "x",
                    "n1",
                    namespace="other",
                    affinity=apart(term(namespaceSelector=expressions(where("team", "Exists")))),
                )
            ],
            "n1 n2 n3 n4",
            id="namespace-selector-of-a-pod-that-is-there",
        ),
        pytest.param(
            {},
            [pod("x", "n1", namespace="other", affinity=apart(term(namespaceSelector={})))],
            "n3 n4",
            id="all-namespaces-of-a-pod-that-is-there",
        ),
        pytest.param(apart(term(matchLabelKeys=["version"])), webs("n1", labels=V1), "n3 n4", id="same-version"),
        pytest.param(
            apart(term(matchLabelKeys=["version"])), webs("n1", labels=V2), "n1 n2 n3 n4", id="another-version"
        ),
        pytest.param(apart(term(matchLabelKeys=["none"])), webs("n1"), "n3 n4", id="label-key-that-the-pod-has-not"),
        pytest.param(
            apart(term(mismatchLabelKeys=["version"])), webs("n1", labels=V1), "n1 n2 n3 n4", id="not-same-version"
        ),
        pytest.param(
            apart(term(mismatchLabelKeys=["version"])), webs("n1", labels=V2), "n3 n4", id="mismatched-version"
        ),
        pytest.param(
            apart(term(selector={**WEB, **expressions(where("version", "In", "v2"))}, matchLabelKeys=["version"])),
            webs("n1", labels=V2),
            "n3 n4",
            id="stored-label-keys-stay",
        ),
        pytest.param(
            {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term()}]
                }
            },
            webs("n1", "n3"),
            "n1 n2 n3 n4",
            id="preferences-refuse-nothing",
        ),
    ],
)
def test_pod_affinity(affinity: Json, others: list[Json], feasible: str) -> None:
    cluster = Cluster(PAIR, others, SPACES)

    assert feasible.split() == feasible_nodes(cluster, pod(labels=V1, affinity=affinity))
    for name in PAIR:
        assert refusals(cluster, pod(labels=V1, affinity=affinity), name) in ([], ["InterPodAffinity"])


# Pods that wait, and pods that are promised a node


def test_gated_pods_and_pods_with_devices_are_refused_everywhere() -> None:
    assert answer(pod(schedulingGates=[{"name": "x"}])) == ["SchedulingGates"]
    assert answer(pod(resourceClaims=[{"name": "x", "resourceClaimName": "y"}])) == ["DynamicResources"]
    assert answer(pod(schedulingGates=[], resourceClaims=[])) == []


def promised(name: str = "q", priority: int = 0, **given: Any) -> Json:
    return pod(name, priority=priority, status={"nominatedNodeName": "n1"}, **given)


@pytest.mark.parametrize(
    ("asking", "other", "expected"),
    [
        pytest.param(
            pod(requests={"cpu": "2"}), promised(requests={"cpu": "3"}), ["NodeResourcesFit"], id="same-priority"
        ),
        pytest.param(pod(requests={"cpu": "2"}, priority=1), promised(requests={"cpu": "3"}), [], id="lower-priority"),
        pytest.param(
            pod(requests={"cpu": "2"}, priority=1),
            promised(priority=2, requests={"cpu": "3"}),
            ["NodeResourcesFit"],
            id="higher",
        ),
        pytest.param(pod(ports=[port()]), promised(ports=[port()]), ["NodePorts"], id="port"),
        pytest.param(pod(affinity=apart(term())), promised(), ["InterPodAffinity"], id="anti-affinity"),
        pytest.param(
            pod(affinity=near(term(selector=DB))), promised(app="db"), ["InterPodAffinity"], id="no-affinity-to-it"
        ),
        pytest.param(pod(), promised(affinity=apart(term())), [], id="its-anti-affinity-alone-is-overlooked"),
        pytest.param(
            pod(affinity=apart(term(selector=DB))),
            promised(affinity=apart(term())),
            ["InterPodAffinity"],
            id="its-anti-affinity-beside-ours",
        ),
        pytest.param(pod(topologySpreadConstraints=[spread()]), promised(), ["PodTopologySpread"], id="spread"),
        pytest.param(pod("q", requests={"cpu": "2"}), promised(requests={"cpu": "3"}), [], id="itself"),
    ],
)
def test_nominated_pods(asking: Json, other: Json, expected: list[str]) -> None:
    cluster = Cluster([node(), node("n2", "b")], [other])

    assert expected == refusals(cluster, asking, cluster.node("n1"))
    assert refusals(cluster, asking, cluster.node("n1"), nominated=False) in (
        [],
        ["InterPodAffinity"] if "podAffinity" in asking["spec"].get("affinity", {}) else [],
    )


def test_all_refusals_are_named_in_the_order_of_the_scheduler() -> None:
    asking = pod(
        nodeName="n2",
        nodeSelector={"x": "y"},
        requests={"cpu": "9"},
        ports=[port()],
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}],
        topologySpreadConstraints=[spread("rack")],
        affinity=near(term("rack")),
        schedulingGates=[{"name": "x"}],
        resourceClaims=[{"name": "x"}],
    )
    given = node(unschedulable=True, taints=[GPU_TAINT])

    assert answer(asking, "n1", [given], pod("q", "n1", ports=[port()])) == list(PREDICATES)


# Placing and planning


def template(price: int = 10, zone: str = "a", pool: str = "default", **amounts: str) -> Offering:
    made = node("x", zone, amounts=amounts)
    del made["metadata"]["name"]
    return Offering(made, price, pool)


def same(count: int, **given: Any) -> list[Json]:
    return [pod(f"p{index}", **given) for index in range(count)]


def greedy_count(given: list[Json], amounts: Json, count: int = 20) -> int:
    """How many of many equal nodes are used when pods are put on the first node that fits."""
    nodes = [node(f"n{index:02}", amounts=amounts) for index in range(count)]
    return len({where for _, where in place_greedily(Cluster(nodes), given) if where is not None})


@pytest.mark.parametrize(
    ("pods", "amounts", "nodes"),
    [
        pytest.param(same(20, requests={"cpu": "10m"}), {"pods": "10"}, 2, id="62-ten-pods-per-node"),
        pytest.param(same(8, ports=[port(5555)]), {}, 8, id="63-host-ports"),
        pytest.param(same(10, requests={"cpu": "500m"}), {"cpu": "1"}, 5, id="65-two-large-pods-per-node"),
    ],
)
def test_estimator_cases(pods: list[Json], amounts: Json, nodes: int) -> None:
    assert nodes == greedy_count(pods, amounts)


def test_large_pods_fill_the_nodes_that_are_allowed() -> None:
    """Case 65: ten of 500m and ten of 50m, at most five nodes of one cpu."""
    small = [pod(f"s{index}", requests={"cpu": "50m"}) for index in range(10)]
    nodes = [node(f"n{index}", amounts={"cpu": "1", "pods": "110"}) for index in range(5)]
    placed = place_greedily(Cluster(nodes), [*same(10, requests={"cpu": "500m"}), *small])

    assert [name for name, where in placed if where is not None] == [f"p{index}" for index in range(10)]


@pytest.mark.parametrize(
    ("constraint", "pods", "nodes", "used"),
    [
        pytest.param(spread(HOSTNAME, 2), 8, 4, 4, id="66-hostname-skew-2"),
        pytest.param(spread(HOSTNAME, minDomains=3), 12, 3, 3, id="66-hostname-min-domains-3"),
    ],
)
def test_hostname_spread_cases(constraint: Json, pods: int, nodes: int, used: int) -> None:
    given = same(pods, requests={"cpu": "200m"}, topologySpreadConstraints=[constraint])

    assert used == greedy_count(given, {"pods": "110"}, nodes)


def test_a_zone_that_is_ahead_takes_no_more_than_the_skew() -> None:
    """Case 66, zones: beside an empty zone without room, two pods are placed on one node."""
    nodes = [node("n1", "a"), node("n2", "b", amounts={"pods": "0"})]
    placed = place_greedily(Cluster(nodes), same(8, topologySpreadConstraints=[spread(skew=2)]))

    assert [where for _, where in placed] == ["n1", "n1", *[None] * 6]


@pytest.mark.parametrize(
    ("pods", "offerings", "limits", "price"),
    [
        pytest.param([], [template()], None, 0, id="nothing-to-place"),
        pytest.param(same(2, requests={"cpu": "2"}), [template()], None, 10, id="both-on-one"),
        pytest.param(same(3, requests={"cpu": "2"}), [template()], None, 20, id="three-on-two"),
        pytest.param(
            same(2, requests={"cpu": "3"}), [template(), template(15, cpu="8")], None, 15, id="one-large-is-cheaper"
        ),
        pytest.param(
            same(2, requests={"cpu": "3"}), [template(), template(25, cpu="8")], None, 20, id="two-small-are-cheaper"
        ),
        pytest.param(same(1, requests={"cpu": "9"}), [template()], None, None, id="too-large"),
        pytest.param(same(3, affinity=apart(term(HOSTNAME))), [template()], None, 30, id="apart"),
        pytest.param(same(2, affinity=apart(term())), [template()], None, None, id="apart-in-one-zone"),
        pytest.param(
            same(2, affinity=apart(term())), [template(), template(12, "b")], None, 22, id="apart-in-two-zones"
        ),
        pytest.param(
            [pod("p", affinity=near(term(selector=DB))), pod("d", app="db")],
            [template()],
            None,
            10,
            id="order-is-found",
        ),
        pytest.param(same(2, ports=[port()]), [template()], {"default": {"nodes": 1}}, None, id="limited-nodes"),
        pytest.param(
            same(2, ports=[port()]),
            [template(), template(99, pool="other")],
            {"default": {"cpu": "7"}},
            109,
            id="limited-cpu",
        ),
    ],
)
def test_cheapest_plan(pods: list[Json], offerings: list[Offering], limits: Any, price: int | None) -> None:
    assert price == cheapest_plan(Cluster(), pods, offerings, limits)


def test_existing_nodes_cost_nothing() -> None:
    cluster = Cluster([node()])

    assert cheapest_plan(cluster, same(2, requests={"cpu": "3"}), [template()]) == 10
    assert [name["metadata"]["name"] for name in cluster.nodes] == ["n1"]


# Random clusters


def test_random_clusters_are_repeatable() -> None:
    def made() -> str:
        return json.dumps(clusters.random_cluster(random.Random(7), nodes=4, bound=6, pending=5))

    assert made() == made()


def test_random_clusters_have_every_refusal_and_pods_that_fit() -> None:
    seen: dict[str, int] = {}
    for seed in range(120):
        given = clusters.random_cluster(random.Random(seed), nodes=5, bound=8, pending=5)
        cluster = Cluster.from_json(given)
        for asking in given["pending"]:
            for one in cluster.nodes:
                for name in refusals(cluster, asking, one) or ["fits"]:
                    seen[name] = seen.get(name, 0) + 1

    assert {"fits", *PREDICATES} - {"NodeName"} == set(seen)
    assert seen["fits"] > 500


MARKS = {
    "taints": '"taints"',
    "cordon": '"unschedulable": true',
    "node-selector": '"nodeSelector"',
    "node-affinity": '"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk"',
    "host-ports": '"hostIP"',
    "extended": "example.com/gpu",
    "ephemeral-storage": '"ephemeral-storage": "11G"',
    "hugepages": "hugepages-2Mi",
    "init": '"name": "init"',
    "sidecar": '"name": "sidecar"',
    "overhead": '"runtimeClassName"',
    "pod-level": '"terminationGracePeriodSeconds": 0, "resources"',
    "resize": '"allocatedResources"',
    "limits": '"name": "second"',
    "spread": '"topologySpreadConstraints"',
    "affinity": '"podAffinity"',
    "anti-affinity": '"podAntiAffinity"',
    "namespaces": '"namespaceSelector"',
    "label-keys": '"matchLabelKeys"',
    "terminating": '"deletionTimestamp"',
    "finished": '"Succeeded"',
    "volumes": '"claimName"',
    "rwop": '"ReadWriteOncePod"',
    "csi-limits": '"CSINode"',
    "gates": '"schedulingGates"',
    "resource-claims": '"resourceClaims"',
    "priorities": '"priorityClassName"',
    "nominated": '"nominatedNodeName"',
    "toleration-comparison": '"operator": "Lt", "value"',
}


@pytest.mark.parametrize("feature", sorted(clusters.FEATURES))
def test_features_are_there_only_if_wanted(feature: str) -> None:
    def made(features: frozenset[str]) -> str:
        given = clusters.random_cluster(random.Random(1), nodes=30, bound=150, pending=150, features=features)
        return json.dumps(given)

    assert MARKS[feature] in made(clusters.FEATURES)
    assert MARKS[feature] not in made(clusters.FEATURES - {feature})


def test_unknown_features_are_an_error() -> None:
    with pytest.raises(ValueError, match="unknown features: tolerance"):
        clusters.random_cluster(random.Random(0), nodes=1, bound=0, pending=1, features={"tolerance"})


@settings(max_examples=60, deadline=None)
@given(clusters.as_hypothesis(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(given_cluster: Json, rng: random.Random) -> None:
    ordered = Cluster.from_json(given_cluster)
    shuffled = ordered.copy()
    for things in (shuffled.nodes, shuffled.pods, shuffled.namespaces, shuffled.pvcs, shuffled.csi_nodes):
        rng.shuffle(things)

    for asking in given_cluster["pending"]:
        for one in ordered.nodes:
            assert refusals(ordered, asking, one) == refusals(shuffled, asking, one)


@settings(max_examples=60, deadline=None)
@given(clusters.as_hypothesis())
def test_greedy_placements_are_replayed_without_refusal(given_cluster: Json) -> None:
    cluster = Cluster.from_json(given_cluster)
    by_name = {one["metadata"]["name"]: one for one in given_cluster["pending"]}
    placed = place_greedily(cluster, given_cluster["pending"])

    assert replay(cluster, [(by_name[name], where) for name, where in placed if where is not None]) == []
