"""Publishes the CA bundle in the APIService of external metrics, if that refers to Springtide's Service.

A cluster has one provider of external metrics: the Service of the APIService `v1beta1.external.metrics.k8s.io`. An
APIService of another provider is never changed, and the log names the provider. The installer of Springtide creates the
APIService and removes it: one without a running server would block the deletion of every namespace.
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
"""What a replica needs to publish the bundle."""

_WRITE = Write("springtide-external-metrics", "publish the CA bundle of external metrics")
_ATTEMPTS = 5
"""How often a patch is attempted when other writers change the APIService at the same time."""
_KNOWN = {"keda": "KEDA", "prometheus-adapter": "the Prometheus adapter", "datadog": "Datadog's cluster agent"}
"""Common providers, by a part of the name of their Service."""

log = logging.getLogger(__name__)


class ApiServiceRegistration:
    """Publishes the bundle in the APIService, and reports why Springtide is not the provider."""

    def __init__(self, transport: Transport, service: ServiceTarget, *, create: bool = False) -> None:
        self._transport = transport
        self._service = service
        self._create = create
        self.problem = "the APIService has not been read yet"
        """Why Springtide is not the provider; empty: it is."""

    async def published(self) -> bytes:
        """Return the published bundle; empty if there is none, or if the APIService is of another provider."""
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
        """Publish a bundle, or the newest one; return whether the APIService exists and refers to Springtide."""
        for _ in range(_ATTEMPTS):
            try:
                found = await self._transport.get(API_SERVICES, Key("", NAME))
            except NotFound:
                if not self._create:
                    self._report(missing(self._service))
                    return False
                with suppress(AlreadyExists):
                    await self._transport.create(API_SERVICES, api_service(self._service, await newest()), _WRITE)
                continue
            if owner_of(found) != _named(self._service):
                self._report(other_provider(found))
                return False
            if found["spec"].get("caBundle") == _encoded(bundle):
                self._report("")
                return True
            # Read after the object: if the patch succeeds, no newer bundle was published meanwhile.
            bundle = await newest()
            change = Patch.json({"op": "add", "path": "/spec/caBundle", "value": _encoded(bundle)})
            precondition = Precondition(version=found["metadata"]["resourceVersion"])
            with suppress(Conflict, NotFound):
                await self._transport.patch(API_SERVICES, Key("", NAME), change, _WRITE, precondition=precondition)
        raise Conflict(f"APIService {NAME} keeps being changed by other writers")

    def _report(self, problem: str) -> None:
        """Log a problem when it changes."""
        if problem != self.problem:
            self.problem = problem
            if problem:
                log.error("external metrics are not provided: %s", problem)
            else:
                log.info("external metrics are provided: APIService %s refers to this Service", NAME)


def api_service(service: ServiceTarget, bundle: bytes = b"") -> Object:
    """Return the APIService for a Service; a missing bundle is filled in later."""
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
    """Return the Service of an APIService; empty if it has none."""
    service = found["spec"].get("service") or {}
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service else ""


def other_provider(found: Object) -> str:
    """Return the message about an APIService of another provider."""
    owner = owner_of(found)
    if not owner:
        return f"APIService {NAME} has no Service: delete it, and install it again with Springtide"
    known = next((f" ({name})" for part, name in _KNOWN.items() if part in owner), "")
    other = (
        "let a ScaledObject follow the schedule by KEDA's metrics-api scaler, and turn external metrics off here"
        if "keda" in owner
        else "turn external metrics off here, or remove that provider"
    )
    return f"APIService {NAME} belongs to the Service {owner}{known}, and a cluster has one provider: {other}"


def missing(service: ServiceTarget) -> str:
    """Return the message about a missing APIService."""
    return f"APIService {NAME} is not installed: install one for the Service {_named(service)}"


def _named(service: ServiceTarget) -> str:
    return f"{service.namespace}/{service.name}"


def _encoded(bundle: bytes) -> str:
    return base64.b64encode(bundle).decode()
