"""Everything that is wrong with the objects of scaling on time is refused by a real API server, in helpful words."""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from random import Random
from urllib.error import HTTPError

import pytest
from tests.e2e.assets import Assets
from tests.e2e.control_plane import ControlPlane, running
from tests.e2e.objects import calendar, install_crds
from tests.e2e.refusals.rows import Refused
from tests.e2e.refusals.table import RIGHT, WARNED, all_refused, path_of
from tests.e2e.springtide_process import NAMESPACE
from tests.e2e.waiting import eventually, in_background

from springtide.cluster.admission import Webhooks, serve_webhooks
from springtide.cluster.http import HttpTransport, load_kubeconfig
from springtide.cluster.resources import Object

ROWS = list(all_refused())


@pytest.fixture(scope="module")
def alone(assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run a control plane with our CRDs and nothing else of ours."""
    with running(assets, tmp_path_factory.mktemp("admission"), controllers=False) as plane:
        install_crds(plane)
        plane.kubectl("create", "namespace", NAMESPACE)
        yield plane


@pytest.fixture(scope="module")
def without_webhooks(alone: ControlPlane) -> dict[str, str]:
    """Ask about every row before there are webhooks, and give what was answered."""
    return {row.id: refusal(alone, row.item) for row in ROWS}


@pytest.fixture(scope="module")
def asking(alone: ControlPlane, without_webhooks: dict[str, str]) -> Iterator[ControlPlane]:
    """Have our webhooks asked."""
    mistaken = calendar("mistaken", "2100-01-01", zone="Moon/Base")
    with in_background(lambda: serve(alone)):
        path = "/apis/springtide.dev/v1alpha1/calendars"
        eventually("what is wrong is refused", lambda: refusal(alone, mistaken, path))
        yield alone


@asynccontextmanager
async def serve(plane: ControlPlane) -> AsyncIterator[Webhooks]:
    """Serve the webhooks on loopback, registered by their URL."""
    async with (
        HttpTransport(load_kubeconfig(plane.admin), random=Random(1)) as transport,
        serve_webhooks(transport, namespace=NAMESPACE, create=True) as up,
    ):
        await up.until_ready()
        yield up


def refusal(plane: ControlPlane, item: Object, path: str = "") -> str:
    """Return the words with which an object is refused; nothing where it would be accepted."""
    return answer(plane, item, path)[0]


def answer(plane: ControlPlane, item: Object, path: str = "") -> tuple[str, list[str]]:
    """Return the words with which an object is refused, if it is, and what its author is warned of."""
    request = urllib.request.Request(
        f"{plane.url}{path or path_of(item)}?dryRun=All&fieldValidation=Strict",
        json.dumps(item).encode(),
        {"Authorization": f"Bearer {plane.token}", "Content-Type": "application/json"},
    )
    trusting = ssl.create_default_context(cafile=str(plane.authority))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusting))
    try:
        with opener.open(request, timeout=30) as accepted:
            return "", accepted.headers.get_all("Warning") or []
    except HTTPError as refused:
        status: Object = json.loads(refused.read())
        if status["reason"] != "Invalid":
            raise
        return status["message"], refused.headers.get_all("Warning") or []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_invalid_objects_are_refused_with_field_and_fix(asking: ControlPlane, row: Refused) -> None:
    words = refusal(asking, row.item)

    assert row.field in words
    assert row.words in words


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_crd_alone_refuses_schema_violations(without_webhooks: dict[str, str], row: Refused) -> None:
    """And nothing else: the other rows show what webhooks are for."""
    words = without_webhooks[row.id]

    assert bool(words) is row.by_crd, words
    if row.by_crd:
        assert row.field in words


@pytest.mark.parametrize("item", RIGHT, ids=lambda item: item["kind"])
def test_valid_objects_are_accepted_without_warnings(asking: ControlPlane, item: Object) -> None:
    assert answer(asking, item) == ("", [])


@pytest.mark.parametrize(("item", "words"), WARNED.values(), ids=WARNED)
def test_likely_mistakes_are_accepted_with_a_warning(asking: ControlPlane, item: Object, words: str) -> None:
    refused, warnings = answer(asking, item)

    assert refused == ""
    assert any(words in warning for warning in warnings), warnings
