"""The ScalableNodeGroup controller in a simulated world: what it asks for, when, and what the status says."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.scalable_node_group.node_groups import (
    Cloud,
    Pool,
    events_of,
    grant,
    message_of,
    node_group,
    offering,
    status_of,
)

from springtide.cluster.client import Mode
from springtide.cluster.context import ControllerContext
from springtide.cluster.resources import Key
from springtide.controllers.grant.state import GrantPolicy
from springtide.controllers.scalable_node_group import ScalableNodeGroupController
from springtide.providers import ProviderError
from springtide.simulator import behaviours
from springtide.simulator.scenario import Scenario, crash, create, delete, edit, lose, scale
from springtide.simulator.world import World

NO_TRUST = GrantPolicy(everything=False)
HAPPY = {
    "Ready": ("True", "Ready"),
    "Active": ("True", "Observed"),
    "AbleToScale": ("True", "AsWished"),
    "Stabilized": ("True", "AtRest"),
}


def story(cloud: Cloud, *objects: dict[str, Any], trust: GrantPolicy | None = None, **options: Any) -> Scenario:
    services = offering(cloud) if trust is None else offering(cloud, trust)
    return Scenario("a node group").given(*objects).running(ScalableNodeGroupController, services=services, **options)


def throttled() -> ProviderError:
    return ProviderError("Throttling", "autoscaling: Rate exceeded (Throttling)", retryable=True)


def denied() -> ProviderError:
    return ProviderError("AccessDenied", "autoscaling: not yours (AccessDenied)", retryable=False)


@pytest.mark.parametrize(
    ("pool", "wish", "orders"),
    [
        pytest.param(Pool(0), 3, [("pool", 3)], id="H19-up"),
        pytest.param(Pool(10), 3, [("pool", 3)], id="H19-down"),
        pytest.param(Pool(3), 3, [], id="H19-as-wished"),
        pytest.param(Pool(1, busy="two more are made"), 3, [("pool", 3)], id="H19-unstable"),
        pytest.param(Pool(3, ready=1), 3, [], id="nodes-that-are-not-ready-are-not-ordered-again"),
        pytest.param(Pool(7), None, [], id="no-wish"),
        pytest.param(Pool(7), 0, [("pool", 0)], id="to-nothing"),
    ],
)
def test_what_is_asked_of_a_provider(pool: Pool, wish: int | None, orders: list[tuple[str, int]]) -> None:
    """What it works towards is compared with the wish, once; a group under way is scaled all the same."""
    cloud = Cloud({"pool": pool})

    story(cloud, node_group(replicas=wish)).run("5m")

    assert cloud.orders == orders


def test_the_status_of_a_group_at_rest() -> None:
    """Everything is well, and says so."""
    outcome = story(Cloud({"pool": Pool(3)}), node_group(replicas=3)).run("1m")

    assert status_of(outcome) == HAPPY | {"replicas": 3}
    assert message_of(outcome, "Ready") == (
        "the group has 3 nodes ready; the group is to have 3 nodes, as wished; the provider has come to rest at 3 nodes"
    )


def test_the_status_of_a_group_under_way() -> None:
    """What is there is counted, and the words are the provider's."""
    outcome = story(Cloud({"pool": Pool(3, ready=1, busy="2 Pending")}), node_group(replicas=3)).run("1m")

    assert status_of(outcome) == HAPPY | {
        "replicas": 1, "Stabilized": ("False", "Busy"), "Ready": ("False", "Busy")
    }  # fmt: skip
    assert message_of(outcome, "Stabilized") == "2 Pending"


def test_a_group_that_is_left_alone_is_shown() -> None:
    """Without a wish there is nothing to order, but something to see."""
    outcome = story(Cloud({"pool": Pool(7)}), node_group()).run("1m")

    assert status_of(outcome) == HAPPY | {"replicas": 7, "AbleToScale": ("True", "LeftAlone")}


def test_scaling_through_the_subresource() -> None:
    """A wish counts at once, people are told, and the scale shows what is there."""
    cloud = Cloud({"pool": Pool(1)})

    outcome = story(cloud, node_group(replicas=1)).at("30s", scale("ScalableNodeGroup", "workers", 4)).run("31s")

    assert cloud.orders == [("pool", 4)]
    assert ("Normal", "Scaled", "asked the provider for 4 nodes instead of 1", 1) in events_of(outcome)
    assert status_of(outcome)["Stabilized"] == ("False", "Scaling")
    assert message_of(outcome, "Stabilized") == "the group goes from 1 to 4 nodes"


@pytest.mark.parametrize(
    ("busy", "looks"), [pytest.param("", 10, id="every-minute-at-rest"), pytest.param("at work", 60, id="every-10-s")]
)
def test_how_often_a_provider_is_asked(busy: str, looks: int) -> None:
    """Our own writes are no reason to ask."""
    cloud = Cloud({"pool": Pool(3, busy=busy)})

    story(cloud, node_group(replicas=3)).run("599s")

    assert cloud.looks == looks


def test_a_change_at_the_provider_is_noticed() -> None:
    """Somebody else resized the group: within a minute it is as wished again."""
    cloud = Cloud({"pool": Pool(3)})

    async def meddle(world: World) -> None:
        cloud.pools["pool"].wanted = 9

    story(cloud, node_group(replicas=3)).at("90s", meddle).run("3m")

    assert cloud.orders == [("pool", 3)]


def test_a_failure_that_passes() -> None:
    """It is told, tried again later and later, and forgotten when it is over; what was last seen stays."""
    cloud = Cloud({"pool": Pool(3)})

    async def break_down(world: World) -> None:
        cloud.failing_looks = [throttled() for _ in range(4)]

    async def look(world: World) -> None:
        item = world.object("ScalableNodeGroup", "workers")
        seen.append(
            {entry["type"]: entry["status"] for entry in item["status"]["conditions"]}
            | {"replicas": item["status"]["replicas"]}
        )

    seen: list[dict[str, Any]] = []
    outcome = story(cloud, node_group(replicas=3)).at("30s", break_down).at("61s", look).run("3m")

    assert seen == [
        {"Ready": "False", "Active": "False", "AbleToScale": "False", "Stabilized": "Unknown", "replicas": 3}
    ]
    assert ("Warning", "Throttling", "autoscaling: Rate exceeded (Throttling)", 1) in events_of(outcome)
    assert status_of(outcome) == HAPPY | {"replicas": 3}


def test_tries_grow_apart() -> None:
    """5, 10, 20, 40 s and so on: not every poll is a failure the more."""
    cloud = Cloud({"pool": Pool(3)}, failing_looks=[throttled() for _ in range(100)])

    story(cloud, node_group(replicas=3)).run("299s")

    assert cloud.looks == 6


def test_an_order_that_is_refused_for_good() -> None:
    """It is tried again only every five minutes, but at once when somebody changes the wish."""
    cloud = Cloud({"pool": Pool(3)}, failing_orders=[denied() for _ in range(3)])
    scenario = story(cloud, node_group(replicas=9))

    outcome = scenario.at("7m", edit("ScalableNodeGroup", "workers", {"spec": {"replicas": 4}})).run("8m")

    assert cloud.failing_orders == []
    assert cloud.orders == []
    status = status_of(outcome)
    assert (status["AbleToScale"], status["Active"], status["replicas"]) == (
        ("False", "AccessDenied"), ("True", "Observed"), 3
    )  # fmt: skip
    assert message_of(outcome, "AbleToScale") == (
        "4 nodes could not be asked for: autoscaling: not yours (AccessDenied)"
    )


def test_rights_that_were_taken_away() -> None:
    """A failure that lasts says nothing about the nodes either."""
    cloud = Cloud({"pool": Pool(3)})

    async def take_rights(world: World) -> None:
        cloud.failing_looks = [denied() for _ in range(3)]

    outcome = story(cloud, node_group(replicas=3)).at("30s", take_rights).run("5m")

    status = status_of(outcome)
    assert (status["Active"], status["replicas"]) == (("False", "AccessDenied"), 3)


def test_a_group_that_is_gone() -> None:
    """What was last seen of it does not stay."""
    cloud = Cloud({"pool": Pool(3)})

    async def remove(world: World) -> None:
        cloud.pools.clear()

    outcome = story(cloud, node_group(replicas=3)).at("30s", remove).run("2m")

    assert status_of(outcome)["Active"] == ("False", "GroupNotFound")
    assert "replicas" not in status_of(outcome)


def test_a_type_that_nobody_serves() -> None:
    """The words say which there are."""
    outcome = story(Cloud(), node_group(replicas=1, type_="ClusterAPI", id_="a/b")).run("1m")

    assert status_of(outcome)["AbleToScale"] == ("False", "ProviderMissing")
    assert "it has AWSEC2AutoScalingGroup, Simulated" in message_of(outcome, "AbleToScale")


def test_an_object_that_is_wrong_and_then_mended() -> None:
    """The provider is not asked before it is right."""
    cloud = Cloud({"pool": Pool(1)})
    wrong = node_group(replicas=2, id_="arn:aws:sqs:eu-west-1:1:jobs")
    scenario = story(cloud, wrong)

    outcome = scenario.run("10m")
    assert status_of(outcome)["AbleToScale"] == ("False", "Invalid")
    assert message_of(outcome, "AbleToScale").startswith("spec.id: ")
    assert cloud.looks == 0

    outcome = scenario.at("5m", edit("ScalableNodeGroup", "workers", {"spec": {"id": "pool"}})).run("10m")
    assert status_of(outcome) == HAPPY | {"replicas": 2}


def test_nothing_is_asked_without_a_grant() -> None:
    """The words name the namespace, the group and the field; a grant counts at once, and so does its end."""
    cloud = Cloud({"pool": Pool(1)})
    scenario = story(cloud, node_group(replicas=2, namespace="team-a"), trust=NO_TRUST)

    outcome = scenario.run("10m")
    assert cloud.looks == 0
    assert status_of(outcome, namespace="team-a")["Ready"] == ("False", "NotGranted")
    assert message_of(outcome, "AbleToScale", namespace="team-a") == (
        'no Grant lets objects of namespace team-a reach the node group "pool":'
        " list it under `nodeGroups` of a Grant for this namespace"
    )

    granted = scenario.at("5m", create(grant("theirs", "team-a", "po*")))
    outcome = granted.run("301s")
    assert cloud.orders == [("pool", 2)]

    outcome = granted.at("6m", delete("Grant", "theirs")).run("361s")
    assert status_of(outcome, namespace="team-a")["AbleToScale"] == ("False", "NotGranted")
    # Not 0: an autoscaler that reads the scale would take the nodes away.
    assert status_of(outcome, namespace="team-a")["replicas"] == 2


def test_a_grant_of_others_does_not_help() -> None:
    """Neither one for another namespace, nor one for another group."""
    cloud = Cloud({"pool": Pool(1)})

    outcome = story(
        cloud,
        node_group(replicas=2, namespace="team-a"),
        grant("one", "team-b", "pool"),
        grant("two", "team-a", "other"),
        trust=NO_TRUST,
    ).run("5m")

    assert cloud.looks == 0
    assert status_of(outcome, namespace="team-a")["Ready"] == ("False", "NotGranted")


def test_of_two_objects_for_one_group_the_older_rules() -> None:
    """The younger one says so, shows the group and orders nothing; when the older one goes, it rules at once."""
    cloud = Cloud({"pool": Pool(1)})
    scenario = story(cloud, node_group(replicas=2)).at("1m", create(node_group("other", 5)))

    outcome = scenario.run("5m")
    assert cloud.orders == [("pool", 2)]
    assert status_of(outcome, "other") == HAPPY | {
        "replicas": 2, "Ready": ("False", "DuplicateGroup"), "AbleToScale": ("False", "DuplicateGroup")
    }  # fmt: skip
    assert message_of(outcome, "AbleToScale", "other") == (
        "default/workers is older and scales the same group: remove one of the two"
    )

    scenario.at("3m", delete("ScalableNodeGroup", "workers")).run("181s")
    assert cloud.orders == [("pool", 2), ("pool", 5)]


def test_one_that_is_being_deleted_rules_no_more() -> None:
    """It may wait for its finalizers as long as it likes."""
    cloud = Cloud({"pool": Pool(1)})
    old = node_group(replicas=2)
    old["metadata"]["finalizers"] = ["example.com/wait"]

    (
        story(cloud, old)
        .at("1m", create(node_group("other", 5)))
        .at("2m", delete("ScalableNodeGroup", "workers"))
        .run("5m")
    )

    assert cloud.orders == [("pool", 2), ("pool", 5)]


def test_whoever_may_not_scale_a_group_does_not_rule_it() -> None:
    """Naming somebody's group first is no way to stop him."""
    cloud = Cloud({"pool": Pool(1)})

    outcome = (
        story(cloud, node_group(replicas=9, namespace="thief"), grant("a", "owner", "pool"), trust=NO_TRUST)
        .at("1m", create(node_group(replicas=2, namespace="owner")))
        .run("5m")
    )

    assert cloud.orders == [("pool", 2)]
    assert status_of(outcome, namespace="owner") == HAPPY | {"replicas": 2}
    assert status_of(outcome, namespace="thief")["AbleToScale"] == ("False", "NotGranted")


def test_objects_of_strangers_for_a_group_wake_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many they write, and whatever becomes of them: else they would keep the controller from its work."""
    woken: list[Key] = []
    wake = ControllerContext.enqueue

    def noted(context: ControllerContext, key: Key) -> None:
        woken.append(key)
        wake(context, key)

    monkeypatch.setattr(ControllerContext, "enqueue", noted)
    cloud = Cloud({"pool": Pool(1)})
    strange = [node_group(f"stranger-{number}", number, namespace="thief") for number in range(10)]

    outcome = (
        story(cloud, node_group(replicas=2, namespace="owner"), grant("a", "owner", "pool"), trust=NO_TRUST)
        .at("1m", create(*strange))
        .at("2m", edit("ScalableNodeGroup", "stranger-3", {"spec": {"replicas": 50}}, namespace="thief"))
        .at("3m", delete("ScalableNodeGroup", "stranger-4", namespace="thief"))
        .run("4m")
    )

    assert woken == []
    assert cloud.orders == [("pool", 2)]
    assert status_of(outcome, "stranger-9", "thief")["AbleToScale"] == ("False", "NotGranted")


def test_nothing_is_ordered_in_observe_mode() -> None:
    """People are told what would be."""
    cloud = Cloud({"pool": Pool(1)})

    outcome = story(cloud, node_group(replicas=3), mode=Mode.OBSERVE).run("90s")

    assert cloud.orders == []
    assert "status" not in outcome.object("ScalableNodeGroup", "workers")
    (event,) = events_of(outcome)
    assert event[:3] == ("Normal", "WouldScale", "would have asked the provider for 3 nodes instead of 1")


def test_an_object_that_goes_leaves_the_group_as_it_is() -> None:
    """The machines are not ours to end, and nobody is asked any more."""
    cloud = Cloud({"pool": Pool(1)})

    story(cloud, node_group(replicas=3)).at("30s", delete("ScalableNodeGroup", "workers")).run("10m")

    assert cloud.orders == [("pool", 3)]
    assert cloud.looks == 2


def test_a_restart_needs_no_memory() -> None:
    """The provider is asked, and nothing is ordered twice."""
    cloud = Cloud({"pool": Pool(1)})

    outcome = story(cloud, node_group(replicas=3)).at("30s", crash("springtide-0")).run("2m")

    assert cloud.orders == [("pool", 3)]
    assert status_of(outcome) == HAPPY | {"replicas": 3}


def test_simulated_nodes_come_and_go() -> None:
    """Nodes of the cluster itself: they boot in 30 s, and the status follows."""
    scenario = (
        story(Cloud(), node_group(replicas=3, type_="Simulated", id_="pool"))
        .behaving(*behaviours.NODES)
        .at("5m", scale("ScalableNodeGroup", "workers", 1))
    )

    outcome = scenario.run("6m")

    ready = [entry.at for entry in outcome.trace if entry.kind == "Node" and "has booted" in entry.because]
    assert [at - outcome.world.clock.start for at in ready] == [30, 30, 30]
    assert [node["metadata"]["name"] for node in outcome.objects("Node")] == ["pool-0"]
    assert status_of(outcome) == HAPPY | {"replicas": 1, "selector": "springtide.dev/node-group=pool"}


def test_a_lost_node_is_not_ordered_again() -> None:
    """It is wanted, and not ready; how many there shall be has not changed."""
    outcome = (
        story(Cloud(), node_group(replicas=3, type_="Simulated", id_="pool"))
        .behaving(*behaviours.NODES)
        .at("2m", lose("pool-1"))
        .run("5m")
    )

    assert len(outcome.objects("Node")) == 3
    assert (status_of(outcome)["replicas"], status_of(outcome)["Stabilized"]) == (2, ("False", "Busy"))
    assert message_of(outcome, "Stabilized") == "2 of 3 nodes are ready"


def test_the_permissions_are_those_that_are_used() -> None:
    """It reads groups, grants, definitions and nodes, and writes a status and the scale of MachineDeployments."""
    written = {
        (str(permission.resource), verb, permission.subresource)
        for permission in ScalableNodeGroupController.permissions
        for verb in permission.verbs
        if verb not in ("get", "list", "watch")
    }

    assert written == {
        ("scalablenodegroups.autoscaling.karpenter.sh", "patch", "status"),
        ("machinedeployments.cluster.x-k8s.io", "patch", "scale"),
    }
