"""Mistakes in ScalableNodeGroups and in Grants."""

from __future__ import annotations

from typing import Any

from tests.e2e.refusals.rows import KARPENTER, Refused, but, written

from springtide.cluster.resources import Object


def node_group(**spec: Any) -> Object:
    """Write a ScalableNodeGroup that is right but for some fields."""
    return written("ScalableNodeGroup", KARPENTER, but({"replicas": 1, "type": "Simulated", "id": "blue"}, spec))


def grant(**spec: Any) -> Object:
    """Write a Grant that is right but for some fields."""
    return written("Grant", "springtide.dev/v1alpha1", but({"namespaces": ["team-a"], "queues": ["*team-a*"]}, spec))


NODE_GROUP_ROWS = (
    Refused("replicas", node_group(replicas=-1), "spec.replicas", "greater than or equal to 0", True),
    Refused(
        "type",
        node_group(type="GKE"),
        "spec.type",
        'supported values: "AWSEC2AutoScalingGroup", "AWSEKSNodeGroup", "ClusterAPI", "Simulated"',
        True,
    ),
    Refused("no-id", node_group(id=None), "spec.id", "Required value", True),
    Refused("empty-id", node_group(id=""), "spec.id", "at least 1 char", True),
    Refused(
        "auto-scaling-group",
        node_group(type="AWSEC2AutoScalingGroup", id="arn:aws:sqs:eu-west-1:1:q"),
        "spec.id",
        "write the group's name, or its ARN",
    ),
    Refused(
        "eks",
        node_group(type="AWSEKSNodeGroup", id="blue"),
        "spec.id",
        "write arn:aws:eks:REGION:ACCOUNT:nodegroup/CLUSTER/NAME/UUID",
    ),
    Refused("cluster-api", node_group(type="ClusterAPI", id="workers"), "spec.id", "write `default/workers`"),
    Refused("simulated", node_group(id="a/b"), "spec.id", "write a plain name"),
)
GRANT_ROWS = (
    Refused("no-namespaces", grant(namespaces=None), "spec.namespaces", "Required value", True),
    Refused("no namespaces", grant(namespaces=[]), "spec.namespaces", "at least 1 items", True),
    Refused("namespace", grant(namespaces=["Team_A"]), "spec.namespaces[0]", "should match", True),
    Refused("twice", grant(namespaces=["a", "a"]), "spec.namespaces[1]", "Duplicate value", True),
    Refused("empty-glob", grant(queues=[""]), "spec.queues[0]", "at least 1 char", True),
    Refused("no-host", grant(urls=["prom.example.com"]), "spec.urls[0]", "write https://prom.example.com/"),
    Refused("password", grant(urls=["https://me:secret@prom.example.com/"]), "spec.urls[0]", "leave them out"),
    Refused("two-readings", grant(urls=["https://prom.example.com/a/../b"]), "spec.urls[0]", "write it as it is sent"),
    Refused("wildcard", grant(urls=["https://*.example.com/"]), "spec.urls[0]", "cut it before the first of them"),
)
