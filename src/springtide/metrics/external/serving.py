"""The external metrics of one process, from certificates to answers, for as long as a block of code lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from springtide.cluster.admission.targets import ServiceTarget
from springtide.cluster.certificates.keeper import ROUND_SECONDS, CertificateKeeper, permissions_of, wall_time
from springtide.cluster.certificates.making import Pair, make_authority, make_serving
from springtide.cluster.certificates.rotation import Terms
from springtide.cluster.clock import Clock
from springtide.cluster.port import Transport
from springtide.cluster.resources import Key
from springtide.cluster.serving import LOOPBACK, Serving, serving
from springtide.metrics.external import access, marking, registration
from springtide.metrics.external.access import Access
from springtide.metrics.external.app import ExternalMetricsApp
from springtide.metrics.external.believing import Believing
from springtide.metrics.external.door import Door
from springtide.metrics.external.marking import LeaderMark
from springtide.metrics.external.registration import ApiServiceRegistration
from springtide.metrics.series import SeriesBook

SECRET_NAME = "springtide-external-metrics-certificates"  # noqa: S105 - where the secret is, not what it is
PERMISSIONS = (
    *registration.PERMISSIONS,
    *access.PERMISSIONS,
    *marking.PERMISSIONS,
    *permissions_of(SECRET_NAME),
)
"""What a replica needs, besides the Role `extension-apiserver-authentication-reader` of kube-system."""

_PROVISIONAL_SECONDS = 86_400


class ExternalMetrics:
    """External metrics that are served."""

    def __init__(
        self, served: Serving, keeper: CertificateKeeper, registration: ApiServiceRegistration, believing: Believing
    ) -> None:
        self.serving = served
        self.keeper = keeper
        self.registration = registration
        self.believing = believing
        self._complete = False

    def problem(self) -> str:
        """Say what is missing until requests can be answered; empty once everything was in place.

        What goes wrong later is logged, and takes no replica out of service: it has other work, too.
        """
        if self._complete:
            return ""
        if not self.keeper.ready.is_set():
            return "the certificates are not made and published yet"
        problem = self.registration.problem or ("" if self.believing.front_proxy else self.believing.problem)
        self._complete = not problem
        return problem

    def ready(self) -> bool:
        """Tell whether the API server has been told to come here, and we know whom to believe."""
        return not self.problem()


@asynccontextmanager
async def external_metrics(
    transport: Transport,
    book: SeriesBook,
    *,
    clock: Clock,
    leading: Callable[[], bool],
    service: ServiceTarget,
    host: str = LOOPBACK,
    port: int = 0,
    pod: str = "",
    create: bool = False,
    terms: Terms | None = None,
    round_seconds: float = ROUND_SECONDS,
) -> AsyncIterator[ExternalMetrics]:
    """Serve the book as `external.metrics.k8s.io/v1beta1` within the block.

    `service` is the Service through which the API server comes here; it is in our own namespace, where the certificates
    are kept, too. `pod` is the name of the pod that this process runs in: while it leads, it bears the label that the
    Service selects by; empty where there is no pod, or only one. `create` makes the APIService where nobody has
    installed it. Nothing is waited for: until everything is in place, `problem` says what is missing.
    """
    door = Door(_provisional(host))
    believing = Believing(transport, door, round_seconds=round_seconds)
    registered = ApiServiceRegistration(transport, service, create=create)
    keeper = CertificateKeeper(
        transport,
        namespace=service.namespace,
        names=service.names,
        publisher=registered,
        terms=terms,
        round_seconds=round_seconds,
        secret_name=SECRET_NAME,
        subject="external metrics",
    )
    up: ExternalMetrics | None = None
    app = ExternalMetricsApp(
        book,
        clock,
        Access(transport, clock),
        front_proxy=lambda: believing.front_proxy,
        leading=leading,
        problem=lambda: up.problem() if up is not None else "starting",
    )
    async with serving(app.asgi(), host=host, port=port, identity=door) as served:
        up = ExternalMetrics(served, keeper, registered, believing)
        tasks = [
            asyncio.create_task(keeper.run(door), name="certificates of external metrics"),
            asyncio.create_task(believing.run(), name="whom external metrics believe"),
        ]
        if pod:
            mark = LeaderMark(transport, Key(service.namespace, pod), leading)
            tasks.append(asyncio.create_task(mark.run(), name="the leader's mark"))
        try:
            yield up
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _provisional(host: str) -> Pair:
    """Make something to show until the real certificate is there; nobody trusts it."""
    now = wall_time()
    authority = make_authority("springtide-provisional", now=now, seconds=_PROVISIONAL_SECONDS)
    return make_serving(authority, (host,), now=now, seconds=_PROVISIONAL_SECONDS)
