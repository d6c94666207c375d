"""NodeClaims: what each promises of the node that it will become.

`NodeClaimView` is the type that the API server's JSON is decoded as; `node_claim_record` makes the record of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from springtide.apis.core.interning import NO_LABELS, intern_strings
from springtide.apis.core.nodes import NodeTaint
from springtide.apis.core.resources import amounts
from springtide.apis.meta.types import DecodedPart
from springtide.packing.snapshot import UpcomingNode
from springtide.quantity import Quantity


class _ClaimMetadata(DecodedPart):
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class _Requirement(DecodedPart):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class _Taint(DecodedPart):
    key: str = ""
    effect: str = ""
    value: str | None = None


class _ClaimSpec(DecodedPart):
    requirements: tuple[_Requirement, ...] | None = None
    taints: tuple[_Taint, ...] | None = None
    startup_taints: tuple[_Taint, ...] | None = None


class _Condition(DecodedPart):
    type: str = ""
    status: str = ""


class _ClaimStatus(DecodedPart):
    node_name: str | None = None
    capacity: dict[str, str | int | float] | None = None
    allocatable: dict[str, str | int | float] | None = None
    conditions: tuple[_Condition, ...] | None = None


class NodeClaimView(DecodedPart):
    """A NodeClaim as the API server sends it, as far as pods can be placed on its node."""

    metadata: _ClaimMetadata
    spec: _ClaimSpec = _ClaimSpec()
    status: _ClaimStatus = _ClaimStatus()


@dataclass(frozen=True, slots=True)
class NodeClaimRecord:
    """A NodeClaim."""

    node: UpcomingNode
    capacity: Mapping[str, Quantity]
    """What its machine has, which counts towards the limits of its pool."""
    deleting: bool = False


def node_claim_record(claim: NodeClaimView) -> NodeClaimRecord:
    """Make the record of a NodeClaim; raises `AmountError` for amounts that are not quantities."""
    metadata, spec, status = claim.metadata, claim.spec, claim.status
    single = {
        each.key: each.values[0]
        for each in spec.requirements or ()
        if each.operator == "In" and each.values and len(each.values) == 1
    }
    return NodeClaimRecord(
        UpcomingNode(
            name=metadata.name,
            labels=intern_strings({**single, **(metadata.labels or NO_LABELS)}),
            taints=node_taints(spec.taints),
            startup_taints=node_taints(spec.startup_taints),
            allocatable=amounts(status.allocatable),
            node=status.node_name or "",
            initialized=any(one.type == "Initialized" and one.status == "True" for one in status.conditions or ()),
        ),
        amounts(status.capacity),
        metadata.deletion_timestamp is not None,
    )


class TaintLike(Protocol):
    """A taint of any view."""

    @property
    def key(self) -> str:
        """Name of the taint."""

    @property
    def effect(self) -> str:
        """What it does to pods."""

    @property
    def value(self) -> str | None:
        """Value of the taint."""


def node_taints(taints: Iterable[TaintLike] | None) -> tuple[NodeTaint, ...]:
    """Return taints of a NodeClaim or of a NodePool as nodes have them."""
    return tuple(NodeTaint(each.key, each.effect, each.value or "") for each in taints or ())
