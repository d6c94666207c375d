"""ScalableNodeGroup: a node group of a provider, with replicas that autoscalers can set, and the ids of node groups."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from springtide.apis.kinds import Count, NonEmpty, ValidationContext, View, doc, stock
from springtide.apis.meta.types import KnativeConditions, Object
from springtide.apis.problems import Problem, error

_ARN = re.compile(r"arn:[a-z0-9-]+:(?P<service>[a-z0-9-]+):(?P<region>[a-z0-9-]*):(?P<account>[0-9]*):(?P<rest>.+)")
_AUTO_SCALING_GROUP = re.compile(r"autoScalingGroup:[^:/]+:autoScalingGroupName/(?P<name>.+)")
_AUTO_SCALING_GROUP_NAME = re.compile(r"[!-9;-~]{1,255}")
_EKS_NODE_GROUP = re.compile(
    r"nodegroup/(?P<cluster>[A-Za-z0-9][-A-Za-z0-9_]{0,99})/(?P<name>[A-Za-z0-9][-A-Za-z0-9_]{0,62})(/[-A-Za-z0-9]+)?"
)
"""Names as EKS allows them, because they become parts of a request path."""
_MACHINE_DEPLOYMENT = re.compile(
    r"(?P<namespace>[a-z0-9]([-a-z0-9]*[a-z0-9])?)/(?P<name>[a-z0-9]([-a-z0-9.]*[a-z0-9])?)"
)
_SIMULATED = re.compile(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?")
"""Nodes are named after their group with a number appended, which must be a label of at most 63 characters."""


@dataclass(frozen=True, slots=True)
class AutoScalingGroupId:
    """An EC2 Auto Scaling group, by its name in the region of the process, or by its ARN."""

    name: str
    arn: str = ""
    region: str = ""
    account: str = ""

    @property
    def place(self) -> str:
        """What all ids of one group have in common."""
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
        """What all ids of one group have in common; the ARN has a suffix that changes when the group is re-created."""
        return f"{self.region}/{self.account}/{self.cluster}/{self.name}"


@dataclass(frozen=True, slots=True)
class MachineDeploymentId:
    """A MachineDeployment of Cluster API."""

    namespace: str
    name: str

    @property
    def place(self) -> str:
        """What all ids of one group have in common."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class SimulatedGroupId:
    """A group of simulated nodes, whose name is unique in a cluster."""

    name: str

    @property
    def place(self) -> str:
        """What all ids of one group have in common."""
        return self.name


GroupId: TypeAlias = AutoScalingGroupId | EksNodeGroupId | MachineDeploymentId | SimulatedGroupId


def read_group_id(type_: str, id_: str) -> GroupId | None:
    """Parse the id of a group; None if it is not an id of this type."""
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
    """Parse the name or the ARN of an EC2 Auto Scaling group; None if it is neither."""
    if not id_.startswith("arn:"):
        return AutoScalingGroupId(id_) if _AUTO_SCALING_GROUP_NAME.fullmatch(id_) else None
    arn = _ARN.fullmatch(id_)
    found = _AUTO_SCALING_GROUP.fullmatch(arn["rest"]) if arn is not None and arn["service"] == "autoscaling" else None
    if arn is None or found is None or not _AUTO_SCALING_GROUP_NAME.fullmatch(found["name"]):
        return None
    return AutoScalingGroupId(found["name"], id_, arn["region"], arn["account"])


def read_eks_node_group(id_: str) -> EksNodeGroupId | None:
    """Parse the ARN of an EKS node group; None if it is something else."""
    arn = _ARN.fullmatch(id_)
    found = _EKS_NODE_GROUP.fullmatch(arn["rest"]) if arn is not None and arn["service"] == "eks" else None
    if arn is None or found is None:
        return None
    return EksNodeGroupId(id_, arn["region"], arn["account"], found["cluster"], found["name"])


def may_be_same(one: GroupId, other: GroupId) -> bool:
    """Return whether two ids may mean one group; a name without ARN may mean a group in any region."""
    if type(one) is not type(other) or one.place != other.place:
        return False
    if isinstance(one, AutoScalingGroupId) and isinstance(other, AutoScalingGroupId) and one.arn and other.arn:
        return (one.region, one.account) == (other.region, other.account)
    return True


class ScalableNodeGroupSpec(View, kw_only=True):
    """The node group, and the wanted number of nodes."""

    __mistaken__ = {"desiredReplicas": "write `replicas`", "name": "write `id`", "arn": "write `id`"}

    replicas: Annotated[Count | None, doc("The wanted number of nodes; the group is not scaled if not set.")] = None
    type: Annotated[
        Literal["AWSEC2AutoScalingGroup", "AWSEKSNodeGroup", "ClusterAPI", "Simulated"],
        doc("The type of the group, which decides the provider."),
        stock(type="string", enum=["AWSEC2AutoScalingGroup", "AWSEKSNodeGroup"]),
    ]
    id: Annotated[
        NonEmpty,
        doc(
            "The group: name or ARN of an Auto Scaling group, ARN of an EKS node group, NAMESPACE/NAME of a"
            " MachineDeployment, or the name of a simulated group."
        ),
    ]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find ids that are not of the type."""
        if read_group_id(self.type, self.id) is None:
            yield _unknown_id(self.type, self.id)


class ScalableNodeGroupStatus(View, kw_only=True):
    """The observed state of the group."""

    replicas: Annotated[Count | None, doc("How many nodes of the group are ready.")] = None
    selector: Annotated[str | None, doc("Labels of the group's nodes, for the scale subresource.")] = None
    conditions: Annotated[KnativeConditions | None, doc("Active, AbleToScale, Stabilized; Ready is all of them.")] = (
        None
    )


class ScalableNodeGroup(Object, kw_only=True):
    """A group of nodes that can be scaled like a Deployment."""

    spec: Annotated[ScalableNodeGroupSpec, doc("The group and its wanted size.")]
    status: Annotated[ScalableNodeGroupStatus | None, doc("The group as it is.")] = None


def auto_scaling_group_name(id_: str) -> str | None:
    """Return the name of an EC2 Auto Scaling group from its name or ARN; None if it is neither."""
    found = read_auto_scaling_group(id_)
    return None if found is None else found.name


def _unknown_id(type_: str, id_: str) -> Problem:
    """Describe the expected form of an id."""
    match type_:
        case "AWSEC2AutoScalingGroup":
            what = "the name or ARN of an Auto Scaling group"
            hint = "write the group's name, or its ARN, which ends in `autoScalingGroupName/NAME`"
        case "AWSEKSNodeGroup":
            what = "the ARN of an EKS node group"
            hint = "write arn:aws:eks:REGION:ACCOUNT:nodegroup/CLUSTER/NAME/UUID"
        case "ClusterAPI":
            what = "NAMESPACE/NAME of a MachineDeployment"
            hint = f"write `default/{id_}` if it is in the namespace default" if "/" not in id_ else ""
        case _:
            what = "the name of a simulated group"
            hint = "write a plain name of at most 52 lower-case letters, digits and dashes"
    return error(("id",), f'"{id_}" is not {what}', hint)
