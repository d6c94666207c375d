"""The aggregation layer: a server of ours, on loopback, behind the real one."""

from __future__ import annotations

import json
import ssl
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from tests.e2e.control_plane import ControlPlane
from tests.e2e.objects import conditions, read, write
from tests.e2e.waiting import eventually, in_background

from springtide.cluster.certificates import make_authority, make_serving
from springtide.cluster.serving import RunningServer, TlsIdentity, serving

GROUP = "aggregated.springtide.dev"
PATH = f"/apis/{GROUP}/v1"
NOW = int(time.time())
AUTHORITY = make_authority("aggregated", now=NOW, seconds=3600)


@asynccontextmanager
async def aggregated(plane: ControlPlane) -> AsyncIterator[RunningServer]:
    """Serve an API group that returns the user of a request, and trusts only the real API server."""

    async def whoami(request: Request) -> JSONResponse:
        return JSONResponse(
            {"user": request.headers.get("x-remote-user"), "groups": request.headers.getlist("x-remote-group")}
        )

    async def discovery(request: Request) -> JSONResponse:
        return JSONResponse(
            {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1", "resources": []}
        )

    identity = TlsIdentity(make_serving(AUTHORITY, ["aggregated.default.svc"], now=NOW, seconds=3600))
    identity.context.load_verify_locations(plane.front_proxy_authority)
    identity.context.verify_mode = ssl.CERT_REQUIRED
    app = Starlette(routes=[Route(PATH, discovery), Route(f"{PATH}/whoami", whoami)])
    async with serving(app, identity=identity) as up:
        yield up


@pytest.fixture
def registered(plane: ControlPlane) -> Iterator[None]:
    """Register it, through a Service that stands for this machine."""
    name = f"v1.{GROUP}"
    with in_background(lambda: aggregated(plane)) as up:
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "aggregated", "namespace": "default"},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": up.port}]},
        }
        registration = {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": name},
            "spec": {
                "group": GROUP,
                "version": "v1",
                "groupPriorityMinimum": 1000,
                "versionPriority": 10,
                "service": {"name": "aggregated", "namespace": "default", "port": up.port},
                "caBundle": b64encode(AUTHORITY.certificate).decode(),
            },
        }
        write(plane, service, registration)
        eventually(
            "the group is available",
            lambda: conditions(read(plane, "apiservice", name)).get("Available", {}).get("status") == "True",
        )
        yield
        plane.kubectl("delete", "apiservice", name)
        plane.kubectl("delete", "service", "aggregated", "--namespace=default")


def test_an_aggregated_server_receives_the_user_and_groups(plane: ControlPlane, registered: None) -> None:
    """And it asks with a certificate that the front proxy's authority has signed, or it would not be answered."""
    reported = json.loads(plane.kubectl("get", "--raw", f"{PATH}/whoami").stdout)

    assert reported == {"user": "admin", "groups": ["system:masters", "system:authenticated"]}
