"""Fault scenario for node groups: changed replicas, duplicate objects, lost nodes, processes killed at any await.

Two groups have simulated nodes, one is in a cloud outside the cluster; one more object names the group of another.
"""

from __future__ import annotations

from tests.controllers.scalable_node_group.node_groups import TYPE, FakeCloud, node_group, services_for

from springtide.apiserver.kinds import collection_id
from springtide.apiserver.server import CommittedWrite
from springtide.cluster.resources import NODES, Key
from springtide.controllers.scalable_node_group import SCALABLE_NODE_GROUPS, ScalableNodeGroupController
from springtide.providers.simulated import LABEL
from springtide.simulator import behaviours
from springtide.simulator.faults import Severity
from springtide.simulator.scenario import (
    Invariant,
    InvariantViolated,
    NoLostUpdates,
    OnlyTheLeaderWrites,
    Scenario,
    SharedObjectsAreNotMutated,
    StoresFollowTheServer,
    create,
    delete,
    scale,
)
from springtide.simulator.world import World

LENGTH = "15m"
STALE_SECONDS = 90
"""Seconds for which an old `replicas` may still be acted on: caches lag, and nodes are created one after another."""
MOST = 6
_NAMES = ("a", "b", "outside")


class NeverMoreThanRequested(Invariant):
    """No group has more nodes than its owning object requests, or requested within the last `STALE_SECONDS`."""

    def __init__(self) -> None:
        self._requests: dict[str, list[tuple[int, int]]] = {}
        """For each group: the end of each request and its number of nodes; the last request is still in force."""

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Record changes of `replicas`, and count the nodes."""
        if written.resource == SCALABLE_NODE_GROUPS and written.new is not None:
            if written.key.name not in _NAMES:
                return
            spec = written.new["spec"]
            requests = self._requests.setdefault(spec["id"], [])
            if requests:
                requests[-1] = (world.clock.now(), requests[-1][1])
            requests.append((0, spec.get("replicas") or 0))
        elif written.resource == NODES and written.new is not None and written.old is None:
            group = written.new["metadata"]["labels"][LABEL]
            there, most = len(_nodes(world, group)), self._most(group, world.clock.now())
            if there > most:
                msg = f"the group {group} has {there} nodes, more than the {most} that were requested recently"
                raise InvariantViolated(msg)

    def _most(self, group: str, now: int) -> int:
        requests = self._requests.get(group) or [(0, 0)]
        recent = [requested for until, requested in requests[:-1] if until > now - STALE_SECONDS]
        return max([requests[-1][1], *recent])


class GroupsReachTheirReplicas(Invariant):
    """At the end every group has the `replicas` of its oldest object, and the status agrees."""

    def __init__(self, cloud: FakeCloud) -> None:
        self._cloud = cloud

    def end(self, world: World) -> None:
        """Compare `replicas`, nodes and status."""
        for name in _NAMES:
            item = world.object("ScalableNodeGroup", name)
            requested, shown = item["spec"]["replicas"], item["status"].get("replicas")
            there = len(_nodes(world, name)) if name != "outside" else self._cloud.pools[name].wanted
            if not requested == there == shown:
                msg = f"{name} requests {requested} nodes; it has {there}, and its status says {shown}"
                raise InvariantViolated(msg)
            failing = [one for one in item["status"]["conditions"] if one["status"] != "True"]
            if failing:
                msg = f"{name} has all its nodes, but says {failing}"
                raise InvariantViolated(msg)


def _nodes(world: World, group: str) -> list[str]:
    found = world.server.objects(collection_id(NODES))
    return [key.name for key, item in found if (item["metadata"].get("labels") or {}).get(LABEL) == group]


async def change_replicas(world: World) -> None:
    """A user changes `replicas` of a random group."""
    random = world.random(f"wish at {world.clock.now()}")
    name = _NAMES[random.randrange(len(_NAMES))]
    await scale("ScalableNodeGroup", name, random.randrange(MOST + 1))(world)


def scaled_groups(cloud: FakeCloud) -> Scenario:
    """Return the scenario; a fake cloud serves one run."""
    return (
        Scenario("groups of nodes under a lease")
        .given(
            node_group("a", 2, type_="Simulated", id_="a"),
            node_group("b", 0, type_="Simulated", id_="b"),
            node_group("outside", 1, type_=TYPE, id_="outside"),
        )
        .behaving(
            *behaviours.configured(behaviours.BehaviourSettings(node_boot=behaviours.Delay(5, 40)), behaviours.NODES)
        )
        .running(ScalableNodeGroupController, replicas=2, services=services_for(cloud))
        .every("40s", change_replicas)
        .at("3m", create(node_group("duplicate", MOST, type_="Simulated", id_="a")))
        .at("8m", delete("ScalableNodeGroup", "duplicate"))
        .under(Severity.HEAVY)
        .always(
            lambda: OnlyTheLeaderWrites(Key("springtide-system", "springtide"), "springtide-scalable-node-group"),
            SharedObjectsAreNotMutated,
            NoLostUpdates,
            StoresFollowTheServer,
            NeverMoreThanRequested,
            lambda: GroupsReachTheirReplicas(cloud),
        )
        .settling("5m")
    )
