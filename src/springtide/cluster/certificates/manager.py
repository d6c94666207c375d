"""Keeps the certificates of a server, in every replica: one Secret, optimistic locking, no leader.

Every replica does the same round: read the Secret, publish the bundle that stands in it, show its certificate, and
take the next step if one is due. A step is a write that is conditional on what was read, so of several replicas that
want the same step one succeeds, and the others read what it has done.

To start anew with fresh keys, delete the Secret: the next round makes another, which is published before it is shown.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from springtide.cluster.certificates.issuance import CertificatePair
from springtide.cluster.certificates.rotation import (
    CertificateLifetimes,
    CertificateState,
    InvalidSecret,
    RotationStep,
    after_step,
    initial_state,
    next_step,
    read_secret,
    secret_data,
)
from springtide.cluster.clock import Backoff
from springtide.cluster.controller import Permission
from springtide.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.serving import TlsIdentity
from springtide.cluster.transport import Patch, Precondition, Transport, Write

SECRETS = Resource("", "v1", "secrets", "Secret")
SECRET_NAME = "springtide-webhook-certificates"  # noqa: S105 - where the secret is, not what it is
FIELD_MANAGER = "springtide-webhooks"


def permissions_of(secret_name: str) -> tuple[Permission, ...]:
    """Give what a replica needs in its own namespace to keep certificates in a Secret."""
    return (
        Permission(SECRETS, ("get", "patch"), names=(secret_name,), own_namespace=True),
        Permission(SECRETS, ("create",), own_namespace=True),
    )


PERMISSIONS = permissions_of(SECRET_NAME)
"""What a replica needs for the webhooks."""

ROUND_SECONDS = 30.0
"""How often everything is looked at; a bundle that somebody has overwritten is right again after this time."""
_UNPUBLISHED_RETRY_SECONDS = 3.0
"""Seconds until the next look where nobody could be told yet. Installers often create configurations after everything
else, and until they have a bundle API servers refuse what they are about."""
_RETRIES = Backoff(first=0.2, longest=ROUND_SECONDS)
_STEPS_AT_ONCE = 6
"""How many steps may follow each other without a pause; more are never due, unless somebody undoes them."""

log = logging.getLogger(__name__)


def wall_time() -> int:
    """Give the instant by the world's clock, which certificates live by whatever the cluster's is."""
    return int(time.time())


class BundlePublisher(Protocol):
    """Tells API servers which authorities to trust."""

    async def published(self) -> bytes:
        """Give the bundle that is published now; empty where there is none."""
        ...

    async def publish(self, bundle: bytes, newest: Callable[[], Awaitable[bytes]]) -> bool:
        """Make sure that a bundle is published, or the newest one where that has changed meanwhile.

        Tells whether all configurations are there that API servers learn it from.
        """
        ...


class CertificateManager:
    """The certificates, as one replica keeps them."""

    def __init__(
        self,
        transport: Transport,
        *,
        namespace: str,
        names: Sequence[str],
        publisher: BundlePublisher,
        now: Callable[[], int] = wall_time,
        terms: CertificateLifetimes | None = None,
        round_seconds: float = ROUND_SECONDS,
        secret_name: str = SECRET_NAME,
        subject: str = "the webhooks",
    ) -> None:
        """Keep certificates for these names in a Secret; `subject` is how logs call what they are for."""
        self._transport = transport
        self._key = Key(namespace, secret_name)
        self._subject = f"the certificates of {subject}"
        self._names = tuple(names)
        self._publisher = publisher
        self._now = now
        self._terms = terms or CertificateLifetimes()
        self._round_seconds = round_seconds
        self._shown: CertificatePair | None = None
        self._told = False
        """Whether all configurations were there that API servers learn the bundle from."""
        self.ready = asyncio.Event()
        """Set when API servers are told to trust what is shown."""

    async def run(self, identity: TlsIdentity) -> None:
        """Keep the certificates until cancelled; whatever goes wrong is tried again."""
        failures = unsettled = 0
        while True:
            try:
                settled = await self._round(identity)
                failures = 0
            except ClusterError as failure:
                settled = False
                failures += 1
                log.warning("%s could not be looked at: %s", self._subject, failure)
            except Exception:
                settled = False
                failures += 1
                log.exception("%s could not be kept", self._subject)
            unsettled = 0 if settled else unsettled + 1
            if settled:
                await asyncio.sleep(
                    self._round_seconds if self._told else min(_UNPUBLISHED_RETRY_SECONDS, self._round_seconds)
                )
            elif (delay := _RETRIES.after(failures or unsettled - _STEPS_AT_ONCE)) > 0:
                await asyncio.sleep(delay)

    async def _round(self, identity: TlsIdentity) -> bool:
        """Publish, show, and take a step; tell whether there was nothing to do."""
        secret = await self._read()
        state = self._state_of(secret)
        if state is not None:
            self._told = await self._publisher.publish(state.bundle, self._newest_bundle)
            self._show(state.serving.pair, identity)
        now = self._now()
        step = next_step(state, now, self._names, self._terms)
        if step is RotationStep.WAIT:
            return True
        if state is None or step is RotationStep.BEGIN:
            made = initial_state(now, self._names, self._terms, await self._publisher.published())
        else:
            made = after_step(step, state, now, self._names, self._terms)
        await self._write(secret, made, step)
        return False

    def _state_of(self, secret: Object | None) -> CertificateState | None:
        try:
            return None if secret is None else read_secret(secret)
        except InvalidSecret as failure:
            log.warning("the Secret %s is not as we wrote it, and is made anew: %s", self._key, failure)
            return None

    def _show(self, pair: CertificatePair, identity: TlsIdentity) -> None:
        if pair != self._shown:
            identity.replace(pair)
            self._shown = pair
        self.ready.set()

    async def _newest_bundle(self) -> bytes:
        state = self._state_of(await self._read())
        if state is None:
            raise Conflict(f"the Secret {self._key} has gone meanwhile")
        return state.bundle

    async def _read(self) -> Object | None:
        try:
            return await self._transport.get(SECRETS, self._key)
        except NotFound:
            return None

    async def _write(self, secret: Object | None, state: CertificateState, step: RotationStep) -> None:
        """Write the next state, unless somebody else was faster; what counts then is what they have written."""
        write = Write(FIELD_MANAGER, f"{self._subject}: {step}")
        data = secret_data(state)
        try:
            if secret is None:
                body: Object = {
                    "metadata": {"name": self._key.name, "namespace": self._key.namespace},
                    "type": "Opaque",
                    "data": data,
                }
                await self._transport.create(SECRETS, body, write, namespace=self._key.namespace)
            else:
                gone = dict.fromkeys(name for name in secret.get("data") or {} if name not in data)
                await self._transport.patch(
                    SECRETS,
                    self._key,
                    Patch.merge({"data": {**gone, **data}}),
                    write,
                    precondition=Precondition(version=secret["metadata"]["resourceVersion"]),
                )
        except (AlreadyExists, Conflict):
            return
        log.info("%s: %s", self._subject, step)
