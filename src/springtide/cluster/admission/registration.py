"""Publishes the CA bundle in the webhook configurations and in the conversion of CRDs.

On a live cluster the installer creates the configurations, and only their `caBundle` is written here. In the embedded
cluster they are created and reconciled as a whole. CRDs are installed before it is known whether webhooks are enabled,
so CRDs of Springtide without a conversion get the webhook if `convert` is set. A CRD of another program, or with
another conversion webhook, is never changed. API servers call conversion webhooks without a client certificate, so a
server that verifies its clients converts nothing, and a CRD that it has converted before is reported.

The bundle is read from the Secret after the configuration, and the patch has the resourceVersion of the configuration
as its precondition. So a slow replica cannot overwrite a newer bundle with an older one.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from springtide.cluster.admission.configurations import (
    CONVERT_PATH,
    MUTATING,
    VALIDATING,
    WebhookTarget,
    conversion,
    converted_definitions,
    encoded_bundle,
    is_unconverted,
    webhook_configurations,
)
from springtide.cluster.certificates.manager import FIELD_MANAGER
from springtide.cluster.controller import Permission
from springtide.cluster.errors import AlreadyExists, Conflict, NotFound
from springtide.cluster.kinds import CUSTOM_RESOURCE_DEFINITIONS
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Patch, Precondition, Transport, Write

_GROUP = "admissionregistration.k8s.io"
_KINDS = {
    VALIDATING: Resource(
        _GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
    ),
    MUTATING: Resource(_GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False),
}
PERMISSIONS = (
    *(Permission(resource, ("get", "patch"), names=(name,)) for name, resource in _KINDS.items()),
    Permission(CUSTOM_RESOURCE_DEFINITIONS, ("get", "patch"), names=converted_definitions()),
)
"""What a replica needs to publish bundles."""

_WRITE = Write(FIELD_MANAGER, "publish the CA bundle of the webhooks")
_ATTEMPTS = 5
"""How often a patch is attempted when other writers change the object at the same time."""

log = logging.getLogger(__name__)

NewestBundle = Callable[[], Awaitable[bytes]]
BundleDiff = Callable[[Object, bytes], list[Object]]
"""Returns the JSON patch that publishes a bundle in an object."""


class WebhookRegistration:
    """Publishes the bundle in all objects from which API servers read it."""

    def __init__(
        self,
        transport: Transport,
        target: WebhookTarget,
        *,
        create: bool = False,
        convert: bool = False,
        failure_policy: str = "Fail",
        verifies_clients: bool = False,
    ) -> None:
        self._transport = transport
        self._target = target
        self._create = create
        self._convert = (convert or create) and not verifies_clients
        self._verifies_clients = verifies_clients
        self._failure_policy = failure_policy
        self._missed: set[str] = set()
        self._unreadable: set[str] = set()

    async def published(self) -> bytes:
        """Return the bundle of the validating configuration; empty if there is none."""
        try:
            found = await self._transport.get(_KINDS[VALIDATING], Key("", VALIDATING))
        except NotFound:
            return b""
        bundles = [_bundle_of(webhook.get("clientConfig")) for webhook in found.get("webhooks") or ()]
        return next(filter(None, bundles), b"")

    async def publish(self, bundle: bytes, newest: NewestBundle) -> bool:
        """Publish a bundle, or the newest one if it has changed meanwhile.

        Returns whether both configurations are installed. CRDs do not count: some clusters do not have them.
        """
        if self._create:
            await self._create_missing(newest)
        installed = True
        for wanted in webhook_configurations(self._target, failure_policy=self._failure_policy):
            name = wanted["metadata"]["name"]
            installed &= await self._settle(_KINDS[name], name, self._webhook_difference(wanted), bundle, newest)
        for name in converted_definitions():
            await self._settle(CUSTOM_RESOURCE_DEFINITIONS, name, self._conversion_difference, bundle, newest)
        return installed

    async def _settle(
        self, resource: Resource, name: str, difference: BundleDiff, bundle: bytes, newest: NewestBundle
    ) -> bool:
        """Publish a bundle in one object; return whether the object exists."""
        for _ in range(_ATTEMPTS):
            try:
                found = await self._transport.get(resource, Key("", name))
            except NotFound:
                self._miss(resource, name)
                return False
            if not difference(found, bundle):
                return True
            # Read after the object: if the patch succeeds, no newer bundle was published meanwhile.
            bundle = await newest()
            operations = difference(found, bundle)
            if not operations:
                return True
            precondition = Precondition(version=found["metadata"]["resourceVersion"])
            try:
                await self._transport.patch(
                    resource, Key("", name), Patch.json(*operations), _WRITE, precondition=precondition
                )
            except (Conflict, NotFound):
                continue
            return True
        raise Conflict(f"{resource.kind} {name} keeps being changed by other writers")

    async def _create_missing(self, newest: NewestBundle) -> None:
        for name, resource in _KINDS.items():
            try:
                await self._transport.get(resource, Key("", name))
            except NotFound:
                made = webhook_configurations(self._target, await newest(), failure_policy=self._failure_policy)
                body = next(each for each in made if each["metadata"]["name"] == name)
                with suppress(AlreadyExists):
                    await self._transport.create(resource, body, _WRITE)

    def _miss(self, resource: Resource, name: str) -> None:
        """Log once that an object is not installed: webhooks are optional."""
        if name not in self._missed:
            self._missed.add(name)
            log.info("%s %s is not installed, so no CA bundle is published in it", resource.kind, name)

    def _report_conversion(self, definition: str) -> None:
        if definition not in self._unreadable:
            self._unreadable.add(definition)
            log.warning(
                "the CRD %s is converted by these webhooks, and API servers convert without a client certificate, so"
                " that its older versions cannot be read: set its spec.conversion to {strategy: None, webhook: null}",
                definition,
            )

    def _webhook_difference(self, wanted: Object) -> BundleDiff:
        def difference(found: Object, bundle: bytes) -> list[Object]:
            webhooks = found.get("webhooks") or []
            operations = [
                {"op": "add", "path": f"/webhooks/{position}/clientConfig/caBundle", "value": encoded_bundle(bundle)}
                for position, webhook in enumerate(webhooks)
                if webhook["clientConfig"].get("caBundle") != encoded_bundle(bundle)
            ]
            if not self._create or _covers(webhooks, wanted["webhooks"]):
                return operations
            made = [
                {**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": encoded_bundle(bundle)}}
                for webhook in wanted["webhooks"]
            ]
            return [{"op": "add", "path": "/webhooks", "value": made}]

        return difference

    def _conversion_difference(self, found: Object, bundle: bytes) -> list[Object]:
        wanted = conversion(self._target, bundle)
        current = found["spec"].get("conversion") or {}
        if self._convert and (self._create or is_unconverted(found)):
            unserved = [at for at, version in enumerate(found["spec"]["versions"]) if not version["served"]]
            serve = [{"op": "replace", "path": f"/spec/versions/{at}/served", "value": True} for at in unserved]
            convert = [] if _covers(current, wanted) else [{"op": "add", "path": "/spec/conversion", "value": wanted}]
            return [*convert, *serve]
        client = (current.get("webhook") or {}).get("clientConfig") or {}
        ours = _covers(client, self._target.client_config(CONVERT_PATH))
        if ours and self._verifies_clients:
            self._report_conversion(found["metadata"]["name"])
        if not ours or client.get("caBundle") == encoded_bundle(bundle):
            return []
        path = "/spec/conversion/webhook/clientConfig/caBundle"
        return [{"op": "add", "path": path, "value": encoded_bundle(bundle)}]


def _covers(found: Any, wanted: Any) -> bool:
    """Return whether `found` contains everything in `wanted`; servers add defaults."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_covers(found.get(name), part) for name, part in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(_covers, found, wanted))
    return bool(found == wanted)


def _bundle_of(client: Any) -> bytes:
    written = client.get("caBundle") if isinstance(client, dict) else None
    try:
        return base64.b64decode(written or "", validate=True)
    except (binascii.Error, TypeError, ValueError):
        return b""
