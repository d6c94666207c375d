"""AWS in memory (moto), behind the fault layer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from moto import mock_aws
from tests.providers.faults import Faulty

from springtide.providers.aws.connections import Connections, connect

REGION = "eu-west-1"
ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/nodes"
LEAST, MOST = 0, 5


@cache
def _made_once(service: str, region: str) -> Any:
    """Make a client as the provider does; that takes a second, and moto does not mind who else has used it."""
    return connect(service, region)


class Amazon:
    """Services as the provider reaches them, and as their owner does."""

    def __init__(self) -> None:
        self.clients: dict[tuple[str, str], Faulty] = {}
        self.connections = Connections(self._connect)

    def owner(self, service: str, region: str = REGION) -> Any:
        """Reach a service without faults."""
        return _made_once(service, region)

    def client(self, service: str, region: str = REGION) -> Faulty:
        """Give the client that the provider uses, to plan faults."""
        if (service, region) not in self.clients:
            self.clients[service, region] = Faulty(_made_once(service, region))
        return self.clients[service, region]

    def _connect(self, service: str, region: str) -> Any:
        return self.client(service, region or REGION)

    def make_auto_scaling_group(self, name: str, desired: int, region: str = REGION) -> str:
        """Have a group, and give its ARN."""
        owner = self.owner("autoscaling", region)
        owner.create_launch_configuration(
            LaunchConfigurationName=f"{name}-template", ImageId="ami-12c6146b", InstanceType="t3.micro"
        )
        owner.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchConfigurationName=f"{name}-template",
            MinSize=LEAST,
            MaxSize=MOST,
            DesiredCapacity=desired,
            AvailabilityZones=[f"{region}a"],
        )
        (group,) = owner.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
        return str(group["AutoScalingGroupARN"])

    def make_node_group(self, cluster: str, name: str, desired: int) -> str:
        """Have an EKS cluster with a node group, and give the ARN of that."""
        owner = self.owner("eks")
        if cluster not in owner.list_clusters()["clusters"]:
            owner.create_cluster(name=cluster, roleArn=ROLE, resourcesVpcConfig={"subnetIds": ["subnet-1"]})
        made = owner.create_nodegroup(
            clusterName=cluster,
            nodegroupName=name,
            subnets=["subnet-1"],
            nodeRole=ROLE,
            scalingConfig={"minSize": LEAST, "maxSize": MOST, "desiredSize": desired},
        )
        return str(made["nodegroup"]["nodegroupArn"])


@contextmanager
def amazon(monkeypatch: pytest.MonkeyPatch) -> Iterator[Amazon]:
    """Have AWS, with credentials that are nobody's."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    with mock_aws():
        yield Amazon()
