"""The webhooks keep their certificates with the role from the chart, and need all of it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from tests.cluster.memory_cluster import CRDS, START, USER, MemoryCluster
from tests.cluster.rbac_transport import RbacTransport
from tools.chart import permissions_by_file

from springtide.apis.crds import Flavour, all_crds
from springtide.cluster.admission import ServiceTarget, webhook_configurations, with_conversion
from springtide.cluster.admission.configurations import converted_definitions
from springtide.cluster.admission.registration import WebhookRegistration
from springtide.cluster.certificates.manager import CertificateManager
from springtide.cluster.rbac import rules_of
from springtide.cluster.resources import Key, Resource
from springtide.cluster.serving import TlsIdentity
from springtide.simulator.virtual_time import VirtualClock, run

PERMISSIONS = permissions_by_file()["roles/webhooks.yaml"]
TARGET = ServiceTarget("springtide-system", "springtide-webhooks")
DAY = 86_400
CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
MUTATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
USED = [
    "create secrets",
    "get customresourcedefinitions.apiextensions.k8s.io",
    "get mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "get secrets",
    "get validatingwebhookconfigurations.admissionregistration.k8s.io",
    "patch customresourcedefinitions.apiextensions.k8s.io",
    "patch mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "patch secrets",
    "patch validatingwebhookconfigurations.admissionregistration.k8s.io",
]


class Shown:
    """Stands for the server that certificates are shown by."""

    def replace(self, pair: Any) -> None:
        """Show nothing."""


def keep(without: str = "") -> RbacTransport:
    """Keep certificates for forty days, in which those of the server are renewed; without some right, for a minute."""

    async def main(clock: VirtualClock) -> RbacTransport:
        world = MemoryCluster(clock)
        _install(world)
        rules = rules_of(PERMISSIONS)
        line = RbacTransport(world.line(), cluster=rules.cluster, namespace=rules.namespace, without=without)
        keeper = CertificateManager(
            line,
            namespace=TARGET.namespace,
            names=TARGET.names,
            publisher=WebhookRegistration(line, TARGET),
            now=clock.now,
            round_seconds=DAY / 2,
        )
        keeping = asyncio.ensure_future(keeper.run(cast("TlsIdentity", Shown())))
        await clock.sleep(60 if without else 40 * DAY)
        keeping.cancel()
        await asyncio.wait((keeping,))
        if not without:
            bundle = world.server.get(CONFIGURATIONS, Key("", "springtide-validating"))["webhooks"][0]["clientConfig"]
            assert bundle["caBundle"]
        return line

    return run(main, start=START)


def _install(world: MemoryCluster) -> None:
    """Install what a chart with webhooks does, and CRDs that are directed at them."""
    for resource, body in zip((CONFIGURATIONS, MUTATING), webhook_configurations(TARGET), strict=True):
        world.server.create(resource, body, USER)
    for crd in all_crds(Flavour.EXTENDED):
        if crd["metadata"]["name"] in converted_definitions():
            world.server.create(CRDS, with_conversion(crd, TARGET), USER)


def test_the_declared_permissions_suffice() -> None:
    line = keep()
    assert line.refused == []
    assert sorted(line.used) == USED


@pytest.mark.parametrize("right", [right for right in USED if right != "patch secrets"])
def test_every_used_permission_is_needed(right: str) -> None:
    """The first minute shows all but the renewal."""
    assert right in keep(without=right).refused
