"""One request on its way: what it has drawn, and what it has been answered, from one try to the next.

Asks the webhooks that a review concerns: those that change objects one after the other, the others all at once.

Makes calls into the API server when the webhooks that must be asked have agreed.

The call is made, stops at a question, and is made again with the answer, until it goes through: what takes effect is
what was agreed to, whatever others have written while the webhooks thought about it.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

from springtide.apiserver import match_conditions
from springtide.apiserver.admission import AdmissionPending, AdmissionRequest, AdmissionStage, ExecutedWrite, User
from springtide.apiserver.admission_plugins import NAMESPACES
from springtide.apiserver.errors import conflict, forbidden, not_found
from springtide.apiserver.kinds import collection_id
from springtide.apiserver.metadata import normalized
from springtide.apiserver.patches import json_patch
from springtide.apiserver.server import ApiServer
from springtide.apiserver.storage import CollectionId
from springtide.apiserver.strategy import ServerMetadata
from springtide.apiserver.values import deep_copy
from springtide.apiserver.webhooks import messages
from springtide.apiserver.webhooks.client import WebhookCaller
from springtide.apiserver.webhooks.configurations import (
    Webhook,
    WebhookConfigurations,
    WebhookInvocation,
    invocation,
    is_exempt,
)
from springtide.apiserver.webhooks.messages import (
    WebhookCallFailed,
    call_failed,
    denied,
    dry_run_unsupported,
    internal_error,
)
from springtide.cluster.errors import ApiError, BadRequest
from springtide.cluster.resources import Key, Object, Resource


class ReinvocationTracker:
    """Which webhooks are to see the object again, because somebody has changed it after them."""

    def __init__(self) -> None:
        self._asked: dict[str, None] = {}
        self._again: set[str] = set()
        self._left: Object | None = None

    def asked(self, uid: str) -> None:
        """Take note of a webhook that wants to see later changes."""
        self._asked[uid] = None

    def changed(self) -> None:
        """Take note that the object has changed: whoever has seen it is to see it again."""
        self._again.update(self._asked)
        self._asked.clear()

    def ended(self, left: Object | None) -> None:
        """Take note of what the object is after a round."""
        self._left = left

    def reopened(self, item: Object | None) -> bool:
        """Tell whether another round is needed, given what the cluster has made of the object."""
        if item != self._left:
            self.changed()
        return bool(self._again)

    def is_due(self, uid: str) -> bool:
        """Tell whether a webhook is to see the object again."""
        return uid in self._again


class WebhookAdmissionContext:
    """The hearing of one request; `concerned` tells whether there is anybody to ask."""

    def __init__(self, now: int, concerned: Callable[[AdmissionRequest], bool]) -> None:
        self.now = now
        self.warnings: dict[str, None] = {}
        """What the user is warned of, each thing once."""
        self.rounds = ReinvocationTracker()
        self._concerned = concerned
        self._answers: list[tuple[AdmissionRequest, Object | None]] = []
        self._births: list[ServerMetadata] = []
        self._drawn = 0

    def begin(self) -> None:
        """Begin a try: what the last one drew is drawn again."""
        self._drawn = 0

    def birth(self, draw: Callable[[], ServerMetadata]) -> ServerMetadata:
        """Give what the server gives to a new object: the same in every try."""
        if self._drawn == len(self._births):
            fresh = draw()
            suffix = fresh.suffix()
            self._births.append(ServerMetadata(fresh.uid, fresh.created, lambda: suffix))
        self._drawn += 1
        return self._births[self._drawn - 1]

    def heard(self, review: AdmissionRequest) -> Object | None:
        """Give the object as reviewers leave it; `ReviewNeeded` where they have not been asked."""
        for known, answer in self._answers:
            if known == review:
                return review.new if answer is known.new else answer
        if not self._is_open(review):
            return review.new
        raise AdmissionPending(review)

    def answer(self, review: AdmissionRequest, left: Object | None) -> None:
        """Take note of an answer: the object as reviewers leave it."""
        self._answers.append((review, left))

    def _is_open(self, review: AdmissionRequest) -> bool:
        again = review.stage is AdmissionStage.REINVOKING
        return self._concerned(review) and (not again or self.rounds.reopened(review.new))


_log = logging.getLogger(__name__)

SendReview: TypeAlias = Callable[[Object, bytes, int], Awaitable[bytes]]
"""Sends a review to a `clientConfig` and gives the answer within so many seconds; `CallFailed` where there is none."""


class WebhookDispatcher:
    """Puts reviews to the webhooks that are registered with a server."""

    def __init__(self, server: ApiServer, registrations: WebhookConfigurations, ask: SendReview) -> None:
        self._server = server
        self._registrations = registrations
        self._ask = ask

    def concerns(self, review: AdmissionRequest) -> bool:
        """Tell whether any webhook may want to hear of this."""
        if is_exempt(review.matter.resource):
            return False
        return any(self._invocation(webhook, review) is not None for webhook in self._webhooks(review))

    async def put(self, review: AdmissionRequest, user: User, hearing: WebhookAdmissionContext) -> None:
        """Ask about a request and note the answer; raises what the request is refused with."""
        if review.stage is AdmissionStage.VALIDATING:
            await self._agreed(review, user, hearing)
            hearing.answer(review, review.new)
        else:
            hearing.answer(review, await self._amended(review, user, hearing))

    async def _amended(self, review: AdmissionRequest, user: User, hearing: WebhookAdmissionContext) -> Object | None:
        """Ask one webhook after the other; each sees what those before it have made of the object."""
        rounds, current = hearing.rounds, review
        for webhook in self._webhooks(review):
            if review.stage is AdmissionStage.REINVOKING and not rounds.is_due(webhook.uid):
                continue
            invoked = self._invocation(webhook, current)
            if invoked is None:
                continue
            left = await self._changed(invoked, current, user, hearing)
            if left != current.new:
                current = replace(current, new=left)
                rounds.changed()
            if webhook.reinvoked:
                rounds.asked(webhook.uid)
        rounds.ended(current.new)
        return current.new

    async def _agreed(self, review: AdmissionRequest, user: User, hearing: WebhookAdmissionContext) -> None:
        """Ask all webhooks at once; of several refusals, that of the first webhook counts."""
        invoked = [each for webhook in self._webhooks(review) if (each := self._invocation(webhook, review))]
        asked = (self._verdict(each, review, user, hearing) for each in invoked)
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _changed(
        self, invoked: WebhookInvocation, review: AdmissionRequest, user: User, hearing: WebhookAdmissionContext
    ) -> Object | None:
        """Give the object as one webhook leaves it."""
        verdict = await self._verdict(invoked, review, user, hearing)
        if verdict is None or not verdict.operations:
            return review.new
        if review.new is None:
            words = "attempted to modify the object, which is not supported for this operation"
            raise internal_error(f'admission webhook "{invoked.webhook.name}" {words}')
        told = self._in_version(review.new, invoked.resource, review)
        try:
            patched = _patched(told, verdict.operations)
        except ApiError as error:
            words = f"answered with a patch that does not fit the object: {error}"
            raise internal_error(f'admission webhook "{invoked.webhook.name}" {words}') from None
        return self._in_version(self._completed(patched, invoked.resource), review.matter.resource, review)

    async def _verdict(
        self, invoked: WebhookInvocation, review: AdmissionRequest, user: User, hearing: WebhookAdmissionContext
    ) -> messages.WebhookVerdict | None:
        """Ask one webhook; None where it does not want to be, or cannot be and does not insist."""
        webhook = invoked.webhook
        new, old = (
            None if item is None else self._in_version(item, invoked.resource, review)
            for item in (review.new, review.old)
        )
        uid = str(uuid.uuid4())
        request = messages.admission_request(review, invoked, user, uid, new, old)
        if not self._wants(webhook, request, review):
            return None
        if review.matter.dry_run and not webhook.dry_run:
            raise dry_run_unsupported(webhook.name)
        try:
            version = messages.version_for(webhook.review_versions)
            body = await self._ask(webhook.client, messages.encode_review(version, request), webhook.timeout)
            verdict = messages.decode_verdict(
                body, version, uid, may_patch=review.stage is not AdmissionStage.VALIDATING
            )
        except WebhookCallFailed as failure:
            if not webhook.ignores_failures:
                raise call_failed(webhook.name, failure) from None
            _log.warning("webhook %s failed, and its failure policy is Ignore: %s", webhook.name, failure)
            return None
        hearing.warnings |= dict.fromkeys(verdict.warnings)
        if not verdict.allowed:
            raise denied(
                webhook.name,
                code=verdict.code,
                reason=verdict.reason,
                message=verdict.message,
                details=verdict.details,
            )
        return verdict

    def _wants(self, webhook: Webhook, request: Object, review: AdmissionRequest) -> bool:
        if not webhook.conditions:
            return True
        shown: dict[str, Any] = {name: part for name, part in request.items() if name not in ("object", "oldObject")}
        try:
            return match_conditions.conditions_hold(webhook.conditions, request["object"], request["oldObject"], shown)
        except match_conditions.ConditionFailed as failure:
            if webhook.ignores_failures:
                return False
            raise forbidden(review.matter.resource, review.matter.key.name, str(failure)) from None

    def _webhooks(self, review: AdmissionRequest) -> tuple[Webhook, ...]:
        if review.stage is AdmissionStage.VALIDATING:
            return self._registrations.validating()
        return self._registrations.mutating()

    def _invocation(self, webhook: Webhook, review: AdmissionRequest) -> WebhookInvocation | None:
        return invocation(webhook, review, self._versions, self._namespace_labels)

    def _versions(self, resource: Resource) -> list[Resource]:
        """Give the resource in all versions in which it is served."""
        identity = collection_id(resource)
        return [kind.resource for kind in self._server.catalogue.all() if collection_id(kind.resource) == identity]

    def _namespace_labels(self, name: str) -> Mapping[str, str]:
        namespace = self._server.find(NAMESPACES, Key("", name))
        if namespace is None:
            raise not_found("namespaces", name)
        labels: Mapping[str, str] = namespace["metadata"].get("labels") or {}
        return labels

    def _completed(self, item: Object, resource: Resource) -> Object:
        """Give an object with the defaults of its kind; what is no object of it, such as a scale, as it is."""
        kind = self._server.catalogue.find(resource)
        return kind.apply_defaults(deep_copy(item)) if item["kind"] == resource.kind else item

    def _in_version(self, item: Object, resource: Resource, review: AdmissionRequest) -> Object:
        """Give an object in another version of its resource; what is no object of it as it is."""
        if item.get("kind") != review.matter.resource.kind or item.get("apiVersion") == resource.api_version:
            return item
        return self._server.versions.converted(self._server.catalogue.find(resource), item)


def _patched(item: Object, operations: list[Any]) -> Object:
    """Give an object after a patch, which may change all but what it is; its metadata has the right types."""
    patched = json_patch(item, operations)
    if not isinstance(patched, dict) or any(patched.get(name) != item[name] for name in ("apiVersion", "kind")):
        raise BadRequest(f"it is no {item['kind']} any more")
    return {**patched, "metadata": normalized(patched.get("metadata"))}


_SERVICES = CollectionId("", "services")
_STAGES = 3
_RETRIES = 5
"""How often a request is put anew because others have changed the object meanwhile, as in a kube-apiserver."""
_MOST_TRIES = 1 + _STAGES * (1 + _RETRIES)
_AT_ONCE = 16
"""How many objects of one request are under review at a time."""

T = TypeVar("T")


class AdmissionWebhooks:
    """Asks the admission webhooks of a server; `perform` is a `springtide.simulator.api.performing.Perform`.

    Use it as a context: it keeps connections. `ask` takes the place of the network.
    """

    def __init__(self, server: ApiServer, ask: SendReview | None = None) -> None:
        self._server = server
        self._registrations = WebhookConfigurations(server)
        self._caller = WebhookCaller(lambda key: server.find(_SERVICES, key))
        self._asking = WebhookDispatcher(server, self._registrations, ask or self._caller.ask)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._caller.__aexit__(kind, error, trace)

    async def perform(self, verb: Callable[[], T], user: User) -> ExecutedWrite[T]:
        """Make a call; it may be tried several times, and takes effect once."""
        if not self._registrations.any():
            return ExecutedWrite(verb())
        hearing = WebhookAdmissionContext(self._server.now(), self._asking.concerns)
        try:
            return await self._perform(verb, user, hearing)
        except ApiError as refusal:
            refusal.warnings = tuple(hearing.warnings)
            raise

    async def _perform(self, verb: Callable[[], T], user: User, hearing: WebhookAdmissionContext) -> ExecutedWrite[T]:
        reviews: tuple[AdmissionRequest, ...] = ()
        for _ in range(_MOST_TRIES):
            hearing.begin()
            try:
                with self._server.reviewing(hearing):
                    return ExecutedWrite(verb(), tuple(hearing.warnings))
            except AdmissionPending as needed:
                reviews = needed.reviews
            await self._put(reviews, user, hearing)
        matter = reviews[0].matter
        raise conflict(matter.resource, matter.key.name)

    async def _put(self, reviews: tuple[AdmissionRequest, ...], user: User, hearing: WebhookAdmissionContext) -> None:
        """Have questions answered; of several refusals, the first counts."""
        for start in range(0, len(reviews), _AT_ONCE):
            asked = (self._asking.put(review, user, hearing) for review in reviews[start : start + _AT_ONCE])
            for outcome in await asyncio.gather(*asked, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    raise outcome
