"""Keeps the API server told that external metrics are here, and whom to trust for it.

A cluster has one provider of external metrics: the Service that its APIService leads to. Who has it keeps it. Where
that is somebody else, nothing is changed and it is said who; where it is our Service, its bundle is kept up to date.
Whoever installs Springtide creates the APIService, and so takes it away again with everything else: one that leads to
nobody gets in the way of every namespace that is deleted.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from springtide.cluster.admission.configurations import ServiceTarget
from springtide.cluster.controller import Permission
from springtide.cluster.errors import AlreadyExists, Conflict, NotFound
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Patch, Precondition, Transport, Write
from springtide.metrics.external.documents import GROUP, VERSION

API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
NAME = f"{VERSION}.{GROUP}"
PERMISSIONS = (Permission(API_SERVICES, ("get", "patch"), names=(NAME,)),)
"""What a replica needs to fill in the bundle."""

_WRITE = Write("springtide-external-metrics", "the API server is told whom to trust for external metrics")
_LOOKS = 5
"""How often the APIService is read again that others write at the same time."""
_KNOWN = {"keda": "KEDA", "prometheus-adapter": "the Prometheus adapter", "datadog": "Datadog's cluster agent"}
"""Providers that people have, by a part of the name of their Service."""

log = logging.getLogger(__name__)


class ApiServiceRegistration:
    """The APIService of external metrics, as far as it is ours."""

    def __init__(self, transport: Transport, service: ServiceTarget, *, create: bool = False) -> None:
        self._transport = transport
        self._service = service
        self._create = create
        self.problem = "the APIService has not been looked at yet"
        """Why we are not the provider; empty where we are."""

    async def published(self) -> bytes:
        """Give the bundle that is published; empty where there is none, or where it is somebody else's."""
        try:
            found = await self._transport.get(API_SERVICES, Key("", NAME))
        except NotFound:
            return b""
        if owner_of(found) != _named(self._service):
            return b""
        try:
            return base64.b64decode(found["spec"].get("caBundle") or "", validate=True)
        except (binascii.Error, TypeError, ValueError):
            return b""

    async def publish(self, bundle: bytes, newest: Callable[[], Awaitable[bytes]]) -> bool:
        """Make sure that a bundle is published, or the newest one; tell whether the APIService is there and ours."""
        for _ in range(_LOOKS):
            try:
                found = await self._transport.get(API_SERVICES, Key("", NAME))
            except NotFound:
                if not self._create:
                    self._tell(missing(self._service))
                    return False
                with suppress(AlreadyExists):
                    await self._transport.create(API_SERVICES, api_service(self._service, await newest()), _WRITE)
                continue
            if owner_of(found) != _named(self._service):
                self._tell(taken(found))
                return False
            if found["spec"].get("caBundle") == _encoded(bundle):
                self._tell("")
                return True
            # Read after the object, so that nobody can have published anything newer if the patch succeeds.
            bundle = await newest()
            change = Patch.json({"op": "add", "path": "/spec/caBundle", "value": _encoded(bundle)})
            precondition = Precondition(version=found["metadata"]["resourceVersion"])
            with suppress(Conflict, NotFound):
                await self._transport.patch(API_SERVICES, Key("", NAME), change, _WRITE, precondition=precondition)
        raise Conflict(f"APIService {NAME} is written by others all the time")

    def _tell(self, problem: str) -> None:
        """Say once what has changed."""
        if problem != self.problem:
            self.problem = problem
            if problem:
                log.error("external metrics are not provided: %s", problem)
            else:
                log.info("external metrics are provided: APIService %s leads to us", NAME)


def api_service(service: ServiceTarget, bundle: bytes = b"") -> Object:
    """Write the APIService that leads to a Service of ours; without a bundle, it is filled in later."""
    return {
        "apiVersion": API_SERVICES.api_version,
        "kind": API_SERVICES.kind,
        "metadata": {
            "name": NAME,
            "labels": {"app.kubernetes.io/name": "springtide", "app.kubernetes.io/component": "external-metrics"},
        },
        "spec": {
            "group": GROUP,
            "version": VERSION,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"namespace": service.namespace, "name": service.name, "port": service.port},
            **({"caBundle": _encoded(bundle)} if bundle else {}),
        },
    }


def owner_of(found: Object) -> str:
    """Name the Service that an APIService leads to; empty where it leads to none."""
    service = found["spec"].get("service") or {}
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service else ""


def taken(found: Object) -> str:
    """Say whose an APIService is, and what to do about it."""
    owner = owner_of(found)
    if not owner:
        return f"APIService {NAME} leads to no Service: delete it, and install it anew with Springtide"
    known = next((f" ({words})" for part, words in _KNOWN.items() if part in owner), "")
    other = (
        "let a ScaledObject follow the schedule by KEDA's metrics-api scaler, and turn external metrics off here"
        if "keda" in owner
        else "turn external metrics off here, or remove that one"
    )
    return f"APIService {NAME} belongs to the Service {owner}{known}, and a cluster has one provider: {other}"


def missing(service: ServiceTarget) -> str:
    """Say that nobody has installed the APIService."""
    return f"APIService {NAME} is not installed: install one that leads to the Service {_named(service)}"


def _named(service: ServiceTarget) -> str:
    return f"{service.namespace}/{service.name}"


def _encoded(bundle: bytes) -> str:
    return base64.b64encode(bundle).decode()
