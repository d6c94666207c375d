"""No query parameter and no header of any of our servers costs more than linear time.

The names are those that the sources read, so that a new one is tested as soon as it exists.
"""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp
from tests.apiserver.http.asgi_client import CONFIGS, NOW, PODS, TOKEN, AsgiClient, pod
from tests.costs.growth import excessive_time

import springtide
from springtide.cluster.admission.webhooks import admission_app
from springtide.cluster.clock import WallClock
from springtide.cluster.compute import InlineCompute
from springtide.metrics.endpoints import operations_app
from springtide.metrics.external import app as external
from springtide.metrics.external.request_header import Caller, FrontProxy
from springtide.metrics.series import SeriesStore

SOURCES = Path(springtide.__file__).parent
FOLDERS = ("apiserver/http", "cluster/admission", "metrics")
SIZE = 16_000
"""A server accepts 64 KiB of headers, and about as long a query."""
PUMPS = (" ", "a", "0", ",", "a,", "a=b,", "a in (b),", "a in (", "b,", "!", "(", "/", ".", "a/b;q=0.1,", ";", "é", '"')
METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/karpenter_scheduled_capacity"
READERS = {"parameter": "query", "header": "header", "flag": "query", "_number": "query"}
MAPPINGS = {"query": "query", "query_params": "query", "headers": "header"}


def read_names() -> Iterator[tuple[str, str]]:
    """Find the parameters and headers that the sources of servers read, by their names."""
    for folder in FOLDERS:
        for path in sorted((SOURCES / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not isinstance(node, ast.Call):
                    continue
                texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
                named = [text for text in texts if isinstance(text, str) and text]
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                sort = READERS.get(called)
                if called == "get" and isinstance(node.func, ast.Attribute):
                    sort = MAPPINGS.get(getattr(node.func.value, "attr", ""))
                if sort is not None and named:
                    yield sort, named[0].lower() if sort == "header" else named[0]


NAMES = sorted({*read_names(), *(("header", f"x-remote-{name}") for name in ("user", "group", "extra-scopes"))})


async def ask(app: ASGIApp, method: str, path: str, query: str, headers: dict[str, str], body: bytes) -> None:
    """Send one request to a server, and disconnect, which ends a watch."""
    messages = iter(({"type": "http.request", "body": body, "more_body": False},))

    async def receive() -> dict[str, Any]:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        assert message["type"] != "http.response.start" or message["status"] != 500, path

    encoded = [(name.encode(), text.encode("utf-8", "replace")) for name, text in headers.items()]
    scope: Any = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": encoded}
    await app(scope, receive, send)


class OpenProxy(FrontProxy):
    """Trusts every client."""

    def caller(self, certificate: str, headers: Any, now: int) -> Caller:
        """Read the headers alone."""
        return Caller("user", "", (), self._extra(headers))


def external_metrics() -> ASGIApp:
    """Make the server of external metrics, open to every client."""

    async def check(caller: Caller, attributes: external.RequestAttributes) -> None:
        """Allow everything."""

    series = SeriesStore()
    series.mark_synced()
    return external.ExternalMetricsApp(
        series,
        WallClock(),
        cast("external.AccessReviewer", SimpleNamespace(check=check)),
        front_proxy=lambda: OpenProxy(""),
        leading=lambda: True,
        problem=lambda: "",
    ).asgi()


REVIEW = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1"}}).encode()
POD = json.dumps(pod("created")).encode()
SERVERS: dict[str, tuple[Callable[[], ASGIApp], tuple[tuple[str, str, bytes], ...]]] = {
    "api-server": (
        lambda: cast("ASGIApp", AsgiClient().app),
        (
            ("GET", PODS, b""),
            ("GET", f"{CONFIGS}/missing", b""),
            ("POST", PODS, POD),
            ("PATCH", f"{PODS}/created", b'{"metadata":{"labels":{"a":"b"}}}'),
            ("DELETE", f"{PODS}/created", b""),
        ),
    ),
    "webhooks": (
        lambda: admission_app(InlineCompute(cast("Any", None)), lambda: NOW),
        (("POST", "/validate", REVIEW), ("GET", "/healthz", b"")),
    ),
    "external-metrics": (external_metrics, (("GET", METRIC, b""),)),
    "metrics-and-probes": (
        lambda: operations_app(CollectorRegistry()),
        (("GET", "/metrics", b""), ("GET", "/readyz", b"")),
    ),
}


@cache
def app_of(server: str) -> ASGIApp:
    """Make a server, once."""
    return SERVERS[server][0]()


def excess(server: str, sort: str, name: str) -> Iterator[str]:
    """Yield what costs too much of one parameter or header, if anything does."""
    _, requests = SERVERS[server]
    app = app_of(server)
    for method, path, body in requests:
        for pump in PUMPS:

            def make(size: int, *, pump: str = pump, method: str = method, path: str = path, body: bytes = body) -> Any:
                text = (pump * size)[: size - 1] + "!"
                query = f"{name}={quote(text)}" if sort == "query" else ""
                patch = "application/strategic-merge-patch+json" if method == "PATCH" else "application/json"
                headers = {"authorization": f"Bearer {TOKEN}", "content-type": patch}
                headers |= {name: text} if sort == "header" else {}
                return lambda: asyncio.run(ask(app, method, path, query, headers, body))

            found = excessive_time(make, SIZE)
            if found:
                yield f"{method} {path} {pump!r}: {found}"


def test_the_names_are_found() -> None:
    assert {("query", "labelSelector"), ("query", "fieldSelector"), ("header", "accept"), ("query", "dryRun")} < {
        *NAMES
    }
    assert ("header", "accept-encoding") in NAMES
    assert len(NAMES) > 20


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(("sort", "name"), NAMES)
def test_parameters_and_headers(server: str, sort: str, name: str) -> None:
    assert list(excess(server, sort, name)) == []


def test_a_quadratic_selector_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blanks at a place where two repetitions meet."""

    def parse(text: str) -> external.SeriesSelector:
        for start in range(0, len(text), 2):
            for _ in text[start:]:
                pass
        return external.SeriesSelector(())

    monkeypatch.setattr(external.SeriesSelector, "parse", parse)
    assert next(excess("external-metrics", "query", "labelSelector")).startswith(f"GET {METRIC} ' ': ")
