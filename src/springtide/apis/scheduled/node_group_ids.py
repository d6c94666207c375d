"""The ids of node groups: what each type of group is found by, and when two ids mean the same group."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

_ARN = re.compile(r"arn:[a-z0-9-]+:(?P<service>[a-z0-9-]+):(?P<region>[a-z0-9-]*):(?P<account>[0-9]*):(?P<rest>.+)")
_AUTO_SCALING_GROUP = re.compile(r"autoScalingGroup:[^:/]+:autoScalingGroupName/(?P<name>.+)")
_AUTO_SCALING_GROUP_NAME = re.compile(r"[!-9;-~]{1,255}")
_EKS_NODE_GROUP = re.compile(
    r"nodegroup/(?P<cluster>[A-Za-z0-9][-A-Za-z0-9_]{0,99})/(?P<name>[A-Za-z0-9][-A-Za-z0-9_]{0,62})(/[-A-Za-z0-9]+)?"
)
"""Names as EKS allows them: they become parts of the path that it is asked for."""
_MACHINE_DEPLOYMENT = re.compile(
    r"(?P<namespace>[a-z0-9]([-a-z0-9]*[a-z0-9])?)/(?P<name>[a-z0-9]([-a-z0-9.]*[a-z0-9])?)"
)
_SIMULATED = re.compile(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?")
"""Nodes are named after their group, with a number behind it; the whole must be a label of at most 63 letters."""


@dataclass(frozen=True, slots=True)
class AutoScalingGroupId:
    """An EC2 Auto Scaling group, by its name in the region of the process, or by its ARN."""

    name: str
    arn: str = ""
    region: str = ""
    account: str = ""

    @property
    def place(self) -> str:
        """What ids of one group have in common."""
        return self.name


@dataclass(frozen=True, slots=True)
class EksNodeGroupId:
    """A managed node group of an EKS cluster."""

    arn: str
    region: str
    account: str
    cluster: str
    name: str

    @property
    def place(self) -> str:
        """What ids of one group have in common; the end of an ARN, which is made anew with the group, is not."""
        return f"{self.region}/{self.account}/{self.cluster}/{self.name}"


@dataclass(frozen=True, slots=True)
class MachineDeploymentId:
    """A MachineDeployment of Cluster API."""

    namespace: str
    name: str

    @property
    def place(self) -> str:
        """What ids of one group have in common."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class SimulatedGroupId:
    """A group of simulated nodes, of which there is one of a name in a cluster."""

    name: str

    @property
    def place(self) -> str:
        """What ids of one group have in common."""
        return self.name


GroupId: TypeAlias = AutoScalingGroupId | EksNodeGroupId | MachineDeploymentId | SimulatedGroupId


def read_group_id(type_: str, id_: str) -> GroupId | None:
    """Read the id of a group; None where it does not identify a group of its type."""
    match type_:
        case "AWSEC2AutoScalingGroup":
            return read_auto_scaling_group(id_)
        case "AWSEKSNodeGroup":
            return read_eks_node_group(id_)
        case "ClusterAPI":
            found = _MACHINE_DEPLOYMENT.fullmatch(id_)
            return MachineDeploymentId(found["namespace"], found["name"]) if found else None
        case "Simulated":
            return SimulatedGroupId(id_) if _SIMULATED.fullmatch(id_) else None
    return None


def read_auto_scaling_group(id_: str) -> AutoScalingGroupId | None:
    """Read the name or the ARN of an EC2 Auto Scaling group; None if it is neither."""
    if not id_.startswith("arn:"):
        return AutoScalingGroupId(id_) if _AUTO_SCALING_GROUP_NAME.fullmatch(id_) else None
    arn = _ARN.fullmatch(id_)
    found = _AUTO_SCALING_GROUP.fullmatch(arn["rest"]) if arn is not None and arn["service"] == "autoscaling" else None
    if arn is None or found is None or not _AUTO_SCALING_GROUP_NAME.fullmatch(found["name"]):
        return None
    return AutoScalingGroupId(found["name"], id_, arn["region"], arn["account"])


def read_eks_node_group(id_: str) -> EksNodeGroupId | None:
    """Read the ARN of an EKS node group; None if it is something else."""
    arn = _ARN.fullmatch(id_)
    found = _EKS_NODE_GROUP.fullmatch(arn["rest"]) if arn is not None and arn["service"] == "eks" else None
    if arn is None or found is None:
        return None
    return EksNodeGroupId(id_, arn["region"], arn["account"], found["cluster"], found["name"])


def may_be_same(one: GroupId, other: GroupId) -> bool:
    """Tell whether two ids can mean one group; a bare name may mean the group of that name in any region."""
    if type(one) is not type(other) or one.place != other.place:
        return False
    if isinstance(one, AutoScalingGroupId) and isinstance(other, AutoScalingGroupId) and one.arn and other.arn:
        return (one.region, one.account) == (other.region, other.account)
    return True
