"""Makes calls into the API server when the webhooks that must be asked have agreed.

The call is made, stops at a question, and is made again with the answer, until it goes through: what takes effect is
what was agreed to, whatever others have written while the webhooks thought about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from springtide.cluster.errors import ApiError
from springtide.simulator.api.answers import conflict
from springtide.simulator.api.performing import Performed, User
from springtide.simulator.api.reviews import Review, ReviewNeeded
from springtide.simulator.api.server import ApiServer
from springtide.simulator.api.storage import CollectionId
from springtide.simulator.webhooks.asking import Ask, Asking
from springtide.simulator.webhooks.caller import WebhookCaller
from springtide.simulator.webhooks.hearing import RequestHearing
from springtide.simulator.webhooks.registrations import Registrations

_SERVICES = CollectionId("", "services")
_STAGES = 3
_RETRIES = 5
"""How often a request is put anew because others have changed the object meanwhile, as in a kube-apiserver."""
_MOST_TRIES = 1 + _STAGES * (1 + _RETRIES)
_AT_ONCE = 16
"""How many objects of one request are under review at a time."""

T = TypeVar("T")


class Reviews:
    """Asks the admission webhooks of a server; `perform` is a `springtide.simulator.api.performing.Perform`.

    Use it as a context: it keeps connections. `ask` takes the place of the network.
    """

    def __init__(self, server: ApiServer, ask: Ask | None = None) -> None:
        self._server = server
        self._registrations = Registrations(server)
        self._caller = WebhookCaller(lambda key: server.find(_SERVICES, key))
        self._asking = Asking(server, self._registrations, ask or self._caller.ask)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._caller.__aexit__(kind, error, trace)

    async def perform(self, verb: Callable[[], T], user: User) -> Performed[T]:
        """Make a call; it may be tried several times, and takes effect once."""
        if not self._registrations.any():
            return Performed(verb())
        hearing = RequestHearing(self._server.now(), self._asking.concerns)
        try:
            return await self._perform(verb, user, hearing)
        except ApiError as refusal:
            refusal.warnings = tuple(hearing.warnings)
            raise

    async def _perform(self, verb: Callable[[], T], user: User, hearing: RequestHearing) -> Performed[T]:
        reviews: tuple[Review, ...] = ()
        for _ in range(_MOST_TRIES):
            hearing.begin()
            try:
                with self._server.reviewing(hearing):
                    return Performed(verb(), tuple(hearing.warnings))
            except ReviewNeeded as needed:
                reviews = needed.reviews
            await self._put(reviews, user, hearing)
        matter = reviews[0].matter
        raise conflict(matter.resource, matter.key.name)

    async def _put(self, reviews: tuple[Review, ...], user: User, hearing: RequestHearing) -> None:
        """Have questions answered; of several refusals, the first counts."""
        for start in range(0, len(reviews), _AT_ONCE):
            asked = (self._asking.put(review, user, hearing) for review in reviews[start : start + _AT_ONCE])
            for outcome in await asyncio.gather(*asked, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    raise outcome
