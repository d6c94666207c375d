"""Managed node groups of EKS.

The ready nodes are counted in the cluster of this process, by the label that EKS gives the nodes of a group. So the
group must belong to this cluster. The Auto Scaling group behind it would count machines that never joined the cluster,
and would need one more permission and one more call.
"""

from __future__ import annotations

import msgspec

from springtide.apis.core.nodes import NodeView
from springtide.apis.scheduled.node_group import EksNodeGroupId
from springtide.cluster.client import Client
from springtide.cluster.controller import Permission
from springtide.cluster.resources import NODES
from springtide.providers.aws.client import AwsClients, decode_response
from springtide.providers.port import (
    GROUP_NOT_FOUND,
    GroupState,
    NodeGroup,
    ProviderError,
    check_bounds,
    cluster_errors_as_provider_errors,
    nodes_labelled,
    nodes_text,
    ready_text,
)

TYPE = "AWSEKSNodeGroup"
LABEL = "eks.amazonaws.com/nodegroup"
PERMISSIONS = (Permission(NODES, ("list",)),)

_SERVICE = "eks"
_ACTIVE = "ACTIVE"


class _Sizes(msgspec.Struct, frozen=True, rename="camel"):
    min_size: int
    max_size: int
    desired_size: int


class _Issue(msgspec.Struct, frozen=True):
    code: str = "Issue"
    message: str | None = None


class _Health(msgspec.Struct, frozen=True):
    issues: tuple[_Issue, ...] | None = None


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    """A node group, as EKS describes it."""

    nodegroup_arn: str
    status: str
    scaling_config: _Sizes
    health: _Health | None = None


class _Described(msgspec.Struct, frozen=True):
    nodegroup: _Group


class EksNodeGroup(NodeGroup):
    """One node group of the cluster of this process."""

    def __init__(self, id_: EksNodeGroupId, clients: AwsClients, client: Client) -> None:
        self.selector = f"{LABEL}={id_.name}"
        self._id = id_
        self._clients = clients
        self._client = client

    async def observe(self) -> GroupState:
        """Read the desired size and the nodes of the group."""
        group = await self._describe()
        with cluster_errors_as_provider_errors(f"reading the nodes of the EKS node group {self._id.name}"):
            found = await nodes_labelled(self._client, self.selector)
        return state_of(group, found)

    async def resize(self, replicas: int, *, because: str) -> None:
        """Set the desired size, within the bounds of the group."""
        sizes = (await self._describe()).scaling_config
        if sizes.desired_size == replicas:
            return
        check_bounds(
            replicas,
            least=sizes.min_size,
            most=sizes.max_size,
            fix="change minSize or maxSize of the EKS node group, or spec.replicas",
        )
        if self._client.withholds(f"ask for {nodes_text(replicas)} of {self._id.name}", because=because):
            return
        await self._clients.call(
            _SERVICE,
            self._id.region,
            "update_nodegroup_config",
            permit=self._client.permit,
            clusterName=self._id.cluster,
            nodegroupName=self._id.name,
            scalingConfig={"desiredSize": replicas},
        )

    async def _describe(self) -> _Group:
        try:
            answer = await self._clients.call(
                _SERVICE,
                self._id.region,
                "describe_nodegroup",
                clusterName=self._id.cluster,
                nodegroupName=self._id.name,
            )
        except ProviderError as failure:
            if failure.code != "ResourceNotFound":
                raise
            raise ProviderError(
                GROUP_NOT_FOUND, f"{failure}: create the group, or correct spec.id", retryable=False
            ) from None
        group = decode_response(_SERVICE, answer, _Described).nodegroup
        arn = group.nodegroup_arn
        if arn != self._id.arn and not arn.startswith(f"{self._id.arn}/"):
            # The Grant is for this ARN, not for another group with the same name.
            msg = f'the EKS node group "{self._id.name}" has another ARN than spec.id: write the ARN that it has now'
            raise ProviderError("OtherGroup", msg, retryable=False)
        return group


def state_of(group: _Group, found: list[NodeView]) -> GroupState:
    """Derive the state of a group from its description and its nodes."""
    wanted = group.scaling_config.desired_size
    ready = sum(node.is_usable for node in found)
    reasons = [f"the group is {group.status}"] if group.status != _ACTIVE else []
    reasons += [_issue_text(one) for one in (group.health.issues if group.health is not None else None) or ()]
    if ready != wanted:
        reasons.append(ready_text(ready, wanted))
    return GroupState(replicas=ready, wanted=wanted, stable=not reasons, message="; ".join(reasons))


def _issue_text(issue: _Issue) -> str:
    return f"{issue.code}: {' '.join((issue.message or '').split())}"
