"""Why a group of nodes has the size that it has, and why it has not another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler
from springtide.apis.scheduled.node_group import ScalableNodeGroup
from springtide.apis.springtide.grants import GrantedResource
from springtide.controllers.explanation import Blocker, Explanation, ExplanationInput, common_blockers
from springtide.controllers.horizontal_autoscaler.explain import ScheduleForecast, forecast_replicas
from springtide.controllers.metrics_producer.explain import grant_notes

_SIMULATED = "Simulated"


def explain_node_group(facts: ExplanationInput) -> Explanation:
    """Explain a group of nodes: how many are wanted, by whom, and how many there are."""
    view = facts.object.view
    group = view if isinstance(view, ScalableNodeGroup) else None
    ahead = _forecast(facts)
    wanted = group.spec.replicas if group is not None else None
    unset = "nothing"
    if wanted is not None and not facts.present and facts.scaled_by():
        wanted, unset = ahead.wants, facts.not_known
    return Explanation(
        subject=facts.subject,
        zone=ahead.coming[0].zone if ahead.coming else facts.default_zone,
        wants={"replicas": wanted},
        headline=unset if wanted is None else f"{wanted} node{'' if wanted == 1 else 's'}",
        because=tuple(_because(facts, group)) if group is not None else (),
        next=ahead.coming,
        next_unknown=ahead.unknown,
        stopped=(*common_blockers(facts, "scalable-node-group"), *_duplicates(facts, group)),
        conditions=facts.conditions,
        history=facts.events,
        notes=(
            *(
                grant_notes(facts, GrantedResource.NODE_GROUP, group.spec.id)
                if group is not None and group.spec.type != _SIMULATED
                else ()
            ),
            *facts.unknown,
        ),
    )


def _forecast(facts: ExplanationInput) -> ScheduleForecast:
    """Look ahead with the eyes of the autoscaler that sets the replicas, where it is the only one who does."""
    masters = facts.scaled_by()
    if not masters:
        return ScheduleForecast()
    names = " and ".join(f"{one.kind.kind} `{one.name}`" for one in masters)
    if len(masters) > 1 or not isinstance(view := masters[0].view, HorizontalAutoscaler) or not masters[0].sound:
        return ScheduleForecast(unknown=f"{names} {'set' if len(masters) > 1 else 'sets'} its replicas")
    ahead = forecast_replicas(replace(facts, object=masters[0]), view)
    return replace(ahead, unknown=f"{names} sets its replicas, and {ahead.unknown}") if ahead.unknown else ahead


def _because(facts: ExplanationInput, group: ScalableNodeGroup) -> Iterator[str]:
    masters = [f"{other.kind.kind} `{other.name}`" for other in facts.scaled_by()]
    if group.spec.replicas is None:
        yield "`replicas` is not set: the group is left alone"
    elif masters:
        yield f"{' and '.join(masters)} {'set' if len(masters) > 1 else 'sets'} its replicas"
    else:
        yield "`replicas` says so, and no autoscaler sets it"
    observed = facts.status.get("replicas")
    if isinstance(observed, int):
        nodes = "1 node that is ready" if observed == 1 else f"{observed} nodes that are ready"
        yield f"{'' if facts.present else 'at present '}{group.spec.type} {group.spec.id} has {nodes}"


def _duplicates(facts: ExplanationInput, group: ScalableNodeGroup | None) -> Iterator[Blocker]:
    """Find other objects for the same group, where no controller has told of them."""
    if facts.status:
        return
    for other in facts.others:
        if group is None or not isinstance(other.view, ScalableNodeGroup):
            continue
        if (other.view.spec.type, other.view.spec.id) == (group.spec.type, group.spec.id):
            name = f"{other.namespace}/{other.name}"
            yield Blocker("the group is claimed twice", f"ScalableNodeGroup `{name}` names it too; the older one rules")
