"""Complaints of users about today's autoscalers, each as a plan that must not have it.

Every plan is replayed by the oracle: pods are bound in the order of the plan, and none may be refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest
from tests.packing.replaying import HOSTNAME, ZONE, ZONES, Planned, instance_type, near, node, pods, pool, spread

from springtide.apis.core.nodes import NodeTaint
from springtide.quantity import Quantity

Json: TypeAlias = dict[str, Any]

SMALL = instance_type("small", "2", "8Gi", price=50)
MIDDLE = instance_type("middle", "4", "16Gi", price=100)
LARGE = instance_type("large", "16", "64Gi", price=400)
TYPES = (SMALL, MIDDLE, LARGE)


def of_type(*names: str) -> Json:
    """Required node affinity to instance types."""
    term = {"matchExpressions": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(names)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def daemon_set(name: str, cpu: str | None, **spec: Any) -> Json:
    """A DaemonSet in `kube-system`; without cpu its pods request nothing."""
    resources = {"requests": {"cpu": cpu}} if cpu is not None else {}
    container = {"name": "main", "image": "main", "resources": resources}
    return {
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [container], **spec}}},
    }


def assert_is_right(planned: Planned, *, unplaced: int = 0) -> None:
    """Assert that nothing is wrong with a plan, and how many pods have no place."""
    assert planned.faults() == []
    assert planned.unplaced == unplaced


class TestSpreadDomains:
    """karpenter#1306, aws#2545: domains that no eligible node and no pool can offer made pods unplaceable."""

    ZONES = ("zone-a", "zone-b", "zone-c", "zone-d")

    def types(self) -> list[Any]:
        """Types that are sold in four zones."""
        return [instance_type("small", "2", "8Gi", zones=self.ZONES), instance_type("large", "8", zones=self.ZONES)]

    def test_zones_of_the_catalogue_that_no_pool_allows_are_no_domains(self) -> None:
        web = pods(4, "web", "500m", topologySpreadConstraints=[spread(ZONE, "web")])

        planned = Planned({"pending": web}, self.types(), [pool(zones=self.ZONES[:2])])

        assert_is_right(planned)
        assert pods_by_zone(planned) == {"zone-a": 2, "zone-b": 2}

    def test_zones_in_which_no_offering_is_available_are_no_domains(self) -> None:
        only_two = [instance_type("small", "2", "8Gi", zones=self.ZONES[:2])]
        web = pods(4, "web", "500m", topologySpreadConstraints=[spread(ZONE, "web")])

        planned = Planned({"pending": web}, only_two)

        assert_is_right(planned)
        assert pods_by_zone(planned) == {"zone-a": 2, "zone-b": 2}

    def test_zones_that_the_pod_itself_excludes_are_no_domains(self) -> None:
        terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-c"]}]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        web = pods(4, "web", "500m", affinity=affinity, topologySpreadConstraints=[spread(ZONE, "web")])

        planned = Planned({"pending": web}, self.types())

        assert_is_right(planned)
        assert pods_by_zone(planned) == {"zone-c": 4}

    def test_zones_of_a_pool_with_an_untolerated_taint_are_no_domains_if_the_policy_says_so(self) -> None:
        constraint = spread(ZONE, "web", nodeTaintsPolicy="Honor")
        web = pods(4, "web", "500m", topologySpreadConstraints=[constraint])
        tainted = pool("tainted", zones=["zone-c"], taints=(NodeTaint("dedicated", "NoSchedule", "gpu"),))

        planned = Planned({"pending": web}, self.types(), [pool(zones=self.ZONES[:2]), tainted])

        assert_is_right(planned)
        assert pods_by_zone(planned) == {"zone-a": 2, "zone-b": 2}

    def test_zones_in_which_every_type_is_too_small_are_no_domains(self) -> None:
        """A small type is sold in a third zone: no node of it would be added for these pods."""
        tiny = instance_type("tiny", "1", "2Gi", zones=self.ZONES[:3])
        large = instance_type("large", "8", zones=self.ZONES[:2])
        web = pods(4, "web", "2", topologySpreadConstraints=[spread(ZONE, "web")])

        planned = Planned({"pending": web}, [tiny, large])

        assert_is_right(planned)
        assert pods_by_zone(planned) == {"zone-a": 2, "zone-b": 2}

    def test_a_domain_that_only_a_cordoned_node_has_still_counts(self) -> None:
        """The scheduler counts the zone of a cordoned node, so a plan that left it out would be refused."""
        web = pods(4, "web", "500m", topologySpreadConstraints=[spread(ZONE, "web")])
        old = node("old", zone="zone-d", unschedulable=True)

        planned = Planned({"nodes": [old], "pending": web}, self.types(), [pool(zones=self.ZONES[:2])])

        assert_is_right(planned, unplaced=2)
        assert pods_by_zone(planned) == {"zone-a": 1, "zone-b": 1}

    def test_domains_of_a_custom_label_are_those_that_pools_can_give_it(self) -> None:
        web = pods(6, "web", "500m", topologySpreadConstraints=[spread("rack", "web")])
        pools = [pool(name, labels={"rack": name}) for name in ("r1", "r2", "r3")]

        planned = Planned({"pending": web}, TYPES, pools)

        assert_is_right(planned)
        by_rack: Counter[str] = Counter()
        for each in planned.plan.groups:
            rack = planned.offerings.columns.labels[each.offering]["rack"]
            by_rack[rack] += each.nodes * sum(count for _, count in each.pods)
        assert by_rack == {"r1": 2, "r2": 2, "r3": 2}


def pods_by_zone(planned: Planned, app: str = "web") -> Counter[str]:
    """How many pods of an app are on planned nodes in each zone."""
    found: Counter[str] = Counter()
    for each in planned.plan.groups:
        count = sum(number for shape, number in each.pods if shape.labels.get("app", app) == app)
        found[planned.offerings.columns.labels[each.offering][ZONE]] += each.nodes * count
    return found


class TestHostnameSkew:
    """aws#4666: nodes that a pod cannot use counted as empty domains of a spread over hostnames."""

    def test_nodes_that_node_affinity_excludes_do_not_count(self) -> None:
        web = pods(
            6,
            "web",
            "500m",
            nodeSelector={"role": "web"},
            topologySpreadConstraints=[spread(HOSTNAME, "web")],
        )
        others = [node(f"other-{number}", zone="zone-a") for number in range(5)]
        own = [node(f"web-{number}", "1500m", labels={"role": "web"}) for number in range(2)]

        planned = Planned({"nodes": [*others, *own], "pending": web}, TYPES, [pool(labels={"role": "web"})])

        assert_is_right(planned)
        on_existing, on_new = planned.steps()
        assert sorted(Counter(name for _, name in on_existing).values()) == [3, 3]
        assert on_new == []

    def test_nodes_that_node_affinity_excludes_count_if_the_policy_says_so(self) -> None:
        constraint = spread(HOSTNAME, "web", nodeAffinityPolicy="Ignore")
        web = pods(4, "web", "500m", nodeSelector={"role": "web"}, topologySpreadConstraints=[constraint])
        cluster = {"nodes": [node("other"), node("web", labels={"role": "web"})], "pending": web}

        planned = Planned(cluster, TYPES, [pool(labels={"role": "web"})])

        assert_is_right(planned)
        assert planned.plan.nodes == 3, "the empty node keeps every other one at a single pod"

    def test_tainted_nodes_do_not_count_if_the_policy_says_so(self) -> None:
        constraint = spread(HOSTNAME, "web", nodeTaintsPolicy="Honor")
        web = pods(4, "web", "500m", topologySpreadConstraints=[constraint])
        taints = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
        cluster = {"nodes": [node("gpu", taints=taints), node("plain")], "pending": web}

        planned = Planned(cluster, TYPES)

        assert_is_right(planned)
        assert planned.plan.nodes == 0

    def test_new_nodes_of_other_pods_that_the_policy_excludes_do_not_count(self) -> None:
        """Nodes are planned in one pool for one app and in another pool for the spread one: they must not mix."""
        web = pods(6, "web", "1", nodeSelector={"team": "web"}, topologySpreadConstraints=[spread(HOSTNAME, "web")])
        batch = pods(30, "batch", "1", nodeSelector={"team": "batch"})
        pools = [pool("web", labels={"team": "web"}), pool("batch", labels={"team": "batch"})]

        planned = Planned({"pending": [*web, *batch]}, TYPES, pools)

        assert_is_right(planned)


class TestVolumes:
    """karpenter#2777, aws#8914: zones of volumes changed spread counts, or were not solved with pod affinity."""

    @staticmethod
    def storage(zones: Sequence[str]) -> Json:
        """Bound claims `data-0`, `data-1`, …, each with a volume in the zone at its place."""
        claims, volumes = [], []
        for number, zone in enumerate(zones):
            name = f"data-{number}"
            requests = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
            expression = {"key": ZONE, "operator": "In", "values": [zone]}
            claims.append(
                {
                    "metadata": {
                        "name": name,
                        "namespace": "default",
                        "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
                    },
                    "spec": {"storageClassName": "zonal", "volumeName": f"pv-{number}", **requests},
                    "status": {"phase": "Bound"},
                }
            )
            volumes.append(
                {
                    "metadata": {"name": f"pv-{number}"},
                    "spec": {
                        "capacity": {"storage": "1Gi"},
                        "accessModes": ["ReadWriteOnce"],
                        "storageClassName": "zonal",
                        "claimRef": {"namespace": "default", "name": name},
                        "csi": {"driver": "disk.csi.example.com", "volumeHandle": name},
                        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
                    },
                    "status": {"phase": "Bound"},
                }
            )
        classes = [
            {
                "metadata": {"name": "zonal"},
                "provisioner": "disk.csi.example.com",
                "volumeBindingMode": "WaitForFirstConsumer",
            }
        ]
        return {"persistentVolumeClaims": claims, "persistentVolumes": volumes, "storageClasses": classes}

    @staticmethod
    def with_claims(made: list[Json]) -> list[Json]:
        """Give each pod the claim with its number."""
        for number, pod in enumerate(made):
            claim = {"claimName": f"data-{number}"}
            pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": claim}]
        return made

    def test_zones_of_volumes_are_no_restriction_of_the_domains_of_a_spread(self) -> None:
        """Three volumes are in one zone: the scheduler still counts the other zones, and so only one pod may run."""
        full = [node(f"full-{zone}", "100m", zone=f"zone-{zone}") for zone in "bc"]
        db = self.with_claims(pods(3, "db", "200m", topologySpreadConstraints=[spread(ZONE, "db")]))

        planned = Planned({"nodes": full, "pending": db, **self.storage(["zone-a"] * 3)}, TYPES)

        assert_is_right(planned, unplaced=2)
        assert pods_by_zone(planned, "db") == {"zone-a": 1}

    def test_pods_with_volumes_in_each_zone_are_spread_as_their_volumes_are(self) -> None:
        db = self.with_claims(pods(6, "db", topologySpreadConstraints=[spread(ZONE, "db")]))

        planned = Planned({"pending": db, **self.storage(["zone-a", "zone-b", "zone-c"] * 2)}, TYPES)

        assert_is_right(planned)
        assert pods_by_zone(planned, "db") == {"zone-a": 2, "zone-b": 2, "zone-c": 2}

    def test_pods_with_affinity_follow_the_pod_whose_volume_has_a_zone(self) -> None:
        db = self.with_claims(pods(1, "db", "500m"))
        web = pods(5, "web", "500m", affinity=near("podAffinity", ZONE, "db"))

        planned = Planned({"pending": [*web, *db], **self.storage(["zone-b"])}, TYPES)

        assert_is_right(planned)
        assert set(planned.zones()) == {"zone-b"}

    def test_pods_with_affinity_to_each_other_follow_the_only_volume(self) -> None:
        """The first pod that is placed must not take a zone that the pod with the volume cannot follow to."""
        group = pods(4, "db", "500m", affinity=near("podAffinity", ZONE, "db"))
        self.with_claims(group[2:3])

        planned = Planned({"pending": group, **self.storage(["zone-c"])}, TYPES)

        assert_is_right(planned)
        assert set(planned.zones()) == {"zone-c"}

    def test_a_claim_that_waits_for_its_consumer_goes_where_affinity_leads(self) -> None:
        cache = pods(1, "cache", "500m", node="old")
        db = self.with_claims(pods(2, "db", "1500m", affinity=near("podAffinity", ZONE, "cache")))
        storage = self.storage(["zone-a", "zone-a"])
        storage["persistentVolumes"] = []
        for claim in storage["persistentVolumeClaims"]:
            del claim["spec"]["volumeName"], claim["metadata"]["annotations"]
            claim["status"]["phase"] = "Pending"
        zones = {"key": ZONE, "values": ["zone-a", "zone-b"]}
        storage["storageClasses"][0]["allowedTopologies"] = [{"matchLabelExpressions": [zones]}]
        cluster = {"nodes": [node("old", "500m", zone="zone-b")], "pods": cache, "pending": db, **storage}

        planned = Planned(cluster, TYPES)

        assert_is_right(planned)
        assert set(planned.zones()) == {"zone-b"}


class TestPreferences:
    """karpenter#666, karpenter#2123, aws#4907: preferences were treated as requirements and opened nodes."""

    @staticmethod
    def preferring(count: int) -> list[Json]:
        """Pods that prefer a zone, and not to be beside each other."""
        term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
        zone = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-a"]}]}
        affinity = {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 100, "podAffinityTerm": term},
                    {"weight": 10, "podAffinityTerm": {**term, "topologyKey": ZONE}},
                ]
            },
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": zone}],
            },
        }
        soft = [spread(key, "web", whenUnsatisfiable="ScheduleAnyway") for key in (HOSTNAME, ZONE)]
        return pods(count, "web", "100m", "256Mi", affinity=affinity, topologySpreadConstraints=soft)

    def test_thousands_of_pods_with_preferences_need_as_many_nodes_as_without_them(self) -> None:
        plain = pods(4_000, "web", "100m", "256Mi")

        with_preferences = Planned({"pending": self.preferring(4_000)}, TYPES)
        without = Planned({"pending": plain}, TYPES)

        assert with_preferences.unplaced == without.unplaced == 0
        assert with_preferences.plan.cost == without.plan.cost == 25 * LARGE.offerings[0].price
        assert with_preferences.plan.nodes == without.plan.nodes

    def test_pods_with_preferences_take_the_room_that_there_is(self) -> None:
        planned = Planned({"nodes": [node("old", zone="zone-c")], "pending": self.preferring(30)}, TYPES)

        assert_is_right(planned)
        assert planned.plan.nodes == 0

    def test_a_preference_that_no_pool_can_meet_is_left_out(self) -> None:
        nowhere = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-x"]}]}
        preferred = [{"weight": 100, "preference": nowhere}]
        affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}

        planned = Planned({"pending": pods(20, "web", "1", affinity=affinity)}, TYPES)

        assert_is_right(planned)
        assert planned.plan.cost == 500


class TestLimits:
    """karpenter#2915, karpenter#2657: nodes that were planned together exceeded limits (608 became 627)."""

    @pytest.mark.parametrize("strategy", ["least-cost", "least-nodes", "least-waste", "most-pods", "priority"])
    def test_the_number_of_nodes_is_never_exceeded(self, strategy: Any) -> None:
        apart = pods(627, "web", "1", affinity=near("podAntiAffinity", HOSTNAME, "web"))

        planned = Planned({"pending": apart}, TYPES, [pool(limits={"nodes": "608"})], strategy=strategy)

        assert planned.plan.nodes == 608
        assert planned.unplaced == 19
        assert list(planned._miscounted()) == []

    @pytest.mark.parametrize(
        ("limits", "placed"),
        [
            pytest.param({"cpu": "30"}, 28, id="cpu-between-two-sizes"),
            pytest.param({"memory": "64Gi"}, 16, id="memory"),
            pytest.param({"nodes": "3"}, 48, id="nodes"),
            pytest.param({"nodes": "3", "cpu": "20"}, 20, id="nodes-and-cpu"),
            pytest.param({"cpu": "1"}, 0, id="less-than-the-smallest-type"),
            pytest.param({"cpu": "0"}, 0, id="zero"),
            pytest.param({"example.com/gpu": "0"}, 60, id="a-resource-that-no-type-has"),
        ],
    )
    def test_plans_fill_limits_and_stay_below(self, limits: dict[str, str], placed: int) -> None:
        planned = Planned({"pending": pods(60, "web", "1", "1Gi")}, TYPES, [pool(limits=limits)])

        assert planned.faults() == []
        assert 60 - planned.unplaced >= placed

    def test_what_the_pool_already_has_counts(self) -> None:
        """Max. 9 cores of which 6 are used: one node of two cores may be added, not two."""
        used = {"cpu": Quantity.parse("6")}

        planned = Planned({"pending": pods(2, "web", "1500m")}, [SMALL], [pool(limits={"cpu": "9"}, used=used)])

        assert_is_right(planned, unplaced=1)
        assert planned.plan.nodes == 1

    def test_pods_go_to_another_pool_when_a_limit_is_reached(self) -> None:
        pools = [pool("first", limits={"nodes": "2"}, weight=10), pool("second")]

        planned = Planned({"pending": pods(64, "web", "1", "1Gi")}, TYPES, pools)

        assert_is_right(planned)
        names = Counter(
            planned.offerings.pools[planned.offerings.pool[each.offering]].name for each in planned.plan.groups
        )
        assert set(names) == {"first", "second"}

    def test_reserved_offerings_are_not_used_more_often_than_there_are(self) -> None:
        reserved = instance_type("reserved", "16", "64Gi", price=1, capacity_type="reserved", zones=["zone-a"], count=2)

        planned = Planned({"pending": pods(64, "web", "1", "1Gi")}, [reserved, LARGE])

        assert_is_right(planned)
        assert planned.plan.cost == 2 * 1 + 2 * 400

    def test_enlarging_a_planned_node_stays_within_limits(self) -> None:
        zonal = pods(8, "web", "1500m", affinity=near("podAffinity", ZONE, "web"))

        planned = Planned({"pending": zonal}, TYPES, [pool(limits={"cpu": "6"})])

        assert planned.faults() == []
        assert planned.unplaced == 5


class TestDaemonSets:
    """karpenter#1749, karpenter#2838, aws#3199: room for daemons was not computed for the node they would run on."""

    SIXTEEN = instance_type("sixteen", "16", "64Gi", price=400)
    TWENTY = instance_type("twenty", "20", "64Gi", price=500)

    @pytest.mark.parametrize(
        ("daemon_cpu", "expected"), [pytest.param("1", 400, id="fits"), pytest.param("1630m", 500, id="needs-more")]
    )
    def test_a_large_pod_beside_daemons(self, daemon_cpu: str, expected: int) -> None:
        """15 cpu beside 1.63 cpu of daemons do not fit into 16."""
        cluster = {"pending": pods(1, "web", "15"), "daemonSets": [daemon_set("agent", daemon_cpu)]}

        planned = Planned(cluster, [self.SIXTEEN, self.TWENTY])

        assert_is_right(planned)
        assert planned.plan.cost == expected

    def test_several_daemons_add_up(self) -> None:
        daemons = [daemon_set(f"agent-{number}", cpu) for number, cpu in enumerate(("1", "500m", "130m"))]

        planned = Planned({"pending": pods(1, "web", "15"), "daemonSets": daemons}, [self.SIXTEEN, self.TWENTY])

        assert_is_right(planned)
        assert planned.plan.cost == 500

    @pytest.mark.parametrize(
        ("tolerations", "expected"),
        [
            pytest.param([{"operator": "Exists"}], 500, id="exists-tolerates-everything"),
            pytest.param([{"key": "dedicated", "operator": "Exists"}], 500, id="exists-of-the-key"),
            pytest.param([], 400, id="not-tolerated-so-it-does-not-run-there"),
        ],
    )
    def test_daemons_on_tainted_nodes(self, tolerations: list[Json], expected: int) -> None:
        own = [{"key": "dedicated", "operator": "Exists"}]
        cluster = {
            "pending": pods(1, "web", "15", tolerations=own),
            "daemonSets": [daemon_set("agent", "1630m", tolerations=tolerations)],
        }
        tainted = pool(taints=(NodeTaint("dedicated", "NoSchedule", "web"),))

        planned = Planned(cluster, [self.SIXTEEN, self.TWENTY], [tainted])

        assert_is_right(planned)
        assert planned.plan.cost == expected

    @pytest.mark.parametrize(
        ("types", "expected"),
        [
            pytest.param(("sixteen",), 500, id="on-the-smaller-type"),
            pytest.param(("twenty",), 400, id="on-the-larger-type-only"),
            pytest.param(("sixteen", "twenty"), 500, id="on-both"),
        ],
    )
    def test_daemons_with_affinity_to_instance_types(self, types: tuple[str, ...], expected: int) -> None:
        daemons = [daemon_set("agent", "1630m", affinity=of_type(*types))]

        planned = Planned({"pending": pods(1, "web", "15"), "daemonSets": daemons}, [self.SIXTEEN, self.TWENTY])

        assert_is_right(planned)
        assert planned.plan.cost == expected

    def test_daemons_get_the_defaults_of_limit_ranges(self) -> None:
        """The daemon requests nothing by itself: the LimitRange of its namespace gives it 1.63 cpu."""
        limits = [{"type": "Container", "defaultRequest": {"cpu": "1630m"}, "default": {"cpu": "2"}}]
        cluster = {
            "pending": pods(1, "web", "15"),
            "daemonSets": [daemon_set("agent", None)],
            "limitRanges": [{"metadata": {"name": "defaults", "namespace": "kube-system"}, "spec": {"limits": limits}}],
        }

        planned = Planned(cluster, [self.SIXTEEN, self.TWENTY])

        assert_is_right(planned)
        assert planned.plan.cost == 500

    def test_daemons_take_places_for_pods(self) -> None:
        tiny = instance_type("tiny", "4", pods="10")
        daemons = [daemon_set(f"agent-{number}", "10m") for number in range(3)]

        planned = Planned({"pending": pods(20, "web", "10m"), "daemonSets": daemons}, [tiny])

        assert_is_right(planned)
        assert planned.plan.nodes == 3

    def test_pods_do_not_share_a_host_port_with_a_daemon(self) -> None:
        port = {"ports": [{"containerPort": 9100, "hostPort": 9100}]}
        agent = daemon_set("agent", "100m")
        agent["spec"]["template"]["spec"]["containers"][0] |= port
        web = pods(1, "web", "1")
        web[0]["spec"]["containers"][0] |= port

        planned = Planned({"pending": web, "daemonSets": [agent]}, TYPES)

        assert_is_right(planned, unplaced=1)
        assert planned.plan.unplaced[0].reasons == (("NodePorts", 3),)


class TestOneStep:
    """autoscaler#9150, #2947, #3835, #4129: nodes came one at a time, or more of them than there were pods."""

    def test_pods_with_two_spreads_get_their_nodes_at_once(self) -> None:
        spreads = [spread(ZONE, "web"), spread(HOSTNAME, "web")]

        planned = Planned({"pending": pods(50, "web", "1", topologySpreadConstraints=spreads)}, TYPES)

        assert_is_right(planned)
        assert planned.plan.nodes <= 50
        assert sorted(pods_by_zone(planned).values()) == [16, 17, 17]

    @pytest.mark.parametrize("count", [1, 7, 50])
    def test_pods_that_refuse_each_other_get_a_node_each(self, count: int) -> None:
        apart = pods(count, "web", "1", affinity=near("podAntiAffinity", HOSTNAME, "web"))

        planned = Planned({"pending": apart}, TYPES)

        assert_is_right(planned)
        assert planned.plan.nodes == count

    def test_pods_that_refuse_each_other_by_zone_get_a_zone_each(self) -> None:
        apart = pods(5, "web", "1", affinity=near("podAntiAffinity", ZONE, "web"))

        planned = Planned({"pending": apart}, TYPES)

        assert_is_right(planned, unplaced=2)
        assert sorted(planned.zones().values()) == [1, 1, 1]

    def test_spread_and_anti_affinity_together(self) -> None:
        web = pods(
            50,
            "web",
            "500m",
            affinity=near("podAntiAffinity", HOSTNAME, "web"),
            topologySpreadConstraints=[spread(ZONE, "web")],
        )

        planned = Planned({"pending": web}, TYPES)

        assert_is_right(planned)
        assert planned.plan.nodes == 50
        assert sorted(planned.zones().values()) == [16, 17, 17]

    def test_half_of_the_pods_find_room_and_the_others_get_nodes_in_the_same_plan(self) -> None:
        olds = [node(f"old-{number}", "2", zone=f"zone-{'abc'[number % 3]}") for number in range(6)]
        web = pods(12, "web", "1500m", topologySpreadConstraints=[spread(ZONE, "web"), spread(HOSTNAME, "web")])

        planned = Planned({"nodes": olds, "pending": web}, TYPES)

        assert_is_right(planned)
        assert planned.plan.nodes <= 6

    def test_several_workloads_that_refuse_one_another(self) -> None:
        made: list[Json] = []
        for number in range(5):
            name = f"app-{number}"
            made += pods(4, name, "500m", affinity=near("podAntiAffinity", HOSTNAME, name))

        planned = Planned({"pending": made}, TYPES)

        assert_is_right(planned)
        assert planned.plan.cost == 5 * SMALL.offerings[0].price


class TestEstimates:
    """What Cluster Autoscaler's estimator is tested with: how many nodes a group needs for equal pods."""

    ONE = instance_type("one", "1", "4Gi", zones=["zone-a"], pods="10")

    @staticmethod
    def spread_pods(count: int, cpu: str, constraint: Json) -> list[Json]:
        """Pods with one constraint."""
        return pods(count, "web", cpu, topologySpreadConstraints=[constraint])

    def test_places_for_pods_bound_the_number_of_pods(self) -> None:
        planned = Planned({"pending": pods(20, "web", "10m")}, [self.ONE])

        assert_is_right(planned)
        assert planned.plan.nodes == 2

    def test_pods_with_a_host_port_get_a_node_each(self) -> None:
        made = pods(8, "web", "200m")
        for each in made:
            each["spec"]["containers"][0]["ports"] = [{"containerPort": 5555, "hostPort": 5555}]

        planned = Planned({"pending": made}, [self.ONE])

        assert_is_right(planned)
        assert planned.plan.nodes == 8

    def test_pods_of_higher_priority_come_first_when_nodes_are_limited(self) -> None:
        """The large pods fill all nodes, although many more of the small ones would fit instead of a few of them."""
        made = [*pods(10, "large", "500m", priority=5), *pods(10, "small", "50m")]

        planned = Planned({"pending": made}, [self.ONE], [pool(limits={"nodes": "5"})])

        assert_is_right(planned, unplaced=10)
        assert planned.plan.nodes == 5
        assert {each.ask.shape.amounts[0] for each in planned.plan.unplaced} == {50}

    def test_as_many_pods_as_possible_are_placed_when_nodes_are_limited(self) -> None:
        """Cluster Autoscaler leaves the ten small pods out: with one large pod less all of them have room."""
        made = [*pods(10, "large", "500m"), *pods(10, "small", "50m")]

        planned = Planned({"pending": made}, [self.ONE], [pool(limits={"nodes": "5"})])

        assert planned.faults() == []
        assert planned.plan.nodes == 5
        assert planned.unplaced <= 10

    def test_a_spread_over_nodes_with_a_skew_of_two(self) -> None:
        made = self.spread_pods(8, "200m", spread(HOSTNAME, "web", skew=2))

        planned = Planned({"pending": made}, [self.ONE])

        assert_is_right(planned)
        assert planned.plan.nodes <= 4

    def test_a_spread_over_zones_with_a_skew_of_two_of_which_only_one_can_grow(self) -> None:
        """The other zone has a node, which is full: two more pods than there may run in the zone that grows."""
        full = node("full", "100m", zone="zone-b")
        made = self.spread_pods(8, "200m", spread(ZONE, "web", skew=2))

        planned = Planned({"nodes": [full], "pending": made}, [self.ONE])

        assert_is_right(planned, unplaced=6)
        assert planned.plan.nodes == 1

    def test_a_spread_over_nodes_needs_its_least_number_of_domains(self) -> None:
        made = self.spread_pods(12, "200m", spread(HOSTNAME, "web", minDomains=3))

        planned = Planned({"pending": made}, [self.ONE])

        assert_is_right(planned)
        assert planned.plan.nodes == 3

    @pytest.mark.parametrize(
        ("limit", "nodes"), [pytest.param("10", 0, id="one-too-few"), pytest.param("11", 11, id="just-enough")]
    )
    def test_all_or_nothing(self, limit: str, nodes: int) -> None:
        planned = Planned(
            {"pending": pods(11, "job", "1")}, [self.ONE], [pool(limits={"nodes": limit})], groups={"job": "job"}
        )

        assert_is_right(planned, unplaced=0 if nodes else 11)
        assert planned.plan.nodes == nodes
        for each in planned.plan.unplaced:
            assert each.because.startswith("all or nothing: only 10 of 11 pods")
            assert "limits.nodes" in each.because

    def test_a_group_that_fails_takes_nothing_from_the_others(self) -> None:
        """The group is placed first by its priority, and with it there is no room for the others."""
        made = [*pods(11, "job", "1", priority=5), *pods(4, "web", "1")]

        planned = Planned({"pending": made}, [self.ONE], [pool(limits={"nodes": "10"})], groups={"job": "job"})

        assert_is_right(planned, unplaced=11)
        assert planned.plan.nodes == 4


class TestReasons:
    """aws#2476, karpenter#1904: the reason of one pod was thousands of characters, once for each pool and type."""

    def test_twelve_pools_have_one_sentence(self) -> None:
        pools = [
            pool(f"team-{number}", taints=(NodeTaint("team", "NoSchedule", f"team-{number}"),), limits={"cpu": "100"})
            for number in range(11)
        ]
        pools.append(pool("open", limits={"cpu": "8"}))
        types = [instance_type(f"type-{cpu}", str(cpu), f"{4 * cpu}Gi", price=cpu * 25) for cpu in range(1, 65)]

        planned = Planned({"pending": pods(1, "web", "24")}, types, pools)

        assert_is_right(planned, unplaced=1)
        unplaced = planned.plan.unplaced[0]
        assert unplaced.reasons == (("NodeResourcesFit", 23), ("Limits", 41))
        assert unplaced.because == (
            "0/64 types in 12 pools: 41 over limits (limits.cpu of pool `open` leaves 8 of 24 needed),"
            " 23 too small (needs 24 cpu, 23 at most)"
        )

    def test_long_names_do_not_make_a_long_sentence(self) -> None:
        key = f"{'very-' * 12}long.example.com/{'label-' * 9}name"
        pools = [
            pool(
                f"{'p' * 50}-{number}",
                taints=tuple(NodeTaint(f"{key}-{one}", "NoSchedule", "v" * 63) for one in range(9)),
            )
            for number in range(12)
        ]

        planned = Planned({"pending": pods(1, "web", "1", nodeSelector={key: "x" * 63})}, TYPES, pools)

        assert_is_right(planned, unplaced=1)
        assert 0 < len(planned.plan.unplaced[0].because) <= 300


class TestPreferencesOnExistingNodes:
    """Preferences choose among the nodes with room, as the scores of kube-scheduler do, and open none."""

    NODES = [node(f"node-{number}", zone=ZONES[number % 3]) for number in range(6)]

    @staticmethod
    def preferring(kind: str, **term: Any) -> Json:
        """Affinity of a kind with one preferred term."""
        return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, **term}]}}

    def placed(self, pending: list[Json]) -> Counter[str]:
        """How many pods are placed on each existing node; nothing else may be planned."""
        planned = Planned({"nodes": self.NODES, "pending": pending}, TYPES)
        assert_is_right(planned)
        assert planned.plan.nodes == 0
        names = planned.plan.space.names()
        found: Counter[str] = Counter()
        for step in planned.plan.placed:
            found[names[step.node]] += step.pods
        return found

    def test_preferred_node_affinity(self) -> None:
        zone_b = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-b"]}]}
        affinity = self.preferring("nodeAffinity", preference=zone_b)

        assert self.placed(pods(10, "web", "1", affinity=affinity)) == {"node-1": 4, "node-4": 4, "node-0": 2}

    def test_preferred_anti_affinity(self) -> None:
        term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
        affinity = self.preferring("podAntiAffinity", podAffinityTerm=term)

        assert set(self.placed(pods(6, "web", "1", affinity=affinity)).values()) == {1}

    def test_spread_that_may_be_violated(self) -> None:
        constraint = spread(ZONE, "web", whenUnsatisfiable="ScheduleAnyway")
        found = self.placed(pods(6, "web", "1", topologySpreadConstraints=[constraint]))

        by_zone = Counter(ZONES[int(name[-1]) % 3] for name in found.elements())
        assert set(by_zone.values()) == {2}
