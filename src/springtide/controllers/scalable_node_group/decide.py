"""What a ScalableNodeGroup comes to: whether its group is asked for another number of nodes, and what people are told.

The wish is compared with what the provider works towards, not with what is there: a node that is not ready is the
provider's business, and asking again would not mend it. A group that has not come to rest is scaled all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from springtide.apis.scheduled.node_group import ScalableNodeGroupSpec
from springtide.cluster.clock import Backoff
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.resources import Key
from springtide.controllers.decision import with_ready
from springtide.providers import GROUP_NOT_FOUND, GroupState, ProviderError
from springtide.providers.port import nodes_text

STABLE_PERIOD = 60.0
"""Seconds between two looks at a group that has come to rest."""
BUSY_PERIOD = 10.0
"""Seconds between two looks at a group that has not."""
LONG_RETRY = 300.0
"""Seconds before something is tried again that most likely needs somebody to change something."""
RETRY_BACKOFF = Backoff(first=5.0, longest=LONG_RETRY)
"""Delays of what may succeed by itself."""


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """What an object is entitled to, before its group is asked for anything; equal as long as nothing has changed."""

    uid: str
    spec: ScalableNodeGroupSpec | None
    """None where the object has errors."""
    errors: str = ""
    refusal: str = ""
    """Why no grant covers the group; empty where one does."""
    ruler: Key | None = None
    """The older object that scales the same group."""

    @property
    def may_ask(self) -> bool:
        """Whether the provider may be asked at all."""
        return self.spec is not None and not self.refusal


@dataclass(frozen=True, slots=True)
class NodeGroupDecision:
    """What the status says, and when to look again."""

    active: Condition
    able: Condition
    stabilized: Condition
    again: float | None
    """Seconds; None where only a change can help, which tells of itself."""
    replicas: int | None = None
    """How many nodes were seen; None where nobody could look."""
    gone: bool = False
    """Whether there is no such group. Else what was last seen of it stays: 0 would read as if its nodes were gone."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions, `Ready` in front."""
        return with_ready(self.active, self.able, self.stabilized)


def replicas_to_request(standing: GroupRequest, state: GroupState) -> int | None:
    """Give the number of nodes that the provider is to be asked for; None: it need not be asked."""
    spec = standing.spec
    if spec is None or spec.replicas is None or spec.replicas == state.wanted or standing.ruler is not None:
        return None
    return spec.replicas


def decide_not_asked(standing: GroupRequest) -> NodeGroupDecision:
    """Report on an object whose group must not be asked."""
    reason, message = ("NotGranted", standing.refusal) if standing.refusal else ("Invalid", standing.errors)
    return NodeGroupDecision(
        active=Condition("Active", ConditionStatus.FALSE, reason, message),
        able=Condition("AbleToScale", ConditionStatus.FALSE, reason, message),
        stabilized=Condition("Stabilized", ConditionStatus.UNKNOWN, reason, "the group was not asked"),
        again=None,
    )


def decide_observed(standing: GroupRequest, state: GroupState, ordered: int | None) -> NodeGroupDecision:
    """Report on a group that was looked at, and asked for another number of nodes where that was needed."""
    stable = state.stable and ordered is None
    return NodeGroupDecision(
        active=_seen(state),
        able=_able(standing, state, ordered),
        stabilized=_stabilized(state, ordered),
        again=STABLE_PERIOD if stable else BUSY_PERIOD,
        replicas=state.replicas,
    )


def decide_failed(
    standing: GroupRequest, failure: ProviderError, state: GroupState | None, failures: int
) -> NodeGroupDecision:
    """Report on a group whose provider failed, so many times in a row: to show it or, with a state, to scale it."""
    reason, message = failure.code, str(failure)
    wish = standing.spec.replicas if standing.spec is not None else None
    if state is not None and wish is not None:
        message = f"{nodes_text(wish)} could not be asked for: {message}"
    unknown = Condition("Stabilized", ConditionStatus.UNKNOWN, reason, "the group could not be looked at")
    return NodeGroupDecision(
        active=_seen(state) if state is not None else Condition("Active", ConditionStatus.FALSE, reason, message),
        able=Condition("AbleToScale", ConditionStatus.FALSE, reason, message),
        stabilized=_stabilized(state, None) if state is not None else unknown,
        again=RETRY_BACKOFF.after(failures) if failure.retryable else LONG_RETRY,
        replicas=state.replicas if state is not None else None,
        gone=state is None and failure.code == GROUP_NOT_FOUND,
    )


def _seen(state: GroupState) -> Condition:
    return Condition("Active", ConditionStatus.TRUE, "Observed", f"the group has {nodes_text(state.replicas)} ready")


def _able(standing: GroupRequest, state: GroupState, ordered: int | None) -> Condition:
    if standing.ruler is not None:
        msg = f"{standing.ruler} is older and scales the same group: remove one of the two"
        return Condition("AbleToScale", ConditionStatus.FALSE, "DuplicateGroup", msg)
    if ordered is not None:
        return Condition(
            "AbleToScale",
            ConditionStatus.TRUE,
            "Scaled",
            f"the provider was asked for {nodes_text(ordered)} instead of {state.wanted}",
        )
    if standing.spec is not None and standing.spec.replicas is None:
        return Condition(
            "AbleToScale", ConditionStatus.TRUE, "LeftAlone", "spec.replicas is not set, and the group is left alone"
        )
    return Condition(
        "AbleToScale", ConditionStatus.TRUE, "AsWished", f"the group is to have {nodes_text(state.wanted)}, as wished"
    )


def _stabilized(state: GroupState, ordered: int | None) -> Condition:
    if ordered is not None:
        msg = f"the group goes from {state.wanted} to {nodes_text(ordered)}"
        return Condition("Stabilized", ConditionStatus.FALSE, "Scaling", msg)
    if not state.stable:
        return Condition("Stabilized", ConditionStatus.FALSE, "Busy", state.message or "the provider is at work")
    return Condition(
        "Stabilized", ConditionStatus.TRUE, "AtRest", f"the provider has come to rest at {nodes_text(state.wanted)}"
    )
