"""CA bundles are published in the right fields, and no other field is written."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.cluster.memory_cluster import CRDS, START, USER, MemoryCluster

from springtide.apis.crds import Flavour, all_crds
from springtide.cluster.admission.configurations import (
    MUTATING,
    VALIDATING,
    ServiceTarget,
    UrlTarget,
    conversion,
    webhook_configurations,
    with_conversion,
)
from springtide.cluster.admission.registration import PERMISSIONS, WebhookRegistration
from springtide.cluster.errors import NotFound
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Patch
from springtide.simulator.virtual_time import VirtualClock, run

TARGET = ServiceTarget("springtide-system", "springtide")
RESOURCES = {name: permission.resource for permission in PERMISSIONS for name in permission.names}
POOLS = "nodepools.karpenter.sh"


def definition() -> Object:
    (found,) = [crd for crd in all_crds(Flavour.EXTENDED) if crd["metadata"]["name"] == POOLS]
    return found


class Scene:
    """A small cluster, and the bundle in the Secret."""

    def __init__(self, clock: VirtualClock) -> None:
        self.world = MemoryCluster(clock)
        self.line = self.world.line()
        self.bundle = b"one"

    def create(self, *items: Object) -> None:
        """Install something as a user would."""
        for item in items:
            self.world.server.create(CRDS if item["kind"].startswith("Custom") else RESOURCES[name(item)], item, USER)
        self.world.writes.clear()

    def get(self, name: str) -> Object:
        """Read an object."""
        return self.world.server.get(RESOURCES[name], Key("", name))

    def bundles(self, name: str) -> list[str]:
        """Return the bundles of a configuration, decoded."""
        return [
            base64.b64decode(webhook["clientConfig"].get("caBundle", "")).decode()
            for webhook in self.get(name)["webhooks"]
        ]

    async def newest(self) -> bytes:
        """Read the bundle of the Secret."""
        return self.bundle

    async def publish(self, *, target: Any = TARGET, **options: Any) -> bool:
        """Publish the bundle of the Secret; return whether both configurations exist."""
        return await WebhookRegistration(self.line, target, **options).publish(self.bundle, self.newest)


def name(item: Object) -> str:
    text: str = item["metadata"]["name"]
    return text


def play(scenario: Callable[[Scene], Awaitable[None]]) -> None:
    """Run a test in virtual time."""

    async def main(clock: VirtualClock) -> None:
        await scenario(Scene(clock))

    run(main, start=START)


def test_without_configurations_nothing_is_written() -> None:
    """Webhooks are optional."""

    async def scenario(scene: Scene) -> None:
        await scene.publish()

        assert scene.world.writes == []

    play(scenario)


def test_publish_returns_whether_both_configurations_exist() -> None:
    """They may be installed later; the CRDs of other programs may never be."""

    async def scenario(scene: Scene) -> None:
        received = [await scene.publish()]
        for each in webhook_configurations(TARGET):
            scene.create(each)
            received.append(await scene.publish())
        received.append(await scene.publish())

        assert received == [False, False, True, True]

    play(scenario)


def test_installed_configurations_get_the_bundle_and_nothing_else() -> None:
    async def scenario(scene: Scene) -> None:
        installed = webhook_configurations(TARGET, failure_policy="Ignore")
        scene.create(*installed)
        before = {each: scene.get(each)["webhooks"] for each in (VALIDATING, MUTATING)}
        await scene.publish()

        for each in (VALIDATING, MUTATING):
            assert scene.bundles(each) == ["one"]
            (webhook,) = scene.get(each)["webhooks"]
            del webhook["clientConfig"]["caBundle"]
            assert before[each] == [webhook]

    play(scenario)


def test_a_published_bundle_is_not_written_again() -> None:
    async def scenario(scene: Scene) -> None:
        scene.create(*webhook_configurations(TARGET), with_conversion(definition(), TARGET))
        await scene.publish()
        scene.world.writes.clear()
        await scene.publish()

        assert scene.world.writes == []

    play(scenario)


def test_our_conversion_gets_the_bundle() -> None:
    async def scenario(scene: Scene) -> None:
        scene.create(with_conversion(definition(), TARGET))
        await scene.publish()

        assert scene.get(POOLS)["spec"]["conversion"] == conversion(TARGET, b"one")

    play(scenario)


def without(version: str) -> Object:
    """Return the CRD of another program, which lacks a version."""
    made = definition()
    made["spec"]["versions"] = [each for each in made["spec"]["versions"] if each["name"] != version]
    return made


def test_crds_without_conversion_get_the_webhook_if_convert_is_set() -> None:
    """They are installed before it is known whether webhooks are enabled."""

    async def scenario(scene: Scene) -> None:
        scene.create(definition())
        await scene.publish()
        assert scene.world.writes == []

        await scene.publish(convert=True)
        spec = scene.get(POOLS)["spec"]
        assert spec["conversion"] == conversion(TARGET, b"one")
        assert [version["served"] for version in spec["versions"]] == [True, True]

        scene.bundle = b"two"
        await scene.publish(convert=True)
        assert scene.get(POOLS)["spec"]["conversion"] == conversion(TARGET, b"two")

    play(scenario)


@pytest.mark.parametrize(
    "installed",
    [
        pytest.param(without("v1beta1"), id="without the older version"),
        pytest.param(with_conversion(definition(), ServiceTarget("karpenter", "karpenter")), id="of Karpenter"),
        pytest.param(with_conversion(definition(), UrlTarget("https://example.com"), b"x"), id="elsewhere"),
    ],
)
def test_conversions_of_other_programs_are_not_changed(installed: Object) -> None:
    async def scenario(scene: Scene) -> None:
        scene.create(installed)
        await scene.publish(convert=True)

        assert scene.world.writes == []

    play(scenario)


def test_everything_is_created_in_the_embedded_cluster() -> None:
    """Configurations are created with their bundle, and all converted versions are served."""

    async def scenario(scene: Scene) -> None:
        scene.create(definition())
        await scene.publish(create=True)

        assert [written.verb for written in scene.world.writes] == ["create", "create", "patch"]
        assert scene.bundles(VALIDATING) == scene.bundles(MUTATING) == ["one"]
        spec = scene.get(POOLS)["spec"]
        assert spec["conversion"] == conversion(TARGET, b"one")
        assert [version["served"] for version in spec["versions"]] == [True, True]

    play(scenario)


def test_the_embedded_cluster_gets_a_new_address() -> None:
    """After a restart on another port the stored configurations have the new one."""

    async def scenario(scene: Scene) -> None:
        scene.create(definition())
        await scene.publish(create=True, target=UrlTarget("https://127.0.0.1:1"))
        await scene.publish(create=True, target=UrlTarget("https://127.0.0.1:2"))

        urls = [scene.get(each)["webhooks"][0]["clientConfig"]["url"] for each in (VALIDATING, MUTATING)]
        assert urls == ["https://127.0.0.1:2/validate", "https://127.0.0.1:2/default"]
        client = scene.get(POOLS)["spec"]["conversion"]["webhook"]["clientConfig"]
        assert client["url"] == "https://127.0.0.1:2/convert"

    play(scenario)


def test_a_slow_replica_does_not_overwrite_a_newer_bundle() -> None:
    """The bundle is read after the configuration, and a change in between makes the write a conflict."""

    async def scenario(scene: Scene) -> None:
        scene.create(*webhook_configurations(TARGET))

        async def meddle(verb: str, resource: Resource, key: Key) -> None:
            if verb == "patch" and scene.bundle == b"one":
                scene.bundle = b"two"
                operation = {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "dHdv"}
                for each in (VALIDATING, MUTATING):
                    scene.world.server.patch(RESOURCES[each], Key("", each), Patch.json(operation), USER)

        scene.line.before = meddle
        await scene.publish()

        assert scene.bundles(VALIDATING) == scene.bundles(MUTATING) == ["two"]
        assert {written.write.manager for written in scene.world.writes} == {"user"}

    play(scenario)


def test_the_published_bundle_is_read() -> None:
    """Its authorities stay trusted when the Secret is lost."""

    async def scenario(scene: Scene) -> None:
        registration = WebhookRegistration(scene.line, TARGET)
        assert await registration.published() == b""

        scene.create(*webhook_configurations(TARGET))
        assert await registration.published() == b""

        await scene.publish()
        assert await registration.published() == b"one"

    play(scenario)


def test_a_configuration_deleted_meanwhile_is_no_error() -> None:
    async def scenario(scene: Scene) -> None:
        scene.create(*webhook_configurations(TARGET))

        async def uninstall(verb: str, resource: Resource, key: Key) -> None:
            if verb == "patch":
                scene.world.server.delete(resource, key, USER)

        scene.line.before = uninstall
        await scene.publish()

        with pytest.raises(NotFound):
            scene.get(VALIDATING)

    play(scenario)
