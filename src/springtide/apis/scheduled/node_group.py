"""ScalableNodeGroup: a group of nodes at a provider, with a number of replicas that autoscalers can set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from springtide.apis.fields import Context, Count, NonEmpty, View, doc, stock
from springtide.apis.meta.types import Object
from springtide.apis.problems import Problem, error
from springtide.apis.scheduled.conditions import LivingConditions
from springtide.apis.scheduled.node_group_ids import read_auto_scaling_group, read_group_id


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
        if read_group_id(self.type, self.id) is None:
            yield _unknown_id(self.type, self.id)


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
    found = read_auto_scaling_group(id_)
    return None if found is None else found.name


def _unknown_id(type_: str, id_: str) -> Problem:
    """Say what an id should look like."""
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
