"""The aggregated API of external metrics: a real API server before it, and a stock autoscaler that reads it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from tests.e2e.control_plane import ControlPlane
from tests.e2e.objects import conditions, read, remove, write
from tests.e2e.processes import free_ports
from tests.e2e.springtide_process import NAMESPACE
from tests.e2e.waiting import eventually, in_background
from tests.e2e.workloads import deployment, external_autoscaler, replicas_of

from springtide.cluster.admission import ServiceTarget
from springtide.cluster.certificates.rotation import CertificateLifetimes
from springtide.cluster.clock import WallClock
from springtide.cluster.http import HttpTransport, load_kubeconfig
from springtide.cluster.rbac import rules_of
from springtide.cluster.resources import Key, Object
from springtide.metrics.external import (
    PERMISSIONS,
    SERVICE_NAME,
    ExternalMetrics,
    api_service,
    external_metrics,
)
from springtide.metrics.external.registration import NAME
from springtide.metrics.series import SeriesStore

PATH = "/apis/external.metrics.k8s.io/v1beta1"
METRIC = "karpenter_scheduled_capacity"
ADDRESS = "192.0.2.1"
"""Stands for the address of the pod of a replica."""
RBAC = "rbac.authorization.k8s.io/v1"
RESTLESS = CertificateLifetimes(authority=60, serving=60, propagation=2)
"""So short that an authority hands over to the next every two seconds: certificates are valid from an hour before."""


@dataclass
class Provider:
    """A process that provides external metrics, as far as the tests look into it."""

    book: SeriesStore = field(default_factory=SeriesStore)
    leads: bool = True
    problem: Callable[[], str] = str

    def __post_init__(self) -> None:
        """Begin as a leader does that knows all producers."""
        self.book.mark_synced()


def service(name: str, port: int) -> Object:
    """Write a Service that stands for this machine."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }


def endpoints() -> Object:
    """Write the Endpoints as the chart does."""
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": SERVICE_NAME, "namespace": NAMESPACE}}


def account(plane: ControlPlane, name: str) -> Path:
    """Make a service account with exactly the rights that a provider declares, and give its kubeconfig."""
    rules = rules_of(PERMISSIONS)
    home = {"name": name, "namespace": NAMESPACE}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}

    def bound(kind: str, role: str, namespace: str = "") -> Object:
        return {
            "apiVersion": RBAC,
            "kind": f"{kind}Binding",
            "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [subject],
        }

    write(
        plane,
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": home},
        {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules.cluster},
        {
            "apiVersion": RBAC,
            "kind": "Role",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "rules": rules.namespace,
        },
        bound("ClusterRole", name),
        bound("Role", name, NAMESPACE),
        bound("Role", "extension-apiserver-authentication-reader", "kube-system"),
    )
    token = plane.kubectl("create", "token", name, "--namespace", NAMESPACE, "--duration=1h").stdout.strip()
    return plane.kubeconfig_of_token(name, token, namespace=NAMESPACE)


@asynccontextmanager
async def serve(kubeconfig: Path, provider: Provider, target: ServiceTarget) -> AsyncIterator[ExternalMetrics]:
    """Provide external metrics on loopback, with the rights of a kubeconfig."""
    async with (
        HttpTransport(load_kubeconfig(kubeconfig), random=Random(1)) as transport,
        external_metrics(
            transport,
            provider.book,
            clock=WallClock(),
            leading=lambda: provider.leads,
            service=target,
            port=target.port,
            address=ADDRESS if target.name == SERVICE_NAME else "",
            terms=RESTLESS,
            round_seconds=0.5,
        ) as up,
    ):
        yield up


@contextmanager
def providing(plane: ControlPlane, name: str) -> Iterator[Provider]:
    """Provide external metrics, through a Service of this name."""
    plane.kubectl("create", "namespace", NAMESPACE, check=False)
    target = ServiceTarget(NAMESPACE, name, free_ports(1)[0])
    provider = Provider()
    write(plane, service(name, target.port))
    if read(plane, "apiservice", NAME) is None:
        write(plane, api_service(target))
    kubeconfig = account(plane, name)
    write(plane, endpoints())
    with in_background(lambda: serve(kubeconfig, provider, target)) as up:
        provider.problem = up.problem
        yield provider
    for kind in ("service", "serviceaccount", "role", "rolebinding"):
        remove(plane, kind, [name, "--namespace", NAMESPACE])
    remove(plane, "rolebinding", [name, "--namespace", "kube-system"])
    for kind in ("clusterrole", "clusterrolebinding"):
        remove(plane, kind, [name])


@pytest.fixture(scope="module")
def provided(plane: ControlPlane) -> Iterator[Provider]:
    """Have external metrics, for all tests of this file."""
    with providing(plane, SERVICE_NAME) as provider:
        eventually("the API is available", lambda: available(plane))
        assert provider.problem() == ""
        yield provider
        remove(plane, "apiservice", [NAME])


def available(plane: ControlPlane) -> bool:
    """Return whether the API server can reach the provider."""
    return bool(conditions(read(plane, "apiservice", NAME)).get("Available", {}).get("status") == "True")


def reported(plane: ControlPlane, path: str) -> Object:
    """Read something through the API server."""
    answer: Object = json.loads(plane.kubectl("get", "--raw", PATH + path).stdout)
    return answer


def test_discovery_names_the_metrics(plane: ControlPlane, provided: Provider) -> None:
    names = [resource["name"] for resource in reported(plane, "")["resources"]]

    assert METRIC in names


def test_values_are_exact_and_of_one_namespace(plane: ControlPlane, provided: Provider) -> None:
    provided.book.put(Key("default", "shop"), {METRIC: 3}, fresh_until=None)
    provided.book.put(Key("default", "depot"), {METRIC: Fraction(1, 4)}, fresh_until=None)
    provided.book.put(Key("elsewhere", "shop"), {METRIC: 9}, fresh_until=None)

    def values(query: str) -> dict[str, str]:
        items = reported(plane, f"/namespaces/default/{METRIC}{query}")["items"]
        return {item["metricLabels"]["name"]: item["value"] for item in items}

    assert values("") == {"depot": "250m", "shop": "3"}
    assert values("?labelSelector=name%3Dshop") == {"shop": "3"}
    assert values("?labelSelector=name%20notin%20(shop)") == {"depot": "250m"}


def test_a_stock_autoscaler_follows_a_series(plane: ControlPlane, provided: Provider) -> None:
    """With no Prometheus, no adapter and nothing of ours but the API."""
    provided.book.put(Key("default", "followed"), {METRIC: 4}, fresh_until=None)
    provided.book.put(Key("default", "other"), {METRIC: 9}, fresh_until=None)
    write(plane, deployment("followed"), external_autoscaler("followed", METRIC, {"matchLabels": {"name": "followed"}}))
    try:
        eventually("the schedule's replicas", lambda: replicas_of(plane, "followed") == 4)
        provided.book.put(Key("default", "followed"), {METRIC: 2}, fresh_until=None)
        eventually("fewer replicas", lambda: replicas_of(plane, "followed") == 2)
    finally:
        remove(plane, "hpa", ["followed"])
        remove(plane, "deployment", ["followed"])


def test_a_standby_serves_no_metrics_and_nothing_is_scaled(plane: ControlPlane, provided: Provider) -> None:
    """Discovery goes on, so that the group stays available; the autoscaler says why it does nothing."""
    provided.book.put(Key("default", "led"), {METRIC: 3}, fresh_until=None)
    write(plane, deployment("led"), external_autoscaler("led", METRIC, {"matchLabels": {"name": "led"}}))
    try:
        eventually("three replicas", lambda: replicas_of(plane, "led") == 3)
        provided.leads = False
        eventually(
            "the autoscaler complains",
            lambda: (
                "does not lead" in conditions(read(plane, "hpa", "led")).get("ScalingActive", {}).get("message", "")
            ),
        )
        assert replicas_of(plane, "led") == 3
        assert reported(plane, "")["resources"]
    finally:
        provided.leads = True
        remove(plane, "hpa", ["led"])
        remove(plane, "deployment", ["led"])


def test_the_endpoints_have_the_address_of_the_leader(plane: ControlPlane, provided: Provider) -> None:
    def addresses() -> list[str]:
        found = read(plane, "endpoints", SERVICE_NAME, NAMESPACE)
        assert found is not None
        return [address["ip"] for subset in found.get("subsets") or [] for address in subset["addresses"]]

    eventually("the leader writes it", lambda: addresses() == [ADDRESS])
    provided.leads = False
    eventually("it is removed", lambda: addresses() == [])
    provided.leads = True
    eventually("it is written again", lambda: addresses() == [ADDRESS])


def test_an_unauthorized_user_cannot_read_metrics(plane: ControlPlane, provided: Provider) -> None:
    kubeconfig = plane.kubeconfig("someone")
    path = f"{PATH}/namespaces/default/{METRIC}"

    refused = plane.kubectl("get", "--raw", path, kubeconfig=kubeconfig, check=False)

    assert "Forbidden" in refused.stderr
    assert "someone" in refused.stderr


def test_certificates_are_renewed_under_load(plane: ControlPlane, provided: Provider) -> None:
    """No request fails because one side already has, or still has, another authority than the other."""
    bundles = set()

    def handed_over() -> bool:
        assert reported(plane, f"/namespaces/default/{METRIC}")["kind"] == "ExternalMetricValueList"
        registration = read(plane, "apiservice", NAME)
        assert registration is not None
        bundles.add(registration["spec"]["caBundle"])
        return len(bundles) > 3

    eventually("authorities hand over", handed_over)


def test_a_second_provider_keeps_the_api_service_and_reports_it(plane: ControlPlane, provided: Provider) -> None:
    with providing(plane, "second-provider") as second:
        eventually("it says whose the API is", lambda: "has one provider" in second.problem())

        assert f"{NAMESPACE}/{SERVICE_NAME}" in second.problem()
        assert available(plane)
        assert provided.problem() == ""
