"""Why pods cannot be placed: which predicate refuses how many types, and the sentence that says so."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.packing import clusters, oracle
from tests.packing.replaying import ZONE, Planned, instance_type, near, node, pods, pool, spread
from tests.packing.test_plans import random_case

from springtide.apis.core.nodes import NodeTaint
from springtide.packing.catalogue import InstanceType, built_in, read_types
from springtide.packing.growth import Growth
from springtide.packing.offerings import Pool
from springtide.packing.predicates import NAMES, ORDER
from springtide.packing.reasons import Explainer, explain, of_group
from springtide.packing.shapes import Shape

Json: TypeAlias = dict[str, Any]
Reasons: TypeAlias = tuple[str, tuple[tuple[str, int], ...]]

TYPES = (
    instance_type("small", "2", "8Gi", price=50, labels={"family": "s", "gen": "3"}),
    instance_type("middle", "4", "16Gi", price=100, labels={"family": "m", "gen": "3"}),
    instance_type("large", "16", "64Gi", price=400, labels={"family": "m", "gen": "5"}, zones=["zone-a"]),
)
DEDICATED = NodeTaint("dedicated", "NoSchedule", "gpu")


def explained(
    cluster: Json, types: Sequence[InstanceType] = TYPES, pools: Sequence[Pool] | None = None, *, first: int = 0
) -> Reasons:
    """The reason of the first pending pod, when `first` of the others have been placed on planned nodes."""
    planned = Planned(cluster, types, pools)
    space = planned.snapshot.fork()
    growth = Growth(space, planned.offerings)
    shape = planned.snapshot.shape_at(("default", cluster["pending"][0]["metadata"]["name"]))
    if first:
        growth.place_shape(shape, first)
    return Explainer(space, planned.offerings, growth).explain(shape)


def asking(**spec: Any) -> Json:
    """One pending pod."""
    return {"pending": pods(1, "web", spec.pop("cpu", "1"), spec.pop("memory", "1Gi"), **spec)}


def required(*terms: list[Json]) -> Json:
    """Required node affinity of these terms."""
    selector = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def expression(key: str, operator: str, *values: str) -> Json:
    """One requirement of a node affinity."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


with_claim = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]}


@pytest.mark.parametrize(
    ("cluster", "pools", "because", "reasons"),
    [
        pytest.param(
            asking(cpu="96"),
            [pool()],
            "0/3 types: all too small (needs 96 cpu, 16 at most)",
            (("NodeResourcesFit", 3),),
            id="resources-of-one-kind",
        ),
        pytest.param(
            asking(cpu="3", memory="100Gi"),
            [pool()],
            "0/3 types: all too small (needs 100Gi memory, 64Gi at most)",
            (("NodeResourcesFit", 3),),
            id="resources-that-alone-explain-everything",
        ),
        pytest.param(
            asking(cpu="96", nodeSelector={"family": "m"}),
            [pool()],
            "0/3 types: 2 too small (needs 96 cpu, 16 at most), 1 excluded by nodeSelector `family=m`",
            (("NodeAffinity", 1), ("NodeResourcesFit", 2)),
            id="most-types-first",
        ),
        pytest.param(
            asking(nodeSelector={ZONE: "zone-x"}),
            [pool()],
            "0/3 types: all excluded by nodeSelector (zone-x is not offered)",
            (("NodeAffinity", 3),),
            id="a-zone-that-is-not-offered",
        ),
        pytest.param(
            asking(cpu="8", nodeSelector={ZONE: "zone-b"}),
            [pool()],
            f"0/3 types: 2 too small (needs 8 cpu, 4 at most), 1 excluded by nodeSelector `{ZONE}=zone-b`",
            (("NodeAffinity", 1), ("NodeResourcesFit", 2)),
            id="a-zone-in-which-some-types-are-not-offered",
        ),
        pytest.param(
            asking(nodeSelector={"disk": "ssd"}),
            [pool()],
            "0/3 types: all excluded by nodeSelector `disk=ssd` (no type has the label)",
            (("NodeAffinity", 3),),
            id="a-label-that-no-type-has",
        ),
        pytest.param(
            asking(affinity=required([expression("gen", "Gt", "4"), expression("family", "NotIn", "m", "x")])),
            [pool()],
            "0/3 types: all excluded by affinity `gen > 4` and affinity `family` not in (m, x)",
            (("NodeAffinity", 3),),
            id="requirements-of-affinity-that-exclude-together",
        ),
        pytest.param(
            asking(affinity=required([expression("gen", "Gt", "9")], [expression("family", "DoesNotExist")])),
            [pool()],
            "0/3 types: all excluded by each of 2 terms of affinity",
            (("NodeAffinity", 3),),
            id="several-terms",
        ),
        pytest.param(
            asking(),
            [pool(taints=(DEDICATED,))],
            "0/3 types: all with untolerated taint `dedicated=gpu:NoSchedule`",
            (("TaintToleration", 3),),
            id="a-taint",
        ),
        pytest.param(
            asking(),
            [pool(f"p-{number}", taints=(DEDICATED,)) for number in range(11)],
            "0/3 types in 11 pools: all with untolerated taint `dedicated=gpu:NoSchedule` in 11 pools",
            (("TaintToleration", 3),),
            id="the-same-taint-in-many-pools",
        ),
        pytest.param(
            asking(cpu="8"),
            [pool("closed", taints=(DEDICATED,)), pool("open", limits={"cpu": "4"})],
            "0/3 types in 2 pools: 2 too small (needs 8 cpu, 4 at most),"
            " 1 over limits (limits.cpu of pool `open` leaves 4 of 16 needed)",
            (("NodeResourcesFit", 2), ("Limits", 1)),
            id="a-type-counts-where-it-comes-farthest",
        ),
        pytest.param(
            asking(),
            [pool(limits={"nodes": "0"})],
            "0/3 types: all over limits (limits.nodes of pool `default` leaves nothing)",
            (("Limits", 3),),
            id="no-node-left",
        ),
        pytest.param(
            asking(),
            [pool(name, limits={"memory": "1Gi"}) for name in ("one", "two", "three")],
            "0/3 types in 3 pools: all over limits (limits.memory leave 1Gi of 8Gi needed in 3 pools)",
            (("Limits", 3),),
            id="limits-of-several-pools",
        ),
        pytest.param(
            asking(),
            [pool(min_values={"family": 3})],
            "0/3 types: all too few for minValues (3 values of `family`)",
            (("MinValues", 3),),
            id="min-values",
        ),
        pytest.param(
            asking(),
            [pool(requirements=(("family", "In", ("x",)),))],
            "0/3 types: all not allowed by any pool",
            (("Offering", 3),),
            id="no-type-that-the-pool-allows",
        ),
        pytest.param(asking(), [], "there is no NodePool to add nodes to", (), id="no-pool"),
        pytest.param(
            asking(schedulingGates=[{"name": "wait"}]),
            [pool()],
            "it has scheduling gates",
            (("SchedulingGates", 3),),
            id="scheduling-gates",
        ),
        pytest.param(
            asking(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]),
            [pool()],
            "it has resource claims, which are not modelled",
            (("DynamicResources", 3),),
            id="resource-claims",
        ),
        pytest.param(
            asking(affinity=near("podAffinity", ZONE, "db")),
            [pool()],
            f"0/3 types: all excluded by pod affinity over `{ZONE}`",
            (("InterPodAffinity", 3),),
            id="pod-affinity-to-nothing",
        ),
        pytest.param(
            asking(topologySpreadConstraints=[spread("rack", "web")]),
            [pool()],
            "0/3 types: all excluded by topology spread over `rack` (maxSkew 1)",
            (("PodTopologySpread", 3),),
            id="spread-over-a-label-that-no-node-has",
        ),
        pytest.param(
            {
                **asking(cpu="12"),
                "nodes": [
                    *(node(f"full-{number}", "1") for number in range(38)),
                    *(node(f"cordoned-{number}", "1", unschedulable=True) for number in range(2)),
                ],
            },
            [pool(limits={"cpu": "8"})],
            "0/3 types: 2 too small (needs 12 cpu, 4 at most), 1 over limits (limits.cpu of pool `default` leaves 8 of"
            " 16 needed); and on 40 existing nodes: 38 full, 2 cordoned",
            (("NodeResourcesFit", 2), ("Limits", 1)),
            id="existing-nodes",
        ),
    ],
)
def test_reasons(cluster: Json, pools: list[Pool], because: str, reasons: tuple[tuple[str, int], ...]) -> None:
    assert explained(cluster, TYPES, pools) == (because, reasons)


def test_pods_that_were_placed_before_leave_no_zone() -> None:
    apart = pods(4, "web", "1", affinity=near("podAntiAffinity", ZONE, "web"))

    because, reasons = explained({"pending": apart}, first=3)

    assert because == f"0/3 types: all excluded by pod anti-affinity over `{ZONE}`"
    assert reasons == (("InterPodAffinity", 3),)


def test_anti_affinity_of_pods_on_existing_nodes() -> None:
    db = pods(1, "db", node="old", affinity=near("podAntiAffinity", ZONE, "web"))
    cluster = {"nodes": [node("old")], "pods": db, **asking(nodeSelector={ZONE: "zone-a"})}

    because, reasons = explained(cluster)

    assert because == (
        f"0/3 types: all excluded by anti-affinity of other pods over `{ZONE}`;"
        " and on 1 existing node: all excluded by pod affinity"
    )
    assert reasons == (("InterPodAffinity", 3),)


def test_host_ports_of_pods_on_existing_nodes() -> None:
    ports = {"ports": [{"containerPort": 80, "hostPort": 80}]}
    bound, waiting = pods(1, "old", node="old"), pods(1, "web", "1")
    for pod in (*bound, *waiting):
        pod["spec"]["containers"][0] |= ports
    cluster = {"nodes": [node("old"), node("full", "100m")], "pods": bound, "pending": waiting}

    because, reasons = explained(cluster, pools=[pool(taints=(DEDICATED,))])

    assert because == (
        "0/3 types: all with untolerated taint `dedicated=gpu:NoSchedule`;"
        " and on 2 existing nodes: 1 with the host port taken, 1 full"
    )
    assert reasons == (("TaintToleration", 3),)


def test_a_claim_that_another_pod_uses_alone() -> None:
    claim = {
        "metadata": {
            "name": "data",
            "namespace": "default",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "fast",
            "volumeName": "data",
        },
        "status": {"phase": "Bound"},
    }
    volume = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": "data"},
            "csi": {"driver": "disk.csi.example.com", "volumeHandle": "data"},
            "storageClassName": "fast",
        },
        "status": {"phase": "Bound"},
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster = {
        "nodes": [node("old")],
        "pods": pods(1, "old", node="old", volumes=volumes),
        "pending": pods(1, "web", volumes=volumes),
        "persistentVolumeClaims": [claim],
        "persistentVolumes": [volume],
    }

    because, reasons = explained(cluster)

    assert because == "claim data is for one pod, and another pod uses it"
    assert reasons == (("VolumeRestrictions", 3),)


def test_a_zone_that_is_full_before_another_has_pods() -> None:
    full = [node("b", "1", zone="zone-b", labels={"app": "x"})]
    types = [instance_type("only", "4", zones=["zone-a"])]
    web = pods(4, "web", "2", topologySpreadConstraints=[spread(ZONE, "web")])

    because, reasons = explained({"nodes": full, "pending": web}, types, first=1)

    assert because == (
        f"0/1 types: all excluded by topology spread over `{ZONE}` (maxSkew 1); and on 1 existing node: all full"
    )
    assert reasons == (("PodTopologySpread", 1),)


def test_too_few_domains_are_named() -> None:
    constraint = spread(ZONE, "web", minDomains=5)

    because, _ = explained({"pending": pods(4, "web", topologySpreadConstraints=[constraint])}, first=3)

    assert because == f"0/3 types: all excluded by topology spread over `{ZONE}` (maxSkew 1, minDomains 5)"


def test_a_reservation_that_is_used_up() -> None:
    reserved = instance_type("reserved", "4", zones=["zone-a"], capacity_type="reserved", count=1)

    because, reasons = explained({"pending": pods(2, "web", "3")}, [reserved], first=1)

    assert because == "0/1 types: all unavailable"
    assert reasons == (("Offering", 1),)


def test_volumes_say_what_is_wrong_with_the_claim() -> None:
    because, reasons = explained(asking(**with_claim))

    assert "missing" in because
    assert reasons == (("VolumeBinding", 3),)


def test_types_without_any_offering_count() -> None:
    document = {"name": "gone", "labels": {}, "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    offering = {"zone": "zone-a", "capacityType": "on-demand", "price": 1, "available": False}
    gone = read_types(json.dumps([{**document, "offerings": [offering]}]), name="types")

    because, reasons = explained(asking(cpu="96"), [*TYPES, *gone])

    assert because == "0/4 types: 3 too small (needs 96 cpu, 16 at most), 1 unavailable"
    assert reasons == (("NodeResourcesFit", 3), ("Offering", 1))


def test_no_types_at_all() -> None:
    assert explained(asking(), []) == ("there are no instance types", ())


def test_a_pod_that_would_have_fitted_is_said_to() -> None:
    """Greedy placements may paint themselves into a corner: then the sentence must not blame a predicate."""
    because, reasons = explained(asking())

    assert because == "3/3 types: 3 could take the pod alone, but not after what is placed before it"
    assert reasons == ()


def test_devices_and_huge_pages_are_named_with_their_amounts() -> None:
    pending = pods(1, "web", "1")
    pending[0]["spec"]["containers"][0]["resources"]["requests"] |= {"nvidia.com/gpu": "16"}

    because, _ = explained({"pending": pending}, built_in())

    assert because == "0/426 types: all too small (needs 16 nvidia.com/gpu, 8 at most)"


def test_a_group_says_how_many_of_its_pods_have_room() -> None:
    because = of_group(11, 10, "0/3 types: all over limits")

    assert because == "all or nothing: only 10 of 11 pods of the group can be placed; 0/3 types: all over limits"
    assert len(of_group(11, 10, "x" * 400)) == 300


def test_the_function_and_the_explainer_agree() -> None:
    planned = Planned(asking(cpu="96"), TYPES)
    space, shape = planned.snapshot.fork(), planned.snapshot.shapes[0]

    assert explain(space, planned.offerings, shape) == Explainer(space, planned.offerings).explain(shape)


def test_explanations_do_not_depend_on_what_was_explained_before() -> None:
    pending = [
        *pods(1, "a", "96"),
        *pods(1, "b", "96", nodeSelector={"family": "s"}),
        *pods(1, "c", nodeSelector={"family": "x"}),
    ]
    planned = Planned({"pending": pending}, TYPES)
    space = planned.snapshot.fork()
    together = Explainer(space, planned.offerings)

    for shape in [*planned.snapshot.shapes, *reversed(planned.snapshot.shapes)]:
        assert together.explain(shape) == Explainer(space, planned.offerings).explain(shape)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_counts_are_those_of_the_oracle(seed: int) -> None:
    """Each type counts by the predicate that the oracle names first for its last offering.

    Spreads are left out: for them zones that pools can add are domains, and not only the one that is tried.
    """
    rng = random.Random(seed)
    case = random_case(seed, nodes=rng.randint(0, 3), pending=4, features=clusters.FEATURES - {"nominated", "spread"})
    planned = Planned(
        case.cluster,
        case.types,
        [Pool(each.name, each.requirements, taints=each.taints, labels=each.labels) for each in case.pools],
    )
    space = planned.snapshot.fork()
    explainer = Explainer(space, planned.offerings)
    by_key = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in case.cluster["pending"]}
    for number, keys in planned.snapshot.pending().items():
        shape: Shape = planned.snapshot.shapes[number]
        because, reasons = explainer.explain(shape)
        assert len(because) <= 300
        if not shape.blocked:
            assert dict(reasons) == counted_by_oracle(planned, by_key[keys[0]])


def counted_by_oracle(planned: Planned, pod: Json) -> dict[str, int]:
    """Instance types by the predicate that refuses their last offering, each tried as one more node."""
    offerings = planned.offerings
    last: dict[int, int] = dict.fromkeys(range(len(offerings.types)), ORDER["Offering"])
    seen: set[int] = set()
    for number in range(offerings.count):
        cluster = oracle.Cluster.from_json(planned.cluster)
        new = planned.node_of(number, "one-more")
        cluster.nodes.append(new)
        refused = [name for name in oracle.refusals(cluster, pod, new) if name in ORDER]
        first = min((ORDER[name] for name in refused), default=len(NAMES))
        type_ = offerings.type[number]
        last[type_] = max(first, last[type_]) if type_ in seen else first
        seen.add(type_)
    counts: dict[str, int] = {}
    for position in last.values():
        if position < len(NAMES):
            counts[NAMES[position]] = counts.get(NAMES[position], 0) + 1
    return counts
