"""EKS node groups: the contract, ids, bounds, and which nodes count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.providers import fake_aws as faults
from tests.providers.clusters import USER, ProviderEnvironment, run
from tests.providers.contract import WHY, ProviderContract
from tests.providers.fake_aws import MOST, FakeAws, FaultyClient, amazon

from springtide.cluster.errors import Forbidden
from springtide.cluster.resources import NODES, Key
from springtide.providers import GroupState, Provider, ProviderError
from springtide.providers.aws import AwsProvider
from springtide.providers.aws.eks import LABEL


class EksEnvironment(ProviderEnvironment):
    """A node group, and the nodes that its machines join the cluster as."""

    type = "AWSEKSNodeGroup"
    id = ""

    def __init__(self, cloud: FakeAws) -> None:
        self.cloud = cloud
        super().__init__()

    @property
    def missing_id(self) -> str:
        return self.id.replace("/workers/", "/missing/")

    def make_provider(self) -> Provider:
        return AwsProvider(self.cloud.connections)

    @property
    def api(self) -> FaultyClient:
        return self.cloud.client("eks")

    def begin(self, replicas: int) -> None:
        self.id = self.cloud.make_node_group("main", "workers", replicas)
        self.settle()

    def settle(self) -> None:
        group = self.cloud.owner("eks").describe_nodegroup(clusterName="main", nodegroupName="workers")["nodegroup"]
        wanted = group["scalingConfig"]["desiredSize"]
        there = len(self.nodes())
        for number in range(there, wanted):
            body = {"metadata": {"name": f"ip-10-0-0-{number}", "labels": {LABEL: "workers"}}}
            self.server.create(NODES, body, USER)
        for number in range(wanted, there):
            self.server.delete(NODES, Key("", f"ip-10-0-0-{number}"), USER)
        for node in self.nodes():
            self.report(node["metadata"]["name"], ready=True)

    def break_one(self) -> None:
        self.report("ip-10-0-0-0", ready=False)

    def orders(self) -> int:
        return self.api.writes

    def refuse_reading(self, *, for_good: bool) -> None:
        fault = faults.refusing("AccessDeniedException", "not yours", 403) if for_good else faults.unreachable
        self.api.plan("describe_nodegroup", fault)

    def refuse_resizing(self, *, for_good: bool) -> None:
        code = "InvalidParameterException" if for_good else "ResourceInUseException"
        self.api.plan("update_nodegroup_config", faults.refusing(code))

    def lose_answer(self) -> None:
        self.api.plan("update_nodegroup_config", faults.answer_lost)


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderEnvironment]:
    with amazon(monkeypatch) as cloud:
        yield EksEnvironment(cloud)


@pytest.fixture
def eks(env: EksEnvironment) -> EksEnvironment:
    env.begin(2)
    return env


class TestEks(ProviderContract):
    """The contract."""


def test_the_nodes_of_the_group_count(eks: EksEnvironment) -> None:
    """Others do not, nor do those that take no pods; the selector finds them."""
    eks.server.create(NODES, {"metadata": {"name": "other", "labels": {LABEL: "workers-2"}}}, USER)
    eks.report("other", ready=True)

    assert run(eks.group().observe()).replicas == 2
    assert eks.group().selector == f"{LABEL}=workers"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"status": "UPDATING"}, "the group is UPDATING", id="updating"),
        pytest.param(
            {
                "status": "DEGRADED",
                "health": {"issues": [{"code": "AsgInstanceLaunchFailures", "message": "no\nroom"}]},
            },
            "the group is DEGRADED; AsgInstanceLaunchFailures: no room",
            id="degraded",
        ),
    ],
)
def test_a_group_that_says_it_is_busy(eks: EksEnvironment, change: dict[str, Any], expected: str) -> None:
    """It is not at rest although all its nodes are there."""
    eks.api.plan("describe_nodegroup", faults.node_group_says(**change))

    assert GroupState(2, 2, False, expected) == run(eks.group().observe())


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"cluster": {"name": "main"}}, id="of-another-operation"),
        pytest.param({"nodegroup": {"nodegroupArn": "arn", "status": "ACTIVE"}}, id="half-a-group"),
    ],
)
def test_an_answer_that_is_none_of_eks(eks: EksEnvironment, answer: dict[str, Any]) -> None:
    """The message says so."""
    eks.api.plan("describe_nodegroup", lambda call: answer)

    with pytest.raises(ProviderError, match="the answer is not what AWS gives") as failed:
        run(eks.group().observe())

    assert (failed.value.code, failed.value.retryable) == ("UnexpectedAnswer", False)


@pytest.mark.parametrize(
    ("change", "right"),
    [
        pytest.param(("", ""), True, id="whole"),
        pytest.param(("/workers/", "/workers/0"), False, id="of-an-earlier-group"),
        pytest.param((":nodegroup/main/", ":nodegroup/main2/"), False, id="of-another-cluster"),
    ],
)
def test_the_arn_must_be_that_of_the_group(eks: EksEnvironment, change: tuple[str, str], right: bool) -> None:
    """What is granted is the group of an ARN, not whatever has its name."""
    id_ = eks.id.replace(*change) if change[0] else eks.id
    group = eks.provider.group(eks.type, id_, eks.client())

    if right:
        run(group.resize(3, because=WHY))
    else:
        with pytest.raises(ProviderError):
            run(group.resize(3, because=WHY))

    assert eks.orders() == int(right)


def test_an_arn_without_its_last_part(eks: EksEnvironment) -> None:
    """It names the group of that name in that cluster, whenever it was made."""
    group = eks.provider.group(eks.type, eks.id.rpartition("/")[0], eks.client())

    assert run(group.observe()).wanted == 2


def test_the_bounds_of_a_group(eks: EksEnvironment) -> None:
    """They are kept before AWS is asked, and the words name them."""
    with pytest.raises(ProviderError, match="minSize or maxSize") as failed:
        run(eks.group().resize(MOST + 1, because=WHY))

    assert (failed.value.code, failed.value.retryable, eks.orders()) == ("AboveMaximum", False, 0)


def test_nodes_that_may_not_be_read(eks: EksEnvironment) -> None:
    """The words say what was tried."""
    eks.line.fail("list", Forbidden("nodes is forbidden"))

    with pytest.raises(ProviderError, match="reading the nodes of the EKS node group workers") as failed:
        run(eks.group().observe())

    assert (failed.value.code, failed.value.retryable) == ("Forbidden", False)
