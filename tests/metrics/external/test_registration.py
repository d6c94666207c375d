"""The APIService: kept up to date where it is ours, and left alone where it is somebody else's."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from tests.metrics.external.fake_cluster import Shelf

from springtide.cluster.admission import ServiceTarget
from springtide.cluster.errors import Conflict
from springtide.cluster.resources import Key, Object
from springtide.metrics.external.registration import API_SERVICES, NAME, ApiServiceRegistration, api_service

OURS = ServiceTarget("springtide-system", "springtide-external-metrics", 443)
KEDA = ServiceTarget("keda", "keda-operator-metrics-apiserver")
KEY = ("apiservices", Key("", NAME))


def publish(shelf: Shelf, bundle: bytes = b"new", *, create: bool = False) -> ApiServiceRegistration:
    """Publish a bundle, than which there is none newer."""
    made = ApiServiceRegistration(shelf.transport, OURS, create=create)

    async def newest() -> bytes:
        return bundle

    assert asyncio.run(made.publish(bundle, newest)) is (made.problem == "")
    return made


def bundle_of(shelf: Shelf) -> bytes:
    return base64.b64decode(shelf.objects[KEY]["spec"].get("caBundle", ""))


@pytest.mark.parametrize("before", [b"", b"old"], ids=["without", "older"])
def test_the_bundle_of_ours_is_filled_in(before: bytes) -> None:
    shelf = Shelf()
    shelf.put(API_SERVICES, api_service(OURS, before))

    assert publish(shelf).problem == ""
    assert bundle_of(shelf) == b"new"


def test_what_is_right_is_not_written() -> None:
    shelf = Shelf()
    version = shelf.put(API_SERVICES, api_service(OURS, b"new"))["metadata"]["resourceVersion"]

    publish(shelf)

    assert shelf.objects[KEY]["metadata"]["resourceVersion"] == version


def test_one_that_nobody_has_installed_is_asked_for_or_made() -> None:
    shelf = Shelf()

    assert "install one for the Service springtide-system/springtide-external" in publish(shelf).problem
    assert not shelf.objects
    assert publish(shelf, create=True).problem == ""
    assert bundle_of(shelf) == b"new"


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
def test_one_of_somebody_else_is_never_changed(spec: Object, words: str, create: bool) -> None:
    shelf = Shelf()
    before = shelf.put(API_SERVICES, {"metadata": {"name": NAME}, "spec": spec})

    made = publish(shelf, create=create)

    assert words in made.problem
    assert shelf.objects[KEY] == before
    assert asyncio.run(made.published()) == b""


def test_whoever_takes_it_over_in_between_keeps_it() -> None:
    shelf = Shelf()
    shelf.put(API_SERVICES, api_service(OURS, b"old"))

    def take_over() -> None:
        shelf.put(API_SERVICES, api_service(KEDA, b"theirs"))

    shelf.before_patch = take_over

    assert "KEDA" in publish(shelf).problem
    assert bundle_of(shelf) == b"theirs"


def test_one_that_others_write_all_the_time_is_left_for_later() -> None:
    shelf = Shelf()
    shelf.put(API_SERVICES, api_service(OURS, b"old"))

    def meddle() -> None:
        shelf.put(API_SERVICES, api_service(OURS, b"other"))

    shelf.before_patch = meddle

    with pytest.raises(Conflict, match="keeps being changed by other writers"):
        publish(shelf)


def test_the_newest_bundle_is_published_and_not_the_one_that_was_read_before() -> None:
    shelf = Shelf()
    shelf.put(API_SERVICES, api_service(OURS, b"old"))

    async def newest() -> bytes:
        return b"newest"

    assert asyncio.run(ApiServiceRegistration(shelf.transport, OURS).publish(b"new", newest))
    assert bundle_of(shelf) == b"newest"


@pytest.mark.parametrize(
    ("bundle", "expected"),
    [(base64.b64encode(b"ours").decode(), b"ours"), ("%", b""), (None, b"")],
    ids=["ours", "unreadable", "none"],
)
def test_what_is_published_is_known(bundle: Any, expected: bytes) -> None:
    shelf = Shelf()
    assert asyncio.run(ApiServiceRegistration(shelf.transport, OURS).published()) == b""
    item = api_service(OURS)
    item["spec"]["caBundle"] = bundle
    shelf.put(API_SERVICES, item)

    assert asyncio.run(ApiServiceRegistration(shelf.transport, OURS).published()) == expected
