"""ScalableNodeGroup: a group of nodes at a provider, with a number of replicas that autoscalers can set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from springtide.apis.fields import Context, Count, NonEmpty, View, doc, stock
from springtide.apis.meta.types import Object
from springtide.apis.problems import Problem, error
from springtide.apis.scheduled.conditions import LivingConditions

_GROUP_MARK = "autoScalingGroupName/"
_ARN = re.compile(r"arn:[a-z0-9-]+:(?P<service>[a-z0-9-]+):(?P<region>[a-z0-9-]*):(?P<account>[0-9]*):(?P<rest>.+)")
_EKS_NODE_GROUP = re.compile(r"nodegroup/[^/]+/[^/]+(/[^/]+)?")
_NAMESPACED = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class ScalableNodeGroupSpec(View, kw_only=True):
    """Which group of nodes, and how many of them there shall be."""

    __mistaken__ = {"desiredReplicas": "write `replicas`", "name": "write `id`", "arn": "write `id`"}

    replicas: Annotated[Count | None, doc("How many nodes there shall be; the group is left alone if not set.")] = None
    type: Annotated[
        Literal["AWSEC2AutoScalingGroup", "AWSEKSNodeGroup", "ClusterAPI", "Simulated"],
        doc("What the group is, and so who is asked to change it."),
        stock(type="string", enum=["AWSEC2AutoScalingGroup", "AWSEKSNodeGroup"]),
    ]
    id: Annotated[
        NonEmpty,
        doc(
            "The group: name or ARN of an Auto Scaling group, ARN of an EKS node group, NAMESPACE/NAME of a"
            " MachineDeployment, or the name of a simulated group."
        ),
    ]

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find ids that do not identify a group of their type."""
        match self.type:
            case "AWSEC2AutoScalingGroup":
                yield from _auto_scaling_group_problems(self.id)
            case "AWSEKSNodeGroup":
                yield from _eks_problems(self.id)
            case "ClusterAPI" if not _NAMESPACED.fullmatch(self.id):
                yield error(
                    ("id",),
                    f'"{self.id}" is not NAMESPACE/NAME of a MachineDeployment',
                    f"write `default/{self.id}` if it is in the namespace default" if "/" not in self.id else "",
                )
            case "Simulated" if "/" in self.id or ":" in self.id:
                yield error(("id",), f'"{self.id}" is not the name of a simulated group', "write a plain name")


class ScalableNodeGroupStatus(View, kw_only=True):
    """What is observed of the group."""

    replicas: Annotated[Count | None, doc("How many nodes of the group are there and ready.")] = None
    selector: Annotated[str | None, doc("Labels of the group's nodes, for the scale subresource.")] = None
    conditions: Annotated[LivingConditions | None, doc("Active, AbleToScale, Stabilized; Ready is all of them.")] = None


class ScalableNodeGroup(Object, kw_only=True):
    """A group of nodes that can be scaled as a Deployment can."""

    spec: Annotated[ScalableNodeGroupSpec, doc("The group and its wanted size.")]
    status: Annotated[ScalableNodeGroupStatus | None, doc("The group as it is.")] = None


def auto_scaling_group_name(id_: str) -> str | None:
    """Give the name of an EC2 Auto Scaling group that is written as name or as ARN; None if it is neither."""
    if not id_.startswith("arn:"):
        return id_ or None
    arn = _ARN.fullmatch(id_)
    if arn is None or arn["service"] != "autoscaling":
        return None
    _, mark, name = arn["rest"].partition(_GROUP_MARK)
    return name or None if mark else None


def _auto_scaling_group_problems(id_: str) -> Iterator[Problem]:
    if auto_scaling_group_name(id_) is None:
        yield error(
            ("id",),
            f'"{id_}" is not the ARN of an Auto Scaling group',
            f"write the group's name, or its ARN, which ends in `{_GROUP_MARK}NAME`",
        )


def _eks_problems(id_: str) -> Iterator[Problem]:
    arn = _ARN.fullmatch(id_)
    if arn is None or arn["service"] != "eks" or not _EKS_NODE_GROUP.fullmatch(arn["rest"]):
        yield error(
            ("id",),
            f'"{id_}" is not the ARN of an EKS node group',
            "write arn:aws:eks:REGION:ACCOUNT:nodegroup/CLUSTER/NAME/UUID",
        )
