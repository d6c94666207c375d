"""The external metrics server of one process, with its certificates, APIService and Endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from springtide.cluster.admission.configurations import ServiceTarget
from springtide.cluster.certificates.clients import ClientVerifyingTls
from springtide.cluster.certificates.issuance import make_provisional
from springtide.cluster.certificates.manager import ROUND_SECONDS, CertificateManager, permissions_of, wall_time
from springtide.cluster.certificates.rotation import CertificateLifetimes
from springtide.cluster.clock import Clock
from springtide.cluster.resources import Key
from springtide.cluster.serving import LOOPBACK, RunningServer, serving
from springtide.cluster.transport import Transport
from springtide.metrics.external import app as app_module
from springtide.metrics.external import leader_endpoints, registration
from springtide.metrics.external.app import AccessReviewer, ExternalMetricsApp
from springtide.metrics.external.leader_endpoints import LeaderEndpoints
from springtide.metrics.external.registration import ApiServiceRegistration
from springtide.metrics.external.request_header import RequestHeaderWatcher
from springtide.metrics.series import SeriesStore

SECRET_NAME = "springtide-external-metrics-certificates"  # noqa: S105 - where the secret is, not what it is
PERMISSIONS = (
    *registration.PERMISSIONS,
    *app_module.PERMISSIONS,
    *leader_endpoints.PERMISSIONS,
    *permissions_of(SECRET_NAME),
)
"""What a replica needs, besides the Role `extension-apiserver-authentication-reader` of kube-system."""


class ExternalMetrics:
    """A running external metrics server."""

    def __init__(
        self,
        served: RunningServer,
        certificates: CertificateManager,
        registration: ApiServiceRegistration,
        request_header: RequestHeaderWatcher,
    ) -> None:
        self.serving = served
        self.certificates = certificates
        self.registration = registration
        self.request_header = request_header
        self._complete = False

    def problem(self) -> str:
        """Return what is missing until the first request can be answered; empty once everything was in place.

        Later problems are logged and do not make the replica unready, because it has other work, too.
        """
        if self._complete:
            return ""
        if not self.certificates.ready.is_set():
            return "the certificates are not issued and published yet"
        problem = self.registration.problem or ("" if self.request_header.front_proxy else self.request_header.problem)
        self._complete = not problem
        return problem

    def ready(self) -> bool:
        """Return whether everything was in place once."""
        return not self.problem()


@asynccontextmanager
async def external_metrics(
    transport: Transport,
    store: SeriesStore,
    *,
    clock: Clock,
    leading: Callable[[], bool],
    service: ServiceTarget,
    host: str = LOOPBACK,
    port: int = 0,
    address: str = "",
    create: bool = False,
    terms: CertificateLifetimes | None = None,
    round_seconds: float = ROUND_SECONDS,
) -> AsyncIterator[ExternalMetrics]:
    """Serve a store as `external.metrics.k8s.io/v1beta1` within the block.

    `service` is the Service through which the API server connects, in the namespace of this process, which also has
    the certificates. `address` is the IP address of the pod of this process, which is written to the Endpoints of the
    Service while the process leads; empty: there is no pod. `create` creates a missing APIService. The block starts at
    once; `problem` returns what is missing until everything is in place.
    """
    tls = ClientVerifyingTls(make_provisional(host, now=wall_time()), required=False)
    request_header = RequestHeaderWatcher(transport, tls, round_seconds=round_seconds)
    registered = ApiServiceRegistration(transport, service, create=create)
    certificates = CertificateManager(
        transport,
        namespace=service.namespace,
        names=service.names,
        publisher=registered,
        terms=terms,
        round_seconds=round_seconds,
        secret_name=SECRET_NAME,
        subject="external metrics",
    )
    running: ExternalMetrics | None = None
    app = ExternalMetricsApp(
        store,
        clock,
        AccessReviewer(transport, clock),
        front_proxy=lambda: request_header.front_proxy,
        leading=leading,
        problem=lambda: running.problem() if running is not None else "starting",
    )
    async with serving(app.asgi(), host=host, port=port, identity=tls) as served:
        running = ExternalMetrics(served, certificates, registered, request_header)
        tasks = [
            asyncio.create_task(certificates.run(tls), name="certificates of external metrics"),
            asyncio.create_task(request_header.run(), name="request header settings"),
        ]
        if address:
            endpoints = LeaderEndpoints(transport, Key(service.namespace, service.name), address, served.port, leading)
            tasks.append(asyncio.create_task(endpoints.run(), name="endpoints of external metrics"))
        try:
            yield running
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
