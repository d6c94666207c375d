"""What `springtide explain` says about a ScalableNodeGroup, from the same `decide` as its controller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler
from springtide.apis.scheduled.node_group import ScalableNodeGroup
from springtide.apis.springtide.grants import GrantedResource
from springtide.cluster.resources import Object, key_of
from springtide.controllers.explanation import (
    Blocker,
    Explanation,
    ExplanationInput,
    TargetState,
    common_blockers,
    stored_form,
)
from springtide.controllers.horizontal_autoscaler.forecast import ReplicaForecast, forecast_replicas
from springtide.controllers.metrics_producer.explain import grant_notes
from springtide.controllers.scalable_node_group.decide import GroupRequest, decide
from springtide.controllers.scalable_node_group.ownership import owner_of_group, younger_objects

_SIMULATED = "Simulated"


def explain_node_group(facts: ExplanationInput) -> Explanation:
    """Explain a group of nodes: how many are wanted, by which object, and how many are ready."""
    view = facts.object.view
    group = view if isinstance(view, ScalableNodeGroup) else None
    ahead = _forecast(facts, group)
    wanted = group.spec.replicas if group is not None else None
    unset = "nothing"
    if wanted is not None and not facts.present and facts.scaled_by():
        wanted, unset = ahead.wants, facts.not_known
    needs_grant = group is not None and group.spec.type != _SIMULATED
    grants = grant_notes(facts, GrantedResource.NODE_GROUP, group.spec.id) if group is not None and needs_grant else ()
    return Explanation(
        subject=facts.subject,
        zone=ahead.coming[0].zone if ahead.coming else facts.default_zone,
        wants={"replicas": wanted},
        headline=unset if wanted is None else f"{wanted} node{'' if wanted == 1 else 's'}",
        because=tuple(_because(facts, group)) if group is not None else (),
        next=ahead.coming,
        next_unknown=ahead.unknown,
        stopped=(*common_blockers(facts, "scalable-node-group"), *_duplicate_blockers(facts, group)),
        conditions=facts.conditions,
        history=facts.events,
        notes=(*grants, *_duplicate_notes(facts, group), *facts.unknown),
    )


def _forecast(facts: ExplanationInput, group: ScalableNodeGroup | None) -> ReplicaForecast:
    """Look ahead for the autoscaler that sets the replicas, where there is exactly one."""
    autoscalers = facts.scaled_by()
    if not autoscalers:
        return ReplicaForecast()
    names = _names(facts)
    one = autoscalers[0]
    if len(autoscalers) > 1 or not isinstance(one.view, HorizontalAutoscaler) or not one.sound:
        return ReplicaForecast(unknown=f"{names} {'set' if len(autoscalers) > 1 else 'sets'} its replicas")
    asked = group.spec.replicas if group is not None else None
    target = None if asked is None else TargetState(one.name, {"replicas": asked}, asked)
    ahead = forecast_replicas(replace(facts, object=one, status={}, target=target), one.view)
    return replace(ahead, unknown=f"{names} sets its replicas, and {ahead.unknown}") if ahead.unknown else ahead


def _names(facts: ExplanationInput) -> str:
    return " and ".join(f"{one.kind.kind} `{one.name}`" for one in facts.scaled_by())


def _because(facts: ExplanationInput, group: ScalableNodeGroup) -> Iterator[str]:
    autoscalers = facts.scaled_by()
    if group.spec.replicas is None:
        yield from decide(GroupRequest("", group.spec), None, now=facts.at).reasons[1:]
    elif autoscalers:
        yield f"{_names(facts)} {'set' if len(autoscalers) > 1 else 'sets'} its replicas"
    else:
        yield "`replicas` says so, and no autoscaler sets it"
    observed = facts.status.get("replicas")
    if isinstance(observed, int):
        nodes = "1 node that is ready" if observed == 1 else f"{observed} nodes that are ready"
        yield f"{'' if facts.present else 'at present '}{group.spec.type} {group.spec.id} has {nodes}"


def _duplicate_blockers(facts: ExplanationInput, group: ScalableNodeGroup | None) -> Iterator[Blocker]:
    """Report that an older object scales the group, unless the controller has reported it."""
    if facts.status or group is None or not facts.object.sound:
        return
    owner = owner_of_group(stored_form(facts.object), _duplicates(facts), lambda _: True)
    if owner is not None:
        request = GroupRequest("", group.spec, owner=owner)
        yield Blocker("another object scales the group", decide(request, None, now=facts.at).reasons[-1])


def _duplicate_notes(facts: ExplanationInput, group: ScalableNodeGroup | None) -> Iterator[str]:
    """Name the younger objects of the group, which only observe it."""
    if group is None or not facts.object.sound:
        return
    for other in younger_objects(stored_form(facts.object), _duplicates(facts)):
        yield f"ScalableNodeGroup `{key_of(other)}` names the same group and is younger: it only observes the group"


def _duplicates(facts: ExplanationInput) -> list[Object]:
    """Return the other objects of the kind that a controller could let scale a group."""
    others = (one for one in facts.others if isinstance(one.view, ScalableNodeGroup) and one.sound)
    return [stored_form(one) for one in others]
