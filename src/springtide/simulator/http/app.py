"""The ASGI application: every request comes in here, and leaves with an answer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from springtide.cluster.errors import ApiError, BadRequest, NotFound, ServerError, Unauthorized
from springtide.simulator.api.answers import no_such_resource, not_found
from springtide.simulator.api.performing import Perform, User, at_once
from springtide.simulator.api.server import ApiServer
from springtide.simulator.api.timestamps import timestamp
from springtide.simulator.http.absent import absence
from springtide.simulator.http.answer import Answer, answered, refused
from springtide.simulator.http.bodies import decoded
from springtide.simulator.http.dates import Dates
from springtide.simulator.http.discovery import Discovery
from springtide.simulator.http.lists import listed
from springtide.simulator.http.media import accepted, wants_yaml
from springtide.simulator.http.open import open_answer
from springtide.simulator.http.openapi import OpenApi
from springtide.simulator.http.options import flag, list_options
from springtide.simulator.http.remembered import Remembered
from springtide.simulator.http.request import ClientGone, Request
from springtide.simulator.http.reviews import reviewed, virtual_of
from springtide.simulator.http.routes import Place, Target, place_of, target_of, wrong_method
from springtide.simulator.http.tables import TableView, layout_of
from springtide.simulator.http.tables.ages import Ages
from springtide.simulator.http.tables.view import INCLUDED
from springtide.simulator.http.verbs import Verbs
from springtide.simulator.http.views import MetadataOnly, View, Whole
from springtide.simulator.http.virtual import Virtual
from springtide.simulator.http.watching import Watches

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_log = logging.getLogger(__name__)


class ApiApp:
    """The embedded API server, as an ASGI application; its answers bear their own date.

    Close it before its server stops: that ends all watches.
    """

    def __init__(
        self,
        server: ApiServer,
        *,
        authenticate: Callable[[str], User | None],
        perform: Perform = at_once,
        random: Random | None = None,
    ) -> None:
        self.server = server
        self.watches = Watches(server, random or Random())  # noqa: S311 - it only spreads clients in time
        self._authenticate = authenticate
        self._dates = Dates(server.now)
        self._discovery = Discovery(server.catalogue)
        self._openapi = OpenApi(server)
        self._remembered = Remembered()
        self._verbs = Verbs(server, perform)

    def close(self) -> None:
        """End all watches."""
        self.watches.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except ClientGone:
            return
        except ApiError as error:
            answer = refused(error)
        except Exception as error:
            _log.exception("%s %s failed", request.method, request.path)
            answer = refused(ServerError(f"Internal error occurred: {type(error).__name__}"))
        if wants_yaml(request.header("accept")):
            answer = await answer.in_yaml()
        await answer.send(send, self._dates.header())

    async def _answer(self, request: Request) -> Answer:
        parts = [part for part in request.path.split("/") if part]
        if (answer := open_answer(request, parts)) is not None:
            return answer
        user = self._user(request)
        for documents in (self._discovery, self._openapi):
            if (found := documents.answer(request, parts)) is not None:
                return found
        place = place_of(request.path)
        if place is None:
            return self._nowhere(parts, None)
        if (virtual := virtual_of(place)) is not None:
            return await self._review(request, virtual, user)
        try:
            target = target_of(self.server.catalogue, place, request.method)
        except NotFound:
            return self._nowhere(parts, place)
        if target.is_missing:
            raise not_found(target.kind.resource, target.name)
        if request.method == "GET":
            return await self._read(request, target)
        return await self._verbs.write(request, target, user, self._view(request, target))

    def _user(self, request: Request) -> User:
        scheme, _, token = request.header("authorization").partition(" ")
        user = self._authenticate(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise Unauthorized("Unauthorized")
        return user

    def _nowhere(self, parts: list[str], place: Place | None) -> Answer:
        """Answer a request for what is not served: in plain text, unless it is near to something built in."""
        if place is not None:
            if (absent := absence(place)) is not None:
                raise absent
            if place.version in self._discovery.versions(place.group):
                raise no_such_resource()
        if parts[:1] == ["api"] or (parts[:1] == ["apis"] and self._discovery.is_builtin("".join(parts[1:2]))):
            raise no_such_resource()
        return Answer(b"404 page not found\n", 404, "text/plain; charset=utf-8")

    async def _review(self, request: Request, virtual: Virtual, user: User) -> Answer:
        if request.method != "POST":
            raise wrong_method()
        body = decoded(await request.body(), request.header("content-type"), virtual.kind)
        return answered(reviewed(virtual, body.value, user, self._authenticate, now=timestamp(self.server.now())), 201)

    async def _read(self, request: Request, target: Target) -> Answer:
        watch = not target.name and flag(request, "watch") and "watch" in target.kind.verbs
        view = self._view(request, target, watch=bool(watch))
        if target.subresource and target.subresource not in ("status", "scale"):
            raise wrong_method()
        if target.name:
            item = self.server.get(target.kind.resource, target.key, subresource=target.subresource)
            return Answer(view.single(item))
        options = list_options(request)
        if options.watch:
            return await self.watches.watched(request, target, options, view)
        return await listed(self.server, target, options, view)

    def _view(self, request: Request, target: Target, *, watch: bool = False) -> View:
        form = accepted(request.header("accept"), watch=watch)
        if form.projection.startswith("PartialObjectMetadata"):
            return MetadataOnly(form.version)
        if form.projection == "Table":
            include = request.parameter("includeObject") or "Metadata"
            if include not in INCLUDED:
                why = f"Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
                raise BadRequest(f"Unable to convert to Table as requested: includeObject: {why}")
            ages = Ages(self.server.now)
            return TableView(layout_of(self.server, target), ages, version=form.version, include=include)
        return Whole(target.kind, self._remembered)
