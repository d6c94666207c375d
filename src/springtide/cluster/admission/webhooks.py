"""The webhooks of one process, from certificates to answers, for as long as a block of code lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from springtide.cluster.admission.app import admission_app
from springtide.cluster.admission.registration import Registration
from springtide.cluster.admission.targets import Target, UrlTarget
from springtide.cluster.certificates.keeper import ROUND_SECONDS, CertificateKeeper, wall_time
from springtide.cluster.certificates.making import Pair, make_authority, make_serving
from springtide.cluster.certificates.rotation import Terms
from springtide.cluster.compute import ThreadCompute
from springtide.cluster.port import Transport
from springtide.cluster.serving import LOOPBACK, Serving, TlsIdentity, serving

_THREADS = 2
_PROVISIONAL_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Webhooks that are up."""

    serving: Serving
    target: Target
    keeper: CertificateKeeper

    def ready(self) -> bool:
        """Tell whether API servers are told where we are and whom to trust."""
        return self.keeper.ready.is_set()

    async def until_ready(self) -> None:
        """Wait until that is so."""
        await self.keeper.ready.wait()


@asynccontextmanager
async def webhooks(
    transport: Transport,
    *,
    namespace: str,
    target: Target | None = None,
    host: str = LOOPBACK,
    port: int = 0,
    now: Callable[[], int] = wall_time,
    default_zone: str = "UTC",
    create: bool = False,
    convert: bool = False,
    failure_policy: str = "Fail",
    terms: Terms | None = None,
    round_seconds: float = ROUND_SECONDS,
) -> AsyncIterator[Webhooks]:
    """Serve the webhooks within the block.

    `target` is how API servers reach them; None: at the address that is served, which suits an API server on the same
    machine. `now` is the instant that objects are judged at; certificates live by the world's clock in any case.
    `create` registers the webhooks where nobody has installed them. `convert` serves all versions of the kinds that we
    convert, where the CRDs are ours and nobody else converts them; `create` means that too. Nothing is waited for:
    until certificates are there and published, `ready` says no.
    """
    compute = ThreadCompute(_THREADS)
    app = admission_app(compute, now, default_zone=default_zone)
    identity = TlsIdentity(_provisional(host))
    try:
        async with serving(app, host=host, port=port, identity=identity) as served:
            reached = target or UrlTarget(served.url)
            registration = Registration(
                transport, reached, create=create, convert=convert, failure_policy=failure_policy
            )
            keeper = CertificateKeeper(
                transport,
                namespace=namespace,
                names=reached.names,
                publisher=registration,
                terms=terms,
                round_seconds=round_seconds,
            )
            keeping = asyncio.create_task(keeper.run(identity), name="certificates of the webhooks")
            try:
                yield Webhooks(served, reached, keeper)
            finally:
                keeping.cancel()
                with suppress(asyncio.CancelledError):
                    await keeping
    finally:
        compute.close()


def _provisional(host: str) -> Pair:
    """Make something to show until the real certificate is there; nobody trusts it."""
    now = wall_time()
    authority = make_authority("springtide-provisional", now=now, seconds=_PROVISIONAL_SECONDS)
    return make_serving(authority, (host,), now=now, seconds=_PROVISIONAL_SECONDS)
