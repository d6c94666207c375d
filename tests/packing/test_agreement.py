"""Where a pod fits by the packer is where it fits by the oracle, and so is every placement in its turn."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.packing.adapter import answers_of_packer, key_of, snapshot_of, with_priority
from tests.packing.clusters import FEATURES, HOSTNAME, ZONE, as_hypothesis, random_cluster
from tests.packing.oracle import Cluster, feasible_nodes, name_of, namespace_of, refusals, replay

from springtide.packing.space import Ask

Json: TypeAlias = dict[str, Any]

BETWEEN_PODS = FEATURES & {
    *("spread", "affinity", "anti-affinity", "namespaces", "label-keys", "node-affinity", "taints"),
    *("cordon", "terminating", "finished", "priorities", "nominated", "host-ports"),
}
OF_VOLUMES = FEATURES & {
    *("volumes", "rwop", "csi-limits", "node-selector", "resize", "priorities", "nominated", "terminating"),
}


def assert_agreement(cluster: Json) -> None:
    """The packer and the oracle agree where each pending pod fits, and the predicates that it names do refuse it."""
    ours = answers_of_packer(cluster)
    judged = Cluster.from_json(cluster)
    theirs = {
        (f"{namespace_of(pod)}/{name_of(pod)}", name_of(node)): set(refusals(judged, pod, node))
        for pod in judged.pending()
        for node in judged.nodes
    }
    assert ours.keys() == theirs.keys()
    differing = {
        pair: (sorted(expected), sorted(ours[pair]))
        for pair, expected in theirs.items()
        if bool(expected) != bool(ours[pair]) or not ours[pair] <= expected
    }
    assert not differing


@pytest.mark.parametrize(
    "features",
    [
        pytest.param(FEATURES, id="everything"),
        pytest.param(BETWEEN_PODS, id="between-pods"),
        pytest.param(OF_VOLUMES, id="volumes"),
    ],
)
@settings(max_examples=100)
@given(data=st.data())
def test_pods_fit_where_the_oracle_says(features: frozenset[str], data: st.DataObject) -> None:
    assert_agreement(data.draw(as_hypothesis(nodes=8, bound=14, pending=8, features=features)))


@settings(max_examples=5)
@given(st.integers(0, 2**32 - 1))
def test_clusters_of_many_nodes(seed: int) -> None:
    assert_agreement(random_cluster(random.Random(seed), nodes=40, bound=30, pending=4))


# Placements


def placed(cluster: Json) -> tuple[list[tuple[Json, str]], list[Json]]:
    """Pending pods with their nodes in the order in which the packer places them, and the pods that it leaves."""
    snapshot = snapshot_of(cluster)
    waiting = {number: list(keys) for number, keys in snapshot.pending().items()}
    pods = {key_of(pod): pod for pod in cluster["pending"]}
    space = snapshot.fork()
    left = space.place([Ask(snapshot.shapes[number], count) for number, count in snapshot.demand().items()])
    names = space.names()
    steps = [
        (pods[waiting[step.shape.number].pop(0)], names[step.node]) for step in space.steps for _ in range(step.pods)
    ]
    rest = {number: len(keys) for number, keys in waiting.items() if keys}
    assert {ask.shape.number: ask.count for ask in left} == rest
    return steps, [pods[key] for keys in waiting.values() for key in keys]


def with_copies(cluster: Json, rng: random.Random) -> Json:
    """The cluster with some of its pending pods several times, as replicas are."""
    made = copy.deepcopy(cluster)
    for pod in cluster["pending"]:
        for number in range(rng.choice([0, 0, 1, 3])):
            replica = copy.deepcopy(pod)
            replica["metadata"]["name"] += f"-{number}"
            replica["metadata"]["uid"] += f"-{number}"
            made["pending"].append(replica)
    return made


@pytest.mark.parametrize(
    "features",
    [
        # Which of several volumes a claim gets, and where, is decided as pods are bound: the packer asks at the start.
        pytest.param(FEATURES - {"volumes"}, id="everything-but-volumes"),
        pytest.param(BETWEEN_PODS, id="between-pods"),
    ],
)
@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1))
def test_pods_are_accepted_in_the_order_of_placing_and_no_other_would_be(features: frozenset[str], seed: int) -> None:
    rng = random.Random(seed)
    size = {"nodes": rng.randint(1, 8), "bound": rng.randint(0, 12), "pending": rng.randint(1, 8)}
    cluster = with_copies(random_cluster(rng, **size, features=features), rng)
    judged = Cluster.from_json(cluster)
    steps, left = placed(cluster)

    assert replay(judged, steps) == []
    assert {name_of(pod): feasible_nodes(judged, pod) for pod in left if feasible_nodes(judged, pod)} == {}


# Cases that random clusters seldom have


def node(name: str, labels: dict[str, str] | None = None, **amounts: str) -> Json:
    """A node."""
    own = {"cpu": "4", "memory": "8Gi", "pods": "110", **amounts}
    return {
        "metadata": {"name": name, "labels": {ZONE: "zone-a", **(labels or {})}},
        "spec": {},
        "status": {"allocatable": own},
    }


def pod(
    name: str, *, node: str = "", namespace: str = "default", labels: dict[str, str] | None = None, **own: Any
) -> Json:
    """A pod."""
    requests = own.pop("requests", {"cpu": "100m"})
    spec: Json = {"containers": [{"name": "main", "image": "pause", "resources": {"requests": requests}}], **own}
    if node:
        spec["nodeName"] = node
    phase = "Running" if node else "Pending"
    metadata = {"name": name, "namespace": namespace, "uid": name, "labels": labels or {"app": "web"}}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def cluster_of(nodes: Sequence[Json], pods: Sequence[Json] = (), pending: Sequence[Json] = (), **others: Any) -> Json:
    """A cluster."""
    return {"nodes": [*nodes], "pods": [*pods], "pending": [*pending], **others}


def disks(**source: Json) -> Json:
    """The volumes of a pod that has one."""
    return {"volumes": [{"name": "data", **source}]}


def node_affinity(*terms: Json) -> Json:
    """Required node affinity."""
    required = {"nodeSelectorTerms": [*terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def needs(key: str, operator: str, *values: str) -> Json:
    """A term of one requirement."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


def apart(**term: Any) -> Json:
    """Required anti-affinity."""
    made = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}, **term}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [made]}}}


@pytest.mark.parametrize(
    ("one", "other", "fits"),
    [
        pytest.param({"awsElasticBlockStore": {"volumeID": "v"}}, None, False, id="ebs"),
        pytest.param({"awsElasticBlockStore": {"volumeID": "v", "readOnly": True}}, None, False, id="ebs-read-only"),
        pytest.param({"gcePersistentDisk": {"pdName": "v"}}, None, False, id="gce"),
        pytest.param({"gcePersistentDisk": {"pdName": "v", "readOnly": True}}, None, True, id="gce-read-only"),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "v", "readOnly": True}},
            {"gcePersistentDisk": {"pdName": "v"}},
            False,
            id="gce-one-writer",
        ),
        pytest.param({"gcePersistentDisk": {"pdName": "v"}}, {"gcePersistentDisk": {"pdName": "w"}}, True, id="others"),
        pytest.param({"iscsi": {"iqn": "v", "targetPortal": "p", "lun": 0}}, None, False, id="iscsi"),
        pytest.param({"rbd": {"monitors": ["a", "b"], "image": "v"}}, None, False, id="rbd"),
        pytest.param(
            {"rbd": {"monitors": ["a"], "image": "v"}},
            {"rbd": {"monitors": ["b"], "image": "v"}},
            True,
            id="rbd-of-another-cluster",
        ),
        pytest.param(
            {"rbd": {"monitors": ["a"], "image": "v"}},
            {"rbd": {"monitors": ["a"], "image": "v", "pool": "rbd"}},
            False,
            id="rbd-default-pool",
        ),
        pytest.param({"nfs": {"server": "s", "path": "/"}}, None, True, id="nfs"),
    ],
)
def test_disks_that_one_node_cannot_share(one: Json, other: Json | None, fits: bool) -> None:
    present = pod("present", node="a", **disks(**one))
    asking = pod("asking", **disks(**(other or one)))
    cluster = cluster_of([node("a"), node("b")], [present], [asking])

    assert_agreement(cluster)
    assert (not answers_of_packer(cluster)["default/asking", "a"]) is fits
    both = cluster_of([node("a")], [], [pod("first", **disks(**one)), pod("second", **disks(**(other or one)))])
    steps, _ = placed(both)
    assert len(steps) == (2 if fits else 1)


BIG = str(2**63 - 1)
CASES = [
    pytest.param(node_affinity(needs("n", "Gt", "5")), id="gt"),
    pytest.param(node_affinity(needs("n", "Lt", "5")), id="lt"),
    pytest.param(node_affinity(needs("n", "Gt", "007")), id="leading-zeros"),
    pytest.param(node_affinity(needs("n", "Lt", "+7")), id="sign"),
    pytest.param(node_affinity(needs("n", "Gt", "seven")), id="no-number"),
    pytest.param(node_affinity(needs("n", "Gt", BIG)), id="int64"),
    pytest.param(node_affinity(needs("n", "Lt", str(2**63))), id="more-than-int64"),
    pytest.param(node_affinity(needs("n", "Gt", "0" * 30 + "3")), id="many-zeros"),
    pytest.param(node_affinity({}), id="empty-term"),
    pytest.param(node_affinity({}, needs("n", "Exists")), id="empty-term-and-another"),
    pytest.param(
        node_affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}), id="name"
    ),
    pytest.param({"nodeSelector": {"n": ""}}, id="empty-value"),
    pytest.param({"tolerations": [{"operator": "Exists"}]}, id="tolerates-all"),
    pytest.param({"tolerations": [{"key": "level", "operator": "Gt", "value": "3"}]}, id="tolerates-more"),
    pytest.param({"tolerations": [{"key": "level", "operator": "Lt", "value": "07"}]}, id="tolerates-no-zeros"),
    pytest.param({"requests": {"cpu": "9223372036854775807"}}, id="all-the-cpu-there-is"),
    pytest.param({"requests": {"example.com/gpu": "9223372036854775807"}}, id="as-many-devices-as-int64-has"),
    pytest.param({"requests": {"memory": "1e30"}}, id="more-than-int64-bytes"),
    pytest.param({"requests": {"unknown": "5"}}, id="a-resource-that-is-not-looked-at"),
    pytest.param({"requests": {"example.com/gpu": "0"}}, id="none-of-a-resource"),
    pytest.param(apart(), id="nodes-without-host-name"),
    pytest.param(apart(namespaces=["other"]), id="another-namespace"),
    pytest.param(apart(namespaceSelector={"matchLabels": {"team": "yes"}}), id="namespaces-by-label"),
    pytest.param(
        apart(namespaceSelector={"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}),
        id="namespaces-by-no-label",
    ),
    pytest.param(apart(namespaceSelector={}), id="all-namespaces"),
    pytest.param(
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}]},
        id="spread-without-selector",
    ),
    pytest.param(
        {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
            ]
        },
        id="spread-with-empty-selector",
    ),
]


@pytest.mark.parametrize("own", CASES)
def test_single_cases(own: Json) -> None:
    nodes = [
        node("a", {HOSTNAME: "a", "n": "7"}, **{"example.com/gpu": BIG}),
        node("b", {"n": "3"}, **{"example.com/gpu": "4"}),
        node("c", {HOSTNAME: "c", ZONE: "zone-b", "n": ""}),
        node("d", {HOSTNAME: "d", "n": BIG}),
    ]
    nodes[1]["spec"]["taints"] = [{"key": "level", "effect": "NoSchedule", "value": "5"}]
    nodes[3]["spec"]["taints"] = [{"key": "dedicated", "effect": "NoExecute"}]
    bound = [
        pod("one", node="a", namespace="other"),
        pod("two", node="c"),
        pod("three", node="b", namespace="unknown"),
        pod("gpu", node="a", requests={"example.com/gpu": "1"}),
    ]
    namespaces = [{"metadata": {"name": name, "labels": labels}} for name, labels in NAMESPACES.items()]

    assert_agreement(cluster_of(nodes, bound, [pod("asking", **own)], namespaces=namespaces))


NAMESPACES = {"default": {}, "other": {"team": "yes"}}


def test_a_class_gives_pods_of_manifests_their_priority() -> None:
    classes = [{"metadata": {"name": "high"}, "value": 1000}, {"metadata": {"name": "low"}, "value": -5}]
    record = with_priority(pod("one", priorityClassName="high"), classes)

    assert record.pod_class.priority == 1000
    assert with_priority(pod("two"), classes).pod_class.priority == 0


def test_a_claim_for_one_pod_is_given_to_one_of_those_that_wait() -> None:
    claim = {
        "metadata": {"name": "data", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "pv", "accessModes": ["ReadWriteOncePod"], "storageClassName": "wait"},
        "status": {"phase": "Bound"},
    }
    volume = {"metadata": {"name": "pv"}, "spec": {"csi": {"driver": "disk.csi.example.com", "volumeHandle": "pv"}}}
    pods = [pod(name, **disks(persistentVolumeClaim={"claimName": "data"})) for name in ("one", "two")]
    storage = {"persistentVolumes": [volume], "persistentVolumeClaims": [claim]}
    cluster = cluster_of([node("a"), node("b")], [], pods, **storage)

    assert_agreement(cluster)
    steps, left = placed(cluster)
    assert (len(steps), len(left)) == (1, 1)
    judged = Cluster.from_json(cluster)
    assert replay(judged, steps) == []
    assert feasible_nodes(judged, left[0]) == []
    assert_agreement(cluster_of([node("a"), node("b")], [{**pods[0], **bound_to("b", pods[0])}], pods[1:], **storage))


def bound_to(name: str, asking: Json) -> Json:
    """The spec of a pod that has been bound."""
    return {"spec": {**asking["spec"], "nodeName": name}, "status": {"phase": "Running"}}


def test_volumes_of_several_pods_are_attached_once() -> None:
    driver = "disk.csi.example.com"
    claim: Json = {
        "metadata": {"name": "data", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "pv", "accessModes": ["ReadWriteMany"], "storageClassName": "wait"},
        "status": {"phase": "Bound"},
    }
    other = copy.deepcopy(claim)
    other["metadata"]["name"], other["spec"]["volumeName"] = "more", "pv-2"
    volumes = [
        {"metadata": {"name": name}, "spec": {"csi": {"driver": driver, "volumeHandle": name}}}
        for name in ("pv", "pv-2")
    ]
    csi = {"metadata": {"name": "a"}, "spec": {"drivers": [{"name": driver, "allocatable": {"count": 1}}]}}
    use = disks(persistentVolumeClaim={"claimName": "data"})
    use_other = disks(persistentVolumeClaim={"claimName": "more"})
    cluster = cluster_of(
        [node("a")],
        [pod("one", node="a", **use), pod("two", node="a", **use)],
        [pod("three", **use), pod("four", **use), pod("five", **use_other)],
        csiNodes=[csi],
        persistentVolumes=volumes,
        persistentVolumeClaims=[claim, other],
    )

    assert_agreement(cluster)
    steps, left = placed(cluster)
    assert sorted(name_of(one) for one, _ in steps) == ["four", "three"]
    assert [name_of(one) for one in left] == ["five"]
    cluster["pods"] = []
    assert_agreement(cluster)
    steps, left = placed(cluster)
    assert len(steps) + len(left) == 3
    assert replay(Cluster.from_json(cluster), steps) == []
