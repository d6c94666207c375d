"""The APIService: the bundle is published in ours, and another provider's is never changed."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from tests.metrics.external.fake_cluster import FakeCluster

from springtide.cluster.admission import ServiceTarget
from springtide.cluster.errors import Conflict
from springtide.cluster.resources import Key, Object
from springtide.metrics.external.registration import API_SERVICES, NAME, ApiServiceRegistration, api_service

OURS = ServiceTarget("springtide-system", "springtide-external-metrics", 443)
KEDA = ServiceTarget("keda", "keda-operator-metrics-apiserver")
KEY = ("apiservices", Key("", NAME))


def publish(cluster: FakeCluster, bundle: bytes = b"new", *, create: bool = False) -> ApiServiceRegistration:
    """Publish the newest bundle."""
    made = ApiServiceRegistration(cluster.transport, OURS, create=create)

    async def newest() -> bytes:
        return bundle

    assert asyncio.run(made.publish(bundle, newest)) is (made.problem == "")
    return made


def bundle_of(cluster: FakeCluster) -> bytes:
    return base64.b64decode(cluster.objects[KEY]["spec"].get("caBundle", ""))


@pytest.mark.parametrize("before", [b"", b"old"], ids=["without", "older"])
def test_the_bundle_is_published(before: bytes) -> None:
    cluster = FakeCluster()
    cluster.put(API_SERVICES, api_service(OURS, before))

    assert publish(cluster).problem == ""
    assert bundle_of(cluster) == b"new"


def test_a_published_bundle_is_not_written_again() -> None:
    cluster = FakeCluster()
    version = cluster.put(API_SERVICES, api_service(OURS, b"new"))["metadata"]["resourceVersion"]

    publish(cluster)

    assert cluster.objects[KEY]["metadata"]["resourceVersion"] == version


def test_a_missing_api_service_is_reported_or_created() -> None:
    cluster = FakeCluster()

    assert "install one for the Service springtide-system/springtide-external" in publish(cluster).problem
    assert not cluster.objects
    assert publish(cluster, create=True).problem == ""
    assert bundle_of(cluster) == b"new"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param(
            api_service(KEDA)["spec"],
            "belongs to the Service keda/keda-operator-metrics-apiserver (KEDA), and a cluster has one provider: let a"
            " ScaledObject follow the schedule by KEDA's metrics-api scaler",
            id="keda",
        ),
        pytest.param(
            api_service(ServiceTarget("monitoring", "prometheus-adapter"))["spec"],
            "the Service monitoring/prometheus-adapter (the Prometheus adapter), and a cluster has one provider: turn"
            " external metrics off here, or remove that provider",
            id="prometheus-adapter",
        ),
        pytest.param(
            api_service(ServiceTarget("other", "metrics"))["spec"], "the Service other/metrics, and", id="unknown"
        ),
        pytest.param(
            api_service(ServiceTarget("elsewhere", OURS.name))["spec"], "the Service elsewhere/", id="another-namespace"
        ),
        pytest.param({"group": "external.metrics.k8s.io", "version": "v1beta1"}, "has no Service", id="local"),
    ],
)
@pytest.mark.parametrize("create", [False, True], ids=["installed", "made"])
def test_the_api_service_of_another_provider_is_never_changed(spec: Object, words: str, create: bool) -> None:
    cluster = FakeCluster()
    before = cluster.put(API_SERVICES, {"metadata": {"name": NAME}, "spec": spec})

    made = publish(cluster, create=create)

    assert words in made.problem
    assert cluster.objects[KEY] == before
    assert asyncio.run(made.published()) == b""


def test_another_provider_that_takes_over_meanwhile_keeps_it() -> None:
    cluster = FakeCluster()
    cluster.put(API_SERVICES, api_service(OURS, b"old"))

    def take_over() -> None:
        cluster.put(API_SERVICES, api_service(KEDA, b"theirs"))

    cluster.before_patch = take_over

    assert "KEDA" in publish(cluster).problem
    assert bundle_of(cluster) == b"theirs"


def test_repeated_conflicts_are_an_error() -> None:
    cluster = FakeCluster()
    cluster.put(API_SERVICES, api_service(OURS, b"old"))

    def meddle() -> None:
        cluster.put(API_SERVICES, api_service(OURS, b"other"))

    cluster.before_patch = meddle

    with pytest.raises(Conflict, match="keeps being changed by other writers"):
        publish(cluster)


def test_the_newest_bundle_is_published() -> None:
    cluster = FakeCluster()
    cluster.put(API_SERVICES, api_service(OURS, b"old"))

    async def newest() -> bytes:
        return b"newest"

    assert asyncio.run(ApiServiceRegistration(cluster.transport, OURS).publish(b"new", newest))
    assert bundle_of(cluster) == b"newest"


@pytest.mark.parametrize(
    ("bundle", "expected"),
    [(base64.b64encode(b"ours").decode(), b"ours"), ("%", b""), (None, b"")],
    ids=["ours", "unreadable", "none"],
)
def test_the_published_bundle_is_read(bundle: Any, expected: bytes) -> None:
    cluster = FakeCluster()
    assert asyncio.run(ApiServiceRegistration(cluster.transport, OURS).published()) == b""
    item = api_service(OURS)
    item["spec"]["caBundle"] = bundle
    cluster.put(API_SERVICES, item)

    assert asyncio.run(ApiServiceRegistration(cluster.transport, OURS).published()) == expected
