"""The ScalableNodeGroup controller in a simulated world: resize requests, their timing, and the status."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.scalable_node_group.node_groups import (
    FakeCloud,
    FakePool,
    events_of,
    grant,
    message_of,
    node_group,
    services_for,
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

NO_GRANTS = GrantPolicy(everything=False)
HEALTHY = {
    "Ready": ("True", "Ready"),
    "Active": ("True", "Observed"),
    "AbleToScale": ("True", "AsWished"),
    "Stabilized": ("True", "AtRest"),
}


def node_group_scenario(
    cloud: FakeCloud, *objects: dict[str, Any], grants: GrantPolicy | None = None, **options: Any
) -> Scenario:
    services = services_for(cloud) if grants is None else services_for(cloud, grants)
    return Scenario("a node group").given(*objects).running(ScalableNodeGroupController, services=services, **options)


def throttled() -> ProviderError:
    return ProviderError("Throttling", "autoscaling: Rate exceeded (Throttling)", retryable=True)


def denied() -> ProviderError:
    return ProviderError("AccessDenied", "autoscaling: not yours (AccessDenied)", retryable=False)


@pytest.mark.parametrize(
    ("pool", "replicas", "resizes"),
    [
        pytest.param(FakePool(0), 3, [("pool", 3)], id="scales up"),
        pytest.param(FakePool(10), 3, [("pool", 3)], id="scales down"),
        pytest.param(FakePool(3), 3, [], id="no change when the provider already works towards the replicas"),
        pytest.param(FakePool(1, busy="two more are made"), 3, [("pool", 3)], id="resizes an unstable group"),
        pytest.param(FakePool(3, ready=1), 3, [], id="no resize for nodes that are not ready"),
        pytest.param(FakePool(7), None, [], id="no resize without replicas"),
        pytest.param(FakePool(7), 0, [("pool", 0)], id="to zero"),
    ],
)
def test_provider_is_resized_when_replicas_differ_from_its_target(
    pool: FakePool, replicas: int | None, resizes: list[tuple[str, int]]
) -> None:
    """The controller requests a resize once; it also resizes a group that is still changing."""
    cloud = FakeCloud({"pool": pool})

    node_group_scenario(cloud, node_group(replicas=replicas)).run("5m")

    assert cloud.resizes == resizes


def test_stable_group_is_ready() -> None:
    """All conditions are true, and the message of Ready lists theirs."""
    outcome = node_group_scenario(FakeCloud({"pool": FakePool(3)}), node_group(replicas=3)).run("1m")

    assert status_of(outcome) == HEALTHY | {"replicas": 3}
    assert message_of(outcome, "Ready") == (
        "the group has 3 nodes ready; the provider works towards 3 nodes, as requested;"
        " the provider has finished all changes: 3 nodes"
    )


def test_changing_group_is_not_stabilized() -> None:
    """The status counts ready nodes, and the condition has the provider's message."""
    outcome = node_group_scenario(
        FakeCloud({"pool": FakePool(3, ready=1, busy="2 Pending")}), node_group(replicas=3)
    ).run("1m")

    assert status_of(outcome) == HEALTHY | {
        "replicas": 1, "Stabilized": ("False", "Busy"), "Ready": ("False", "Busy")
    }  # fmt: skip
    assert message_of(outcome, "Stabilized") == "2 Pending"


def test_group_without_replicas_is_observed_but_not_resized() -> None:
    """The status shows the number of nodes."""
    outcome = node_group_scenario(FakeCloud({"pool": FakePool(7)}), node_group()).run("1m")

    assert status_of(outcome) == HEALTHY | {"replicas": 7, "AbleToScale": ("True", "LeftAlone")}


def test_scale_subresource_resizes_the_group_at_once() -> None:
    """The controller requests the resize, emits an event, and reports the change in Stabilized."""
    cloud = FakeCloud({"pool": FakePool(1)})

    outcome = (
        node_group_scenario(cloud, node_group(replicas=1))
        .at("30s", scale("ScalableNodeGroup", "workers", 4))
        .run("31s")
    )

    assert cloud.resizes == [("pool", 4)]
    assert ("Normal", "Scaled", "asked the provider for 4 nodes instead of 1", 1) in events_of(outcome)
    assert status_of(outcome)["Stabilized"] == ("False", "Scaling")
    assert message_of(outcome, "Stabilized") == "the group goes from 1 to 4 nodes"


@pytest.mark.parametrize(
    ("busy", "observations"),
    [pytest.param("", 10, id="every minute when stable"), pytest.param("at work", 60, id="every 10 s while changing")],
)
def test_polling_interval_depends_on_stability(busy: str, observations: int) -> None:
    """Status writes of the controller do not cause additional observations."""
    cloud = FakeCloud({"pool": FakePool(3, busy=busy)})

    node_group_scenario(cloud, node_group(replicas=3)).run("599s")

    assert cloud.observations == observations


def test_resize_outside_the_cluster_is_reverted_within_a_minute() -> None:
    """Another client resizes the group at the provider; the controller restores `replicas`."""
    cloud = FakeCloud({"pool": FakePool(3)})

    async def resize_outside(world: World) -> None:
        cloud.pools["pool"].wanted = 9

    node_group_scenario(cloud, node_group(replicas=3)).at("90s", resize_outside).run("3m")

    assert cloud.resizes == [("pool", 3)]


def test_retryable_failure_is_reported_and_retried_with_backoff() -> None:
    """The conditions recover when the provider answers again; the last observed replicas stay."""
    cloud = FakeCloud({"pool": FakePool(3)})

    async def fail_observations(world: World) -> None:
        cloud.observe_errors = [throttled() for _ in range(4)]

    async def observe_status(world: World) -> None:
        item = world.object("ScalableNodeGroup", "workers")
        seen.append(
            {entry["type"]: entry["status"] for entry in item["status"]["conditions"]}
            | {"replicas": item["status"]["replicas"]}
        )

    seen: list[dict[str, Any]] = []
    outcome = (
        node_group_scenario(cloud, node_group(replicas=3))
        .at("30s", fail_observations)
        .at("61s", observe_status)
        .run("3m")
    )

    assert seen == [
        {"Ready": "False", "Active": "False", "AbleToScale": "False", "Stabilized": "Unknown", "replicas": 3}
    ]
    assert ("Warning", "Throttling", "autoscaling: Rate exceeded (Throttling)", 1) in events_of(outcome)
    assert status_of(outcome) == HEALTHY | {"replicas": 3}


def test_backoff_doubles_after_each_failure() -> None:
    """The delays are 5, 10, 20, 40 s and so on."""
    cloud = FakeCloud({"pool": FakePool(3)}, observe_errors=[throttled() for _ in range(100)])

    node_group_scenario(cloud, node_group(replicas=3)).run("299s")

    assert cloud.observations == 6


def test_an_edit_begins_with_the_shortest_backoff() -> None:
    """The failures before the edit, after which the next try would come in minutes, do not count."""
    cloud = FakeCloud({"pool": FakePool(3)}, observe_errors=[throttled() for _ in range(100)])
    scenario = node_group_scenario(cloud, node_group(replicas=3))

    scenario.at("200s", edit("ScalableNodeGroup", "workers", {"spec": {"replicas": 4}})).run("299s")

    # At 0, 5, 15, 35, 75 and 155 s, and then at 200, 205, 215, 235 and 275 s.
    assert cloud.observations == 11


def test_permanently_refused_resize_is_retried_every_five_minutes() -> None:
    """A change of `replicas` is tried at once."""
    cloud = FakeCloud({"pool": FakePool(3)}, resize_errors=[denied() for _ in range(3)])
    scenario = node_group_scenario(cloud, node_group(replicas=9))

    outcome = scenario.at("7m", edit("ScalableNodeGroup", "workers", {"spec": {"replicas": 4}})).run("8m")

    assert cloud.resize_errors == []
    assert cloud.resizes == []
    status = status_of(outcome)
    assert (status["AbleToScale"], status["Active"], status["replicas"]) == (
        ("False", "AccessDenied"), ("True", "Observed"), 3
    )  # fmt: skip
    assert message_of(outcome, "AbleToScale") == (
        "4 nodes could not be asked for: autoscaling: not yours (AccessDenied)"
    )


def test_last_observed_replicas_stay_when_access_is_denied() -> None:
    """A permanent failure says nothing about the number of nodes."""
    cloud = FakeCloud({"pool": FakePool(3)})

    async def deny_access(world: World) -> None:
        cloud.observe_errors = [denied() for _ in range(3)]

    outcome = node_group_scenario(cloud, node_group(replicas=3)).at("30s", deny_access).run("5m")

    status = status_of(outcome)
    assert (status["Active"], status["replicas"]) == (("False", "AccessDenied"), 3)


def test_missing_group_has_no_replicas_in_the_status() -> None:
    """The last observed number is removed."""
    cloud = FakeCloud({"pool": FakePool(3)})

    async def remove(world: World) -> None:
        cloud.pools.clear()

    outcome = node_group_scenario(cloud, node_group(replicas=3)).at("30s", remove).run("2m")

    assert status_of(outcome)["Active"] == ("False", "GroupNotFound")
    assert "replicas" not in status_of(outcome)


def test_type_without_provider_is_reported() -> None:
    """The message lists the available types."""
    outcome = node_group_scenario(FakeCloud(), node_group(replicas=1, type_="ClusterAPI", id_="a/b")).run("1m")

    assert status_of(outcome)["AbleToScale"] == ("False", "ProviderMissing")
    assert "it has AWSEC2AutoScalingGroup, Simulated" in message_of(outcome, "AbleToScale")


def test_invalid_object_is_not_observed_until_it_is_corrected() -> None:
    """The provider is not called for an invalid spec."""
    cloud = FakeCloud({"pool": FakePool(1)})
    wrong = node_group(replicas=2, id_="arn:aws:sqs:eu-west-1:1:jobs")
    scenario = node_group_scenario(cloud, wrong)

    outcome = scenario.run("10m")
    assert status_of(outcome)["AbleToScale"] == ("False", "Invalid")
    assert message_of(outcome, "AbleToScale").startswith("spec.id: ")
    assert cloud.observations == 0

    outcome = scenario.at("5m", edit("ScalableNodeGroup", "workers", {"spec": {"id": "pool"}})).run("10m")
    assert status_of(outcome) == HEALTHY | {"replicas": 2}


def test_provider_is_not_called_without_a_grant() -> None:
    """The message names the namespace, the group and the field; a Grant takes effect at once, and so does its end."""
    cloud = FakeCloud({"pool": FakePool(1)})
    scenario = node_group_scenario(cloud, node_group(replicas=2, namespace="team-a"), grants=NO_GRANTS)

    outcome = scenario.run("10m")
    assert cloud.observations == 0
    assert status_of(outcome, namespace="team-a")["Ready"] == ("False", "NotGranted")
    assert message_of(outcome, "AbleToScale", namespace="team-a") == (
        'no Grant lets objects of namespace team-a reach the node group "pool":'
        " list it under `nodeGroups` of a Grant for this namespace"
    )

    granted = scenario.at("5m", create(grant("team-a", "team-a", "po*")))
    outcome = granted.run("301s")
    assert cloud.resizes == [("pool", 2)]

    outcome = granted.at("6m", delete("Grant", "team-a")).run("361s")
    assert status_of(outcome, namespace="team-a")["AbleToScale"] == ("False", "NotGranted")
    # Not 0: an autoscaler that reads the scale would take the nodes away.
    assert status_of(outcome, namespace="team-a")["replicas"] == 2


def test_grants_for_other_namespaces_or_groups_do_not_apply() -> None:
    """One Grant names another namespace, the other one another group."""
    cloud = FakeCloud({"pool": FakePool(1)})

    outcome = node_group_scenario(
        cloud,
        node_group(replicas=2, namespace="team-a"),
        grant("one", "team-b", "pool"),
        grant("two", "team-a", "other"),
        grants=NO_GRANTS,
    ).run("5m")

    assert cloud.observations == 0
    assert status_of(outcome, namespace="team-a")["Ready"] == ("False", "NotGranted")


def test_older_of_two_objects_owns_the_group() -> None:
    """The younger object reports the duplicate and requests no resize until the older object is deleted."""
    cloud = FakeCloud({"pool": FakePool(1)})
    scenario = node_group_scenario(cloud, node_group(replicas=2)).at("1m", create(node_group("other", 5)))

    outcome = scenario.run("5m")
    assert cloud.resizes == [("pool", 2)]
    assert status_of(outcome, "other") == HEALTHY | {
        "replicas": 2, "Ready": ("False", "DuplicateGroup"), "AbleToScale": ("False", "DuplicateGroup")
    }  # fmt: skip
    assert message_of(outcome, "AbleToScale", "other") == (
        "default/workers is older and scales the same group: remove one of the two"
    )

    scenario.at("3m", delete("ScalableNodeGroup", "workers")).run("181s")
    assert cloud.resizes == [("pool", 2), ("pool", 5)]


def test_object_being_deleted_does_not_own_its_group() -> None:
    """This holds also while finalizers delay the deletion."""
    cloud = FakeCloud({"pool": FakePool(1)})
    old = node_group(replicas=2)
    old["metadata"]["finalizers"] = ["example.com/wait"]

    (
        node_group_scenario(cloud, old)
        .at("1m", create(node_group("other", 5)))
        .at("2m", delete("ScalableNodeGroup", "workers"))
        .run("5m")
    )

    assert cloud.resizes == [("pool", 2), ("pool", 5)]


def test_object_without_a_grant_does_not_own_the_group() -> None:
    """An older object in a namespace without a Grant does not block the object that has one."""
    cloud = FakeCloud({"pool": FakePool(1)})

    outcome = (
        node_group_scenario(
            cloud, node_group(replicas=9, namespace="other"), grant("a", "owner", "pool"), grants=NO_GRANTS
        )
        .at("1m", create(node_group(replicas=2, namespace="owner")))
        .run("5m")
    )

    assert cloud.resizes == [("pool", 2)]
    assert status_of(outcome, namespace="owner") == HEALTHY | {"replicas": 2}
    assert status_of(outcome, namespace="other")["AbleToScale"] == ("False", "NotGranted")


def test_objects_without_a_grant_enqueue_no_other_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Creating, changing and deleting them does not enqueue the owner of the group."""
    enqueued: list[Key] = []
    enqueue = ControllerContext.enqueue

    def recorded_enqueue(context: ControllerContext, key: Key) -> None:
        enqueued.append(key)
        enqueue(context, key)

    monkeypatch.setattr(ControllerContext, "enqueue", recorded_enqueue)
    cloud = FakeCloud({"pool": FakePool(1)})
    ungranted = [node_group(f"ungranted-{number}", number, namespace="other") for number in range(10)]

    outcome = (
        node_group_scenario(
            cloud, node_group(replicas=2, namespace="owner"), grant("a", "owner", "pool"), grants=NO_GRANTS
        )
        .at("1m", create(*ungranted))
        .at("2m", edit("ScalableNodeGroup", "ungranted-3", {"spec": {"replicas": 50}}, namespace="other"))
        .at("3m", delete("ScalableNodeGroup", "ungranted-4", namespace="other"))
        .run("4m")
    )

    assert enqueued == []
    assert cloud.resizes == [("pool", 2)]
    assert status_of(outcome, "ungranted-9", "other")["AbleToScale"] == ("False", "NotGranted")


def test_observe_mode_requests_no_resize() -> None:
    """An event says what the controller would have done."""
    cloud = FakeCloud({"pool": FakePool(1)})

    outcome = node_group_scenario(cloud, node_group(replicas=3), mode=Mode.OBSERVE).run("90s")

    assert cloud.resizes == []
    assert "status" not in outcome.object("ScalableNodeGroup", "workers")
    (event,) = events_of(outcome)
    assert event[:3] == ("Normal", "WouldScale", "would scale the group from 1 to 3 nodes")


def test_deleted_object_leaves_the_group_unchanged() -> None:
    """The provider is no longer called."""
    cloud = FakeCloud({"pool": FakePool(1)})

    node_group_scenario(cloud, node_group(replicas=3)).at("30s", delete("ScalableNodeGroup", "workers")).run("10m")

    assert cloud.resizes == [("pool", 3)]
    assert cloud.observations == 2


def test_restart_repeats_no_resize() -> None:
    """The controller observes the group again."""
    cloud = FakeCloud({"pool": FakePool(1)})

    outcome = node_group_scenario(cloud, node_group(replicas=3)).at("30s", crash("springtide-0")).run("2m")

    assert cloud.resizes == [("pool", 3)]
    assert status_of(outcome) == HEALTHY | {"replicas": 3}


def test_simulated_nodes_are_created_and_deleted() -> None:
    """Nodes boot in 30 s, and the status follows."""
    scenario = (
        node_group_scenario(FakeCloud(), node_group(replicas=3, type_="Simulated", id_="pool"))
        .behaving(*behaviours.NODES)
        .at("5m", scale("ScalableNodeGroup", "workers", 1))
    )

    outcome = scenario.run("6m")

    ready = [entry.at for entry in outcome.trace if entry.kind == "Node" and "has booted" in entry.because]
    assert [at - outcome.world.clock.start for at in ready] == [30, 30, 30]
    assert [node["metadata"]["name"] for node in outcome.objects("Node")] == ["pool-0"]
    assert status_of(outcome) == HEALTHY | {"replicas": 1, "selector": "springtide.dev/node-group=pool"}


def test_lost_node_causes_no_resize() -> None:
    """The node is not ready, but the requested number has not changed."""
    outcome = (
        node_group_scenario(FakeCloud(), node_group(replicas=3, type_="Simulated", id_="pool"))
        .behaving(*behaviours.NODES)
        .at("2m", lose("pool-1"))
        .run("5m")
    )

    assert len(outcome.objects("Node")) == 3
    assert (status_of(outcome)["replicas"], status_of(outcome)["Stabilized"]) == (2, ("False", "Busy"))
    assert message_of(outcome, "Stabilized") == "2 of 3 nodes are ready"


def test_controller_writes_only_status_and_scale() -> None:
    """Only the status of its objects and the scale of MachineDeployments."""
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
