"""The external metrics of one process, from certificates to answers, for as long as a block of code lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from springtide.cluster.admission.configurations import ServiceTarget
from springtide.cluster.certificates.issuance import CertificatePair, make_authority, make_serving
from springtide.cluster.certificates.manager import ROUND_SECONDS, CertificateManager, permissions_of, wall_time
from springtide.cluster.certificates.rotation import CertificateLifetimes
from springtide.cluster.clock import Clock
from springtide.cluster.resources import Key
from springtide.cluster.serving import LOOPBACK, RunningServer, serving
from springtide.cluster.transport import Transport
from springtide.metrics.external import app as access
from springtide.metrics.external import leader_label, registration
from springtide.metrics.external.app import AccessReviewer, ExternalMetricsApp
from springtide.metrics.external.leader_label import LeaderLabel
from springtide.metrics.external.registration import ApiServiceRegistration
from springtide.metrics.external.request_header import RequestHeaderTls, RequestHeaderWatcher
from springtide.metrics.series import SeriesStore

SECRET_NAME = "springtide-external-metrics-certificates"  # noqa: S105 - where the secret is, not what it is
PERMISSIONS = (
    *registration.PERMISSIONS,
    *access.PERMISSIONS,
    *leader_label.PERMISSIONS,
    *permissions_of(SECRET_NAME),
)
"""What a replica needs, besides the Role `extension-apiserver-authentication-reader` of kube-system."""

_PROVISIONAL_SECONDS = 86_400


class ExternalMetrics:
    """External metrics that are served."""

    def __init__(
        self,
        served: RunningServer,
        keeper: CertificateManager,
        registration: ApiServiceRegistration,
        believing: RequestHeaderWatcher,
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
    book: SeriesStore,
    *,
    clock: Clock,
    leading: Callable[[], bool],
    service: ServiceTarget,
    host: str = LOOPBACK,
    port: int = 0,
    pod: str = "",
    create: bool = False,
    terms: CertificateLifetimes | None = None,
    round_seconds: float = ROUND_SECONDS,
) -> AsyncIterator[ExternalMetrics]:
    """Serve the book as `external.metrics.k8s.io/v1beta1` within the block.

    `service` is the Service through which the API server comes here; it is in our own namespace, where the certificates
    are kept, too. `pod` is the name of the pod that this process runs in: while it leads, it bears the label that the
    Service selects by; empty where there is no pod, or only one. `create` makes the APIService where nobody has
    installed it. Nothing is waited for: until everything is in place, `problem` says what is missing.
    """
    door = RequestHeaderTls(_provisional(host))
    believing = RequestHeaderWatcher(transport, door, round_seconds=round_seconds)
    registered = ApiServiceRegistration(transport, service, create=create)
    keeper = CertificateManager(
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
        AccessReviewer(transport, clock),
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
            mark = LeaderLabel(transport, Key(service.namespace, pod), leading)
            tasks.append(asyncio.create_task(mark.run(), name="the leader's mark"))
        try:
            yield up
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _provisional(host: str) -> CertificatePair:
    """Make something to show until the real certificate is there; nobody trusts it."""
    now = wall_time()
    authority = make_authority("springtide-provisional", now=now, seconds=_PROVISIONAL_SECONDS)
    return make_serving(authority, (host,), now=now, seconds=_PROVISIONAL_SECONDS)
