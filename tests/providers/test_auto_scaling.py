"""Auto Scaling groups: the contract, ids, bounds, and what AWS may answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from tests.providers import fake_aws as faults
from tests.providers.clusters import ProviderEnvironment, run
from tests.providers.contract import WHY, ProviderContract
from tests.providers.fake_aws import ACCOUNT, MOST, REGION, FakeAws, FaultyClient, amazon, refusing

from springtide.providers import GroupState, Provider, ProviderError
from springtide.providers.aws import AwsProvider
from springtide.providers.aws.auto_scaling import GroupDescription, state_of


class AutoScalingEnvironment(ProviderEnvironment):
    """A group of instances, which moto makes and ends at once."""

    type = "AWSEC2AutoScalingGroup"
    id = "workers"
    missing_id = "missing"

    def __init__(self, cloud: FakeAws) -> None:
        self.cloud = cloud
        super().__init__()

    def make_provider(self) -> Provider:
        return AwsProvider(self.cloud.connections)

    @property
    def api(self) -> FaultyClient:
        return self.cloud.client("autoscaling")

    def begin(self, replicas: int) -> None:
        self.arn = self.cloud.make_auto_scaling_group("workers", replicas)

    def settle(self) -> None:
        """Nothing to wait for."""

    def break_one(self) -> None:
        (group,) = self.cloud.owner("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        self.cloud.owner("autoscaling").set_instance_health(
            InstanceId=group["Instances"][0]["InstanceId"], HealthStatus="Unhealthy"
        )

    def orders(self) -> int:
        return self.api.writes

    def refuse_reading(self, *, for_good: bool) -> None:
        fault = faults.refusing("AccessDenied", "not yours", 403) if for_good else faults.throttled()
        self.api.plan("describe_auto_scaling_groups", fault)

    def refuse_resizing(self, *, for_good: bool) -> None:
        message = "New SetDesiredCapacity value 3 is above max value 2 for the AutoScalingGroup."
        fault = (
            faults.refusing("ValidationError", message) if for_good else faults.refusing("ScalingActivityInProgress")
        )
        self.api.plan("set_desired_capacity", fault)

    def lose_answer(self) -> None:
        self.api.plan("set_desired_capacity", faults.answer_lost)


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderEnvironment]:
    with amazon(monkeypatch) as cloud:
        yield AutoScalingEnvironment(cloud)


@pytest.fixture
def asg(env: AutoScalingEnvironment) -> AutoScalingEnvironment:
    env.begin(2)
    return env


class TestAutoScaling(ProviderContract):
    """The contract."""


def test_a_group_by_its_arn(asg: AutoScalingEnvironment) -> None:
    """The ARN names the group and determines the region."""
    arn = asg.cloud.make_auto_scaling_group("elsewhere", 3, "us-east-2")

    group = asg.provider.group(asg.type, arn, asg.client())
    run(group.resize(4, because=WHY))

    assert run(group.observe()).wanted == 4
    assert asg.cloud.client("autoscaling", "us-east-2").writes == 1
    assert asg.orders() == 0


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(("autoScalingGroup:", "autoScalingGroup:0-"), id="of-an-earlier-group"),
        pytest.param((ACCOUNT, "999999999999"), id="of-another-account"),
        pytest.param((":aws:", ":aws-cn:"), id="of-another-partition"),
    ],
)
def test_another_group_of_the_same_name_is_not_touched(asg: AutoScalingEnvironment, change: tuple[str, str]) -> None:
    """The Grant is for this ARN, not for another group with the same name."""
    group = asg.provider.group(asg.type, asg.arn.replace(*change), asg.client())

    for attempt in (group.observe(), group.resize(3, because=WHY)):
        with pytest.raises(ProviderError) as failed:
            run(attempt)
        assert (failed.value.code, failed.value.retryable) == ("OtherGroup", False)
        assert asg.arn not in str(failed.value)
    assert asg.orders() == 0


@pytest.mark.parametrize(
    ("least", "wish", "code"),
    [pytest.param(0, MOST + 1, "AboveMaximum", id="above"), pytest.param(2, 1, "BelowMinimum", id="below")],
)
def test_the_bounds_of_a_group(asg: AutoScalingEnvironment, least: int, wish: int, code: str) -> None:
    """They are checked before the request, and the message names them."""
    asg.cloud.owner("autoscaling").update_auto_scaling_group(AutoScalingGroupName="workers", MinSize=least)

    with pytest.raises(ProviderError, match="MinSize or MaxSize") as failed:
        run(asg.group().resize(wish, because=WHY))

    assert (failed.value.code, failed.value.retryable) == (code, False)
    assert asg.orders() == 0


def test_a_group_that_counts_processors_is_refused(asg: AutoScalingEnvironment) -> None:
    """Three vCPUs are not three nodes."""
    asg.api.plan("describe_auto_scaling_groups", faults.group_says(DesiredCapacityType="vcpu"))

    with pytest.raises(ProviderError, match="vcpu") as failed:
        run(asg.group().resize(3, because=WHY))

    assert (failed.value.code, asg.orders()) == ("NotCountedInInstances", 0)


def test_instances_that_are_being_made(asg: AutoScalingEnvironment) -> None:
    """They are wanted and not there yet; when they are, the group is at rest."""
    asg.api.plan("describe_auto_scaling_groups", faults.pending(1), faults.pending(1))

    for _ in range(2):
        assert GroupState(1, 2, False, "1 of 2 nodes are ready; 1 Pending") == run(asg.group().observe())
    assert run(asg.group().observe()).stable


def test_capacity_that_cannot_be_had(asg: AutoScalingEnvironment) -> None:
    """The order stands, and the words say how far it came."""
    run(asg.group().resize(5, because=WHY))
    asg.api.plan("describe_auto_scaling_groups", faults.partial(3))

    assert GroupState(3, 5, False, "3 of 5 nodes are ready") == run(asg.group().observe())


def test_a_call_is_made_once(asg: AutoScalingEnvironment) -> None:
    """Trying again is the controller's business: it knows whether the wish is still the same."""
    asg.api.plan("describe_auto_scaling_groups", faults.unreachable)

    with pytest.raises(ProviderError) as failed:
        run(asg.group().observe())

    assert asg.api.calls == ["describe_auto_scaling_groups"]
    assert (failed.value.code, failed.value.retryable) == ("Unreachable", True)
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"AutoScalingGroups": [{"AutoScalingGroupName": "workers"}]}, id="half-a-group"),
        pytest.param({"AutoScalingGroups": None}, id="no-list"),
    ],
)
def test_an_answer_that_is_none_of_aws(asg: AutoScalingEnvironment, answer: dict[str, Any]) -> None:
    """The message says so."""
    asg.api.plan("describe_auto_scaling_groups", *[lambda call: answer] * 2)

    for asked in (asg.group().observe(), asg.group().resize(3, because=WHY)):
        with pytest.raises(ProviderError, match="the answer is not what AWS gives") as failed:
            run(asked)
        assert (failed.value.code, failed.value.retryable) == ("UnexpectedAnswer", False)


def test_an_unknown_error_is_retried_where_the_status_is_that_of_a_server_error(asg: AutoScalingEnvironment) -> None:
    """The code alone does not tell."""
    for http_status, retryable in ((500, True), (400, False)):
        asg.api.plan("describe_auto_scaling_groups", refusing("SomethingNew", http_status=http_status))
        with pytest.raises(ProviderError) as failed:
            run(asg.group().observe())
        assert failed.value.retryable is retryable


def instance(state: str = "InService", health: str = "Healthy") -> dict[str, Any]:
    return {"LifecycleState": state, "HealthStatus": health}


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        pytest.param({"DesiredCapacity": 0}, GroupState(0, 0, True), id="empty"),
        pytest.param(
            {"DesiredCapacity": 1, "Instances": [instance(), instance("Terminating")]},
            GroupState(1, 1, False, "1 of 1 node is ready; 1 Terminating"),
            id="one-is-going",
        ),
        pytest.param(
            {"DesiredCapacity": 2, "Instances": [instance(), instance(health="Unhealthy")]},
            GroupState(1, 2, False, "1 of 2 nodes are ready; 1 Unhealthy"),
            id="one-is-ill",
        ),
        pytest.param(
            {"DesiredCapacity": 1, "Instances": [], "SuspendedProcesses": [{"ProcessName": "Launch"}]},
            GroupState(0, 1, False, "0 of 1 node is ready; its process Launch is suspended"),
            id="launch-is-suspended",
        ),
        pytest.param(
            {"DesiredCapacity": 1, "Instances": [instance()], "SuspendedProcesses": [{"ProcessName": "Launch"}]},
            GroupState(1, 1, True),
            id="suspended-but-complete",
        ),
        pytest.param(
            {"DesiredCapacity": 0, "Instances": [], "Status": "Delete in progress"},
            GroupState(0, 0, False, "the group is being deleted (Delete in progress)"),
            id="being-deleted",
        ),
    ],
)
def test_what_a_group_has_come_to(group: dict[str, Any], expected: GroupState) -> None:
    """Healthy instances in service count."""
    described = {"AutoScalingGroupARN": "arn", "MinSize": 0, "MaxSize": 9, **group}

    assert expected == state_of(msgspec.convert(described, GroupDescription))


def test_the_default_region_is_that_of_the_process(asg: AutoScalingEnvironment) -> None:
    """A bare name is looked for where the process is at home."""
    assert run(asg.group().observe()).wanted == 2
    assert list(asg.cloud.clients) == [("autoscaling", REGION)]
