"""What is said about ScalableNodeGroups."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.manifests import problems_of, shown

from springtide.apis.scheduled.node_group import auto_scaling_group_name

ASG = "arn:aws:autoscaling:region:123456789012:autoScalingGroup:uuid:autoScalingGroupName/asg-name"
EKS = "arn:aws:eks:us-west-2:741206201142:nodegroup/ridiculous-sculpture/ng-0b663e8a/aeb9a7fe-69d6-21f0"


def group(type_: str, id_: str, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "ScalableNodeGroup",
        "metadata": {"name": "test"},
        "spec": {"type": type_, "id": id_, **more},
    }


@pytest.mark.parametrize(
    ("id_", "name"),
    [
        pytest.param("foo", "foo", id="name"),
        pytest.param(ASG, "asg-name", id="arn"),
        pytest.param(ASG.removesuffix("autoScalingGroupName/asg-name"), None, id="arn-without-name"),
        pytest.param(ASG.removesuffix("asg-name"), None, id="arn-with-empty-name"),
        pytest.param(EKS, None, id="arn-of-another-service"),
        pytest.param("arn:aws", None, id="arn-cut-short"),
        pytest.param(f"{ASG}:autoScalingGroupName/other", None, id="arn-with-two-names"),
        pytest.param(ASG.replace(":uuid:", ":a:b:"), None, id="arn-with-a-part-too-many"),
        pytest.param("a:b", None, id="name-with-a-colon"),
        pytest.param("a b", None, id="name-with-a-space"),
        pytest.param("Team_A/web.1", "Team_A/web.1", id="name-with-other-marks"),
        pytest.param("a" * 255, "a" * 255, id="longest-name"),
        pytest.param("a" * 256, None, id="name-too-long"),
    ],
)
def test_name_of_an_auto_scaling_group(id_: str, name: str | None) -> None:
    assert name == auto_scaling_group_name(id_)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(group("AWSEC2AutoScalingGroup", "foo"), [], id="asg-name"),
        pytest.param(group("AWSEC2AutoScalingGroup", ASG, replicas=3), [], id="asg-arn"),
        pytest.param(group("AWSEC2AutoScalingGroup", EKS), ["error spec.id"], id="eks-arn-as-asg"),
        pytest.param(group("AWSEKSNodeGroup", EKS, replicas=0), [], id="eks"),
        pytest.param(group("AWSEKSNodeGroup", "ng"), ["error spec.id"], id="eks-name"),
        *(
            pytest.param(
                group("AWSEKSNodeGroup", f"arn:aws:eks:us-west-2:741206201142:nodegroup/{rest}"),
                expected,
                id=f"eks-{name}",
            )
            for name, rest, expected in (
                ("without-uuid", "main/Ng_1-a", []),
                ("dots-for-a-name", "main/..", ["error spec.id"]),
                ("dots-for-a-cluster", "../main/workers", ["error spec.id"]),
                ("dots-for-a-uuid", "main/workers/..", ["error spec.id"]),
                ("query-in-a-name", "main/workers?x=1", ["error spec.id"]),
                ("escape-in-a-name", "main/%2e%2e", ["error spec.id"]),
                ("name-that-begins-with-a-hyphen", "main/-workers", ["error spec.id"]),
                ("name-too-long", f"main/{'a' * 64}", ["error spec.id"]),
                ("space-in-a-cluster", "ma in/workers", ["error spec.id"]),
            )
        ),
        pytest.param(group("AWSEKSNodeGroup", ASG), ["error spec.id"], id="asg-arn-as-eks"),
        pytest.param(group("ClusterAPI", "default/workers"), [], id="cluster-api"),
        pytest.param(group("ClusterAPI", "workers"), ["error spec.id"], id="cluster-api-without-namespace"),
        pytest.param(group("ClusterAPI", "a/b/c"), ["error spec.id"], id="cluster-api-too-long"),
        pytest.param(group("Simulated", "workers"), [], id="simulated"),
        pytest.param(group("Simulated", "a/b"), ["error spec.id"], id="simulated-path"),
        pytest.param(group("Simulated", "Workers"), ["error spec.id"], id="simulated-upper-case"),
        pytest.param(group("Simulated", "a" * 52), [], id="simulated-longest"),
        pytest.param(group("Simulated", "a" * 53), ["error spec.id"], id="simulated-too-long"),
        pytest.param(group("GKE", "a"), ["error spec.type"], id="unknown-type"),
        pytest.param(group("Simulated", ""), ["error spec.id"], id="empty"),
        pytest.param(group("Simulated", "a", replicas=-1), ["error spec.replicas"], id="negative"),
        pytest.param(group("Simulated", "a", replicas="3"), ["error spec.replicas"], id="text"),
    ],
)
def test_node_groups(value: dict[str, Any], expected: list[str]) -> None:
    assert expected == shown(problems_of(value))


def test_missing_namespace_is_proposed() -> None:
    (found,) = problems_of(group("ClusterAPI", "workers"))

    assert "default/workers" in found.hint
