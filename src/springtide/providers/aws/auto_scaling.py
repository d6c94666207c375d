"""EC2 Auto Scaling groups."""

from __future__ import annotations

from collections import Counter
from typing import Any

from springtide.apis.scheduled.node_group_ids import AutoScalingGroupId
from springtide.cluster.client import Client
from springtide.providers.aws.connections import Connections
from springtide.providers.bounds import check_bounds
from springtide.providers.port import GROUP_NOT_FOUND, GroupState, NodeGroup, ProviderError
from springtide.providers.wording import nodes, ready_of

TYPE = "AWSEC2AutoScalingGroup"
_SERVICE = "autoscaling"
_IN_SERVICE = "InService"
_HEALTHY = "Healthy"
_COUNTED = ("Launch", "Terminate")
"""The processes of a group that change how many instances it has."""


class AutoScalingGroup(NodeGroup):
    """One group, by its name or its ARN; the region of the ARN counts."""

    def __init__(self, id_: AutoScalingGroupId, connections: Connections, client: Client) -> None:
        self._id = id_
        self._connections = connections
        self._client = client

    async def observe(self) -> GroupState:
        """Count the instances that are healthy and in service."""
        return state_of(await self._describe())

    async def resize(self, replicas: int, *, because: str) -> None:
        """Set the desired capacity, within the bounds of the group."""
        group = await self._describe()
        if group["DesiredCapacity"] == replicas:
            return
        check_bounds(
            replicas,
            least=group["MinSize"],
            most=group["MaxSize"],
            fix="change MinSize or MaxSize of the Auto Scaling group, or spec.replicas",
        )
        if group.get("DesiredCapacityType") not in (None, "", "units"):
            msg = (
                f'the Auto Scaling group "{self._id.name}" counts {group["DesiredCapacityType"]}, not instances: '
                "set its DesiredCapacityType to units"
            )
            raise ProviderError("NotCountedInInstances", msg, retryable=False)
        if self._client.holds_back(f"ask for {nodes(replicas)} of {self._id.name}", because=because):
            return
        await self._connections.ask(
            _SERVICE,
            self._id.region,
            "set_desired_capacity",
            permit=self._client.permit,
            AutoScalingGroupName=self._id.name,
            DesiredCapacity=replicas,
            HonorCooldown=False,
        )

    async def _describe(self) -> dict[str, Any]:
        answer = await self._connections.ask(
            _SERVICE, self._id.region, "describe_auto_scaling_groups", AutoScalingGroupNames=[self._id.name]
        )
        for group in answer["AutoScalingGroups"]:
            found: dict[str, Any] = group
            if self._id.arn and found["AutoScalingGroupARN"] != self._id.arn:
                # What is granted is the group of this ARN, not whatever has its name.
                msg = (
                    f'the Auto Scaling group "{self._id.name}" has another ARN than spec.id: '
                    "write the ARN that it has now"
                )
                raise ProviderError("OtherGroup", msg, retryable=False)
            return found
        msg = f'there is no Auto Scaling group "{self._id.name}": create it, or mend spec.id'
        raise ProviderError(GROUP_NOT_FOUND, msg, retryable=False)


def state_of(group: dict[str, Any]) -> GroupState:
    """Tell what a group has come to."""
    instances = group.get("Instances") or []
    wanted = group["DesiredCapacity"]
    ready = sum(one["LifecycleState"] == _IN_SERVICE and one["HealthStatus"] == _HEALTHY for one in instances)
    busy = Counter(_doing(one) for one in instances)
    del busy[""]
    message = ""
    if group.get("Status"):
        message = f"the group is being deleted ({group['Status']})"
    elif ready != wanted or busy:
        message = "; ".join([ready_of(ready, wanted), *(f"{number} {doing}" for doing, number in sorted(busy.items()))])
        suspended = [one["ProcessName"] for one in group.get("SuspendedProcesses") or ()]
        message += "".join(f"; its process {name} is suspended" for name in _COUNTED if name in suspended)
    return GroupState(replicas=ready, wanted=wanted, stable=not message, message=message)


def _doing(instance: dict[str, Any]) -> str:
    """Say what an instance does instead of serving; nothing where it serves."""
    if instance["LifecycleState"] != _IN_SERVICE:
        return str(instance["LifecycleState"])
    return "" if instance["HealthStatus"] == _HEALTHY else str(instance["HealthStatus"])
