"""The aggregated API as an ASGI application: discovery and values for whoever the API server vouches for.

`/healthz`, `/livez` and `/readyz` answer anybody; they tell nothing but whether the server works. Discovery is answered
by every replica. Values are told by the one that leads, for it alone has them: the others answer 503, so that an
autoscaler leaves everything as it is and asks again.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from springtide.cluster.clock import Clock
from springtide.cluster.errors import ApiError, MethodNotAllowed, NotFound, ServerError
from springtide.cluster.resources import Object
from springtide.metrics.external.access import Access, Asked
from springtide.metrics.external.documents import GROUP, PATH, VERSION, group, group_list, resource_list, value_list
from springtide.metrics.external.front_proxy import Caller, FrontProxy
from springtide.metrics.external.selectors import LabelSelector
from springtide.metrics.series import SeriesBook

_DISCOVERY: dict[str, Callable[[], Object]] = {
    "/apis": group_list,
    f"/apis/{GROUP}": group,
    PATH: resource_list,
}


class ExternalMetricsApp:
    """Answers requests from a book of series."""

    def __init__(
        self,
        book: SeriesBook,
        clock: Clock,
        access: Access,
        *,
        front_proxy: Callable[[], FrontProxy | None],
        leading: Callable[[], bool],
        problem: Callable[[], str],
    ) -> None:
        self._book = book
        self._clock = clock
        self._access = access
        self._front_proxy = front_proxy
        self._leading = leading
        self._problem = problem

    def asgi(self) -> Starlette:
        """Make the application."""
        return Starlette(
            routes=[
                Route("/healthz", self._alive),
                Route("/livez", self._alive),
                Route("/readyz", self._ready),
                Route("/{path:path}", self._guarded, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
            ]
        )

    async def _alive(self, request: Request) -> Response:  # noqa: ARG002
        return PlainTextResponse("ok")

    async def _ready(self, request: Request) -> Response:  # noqa: ARG002
        problem = self._problem()
        return PlainTextResponse(problem or "ok", 503 if problem else 200)

    async def _guarded(self, request: Request) -> Response:
        """Find out who asks, whether they may, and what the answer is; whatever fails is told as Kubernetes does."""
        try:
            asked = _asked(request.scope["path"])
            await self._access.check(self._caller(request), asked)
            if request.method not in ("GET", "HEAD") or request.query_params.get("watch", "") in ("1", "true"):
                raise MethodNotAllowed(f"external metrics can only be read, one request at a time: no {request.method}")
            return JSONResponse(self._answer(request, asked))
        except ApiError as failure:
            later = {} if failure.retry_after is None else {"Retry-After": str(int(failure.retry_after))}
            return JSONResponse(failure.status(), failure.code, headers=later)

    def _caller(self, request: Request) -> Caller:
        front_proxy = self._front_proxy()
        if front_proxy is None:
            raise _unavailable("it is not known yet whom to believe: the cluster has not been asked successfully")
        tls = request.scope.get("extensions", {}).get("tls", {})
        certificate = next(iter(tls.get("client_cert_chain", ())), "")
        # Names of people are not always ASCII; what ASGI servers hand on are the bytes as they came.
        headers = [
            (name, value.encode("latin-1").decode("utf-8", "replace")) for name, value in request.headers.items()
        ]
        return front_proxy.caller(certificate, headers, self._clock.now())

    def _answer(self, request: Request, asked: Asked) -> Object:
        if asked.resource:
            if not self._leading():
                raise _unavailable(
                    "this replica does not lead and has no values; the Service should lead to the leader"
                )
            selector = LabelSelector.parse(request.query_params.get("labelSelector", ""))
            now = self._clock.now()
            return value_list(self._book, asked.resource, asked.namespace, selector.matches, now)
        document = _DISCOVERY.get(asked.path)
        if document is None:
            raise NotFound("the server could not find the requested resource")
        return document()


def _asked(path: str) -> Asked:
    """Read from a path what is asked for."""
    path = path.rstrip("/") or "/"
    match path.removeprefix(f"{PATH}/").split("/"):
        case ["namespaces", namespace, metric] if path.startswith(f"{PATH}/") and namespace and metric:
            return Asked(path, namespace, GROUP, VERSION, metric)
        case _:
            return Asked(path)


def _unavailable(words: str) -> ServerError:
    return ServerError(words, code=503, reason="ServiceUnavailable", retry_after=1)
