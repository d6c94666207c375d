"""The controller with the AWS provider: threads, boto3 and an in-memory AWS, in real time."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from tests.controllers.scalable_node_group.node_groups import EVERYTHING, node_group
from tests.providers.fake_aws import amazon

from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.server import ApiServer
from springtide.cluster.clock import WallClock
from springtide.cluster.context import Services
from springtide.cluster.manager import Manager
from springtide.cluster.resources import Key
from springtide.controllers.scalable_node_group import SCALABLE_NODE_GROUPS, ScalableNodeGroupController
from springtide.providers import Providers
from springtide.providers.aws import AwsProvider
from springtide.simulator.bootstrap import create_as_user, install


async def _conditions(server: ApiServer, name: str) -> dict[str, tuple[str, str]]:
    """Wait for the status of a group, and return its conditions as `type: (status, reason)`."""
    while True:
        item = server.get(SCALABLE_NODE_GROUPS, Key("default", name))
        if "status" in item:
            return {one["type"]: (one["status"], one["reason"]) for one in item["status"]["conditions"]}
        await asyncio.sleep(0.01)


def test_auto_scaling_group_gets_the_requested_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS gets the requested capacity; the status of the other object reports a request above the maximum."""

    async def story(cloud: Any) -> dict[str, dict[str, tuple[str, str]]]:
        clock = WallClock()
        server = ApiServer(now=clock.now, random=Random(1))
        install(server)
        create_as_user(server, node_group("follows", 3, id_="pool"))
        create_as_user(server, node_group("refused", 9, id_="small"))
        services = Services(Providers([AwsProvider(cloud.connections)]), EVERYTHING)
        manager = Manager(
            DirectTransport(server), clock, [ScalableNodeGroupController], random=Random(1), services=services
        )
        running = asyncio.ensure_future(manager.run())
        found = {name: await _conditions(server, name) for name in ("follows", "refused")}
        await manager.stop()
        await running
        return found

    with amazon(monkeypatch) as cloud:
        cloud.make_auto_scaling_group("pool", 1)
        cloud.make_auto_scaling_group("small", 1)
        found = asyncio.run(asyncio.wait_for(story(cloud), 30))
        groups = cloud.owner("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]

    assert {group["AutoScalingGroupName"]: group["DesiredCapacity"] for group in groups} == {"pool": 3, "small": 1}
    assert (found["follows"]["AbleToScale"], found["follows"]["Stabilized"]) == (
        ("True", "Scaled"),
        ("False", "Scaling"),
    )
    assert (found["refused"]["AbleToScale"], found["refused"]["Active"]) == (
        ("False", "AboveMaximum"), ("True", "Observed")
    )  # fmt: skip
