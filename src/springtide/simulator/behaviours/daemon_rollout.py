"""How the daemons of an old template are replaced: by deleting some at a time, or by starting new ones beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from springtide.cluster.resources import Object
from springtide.simulator.behaviours import pods as state
from springtide.simulator.behaviours.daemons import (
    Plan,
    Standing,
    by_node,
    current_and_old,
    is_available,
    most_surge,
    node_of,
)
from springtide.simulator.behaviours.shares import share

_OUTDATED = "its template is outdated"


def roll(item: Object, nodes: Mapping[str, Standing], pods: Iterable[Object], now: int) -> Plan:
    """Take the next step towards the newest template; the pods are those that `decide` leaves."""
    strategy = item["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate" or state.is_terminating(item):
        return Plan()
    active = [pod for pod in pods if state.is_active(pod)]
    wanted = [name for name, node in nodes.items() if node.should]
    surge = most_surge(item, nodes)
    if surge:
        return _beside(item, wanted, active, surge, now)
    missing = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
    return _instead(item, wanted, active, share(missing, len(wanted), up=True), now)


def _instead(item: Object, wanted: Sequence[str], pods: Sequence[Object], most_missing: int, now: int) -> Plan:
    """Delete old pods: those of no use at once, others as many as may be missing."""
    available = {node_of(pod) for pod in pods if is_available(item, pod, now)}
    room = most_missing - sum(name not in available for name in wanted)
    _, old = current_and_old(item, pods)
    useless = [pod for pod in old if not is_available(item, pod, now)]
    working = [pod for pod in old if is_available(item, pod, now)]
    return Plan(delete=[(pod, _OUTDATED) for pod in [*useless, *working[: max(0, room)]]])


def _beside(item: Object, wanted: Sequence[str], pods: Sequence[Object], surge: int, now: int) -> Plan:
    """Make new pods beside old ones: where an old one is of no use at once, elsewhere on as many nodes as may have two.

    On a node that should have none any more the old one goes when there are enough without it.
    """
    new, old = (by_node(part) for part in current_and_old(item, pods))
    alone = {name: there[0] for name, there in old.items() if name not in new}
    useless = {name: pod for name, pod in alone.items() if not is_available(item, pod, now)}
    working = [name for name in wanted if name in alone and name not in useless]
    helpless = [name for name in wanted if name in useless]
    leaving = [name for name in alone if name not in wanted]
    available = {node_of(pod) for pod in pods if is_available(item, pod, now)}
    spare = [name for name in leaving if name not in useless][: max(0, len(available) - len(wanted))]
    gone = [name for name in leaving if name in useless]
    return Plan(
        create=helpless + working[: max(0, surge - sum(name in new for name in old))],
        delete=[(alone[name], _OUTDATED) for name in gone + spare],
    )
