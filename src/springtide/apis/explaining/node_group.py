"""Why a group of nodes has the size that it has, and why it has not another one."""

from __future__ import annotations

from collections.abc import Iterator

from springtide.apis.explaining.explanation import Explanation, Stop
from springtide.apis.explaining.facts import Facts
from springtide.apis.explaining.producer import granted
from springtide.apis.explaining.stops import common_stops
from springtide.apis.scheduled.node_group import ScalableNodeGroup
from springtide.apis.springtide.grants import Reach

_INSIDE = "Simulated"


def explain_node_group(facts: Facts) -> Explanation:
    """Explain a group of nodes: how many are wanted, by whom, and how many there are."""
    view = facts.object.view
    group = view if isinstance(view, ScalableNodeGroup) else None
    wanted = group.spec.replicas if group is not None else None
    return Explanation(
        subject=facts.subject,
        zone=facts.default_zone,
        wants={"replicas": wanted},
        headline="nothing" if wanted is None else f"{wanted} node{'' if wanted == 1 else 's'}",
        because=tuple(_because(facts, group)) if group is not None else (),
        stopped=(*common_stops(facts, "scalable-node-group"), *_twins(facts, group)),
        conditions=facts.conditions,
        history=facts.events,
        notes=(
            *(
                granted(facts, Reach.NODE_GROUP, group.spec.id)
                if group is not None and group.spec.type != _INSIDE
                else ()
            ),
            *facts.unknown,
        ),
    )


def _because(facts: Facts, group: ScalableNodeGroup) -> Iterator[str]:
    masters = [f"{other.kind.kind} `{other.name}`" for other in facts.scaled_by()]
    if group.spec.replicas is None:
        yield "`replicas` is not set: the group is left alone"
    elif masters:
        yield f"{' and '.join(masters)} {'set' if len(masters) > 1 else 'sets'} its replicas"
    else:
        yield "`replicas` says so, and no autoscaler sets it"
    observed = facts.status.get("replicas")
    if isinstance(observed, int):
        yield f"{group.spec.type} {group.spec.id} has {observed} node{'' if observed == 1 else 's'} that are ready"


def _twins(facts: Facts, group: ScalableNodeGroup | None) -> Iterator[Stop]:
    """Find other objects for the same group, where no controller has told of them."""
    if facts.status:
        return
    for other in facts.others:
        if group is None or not isinstance(other.view, ScalableNodeGroup):
            continue
        if (other.view.spec.type, other.view.spec.id) == (group.spec.type, group.spec.id):
            name = f"{other.namespace}/{other.name}"
            yield Stop("the group is claimed twice", f"ScalableNodeGroup `{name}` names it too; the older one rules")
