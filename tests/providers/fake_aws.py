"""AWS in memory (moto), and faults that moto lacks: clients that fail, delay, and return partial descriptions.

AWS in memory (moto), behind the fault layer.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from moto import mock_aws

from springtide.providers.aws.client import AwsClients, connect

Call: TypeAlias = Callable[[], dict[str, Any]]
Fault: TypeAlias = Callable[[Call], dict[str, Any]]
"""Handles one call: makes it or not, and returns any response."""

WRITES = ("set_desired_capacity", "update_nodegroup_config")


class FaultyClient:
    """A client of boto3 whose next calls have planned faults."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._planned: dict[str, deque[Fault]] = {}
        self.calls: list[str] = []
        self.writes = 0
        """Writes that took effect."""

    def plan(self, operation: str, *faults: Fault) -> None:
        """Plan the faults of the next calls of an operation, in order, in place of those planned before."""
        self._planned[operation] = deque(faults)

    def __getattr__(self, operation: str) -> Callable[..., dict[str, Any]]:
        def call(**arguments: Any) -> dict[str, Any]:
            self.calls.append(operation)

            def pass_on() -> dict[str, Any]:
                answer: dict[str, Any] = getattr(self._inner, operation)(**arguments)
                self.writes += operation in WRITES
                return answer

            planned = self._planned.get(operation)
            return planned.popleft()(pass_on) if planned else pass_on()

        return call


def refusing(code: str, message: str = "no", http_status: int = 400) -> Fault:
    """An error response."""

    def fault(call: Call) -> dict[str, Any]:
        answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": http_status}}
        raise ClientError(answer, "TheOperation")

    return fault


def throttled() -> Fault:
    """Throttling."""
    return refusing("Throttling", "Rate exceeded")


def unreachable(call: Call) -> dict[str, Any]:
    """No response."""
    raise EndpointConnectionError(endpoint_url="https://user:secret@proxy.example.com")


def answer_lost(call: Call) -> dict[str, Any]:
    """The call takes effect, and its response is lost."""
    call()
    raise ReadTimeoutError(endpoint_url="https://autoscaling.eu-west-1.amazonaws.com")


def pending(count: int) -> Fault:
    """The last instances of an Auto Scaling group are pending."""

    def fault(call: Call) -> dict[str, Any]:
        answer = copy.deepcopy(call())
        for group in answer["AutoScalingGroups"]:
            for instance in group["Instances"][-count:]:
                instance["LifecycleState"] = "Pending"
        return answer

    return fault


def partial(count: int) -> Fault:
    """Only so many instances can be launched."""

    def fault(call: Call) -> dict[str, Any]:
        answer = copy.deepcopy(call())
        for group in answer["AutoScalingGroups"]:
            group["Instances"] = group["Instances"][:count]
        return answer

    return fault


def group_says(**fields: Any) -> Fault:
    """Change the description of an Auto Scaling group."""

    def fault(call: Call) -> dict[str, Any]:
        answer = copy.deepcopy(call())
        for group in answer["AutoScalingGroups"]:
            group.update(fields)
        return answer

    return fault


def node_group_says(**fields: Any) -> Fault:
    """Change the description of an EKS node group."""

    def fault(call: Call) -> dict[str, Any]:
        answer = copy.deepcopy(call())
        answer["nodegroup"].update(fields)
        return answer

    return fault


REGION = "eu-west-1"
ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/nodes"
LEAST, MOST = 0, 5


@cache
def _made_once(service: str, region: str) -> Any:
    """Make a client as the provider does; that takes a second, and moto does not mind who else has used it."""
    return connect(service, region)


class FakeAws:
    """Clients of the services, for the provider with faults, and for tests without."""

    def __init__(self) -> None:
        self.clients: dict[tuple[str, str], FaultyClient] = {}
        self.connections = AwsClients(self._connect)

    def owner(self, service: str, region: str = REGION) -> Any:
        """Reach a service without faults."""
        return _made_once(service, region)

    def client(self, service: str, region: str = REGION) -> FaultyClient:
        """Return the client that the provider uses, to plan faults."""
        if (service, region) not in self.clients:
            self.clients[service, region] = FaultyClient(_made_once(service, region))
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
def amazon(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAws]:
    """Start AWS in memory, with fake credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    with mock_aws():
        yield FakeAws()
