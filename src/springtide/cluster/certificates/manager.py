"""Manages the certificates of a server, in every replica: one Secret, optimistic concurrency, no leader election.

Every replica reconciles in rounds: read the Secret, publish its CA bundle, serve its certificate, and take the step of
the rotation that is due. A step is a write with the resourceVersion as its precondition, so one of several replicas
succeeds, and the others read the result.

To replace all keys, delete the Secret: the next round creates another one, and publishes its bundle before its
certificate is served.
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
    """Return what a replica needs in its own namespace to manage certificates in a Secret."""
    return (
        Permission(SECRETS, ("get", "patch"), names=(secret_name,), own_namespace=True),
        Permission(SECRETS, ("create",), own_namespace=True),
    )


PERMISSIONS = permissions_of(SECRET_NAME)
"""What a replica needs for the webhooks."""

ROUND_SECONDS = 30.0
"""The resync interval; a bundle that was overwritten is restored after this time at the latest."""
_UNPUBLISHED_RETRY_SECONDS = 3.0
"""The interval while configurations are missing. Installers often create them last, and until they have a bundle, API
servers refuse all writes that they select."""
_RETRIES = Backoff(first=0.2, longest=ROUND_SECONDS)
_STEPS_AT_ONCE = 6
"""How many steps may follow each other without a pause; more are due only if another writer undoes them."""

log = logging.getLogger(__name__)


def wall_time() -> int:
    """Return the instant by wall time, which certificates use even if the cluster has a simulated clock."""
    return int(time.time())


class BundlePublisher(Protocol):
    """Publishes the CA bundle to API servers."""

    async def published(self) -> bytes:
        """Return the bundle that is published now; empty if there is none."""
        ...

    async def publish(self, bundle: bytes, newest: Callable[[], Awaitable[bytes]]) -> bool:
        """Publish a bundle, or the newest one if it has changed meanwhile.

        Returns whether all objects exist from which API servers read it.
        """
        ...


class CertificateManager:
    """Manages the certificates of one replica."""

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
        """Manage certificates for these names in a Secret; `subject` names the server in log lines."""
        self._transport = transport
        self._key = Key(namespace, secret_name)
        self._subject = f"the certificates of {subject}"
        self._names = tuple(names)
        self._publisher = publisher
        self._now = now
        self._terms = terms or CertificateLifetimes()
        self._round_seconds = round_seconds
        self._served: CertificatePair | None = None
        self._published = False
        """Whether all objects existed from which API servers read the bundle."""
        self.ready = asyncio.Event()
        """Set when the bundle of the served certificate is published."""

    async def run(self, identity: TlsIdentity) -> None:
        """Manage the certificates until cancelled; failures are retried with backoff."""
        failures = unsettled = 0
        while True:
            try:
                settled = await self._round(identity)
                failures = 0
            except ClusterError as failure:
                settled = False
                failures += 1
                log.warning("%s could not be reconciled: %s", self._subject, failure)
            except Exception:
                settled = False
                failures += 1
                log.exception("%s: unexpected error", self._subject)
            unsettled = 0 if settled else unsettled + 1
            if settled:
                await asyncio.sleep(
                    self._round_seconds if self._published else min(_UNPUBLISHED_RETRY_SECONDS, self._round_seconds)
                )
            elif (delay := _RETRIES.after(failures or unsettled - _STEPS_AT_ONCE)) > 0:
                await asyncio.sleep(delay)

    async def _round(self, identity: TlsIdentity) -> bool:
        """Publish, serve, and take a step if one is due; return whether none was."""
        secret = await self._read()
        state = self._state_of(secret)
        if state is not None:
            self._published = await self._publisher.publish(state.bundle, self._newest_bundle)
            self._serve(state.serving.pair, identity)
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
            log.warning("the Secret %s is invalid and will be replaced: %s", self._key, failure)
            return None

    def _serve(self, pair: CertificatePair, identity: TlsIdentity) -> None:
        if pair != self._served:
            identity.replace(pair)
            self._served = pair
        self.ready.set()

    async def _newest_bundle(self) -> bytes:
        state = self._state_of(await self._read())
        if state is None:
            raise Conflict(f"the Secret {self._key} was deleted meanwhile")
        return state.bundle

    async def _read(self) -> Object | None:
        try:
            return await self._transport.get(SECRETS, self._key)
        except NotFound:
            return None

    async def _write(self, secret: Object | None, state: CertificateState, step: RotationStep) -> None:
        """Write the next state; on a conflict another replica was faster, and the next round reads what it wrote."""
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
