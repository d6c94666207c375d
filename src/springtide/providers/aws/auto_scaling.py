"""EC2 Auto Scaling groups."""

from __future__ import annotations

from collections import Counter

import msgspec

from springtide.apis.scheduled.node_group import AutoScalingGroupId
from springtide.cluster.client import Client
from springtide.providers.aws.client import AwsClients, decode_response
from springtide.providers.port import (
    GROUP_NOT_FOUND,
    GroupState,
    NodeGroup,
    ProviderError,
    check_bounds,
    nodes_text,
    ready_text,
)

TYPE = "AWSEC2AutoScalingGroup"
_SERVICE = "autoscaling"
_IN_SERVICE = "InService"
_HEALTHY = "Healthy"
_COUNTED = ("Launch", "Terminate")
"""The processes of a group that change how many instances it has."""


class GroupInstance(msgspec.Struct, frozen=True, rename="pascal"):
    """An instance, as AWS describes it."""

    lifecycle_state: str
    health_status: str


class SuspendedProcess(msgspec.Struct, frozen=True, rename="pascal"):
    """A process of a group that is suspended."""

    process_name: str


class GroupDescription(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """A group, as AWS describes it."""

    arn: str = msgspec.field(name="AutoScalingGroupARN")
    min_size: int
    max_size: int
    desired_capacity: int
    desired_capacity_type: str | None = None
    status: str | None = None
    instances: tuple[GroupInstance, ...] | None = None
    suspended_processes: tuple[SuspendedProcess, ...] | None = None


class _Described(msgspec.Struct, frozen=True, rename="pascal"):
    auto_scaling_groups: tuple[GroupDescription, ...]


class AutoScalingGroup(NodeGroup):
    """One group, by its name or its ARN; an ARN determines the region."""

    def __init__(self, id_: AutoScalingGroupId, clients: AwsClients, client: Client) -> None:
        self._id = id_
        self._clients = clients
        self._client = client

    async def observe(self) -> GroupState:
        """Count the instances that are healthy and in service."""
        return state_of(await self._describe())

    async def resize(self, replicas: int, *, because: str) -> None:
        """Set the desired capacity, within the bounds of the group."""
        group = await self._describe()
        if group.desired_capacity == replicas:
            return
        check_bounds(
            replicas,
            least=group.min_size,
            most=group.max_size,
            fix="change MinSize or MaxSize of the Auto Scaling group, or spec.replicas",
        )
        if group.desired_capacity_type not in (None, "", "units"):
            msg = (
                f'the Auto Scaling group "{self._id.name}" counts {group.desired_capacity_type}, not instances: '
                "set its DesiredCapacityType to units"
            )
            raise ProviderError("NotCountedInInstances", msg, retryable=False)
        if self._client.withholds(f"ask for {nodes_text(replicas)} of {self._id.name}", because=because):
            return
        await self._clients.call(
            _SERVICE,
            self._id.region,
            "set_desired_capacity",
            permit=self._client.permit,
            AutoScalingGroupName=self._id.name,
            DesiredCapacity=replicas,
            HonorCooldown=False,
        )

    async def _describe(self) -> GroupDescription:
        answer = await self._clients.call(
            _SERVICE, self._id.region, "describe_auto_scaling_groups", AutoScalingGroupNames=[self._id.name]
        )
        for group in decode_response(_SERVICE, answer, _Described).auto_scaling_groups:
            if self._id.arn and group.arn != self._id.arn:
                # The Grant is for this ARN, not for another group with the same name.
                msg = (
                    f'the Auto Scaling group "{self._id.name}" has another ARN than spec.id: '
                    "write the ARN that it has now"
                )
                raise ProviderError("OtherGroup", msg, retryable=False)
            return group
        msg = f'there is no Auto Scaling group "{self._id.name}": create it, or correct spec.id'
        raise ProviderError(GROUP_NOT_FOUND, msg, retryable=False)


def state_of(group: GroupDescription) -> GroupState:
    """Derive the state of a group from its description."""
    instances = group.instances or ()
    wanted = group.desired_capacity
    ready = sum(one.lifecycle_state == _IN_SERVICE and one.health_status == _HEALTHY for one in instances)
    busy = Counter(_doing(one) for one in instances)
    del busy[""]
    message = ""
    if group.status:
        message = f"the group is being deleted ({group.status})"
    elif ready != wanted or busy:
        message = "; ".join(
            [ready_text(ready, wanted), *(f"{number} {doing}" for doing, number in sorted(busy.items()))]
        )
        suspended = [one.process_name for one in group.suspended_processes or ()]
        message += "".join(f"; its process {name} is suspended" for name in _COUNTED if name in suspended)
    return GroupState(replicas=ready, wanted=wanted, stable=not message, message=message)


def _doing(instance: GroupInstance) -> str:
    """Return the state of an instance that is not in service or not healthy; empty otherwise."""
    if instance.lifecycle_state != _IN_SERVICE:
        return instance.lifecycle_state
    return "" if instance.health_status == _HEALTHY else instance.health_status
