"""The scenario that groups are proven by: wishes that change, rivals, lost machines, and processes that die anywhere.

Two groups are of simulated nodes, one is in a cloud outside the cluster; one more object wants what another one has.
"""

from __future__ import annotations

from tests.controllers.scalable_node_group.node_groups import TYPE, Cloud, node_group, offering

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
LATELY = 90
"""Seconds for which an old wish may still be acted on: caches lag, and several nodes are made one after the other."""
MOST = 6
_NAMES = ("a", "b", "outside")


class NeverMoreThanWished(Invariant):
    """No node is made beyond what is wished for its group, or was lately, by the object that rules it."""

    def __init__(self) -> None:
        self._wishes: dict[str, list[tuple[int, int]]] = {}
        """Of each group: until when a wish held, and how many nodes it was; the last one holds still."""

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Follow the wishes, and count the nodes."""
        if written.resource == SCALABLE_NODE_GROUPS and written.new is not None:
            if written.key.name not in _NAMES:
                return
            spec = written.new["spec"]
            wishes = self._wishes.setdefault(spec["id"], [])
            if wishes:
                wishes[-1] = (world.clock.now(), wishes[-1][1])
            wishes.append((0, spec.get("replicas") or 0))
        elif written.resource == NODES and written.new is not None and written.old is None:
            group = written.new["metadata"]["labels"][LABEL]
            there, most = len(_nodes(world, group)), self._most(group, world.clock.now())
            if there > most:
                msg = f"the group {group} has {there} nodes, and no more than {most} were wished lately"
                raise InvariantViolated(msg)

    def _most(self, group: str, now: int) -> int:
        wishes = self._wishes.get(group) or [(0, 0)]
        lately = [wish for until, wish in wishes[:-1] if until > now - LATELY]
        return max([wishes[-1][1], *lately])


class EverythingIsAsWished(Invariant):
    """In the end every group is as large as the oldest object for it says, and its status tells the truth."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def end(self, world: World) -> None:
        """Compare wishes, machines and status."""
        for name in _NAMES:
            item = world.object("ScalableNodeGroup", name)
            wish, shown = item["spec"]["replicas"], item["status"].get("replicas")
            there = len(_nodes(world, name)) if name != "outside" else self._cloud.pools[name].wanted
            if not wish == there == shown:
                msg = f"{name} is to have {wish} nodes; it has {there}, and its status says {shown}"
                raise InvariantViolated(msg)
            unhappy = [one for one in item["status"]["conditions"] if one["status"] != "True"]
            if unhappy:
                msg = f"{name} has all its nodes, but says {unhappy}"
                raise InvariantViolated(msg)


def _nodes(world: World, group: str) -> list[str]:
    found = world.server.objects(collection_id(NODES))
    return [key.name for key, item in found if (item["metadata"].get("labels") or {}).get(LABEL) == group]


async def change_a_wish(world: World) -> None:
    """Somebody wants another number of nodes."""
    random = world.random(f"wish at {world.clock.now()}")
    name = _NAMES[random.randrange(len(_NAMES))]
    await scale("ScalableNodeGroup", name, random.randrange(MOST + 1))(world)


def scaled_groups(cloud: Cloud) -> Scenario:
    """Return the story; a cloud is for one run."""
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
        .running(ScalableNodeGroupController, replicas=2, services=offering(cloud))
        .every("40s", change_a_wish)
        .at("3m", create(node_group("rival", MOST, type_="Simulated", id_="a")))
        .at("8m", delete("ScalableNodeGroup", "rival"))
        .under(Severity.HEAVY)
        .always(
            lambda: OnlyTheLeaderWrites(Key("springtide-system", "springtide"), "springtide-scalable-node-group"),
            SharedObjectsAreNotMutated,
            NoLostUpdates,
            StoresFollowTheServer,
            NeverMoreThanWished,
            lambda: EverythingIsAsWished(cloud),
        )
        .settling("5m")
    )
