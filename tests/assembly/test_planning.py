"""What of manifests and of an API server's output reaches the packer, and as what."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from springtide.apis.core.pod_record import pod_class_of
from springtide.apis.kinds import ValidationContext
from springtide.apis.yaml import dump
from springtide.assembly.manifests import ManifestSource
from springtide.assembly.planning import (
    PlanningInput,
    PlanningOptions,
    assemble,
    with_required_preferences,
)
from springtide.assembly.planning_objects import Collected, collect_files
from springtide.packing.catalogue import ARCH_LABEL, CPU, NODEPOOL_LABEL, ZONE_LABEL
from springtide.packing.columns import CPU as CPU_COLUMN
from springtide.packing.columns import MEMORY as MEMORY_COLUMN
from springtide.packing.snapshot import PodKey

Object = dict[str, Any]


def made(kind: str, name: str, *, group: str = "v1", namespace: str = "", uid: str = "", **fields: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **({"uid": uid} if uid else {})}
    return {"apiVersion": group, "kind": kind, "metadata": {**metadata, **fields.pop("metadata", {})}, **fields}


def spec(cpu: str = "100m", **fields: Any) -> Object:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {"containers": [container], **fields}


def pod(name: str, *, uid: str = "", labels: Mapping[str, str] = {}, **fields: Any) -> Object:
    status = fields.pop("status", None)
    made_pod = made("Pod", name, uid=uid, metadata={"labels": dict(labels)}, spec=spec(**fields))
    return made_pod if status is None else {**made_pod, "status": status}


def workload(kind: str, name: str, group: str = "apps/v1", *, template: Object | None = None, **fields: Any) -> Object:
    labels = {"app": name}
    inner = {"metadata": {"labels": labels}, "spec": template or spec()}
    return made(kind, name, group=group, spec={"selector": {"matchLabels": labels}, "template": inner, **fields})


def job(name: str, **fields: Any) -> Object:
    return made("Job", name, group="batch/v1", spec={"template": {"spec": spec(restartPolicy="Never")}, **fields})


def node(name: str, **fields: Any) -> Object:
    return made("Node", name, status={"capacity": {"cpu": "4", "memory": "16Gi"}}, **fields)


def pool(
    name: str = "general", *, requirements: Iterable[Object] = (), group: str = "springtide.dev", **fields: Any
) -> Object:
    reference = {"group": group, "kind": "NodeClass", "name": "default"}
    template = {"spec": {"nodeClassRef": reference, "requirements": list(requirements), **fields.pop("template", {})}}
    return made("NodePool", name, group="karpenter.sh/v1", spec={"template": template, **fields})


def collected(*objects: Object, as_json: bool = False) -> Collected:
    text = (
        json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        if as_json
        else "---\n".join(map(dump, objects))
    )
    found = Collected()
    collect_files([ManifestSource("input", text)], [], found, ValidationContext(now=0), lambda _: None)
    return found


def assembled(*objects: Object, as_json: bool = False, **options: Any) -> PlanningInput:
    given = assemble(collected(*objects, as_json=as_json), PlanningOptions(**options))
    assert not given.problems
    return given


def pending(given: PlanningInput) -> list[str]:
    return sorted(name for keys in given.snapshot.pending().values() for _, name in keys)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([pod("a")], ["a"], id="pod"),
        pytest.param([pod("a", nodeName="n")], [], id="bound-to-an-unknown-node"),
        pytest.param([pod("a", status={"phase": "Succeeded"})], [], id="finished"),
        pytest.param([pod("a", schedulerName="other")], [], id="another-scheduler"),
        pytest.param([pod("a", status={"nominatedNodeName": "n"}), node("n")], [], id="nominated"),
        pytest.param([workload("Deployment", "web", replicas=2)], ["web-1", "web-2"], id="deployment"),
        pytest.param([workload("Deployment", "web")], ["web-1"], id="one-replica-by-default"),
        pytest.param([workload("Deployment", "web", replicas=0)], [], id="no-replicas"),
        pytest.param([workload("StatefulSet", "db", replicas=2)], ["db-0", "db-1"], id="stateful-set"),
        pytest.param(
            [workload("StatefulSet", "db", replicas=2, ordinals={"start": 5})], ["db-5", "db-6"], id="ordinals"
        ),
        pytest.param(
            [workload("Deployment", "web", replicas=3), pod("web-x", labels={"app": "web"})],
            ["web-1", "web-2", "web-x"],
            id="pods-of-the-input-are-counted",
        ),
        pytest.param(
            [workload("Deployment", "web", replicas=2), pod("web-1", labels={"app": "web"}, nodeName="n")],
            ["web-2"],
            id="names-are-not-used-twice",
        ),
        pytest.param([job("j", parallelism=4, completions=2)], ["j-1", "j-2"], id="job"),
        pytest.param([job("j", parallelism=4, suspend=True)], [], id="suspended-job"),
        pytest.param(
            [
                made(
                    "ReplicationController",
                    "old",
                    spec={"replicas": 1, "template": {"metadata": {"labels": {"app": "old"}}, "spec": spec()}},
                )
            ],
            ["old-1"],
            id="replication-controller",
        ),
        pytest.param(
            [
                workload("Deployment", "web"),
                {
                    **workload("ReplicaSet", "web-5d"),
                    "metadata": {
                        "name": "web-5d",
                        "ownerReferences": [
                            {
                                "apiVersion": "apps/v1",
                                "kind": "Deployment",
                                "name": "web",
                                "uid": "u",
                                "controller": True,
                            }
                        ],
                    },
                },
            ],
            ["web-1"],
            id="replica-set-of-a-deployment-counts-once",
        ),
        pytest.param([workload("DaemonSet", "logs")], [], id="daemon-sets-have-their-room"),
    ],
)
def test_which_pods_are_pending(objects: list[Object], expected: list[str]) -> None:
    assert pending(assembled(*objects)) == expected


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "yaml"])
def test_output_of_kubectl_is_read_without_defaults_being_set_again(as_json: bool) -> None:
    limits = made(
        "LimitRange",
        "l",
        uid="1",
        namespace="default",
        spec={"limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}}]},
    )
    bare: Object = {"containers": [{"name": "main", "image": "pause"}]}
    from_server = made("Pod", "old", uid="2", namespace="default", spec=bare)

    given = assembled(limits, from_server, as_json=as_json)

    assert given.snapshot.shape_at(("default", "old")).amounts.get(CPU_COLUMN, 0) == 0
    new = assembled(limits, made("Pod", "new", namespace="default", spec=bare), as_json=as_json)
    assert new.snapshot.shape_at(("default", "new")).amounts[CPU_COLUMN] == 2000


def test_a_typed_list_gives_its_kind_to_its_items() -> None:
    items = [{key: value for key, value in pod("a", uid="1").items() if key not in ("apiVersion", "kind")}]
    found = Collected()
    text = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items})
    collect_files([ManifestSource("input", text)], [], found, ValidationContext(now=0), lambda _: None)

    assert list(found.of("Pod")) == [("default", "a")]


def test_priorities_come_from_priority_classes() -> None:
    classes = made("PriorityClass", "high", group="scheduling.k8s.io/v1", value=7)

    given = assembled(classes, pod("a", priorityClassName="high"))

    assert given.snapshot.shape_at(("default", "a")).priority == 7


def test_a_node_of_a_manifest_has_what_the_kubelet_would_report() -> None:
    given = assembled(node("n"), pod("a"))
    snapshot = given.snapshot

    space = snapshot.fork()

    assert space.names() == ["n"]
    assert space.free[:4, 0].tolist() == [4000, 16 << 30, 0, 110]


def test_claims_without_a_node_are_upcoming_nodes() -> None:
    claim = made(
        "NodeClaim",
        "general-1",
        group="karpenter.sh/v1",
        uid="1",
        metadata={"labels": {NODEPOOL_LABEL: "general"}},
        spec={"nodeClassRef": {"group": "g", "kind": "k", "name": "n"}, "requirements": []},
        status={"allocatable": {"cpu": "3", "pods": "10"}, "capacity": {"cpu": "4"}},
    )

    given = assembled(claim, pool(limits={"cpu": "10", "nodes": "5"}), as_json=False)

    assert given.snapshot.fork().free[0].tolist() == [3000]
    assert {name: str(amount) for name, amount in given.pools[0].used.items()} == {"cpu": "4", "nodes": "1"}


def test_a_pool_is_read_with_its_limits_and_what_its_nodes_use() -> None:
    requirements: list[Object] = [
        {"key": "beta.kubernetes.io/arch", "operator": "In", "values": ["arm64", "amd64"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2},
    ]
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    given = assembled(
        pool(requirements=requirements, weight=3, limits={"cpu": "10"}, template={"taints": [taint]}),
        node("n", metadata={"labels": {NODEPOOL_LABEL: "general"}}),
    )

    (found,) = given.pools

    assert found.requirements == (
        (ARCH_LABEL, "In", ("amd64", "arm64")),
        ("node.kubernetes.io/instance-type", "Exists", ()),
    )
    assert found.min_values == {"node.kubernetes.io/instance-type": 2}
    assert found.labels == {"springtide.dev/nodeclass": "default"}
    assert [(each.key, each.effect, each.value) for each in found.taints] == [("team", "NoSchedule", "a")]
    assert (found.weight, str(found.limits[CPU]), str(found.used[CPU]), str(found.used["nodes"])) == (3, "10", "4", "1")


@pytest.mark.parametrize(
    ("given_pool", "types", "notes"),
    [
        pytest.param(pool(replicas=3), False, ["NodePool general is left out: `replicas` fixes"], id="static"),
        pytest.param(
            pool(group="karpenter.k8s.aws"),
            False,
            ["node classes of karpenter.k8s.aws; types and prices here"],
            id="foreign",
        ),
        pytest.param(
            pool(group="karpenter.k8s.aws"), True, ["node classes of karpenter.k8s.aws"], id="foreign-with-its-types"
        ),
        pytest.param(
            pool(
                group="karpenter.k8s.aws",
                requirements=[{"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["2"]}],
            ),
            False,
            ["node classes of", "the built-in catalogue has no karpenter.k8s.aws/instance-generation"],
            id="labels-of-the-provider",
        ),
        pytest.param(pool(), False, [], id="own"),
    ],
)
def test_notes_about_pools(given_pool: Object, types: bool, notes: list[str]) -> None:
    given = assembled(given_pool, foreign_types=types)

    assert len(given.notes) == len(notes)
    for note, expected in zip(given.notes, notes, strict=True):
        assert expected in note


def test_an_old_pool_is_converted() -> None:
    old = pool()
    old["apiVersion"] = "karpenter.sh/v1beta1"
    reference = {"apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass", "name": "default"}
    old["spec"]["template"]["spec"]["nodeClassRef"] = reference

    assert [each.name for each in assembled(old).pools] == ["general"]


def test_a_namespace_limits_what_is_planned_for_and_not_what_takes_room() -> None:
    here, there = pod("a"), {**pod("b"), "metadata": {"name": "b", "namespace": "other"}}
    bound = {**pod("c", cpu="1", nodeName="n"), "metadata": {"name": "c", "namespace": "other"}}

    given = assembled(here, there, bound, node("n"), namespace="default")

    assert pending(given) == ["a"]
    assert given.snapshot.fork().free[0].tolist() == [3000]
    assert given.notes == ("1 pending pod of other namespaces left out; without -n they are planned for as well",)


def test_claims_of_a_stateful_set_reach_their_volumes() -> None:
    template = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "zonal",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    storage = made(
        "StorageClass",
        "zonal",
        group="storage.k8s.io/v1",
        provisioner="disks",
        volumeBindingMode="WaitForFirstConsumer",
        allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE_LABEL, "values": ["zone-b"]}]}],
    )
    given = assembled(storage, workload("StatefulSet", "db", volumeClaimTemplates=[template]))

    shape = given.snapshot.shape_at(("default", "db-0"))

    assert not shape.blocked
    assert shape.volumes.topologies


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "yaml"])
def test_an_unreadable_pod_is_a_problem_and_the_others_are_planned(as_json: bool) -> None:
    broken = pod("broken", uid="1", cpu="much")
    given = assemble(collected(broken, pod("a", uid="2"), as_json=as_json))

    assert pending(given) == ["a"]
    assert [problem.name for problem in given.problems] == ["broken"]
    assert "much" in given.problems[0].message


@pytest.mark.parametrize(
    ("owner", "labels", "name", "expected"),
    [
        pytest.param(("ReplicaSet", "web-5d4f"), {"pod-template-hash": "5d4f"}, "web-5d4f-x", "web", id="deployment"),
        pytest.param(("ReplicaSet", "web"), {}, "web-x", "web", id="replica-set"),
        pytest.param(("Job", "backup-28391020"), {}, "backup-28391020-x", "backup", id="cron-job"),
        pytest.param(None, {"app": "web"}, "whatever", "web", id="label"),
        pytest.param(None, {}, "web-12", "web", id="number"),
        pytest.param(None, {}, "web", "web", id="name"),
    ],
)
def test_workloads_have_names(owner: tuple[str, str] | None, labels: dict[str, str], name: str, expected: str) -> None:
    reference = {"apiVersion": "v1", "uid": "u", "controller": True}
    owners = [{**reference, "kind": owner[0], "name": owner[1]}] if owner else []
    item = pod(name, labels=labels)
    item["metadata"]["ownerReferences"] = owners
    key: PodKey = ("default", name)

    assert assembled(item).workloads[key] == expected


def test_required_preferences() -> None:
    preferring = {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE_LABEL, "whenUnsatisfiable": "ScheduleAnyway"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [{"key": "light", "operator": "Exists"}]}},
                    {"weight": 9, "preference": {"matchExpressions": [{"key": "heavy", "operator": "Exists"}]}},
                ],
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname"}}
                ]
            },
        },
    }

    strict = with_required_preferences(pod_class_of(preferring))

    assert strict.topology_spread[0].when_unsatisfiable == "DoNotSchedule"
    assert strict.affinity is not None
    nodes, apart = strict.affinity.node_affinity, strict.affinity.pod_anti_affinity
    assert nodes is not None
    assert apart is not None
    required = nodes.required_during_scheduling_ignored_during_execution
    assert required is not None
    assert [[each.key for each in term.match_expressions or ()] for term in required.node_selector_terms or ()] == [
        ["a", "heavy"]
    ]
    assert len(apart.required_during_scheduling_ignored_during_execution or ()) == 1


def test_memory_of_pods_is_kept_in_bytes() -> None:
    assert assembled(pod("a")).snapshot.shape_at(("default", "a")).amounts[MEMORY_COLUMN] == 1 << 30
