"""What a ScalableNodeGroup comes to: whether its group is asked for another number of nodes, and what people are told.

The wish is compared with what the provider works towards, not with what is there: a node that is not ready is the
provider's business, and asking again would not mend it. A group that has not come to rest is scaled all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from springtide.apis.scheduled.node_group import ScalableNodeGroupSpec
from springtide.cluster.backoff import Backoff
from springtide.cluster.conditions import Condition, Truth
from springtide.cluster.resources import Key
from springtide.controllers.living import with_ready
from springtide.providers import GROUP_NOT_FOUND, GroupState, ProviderError
from springtide.providers.wording import nodes

CALM = 60.0
"""Seconds between two looks at a group that has come to rest."""
BUSY = 10.0
"""Seconds between two looks at a group that has not."""
LASTING = 300.0
"""Seconds before something is tried again that most likely needs somebody to change something."""
PASSING = Backoff(first=5.0, longest=LASTING)
"""Delays of what may succeed by itself."""


@dataclass(frozen=True, slots=True)
class Standing:
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
class Report:
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


def order(standing: Standing, state: GroupState) -> int | None:
    """Give the number of nodes that the provider is to be asked for; None: it need not be asked."""
    spec = standing.spec
    if spec is None or spec.replicas is None or spec.replicas == state.wanted or standing.ruler is not None:
        return None
    return spec.replicas


def not_asked(standing: Standing) -> Report:
    """Report on an object whose group must not be asked."""
    reason, message = ("NotGranted", standing.refusal) if standing.refusal else ("Invalid", standing.errors)
    return Report(
        active=Condition("Active", Truth.FALSE, reason, message),
        able=Condition("AbleToScale", Truth.FALSE, reason, message),
        stabilized=Condition("Stabilized", Truth.UNKNOWN, reason, "the group was not asked"),
        again=None,
    )


def observed(standing: Standing, state: GroupState, ordered: int | None) -> Report:
    """Report on a group that was looked at, and asked for another number of nodes where that was needed."""
    stable = state.stable and ordered is None
    return Report(
        active=_seen(state),
        able=_able(standing, state, ordered),
        stabilized=_stabilized(state, ordered),
        again=CALM if stable else BUSY,
        replicas=state.replicas,
    )


def failed(standing: Standing, failure: ProviderError, state: GroupState | None, failures: int) -> Report:
    """Report on a group whose provider failed, so many times in a row: to show it or, with a state, to scale it."""
    reason, message = failure.code, str(failure)
    wish = standing.spec.replicas if standing.spec is not None else None
    if state is not None and wish is not None:
        message = f"{nodes(wish)} could not be asked for: {message}"
    unknown = Condition("Stabilized", Truth.UNKNOWN, reason, "the group could not be looked at")
    return Report(
        active=_seen(state) if state is not None else Condition("Active", Truth.FALSE, reason, message),
        able=Condition("AbleToScale", Truth.FALSE, reason, message),
        stabilized=_stabilized(state, None) if state is not None else unknown,
        again=PASSING.after(failures) if failure.retryable else LASTING,
        replicas=state.replicas if state is not None else None,
        gone=state is None and failure.code == GROUP_NOT_FOUND,
    )


def _seen(state: GroupState) -> Condition:
    return Condition("Active", Truth.TRUE, "Observed", f"the group has {nodes(state.replicas)} ready")


def _able(standing: Standing, state: GroupState, ordered: int | None) -> Condition:
    if standing.ruler is not None:
        msg = f"{standing.ruler} is older and scales the same group: remove one of the two"
        return Condition("AbleToScale", Truth.FALSE, "DuplicateGroup", msg)
    if ordered is not None:
        return Condition(
            "AbleToScale",
            Truth.TRUE,
            "Scaled",
            f"the provider was asked for {nodes(ordered)} instead of {state.wanted}",
        )
    if standing.spec is not None and standing.spec.replicas is None:
        return Condition(
            "AbleToScale", Truth.TRUE, "LeftAlone", "spec.replicas is not set, and the group is left alone"
        )
    return Condition("AbleToScale", Truth.TRUE, "AsWished", f"the group is to have {nodes(state.wanted)}, as wished")


def _stabilized(state: GroupState, ordered: int | None) -> Condition:
    if ordered is not None:
        msg = f"the group goes from {state.wanted} to {nodes(ordered)}"
        return Condition("Stabilized", Truth.FALSE, "Scaling", msg)
    if not state.stable:
        return Condition("Stabilized", Truth.FALSE, "Busy", state.message or "the provider is at work")
    return Condition("Stabilized", Truth.TRUE, "AtRest", f"the provider has come to rest at {nodes(state.wanted)}")
