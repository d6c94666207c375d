"""The ASGI application: authenticates a request, resolves its path, and returns the response."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable
from email.utils import formatdate
from random import Random
from typing import TYPE_CHECKING

from springtide.apiserver.admission import User, WriteExecutor, execute_directly
from springtide.apiserver.builtin import kubernetes_version
from springtide.apiserver.errors import no_such_resource, not_found
from springtide.apiserver.http.auth import ReviewKind, answer_review, review_kind_of
from springtide.apiserver.http.bodies import BodyDecoder, decoded
from springtide.apiserver.http.discovery import Discovery
from springtide.apiserver.http.list_watch import WatchStreams, list_response
from springtide.apiserver.http.openapi import OpenApi
from springtide.apiserver.http.requests import ClientDisconnected, HttpApiRequest, flag, list_options
from springtide.apiserver.http.responses import Response, error_response, json_response, negotiate, wants_yaml
from springtide.apiserver.http.routes import (
    RequestTarget,
    ResourcePath,
    missing_feature_error,
    parse_path,
    resolve_target,
    wrong_method,
)
from springtide.apiserver.http.tables import TableView, layout_of
from springtide.apiserver.http.tables.cells import AgeFormatter
from springtide.apiserver.http.tables.view import INCLUDED
from springtide.apiserver.http.views import EventLineCache, MetadataView, ObjectView, WholeView
from springtide.apiserver.http.writes import WriteHandlers
from springtide.apiserver.server import ApiServer
from springtide.apiserver.values import timestamp
from springtide.cluster.errors import ApiError, BadRequest, NotFound, ServerError, Unauthorized

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


_HEALTH = ("healthz", "livez", "readyz")
_CHECKS = ("ping", "storage", "watches")

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}

_log = logging.getLogger(__name__)


class DateHeader:
    """Formats the cluster's time for the header `Date`, from which clients learn the time; cached for a second."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._second: int | None = None
        self._written = b""

    def header(self) -> bytes:
        """Return the current time as an HTTP date."""
        now = self._now()
        if now != self._second:
            self._second, self._written = now, formatdate(now, usegmt=True).encode()
        return self._written


def unauthenticated_response(request: HttpApiRequest, parts: list[str]) -> Response | None:
    """Return the response to a health or version request, which needs no token; None for others."""
    if parts == ["version"]:
        return json_response(_version())
    if parts and parts[0] in _HEALTH and (len(parts) == 1 or (len(parts) == 2 and parts[1] in _CHECKS)):
        return Response(_health(request, parts).encode(), media="text/plain; charset=utf-8")
    return None


def _health(request: HttpApiRequest, parts: list[str]) -> str:
    if len(parts) > 1 or "verbose" not in request.query:
        return "ok"
    return "".join(f"[+]{check} ok\n" for check in _CHECKS) + f"{parts[0]} check passed\n"


def _version() -> dict[str, str]:
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{version}+springtide",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "cpython",
        "platform": f"{platform.system().lower()}/{_MACHINES.get(platform.machine(), platform.machine())}",
    }


class ApiApp:
    """The API server as an ASGI application.

    Close it before the ASGI server stops: that ends all watches.
    """

    def __init__(
        self,
        server: ApiServer,
        *,
        authenticate: Callable[[str], User | None],
        executor: WriteExecutor = execute_directly,
        random: Random | None = None,
    ) -> None:
        self.server = server
        self.watches = WatchStreams(server, random or Random())  # noqa: S311 - it only spreads clients in time
        self._authenticate = authenticate
        self._date = DateHeader(server.now)
        self._discovery = Discovery(server.catalogue)
        self._openapi = OpenApi(server)
        self._line_cache = EventLineCache()
        self._bodies = BodyDecoder()
        self._verbs = WriteHandlers(server, executor, self._bodies)

    def close(self) -> None:
        """End all watches."""
        self.watches.close()
        self._bodies.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            return
        request = HttpApiRequest(scope, receive)
        try:
            answer = await self._answer(request)
        except ClientDisconnected:
            return
        except ApiError as error:
            answer = error_response(error)
        except Exception as error:
            _log.exception("%s %s failed", request.method, request.path)
            answer = error_response(ServerError(f"Internal error occurred: {type(error).__name__}"))
        if wants_yaml(request.header("accept")):
            answer = await answer.in_yaml()
        await answer.send(send, self._date.header())

    async def _answer(self, request: HttpApiRequest) -> Response:
        parts = [part for part in request.path.split("/") if part]
        if (answer := unauthenticated_response(request, parts)) is not None:
            return answer
        user = self._user(request)
        for documents in (self._discovery, self._openapi):
            if (found := documents.answer(request, parts)) is not None:
                return found
        place = parse_path(request.path)
        if place is None:
            return self._not_served(parts, None)
        if (review_kind := review_kind_of(place)) is not None:
            return await self._review(request, review_kind, user)
        try:
            target = resolve_target(self.server.catalogue, place, request.method)
        except NotFound:
            return self._not_served(parts, place)
        if target.is_missing:
            raise not_found(target.kind.resource, target.name)
        if request.method == "GET":
            return await self._read(request, target)
        return await self._verbs.write(request, target, user, self._view(request, target))

    def _user(self, request: HttpApiRequest) -> User:
        scheme, _, token = request.header("authorization").partition(" ")
        user = self._authenticate(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise Unauthorized("Unauthorized")
        return user

    def _not_served(self, parts: list[str], place: ResourcePath | None) -> Response:
        """Respond to a path that is not served: as a `Status` if it is near a built-in one, otherwise as plain text."""
        if place is not None:
            if (error := missing_feature_error(place)) is not None:
                raise error
            if place.version in self._discovery.versions(place.group):
                raise no_such_resource()
        if parts[:1] == ["api"] or (parts[:1] == ["apis"] and self._discovery.is_builtin("".join(parts[1:2]))):
            raise no_such_resource()
        return Response(b"404 page not found\n", 404, "text/plain; charset=utf-8")

    async def _review(self, request: HttpApiRequest, review_kind: ReviewKind, user: User) -> Response:
        if request.method != "POST":
            raise wrong_method()
        media = request.header("content-type")
        body = await self._bodies.run(lambda raw: decoded(raw, media, review_kind.kind), await request.body())
        return json_response(
            answer_review(review_kind, body.value, user, self._authenticate, now=timestamp(self.server.now())), 201
        )

    async def _read(self, request: HttpApiRequest, target: RequestTarget) -> Response:
        watch = not target.name and flag(request, "watch") and "watch" in target.kind.verbs
        view = self._view(request, target, watch=bool(watch))
        if target.subresource and target.subresource not in ("status", "scale"):
            raise wrong_method()
        if target.name:
            item = self.server.get(target.kind.resource, target.key, subresource=target.subresource)
            return Response(view.single(item))
        options = list_options(request)
        if options.watch:
            return await self.watches.watch_response(request, target, options, view)
        return await list_response(self.server, target, options, view)

    def _view(self, request: HttpApiRequest, target: RequestTarget, *, watch: bool = False) -> ObjectView:
        form = negotiate(request.header("accept"), watch=watch)
        if form.projection.startswith("PartialObjectMetadata"):
            return MetadataView(form.version)
        if form.projection == "Table":
            include = request.parameter("includeObject") or "Metadata"
            if include not in INCLUDED:
                why = f"Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
                raise BadRequest(f"Unable to convert to Table as requested: includeObject: {why}")
            ages = AgeFormatter(self.server.now)
            return TableView(layout_of(self.server, target), ages, version=form.version, include=include)
        return WholeView(target.kind, self._line_cache)
