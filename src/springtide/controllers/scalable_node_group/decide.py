"""Whether the provider of a node group is asked for another number of nodes, and what the status says.

`spec.replicas` is compared with the number that the provider works towards, not with the nodes that are ready: another
request would not make a node ready. A group that has not stabilized is scaled all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from springtide.apis.scheduled.node_group import ScalableNodeGroupSpec
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.resources import Key
from springtide.controllers.decision import Decision, with_ready
from springtide.providers import GROUP_NOT_FOUND, GroupState, ProviderError
from springtide.providers.port import nodes_text

STABLE_PERIOD = 60
"""Seconds between two observations of a group that has stabilized."""
BUSY_PERIOD = 10
"""Seconds between two observations of a group that has not."""
LONG_RETRY = 300
"""Seconds before a failure is retried that most likely lasts until a user changes something."""
FIRST_RETRY = 5
"""Seconds before a failure is retried that may pass; doubled with every failure in a row, up to `LONG_RETRY`."""

_MOST_DOUBLINGS = 16


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """What an object asks for, and whether it may; equal as long as nothing of that has changed."""

    uid: str
    spec: ScalableNodeGroupSpec | None
    """None where the object has errors."""
    errors: str = ""
    refusal: str = ""
    """Why no Grant covers the group; empty where one does."""
    owner: Key | None = None
    """The older object that scales the same group."""

    @property
    def may_observe(self) -> bool:
        """Whether the controller may call the provider at all."""
        return self.spec is not None and not self.refusal


@dataclass(frozen=True, slots=True)
class ResizeGroup:
    """Ask the provider for another number of nodes."""

    nodes: int
    instead_of: int

    def __str__(self) -> str:
        return f"{nodes_text(self.nodes)} instead of {self.instead_of}"

    @property
    def step(self) -> str:
        """The change, for messages."""
        return f"from {self.instead_of} to {nodes_text(self.nodes)}"


def decide(
    request: GroupRequest,
    group: GroupState | ProviderError | None,
    *,
    now: int,
    failures: int = 0,
    resize_failure: ProviderError | None = None,
    last_replicas: int | None = None,
) -> Decision[ResizeGroup]:
    """Decide about a group from what the provider said of it; None where it was not asked.

    `resize_failure` is why the provider refused the action that was decided before; `failures` counts failures in a
    row. `last_replicas` is what the status says: it stays while the group cannot be observed, since an autoscaler that
    reads the scale would take 0 for an empty group.
    """
    if group is None:
        return _not_observed(request, last_replicas)
    if isinstance(group, ProviderError):
        return _not_observable(request, group, now, failures, last_replicas)
    if resize_failure is not None:
        return _not_resized(request, group, resize_failure, now, failures)
    actions = _actions(request, group)
    return _decision(
        request,
        Condition("Active", ConditionStatus.TRUE, "Observed", f"the group has {nodes_text(group.replicas)} ready"),
        _able_to_scale(request, group, actions),
        _stabilized(group, actions),
        replicas=group.replicas,
        actions=actions,
        requeue_at=now + (STABLE_PERIOD if group.stable and not actions else BUSY_PERIOD),
    )


def _actions(request: GroupRequest, group: GroupState) -> tuple[ResizeGroup, ...]:
    spec = request.spec
    if spec is None or spec.replicas is None or spec.replicas == group.wanted or request.owner is not None:
        return ()
    return (ResizeGroup(spec.replicas, group.wanted),)


def _not_observed(request: GroupRequest, last_replicas: int | None) -> Decision[ResizeGroup]:
    if request.may_observe:
        reason, message = "NotObserved", "the group has not been observed yet"
    else:
        reason, message = ("NotGranted", request.refusal) if request.refusal else ("Invalid", request.errors)
    return _decision(
        request,
        Condition("Active", ConditionStatus.FALSE, reason, message),
        Condition("AbleToScale", ConditionStatus.FALSE, reason, message),
        Condition("Stabilized", ConditionStatus.UNKNOWN, reason, "the group was not asked"),
        replicas=last_replicas,
    )


def _not_observable(
    request: GroupRequest, failure: ProviderError, now: int, failures: int, last_replicas: int | None
) -> Decision[ResizeGroup]:
    reason, message = failure.code, str(failure)
    return _decision(
        request,
        Condition("Active", ConditionStatus.FALSE, reason, message),
        Condition("AbleToScale", ConditionStatus.FALSE, reason, message),
        Condition("Stabilized", ConditionStatus.UNKNOWN, reason, "the group could not be observed"),
        replicas=None if failure.code == GROUP_NOT_FOUND else last_replicas,
        requeue_at=_retry_at(failure, now, failures),
    )


def _not_resized(
    request: GroupRequest, group: GroupState, failure: ProviderError, now: int, failures: int
) -> Decision[ResizeGroup]:
    asked = "" if request.spec is None else f"{nodes_text(request.spec.replicas or 0)} could not be asked for: "
    return _decision(
        request,
        Condition("Active", ConditionStatus.TRUE, "Observed", f"the group has {nodes_text(group.replicas)} ready"),
        Condition("AbleToScale", ConditionStatus.FALSE, failure.code, f"{asked}{failure}"),
        _stabilized(group, ()),
        replicas=group.replicas,
        requeue_at=_retry_at(failure, now, failures),
    )


def _retry_at(failure: ProviderError, now: int, failures: int) -> int:
    if not failure.retryable:
        return now + LONG_RETRY
    return now + min(FIRST_RETRY << min(failures - 1, _MOST_DOUBLINGS), LONG_RETRY)


def _decision(
    request: GroupRequest,
    active: Condition,
    able: Condition,
    stabilized: Condition,
    *,
    replicas: int | None,
    actions: tuple[ResizeGroup, ...] = (),
    requeue_at: int | None = None,
) -> Decision[ResizeGroup]:
    return Decision(
        actions=actions,
        reasons=(able.message, *_reasons(request)),
        conditions=with_ready(active, able, stabilized),
        requeue_at=requeue_at,
        status={"replicas": replicas},
    )


def _reasons(request: GroupRequest) -> tuple[str, ...]:
    if request.owner is not None:
        return (owner_message(request.owner),)
    if request.spec is not None and request.spec.replicas is None:
        return ("`replicas` is not set: the group is left alone",)
    return ()


def owner_message(owner: Key) -> str:
    """Say that another object scales the group."""
    return f"{owner} is older and scales the same group: remove one of the two"


def _able_to_scale(request: GroupRequest, group: GroupState, actions: tuple[ResizeGroup, ...]) -> Condition:
    if request.owner is not None:
        return Condition("AbleToScale", ConditionStatus.FALSE, "DuplicateGroup", owner_message(request.owner))
    if actions:
        return Condition("AbleToScale", ConditionStatus.TRUE, "Scaled", f"the provider was asked for {actions[0]}")
    if request.spec is not None and request.spec.replicas is None:
        message = "spec.replicas is not set, and the group is left alone"
        return Condition("AbleToScale", ConditionStatus.TRUE, "LeftAlone", message)
    message = f"the provider works towards {nodes_text(group.wanted)}, as requested"
    return Condition("AbleToScale", ConditionStatus.TRUE, "AsWished", message)


def _stabilized(group: GroupState, actions: tuple[ResizeGroup, ...]) -> Condition:
    if actions:
        message = f"the group goes from {group.wanted} to {nodes_text(actions[0].nodes)}"
        return Condition("Stabilized", ConditionStatus.FALSE, "Scaling", message)
    if not group.stable:
        message = group.message or "the provider is at work"
        return Condition("Stabilized", ConditionStatus.FALSE, "Busy", message)
    message = f"the provider has finished all changes: {nodes_text(group.wanted)}"
    return Condition("Stabilized", ConditionStatus.TRUE, "AtRest", message)
