"""Keeps API servers told where the webhooks are and whom to trust.

On a live cluster whoever installs Springtide creates the configurations, and we fill in the bundle and nothing else.
In the embedded cluster there is nobody else, so they are created and kept as a whole. CRDs are installed before anybody
knows whether webhooks will be on; so those of ours that nobody converts are taken on where we are told to. A CRD that
is somebody else's, or whose conversion leads to somebody else, is left alone.

A bundle is published after it was read from the Secret, under the condition that nobody has published since the
configuration was read. So a replica that is slow can publish nothing that is older than what is there.
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
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Patch, Precondition, Transport, Write

_GROUP = "admissionregistration.k8s.io"
_KINDS = {
    VALIDATING: Resource(
        _GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
    ),
    MUTATING: Resource(_GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False),
}
_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
PERMISSIONS = (
    *(Permission(resource, ("get", "patch"), names=(name,)) for name, resource in _KINDS.items()),
    Permission(_DEFINITIONS, ("get", "patch"), names=converted_definitions()),
)
"""What a replica needs to fill in bundles."""

_WRITE = Write(FIELD_MANAGER, "API servers are told whom to trust")
_LOOKS = 5
"""How often an object is read again that others write at the same time."""

log = logging.getLogger(__name__)

NewestBundle = Callable[[], Awaitable[bytes]]
BundleDiff = Callable[[Object, bytes], list[Object]]
"""Gives the JSON patch that an object needs for a bundle to be published by it."""


class WebhookRegistration:
    """The webhooks, as API servers know them."""

    def __init__(
        self,
        transport: Transport,
        target: WebhookTarget,
        *,
        create: bool = False,
        convert: bool = False,
        failure_policy: str = "Fail",
    ) -> None:
        self._transport = transport
        self._target = target
        self._create = create
        self._convert = convert
        self._failure_policy = failure_policy
        self._missed: set[str] = set()

    async def published(self) -> bytes:
        """Give the bundle of the validating configuration; empty where there is none."""
        try:
            found = await self._transport.get(_KINDS[VALIDATING], Key("", VALIDATING))
        except NotFound:
            return b""
        bundles = [_bundle_of(webhook.get("clientConfig")) for webhook in found.get("webhooks") or ()]
        return next(filter(None, bundles), b"")

    async def publish(self, bundle: bytes, newest: NewestBundle) -> bool:
        """Make sure that a bundle is published, or the newest one where that has changed meanwhile.

        Tells whether both configurations are installed. Definitions do not count: there are clusters without them.
        """
        if self._create:
            await self._create_missing(newest)
        installed = True
        for wanted in webhook_configurations(self._target, failure_policy=self._failure_policy):
            name = wanted["metadata"]["name"]
            installed &= await self._settle(_KINDS[name], name, self._webhook_difference(wanted), bundle, newest)
        for name in converted_definitions():
            await self._settle(_DEFINITIONS, name, self._conversion_difference, bundle, newest)
        return installed

    async def _settle(
        self, resource: Resource, name: str, difference: BundleDiff, bundle: bytes, newest: NewestBundle
    ) -> bool:
        """Bring one object to where it publishes a bundle; tell whether it is there."""
        for _ in range(_LOOKS):
            try:
                found = await self._transport.get(resource, Key("", name))
            except NotFound:
                self._miss(resource, name)
                return False
            if not difference(found, bundle):
                return True
            # Read after the object, so that nobody can have published anything newer if the patch succeeds.
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
        raise Conflict(f"{resource.kind} {name} is written by others all the time")

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
        """Say once that something is not installed: webhooks are a choice."""
        if name not in self._missed:
            self._missed.add(name)
            log.info("%s %s is not installed, nothing to fill in", resource.kind, name)

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
        if self._create or (self._convert and is_unconverted(found)):
            unserved = [at for at, version in enumerate(found["spec"]["versions"]) if not version["served"]]
            serve = [{"op": "replace", "path": f"/spec/versions/{at}/served", "value": True} for at in unserved]
            convert = [] if _covers(current, wanted) else [{"op": "add", "path": "/spec/conversion", "value": wanted}]
            return [*convert, *serve]
        client = (current.get("webhook") or {}).get("clientConfig") or {}
        ours = _covers(client, self._target.client_config(CONVERT_PATH))
        if not ours or client.get("caBundle") == encoded_bundle(bundle):
            return []
        path = "/spec/conversion/webhook/clientConfig/caBundle"
        return [{"op": "add", "path": path, "value": encoded_bundle(bundle)}]


def _covers(found: Any, wanted: Any) -> bool:
    """Tell whether everything that is wanted is there; servers add defaults of their own."""
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
