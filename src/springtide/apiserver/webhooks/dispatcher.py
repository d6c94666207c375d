"""Runs writes with admission webhooks.

The write is attempted, stops with `AdmissionPending`, and is attempted again with the answers of the webhooks until it
succeeds. What takes effect is what the webhooks allowed, even if other clients write in the meantime. Mutating webhooks
are called one after the other, validating ones concurrently.
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

_log = logging.getLogger(__name__)

SendReview: TypeAlias = Callable[[Object, bytes, int], Awaitable[bytes]]
"""Sends a review to a `clientConfig` and returns the response; `WebhookCallFailed` on errors and timeouts."""

_SERVICES = CollectionId("", "services")
_STAGES = 3
_RETRIES = 5
"""How often a request is retried when other clients change the object, as in a kube-apiserver."""
_MAX_ATTEMPTS = 1 + _STAGES * (1 + _RETRIES)
_CONCURRENT = 16
"""How many objects of one request are admitted concurrently."""

T = TypeVar("T")


class ReinvocationTracker:
    """Which webhooks must be called again because the object changed after they saw it."""

    def __init__(self) -> None:
        self._called: dict[str, None] = {}
        self._due: set[str] = set()
        self._last: Object | None = None

    def called(self, uid: str) -> None:
        """Record a call of a webhook with a reinvocation policy of IfNeeded."""
        self._called[uid] = None

    def object_changed(self) -> None:
        """Record a change of the object: webhooks called before it must be called again."""
        self._due.update(self._called)
        self._called.clear()

    def round_ended(self, admitted: Object | None) -> None:
        """Record the object at the end of a round."""
        self._last = admitted

    def needs_round(self, item: Object | None) -> bool:
        """Return whether another round is needed, given the object after the built-in plugins."""
        if item != self._last:
            self.object_changed()
        return bool(self._due)

    def is_due(self, uid: str) -> bool:
        """Return whether a webhook must be called again."""
        return uid in self._due


class WebhookAdmissionContext:
    """The admission context of one request; `matches` returns whether any webhook matches."""

    def __init__(self, now: int, matches: Callable[[AdmissionRequest], bool]) -> None:
        self.now = now
        self.warnings: dict[str, None] = {}
        """The warnings for the user, without duplicates."""
        self.reinvocations = ReinvocationTracker()
        self._matches = matches
        self._answers: list[tuple[AdmissionRequest, Object | None]] = []
        self._generated: list[ServerMetadata] = []
        self._position = 0

    def begin(self) -> None:
        """Begin an attempt: generated metadata are reused in order."""
        self._position = 0

    def server_metadata(self, generate: Callable[[], ServerMetadata]) -> ServerMetadata:
        """Return the metadata that the server gives to a new object: the same in each attempt."""
        if self._position == len(self._generated):
            fresh = generate()
            suffix = fresh.suffix()
            self._generated.append(ServerMetadata(fresh.uid, fresh.created, lambda: suffix))
        self._position += 1
        return self._generated[self._position - 1]

    def admit(self, review: AdmissionRequest) -> Object | None:
        """Return the object as webhooks leave it; `AdmissionPending` where they have not been called."""
        for known, answer in self._answers:
            if known == review:
                return review.new if answer is known.new else answer
        if not self._is_pending(review):
            return review.new
        raise AdmissionPending(review)

    def answer(self, review: AdmissionRequest, admitted: Object | None) -> None:
        """Store an answer: the object as webhooks leave it."""
        self._answers.append((review, admitted))

    def _is_pending(self, review: AdmissionRequest) -> bool:
        reinvocation = review.stage is AdmissionStage.REINVOKING
        return self._matches(review) and (not reinvocation or self.reinvocations.needs_round(review.new))


class WebhookDispatcher:
    """Calls the registered webhooks."""

    def __init__(self, server: ApiServer, configurations: WebhookConfigurations, send: SendReview) -> None:
        self._server = server
        self._configurations = configurations
        self._send = send

    def matches(self, review: AdmissionRequest) -> bool:
        """Return whether any webhook matches a request."""
        if is_exempt(review.attributes.resource):
            return False
        return any(self._invocation(webhook, review) is not None for webhook in self._webhooks(review))

    async def call_webhooks(self, review: AdmissionRequest, user: User, context: WebhookAdmissionContext) -> None:
        """Call the webhooks for a request and store the answer; raises the error of a refusal."""
        if review.stage is AdmissionStage.VALIDATING:
            await self._validate(review, user, context)
            context.answer(review, review.new)
        else:
            context.answer(review, await self._mutate(review, user, context))

    async def _mutate(self, review: AdmissionRequest, user: User, context: WebhookAdmissionContext) -> Object | None:
        """Call mutating webhooks one after the other; each receives the object as the previous ones left it."""
        reinvocations, current = context.reinvocations, review
        for webhook in self._webhooks(review):
            if review.stage is AdmissionStage.REINVOKING and not reinvocations.is_due(webhook.uid):
                continue
            invoked = self._invocation(webhook, current)
            if invoked is None:
                continue
            admitted = await self._call_mutating(invoked, current, user, context)
            if admitted != current.new:
                current = replace(current, new=admitted)
                reinvocations.object_changed()
            if webhook.reinvoked:
                reinvocations.called(webhook.uid)
        reinvocations.round_ended(current.new)
        return current.new

    async def _validate(self, review: AdmissionRequest, user: User, context: WebhookAdmissionContext) -> None:
        """Call all validating webhooks concurrently; of several refusals, that of the first webhook is returned."""
        invoked = [each for webhook in self._webhooks(review) if (each := self._invocation(webhook, review))]
        called = (self._call(each, review, user, context) for each in invoked)
        for outcome in await asyncio.gather(*called, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _call_mutating(
        self, invoked: WebhookInvocation, review: AdmissionRequest, user: User, context: WebhookAdmissionContext
    ) -> Object | None:
        """Return the object as one webhook leaves it."""
        verdict = await self._call(invoked, review, user, context)
        if verdict is None or not verdict.operations:
            return review.new
        if review.new is None:
            message = "attempted to modify the object, which is not supported for this operation"
            raise internal_error(f'admission webhook "{invoked.webhook.name}" {message}')
        sent = self._in_version(review.new, invoked.resource, review)
        try:
            patched = _patched(sent, verdict.operations)
        except ApiError as error:
            message = f"returned a patch that cannot be applied: {error}"
            raise internal_error(f'admission webhook "{invoked.webhook.name}" {message}') from None
        return self._in_version(self._completed(patched, invoked.resource), review.attributes.resource, review)

    async def _call(
        self, invoked: WebhookInvocation, review: AdmissionRequest, user: User, context: WebhookAdmissionContext
    ) -> messages.WebhookVerdict | None:
        """Call a webhook; None where match conditions exclude it, or where its failure is ignored."""
        webhook = invoked.webhook
        new, old = (
            None if item is None else self._in_version(item, invoked.resource, review)
            for item in (review.new, review.old)
        )
        uid = str(uuid.uuid4())
        request = messages.admission_request(review, invoked, user, uid, new, old)
        if not self._conditions_hold(webhook, request, review):
            return None
        if review.attributes.dry_run and not webhook.dry_run:
            raise dry_run_unsupported(webhook.name)
        try:
            version = messages.version_for(webhook.review_versions)
            body = await self._send(webhook.client, messages.encode_review(version, request), webhook.timeout)
            verdict = messages.decode_verdict(
                body, version, uid, may_patch=review.stage is not AdmissionStage.VALIDATING
            )
        except WebhookCallFailed as failure:
            if not webhook.ignores_failures:
                raise call_failed(webhook.name, failure) from None
            _log.warning("webhook %s failed, and its failure policy is Ignore: %s", webhook.name, failure)
            return None
        context.warnings |= dict.fromkeys(verdict.warnings)
        if not verdict.allowed:
            raise denied(
                webhook.name,
                code=verdict.code,
                reason=verdict.reason,
                message=verdict.message,
                details=verdict.details,
            )
        return verdict

    def _conditions_hold(self, webhook: Webhook, request: Object, review: AdmissionRequest) -> bool:
        if not webhook.conditions:
            return True
        shown: dict[str, Any] = {name: part for name, part in request.items() if name not in ("object", "oldObject")}
        try:
            return match_conditions.conditions_hold(webhook.conditions, request["object"], request["oldObject"], shown)
        except match_conditions.ConditionFailed as failure:
            if webhook.ignores_failures:
                return False
            raise forbidden(review.attributes.resource, review.attributes.key.name, str(failure)) from None

    def _webhooks(self, review: AdmissionRequest) -> tuple[Webhook, ...]:
        if review.stage is AdmissionStage.VALIDATING:
            return self._configurations.validating()
        return self._configurations.mutating()

    def _invocation(self, webhook: Webhook, review: AdmissionRequest) -> WebhookInvocation | None:
        return invocation(webhook, review, self._versions, self._namespace_labels)

    def _versions(self, resource: Resource) -> list[Resource]:
        """Return the resource in all served versions."""
        identity = collection_id(resource)
        return [kind.resource for kind in self._server.catalogue.all() if collection_id(kind.resource) == identity]

    def _namespace_labels(self, name: str) -> Mapping[str, str]:
        namespace = self._server.find(NAMESPACES, Key("", name))
        if namespace is None:
            raise not_found("namespaces", name)
        labels: Mapping[str, str] = namespace["metadata"].get("labels") or {}
        return labels

    def _completed(self, item: Object, resource: Resource) -> Object:
        """Return an object with the defaults of its kind; other objects, such as a Scale, unchanged."""
        kind = self._server.catalogue.find(resource)
        return kind.apply_defaults(deep_copy(item)) if item["kind"] == resource.kind else item

    def _in_version(self, item: Object, resource: Resource, review: AdmissionRequest) -> Object:
        """Return an object in another version of its resource; other objects unchanged."""
        if item.get("kind") != review.attributes.resource.kind or item.get("apiVersion") == resource.api_version:
            return item
        return self._server.versions.converted(self._server.catalogue.find(resource), item)


def _patched(item: Object, operations: list[Any]) -> Object:
    """Apply a patch, which may not change apiVersion and kind; metadata are normalized."""
    patched = json_patch(item, operations)
    if not isinstance(patched, dict) or any(patched.get(name) != item[name] for name in ("apiVersion", "kind")):
        raise BadRequest("apiVersion and kind must not change")
    return {**patched, "metadata": normalized(patched.get("metadata"))}


class AdmissionWebhooks:
    """Calls the admission webhooks of a server; `execute` is a `WriteExecutor`.

    Use it as a context manager: it keeps connections. `send` replaces the network in tests.
    """

    def __init__(self, server: ApiServer, send: SendReview | None = None) -> None:
        self._server = server
        self._configurations = WebhookConfigurations(server)
        self._caller = WebhookCaller(lambda key: server.find(_SERVICES, key))
        self._dispatcher = WebhookDispatcher(server, self._configurations, send or self._caller.send)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._caller.__aexit__(kind, error, trace)

    async def execute(self, verb: Callable[[], T], user: User) -> ExecutedWrite[T]:
        """Run a call; it may be attempted several times, and takes effect once."""
        if not self._configurations.any():
            return ExecutedWrite(verb())
        context = WebhookAdmissionContext(self._server.now(), self._dispatcher.matches)
        try:
            return await self._execute(verb, user, context)
        except ApiError as error:
            error.warnings = tuple(context.warnings)
            raise

    async def _execute(self, verb: Callable[[], T], user: User, context: WebhookAdmissionContext) -> ExecutedWrite[T]:
        reviews: tuple[AdmissionRequest, ...] = ()
        for _ in range(_MAX_ATTEMPTS):
            context.begin()
            try:
                with self._server.admitting(context):
                    return ExecutedWrite(verb(), tuple(context.warnings))
            except AdmissionPending as needed:
                reviews = needed.reviews
            await self._call_webhooks(reviews, user, context)
        attributes = reviews[0].attributes
        raise conflict(attributes.resource, attributes.key.name)

    async def _call_webhooks(
        self, reviews: tuple[AdmissionRequest, ...], user: User, context: WebhookAdmissionContext
    ) -> None:
        """Answer pending requests; of several refusals, the first is raised."""
        for start in range(0, len(reviews), _CONCURRENT):
            called = (
                self._dispatcher.call_webhooks(review, user, context) for review in reviews[start : start + _CONCURRENT]
            )
            for outcome in await asyncio.gather(*called, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    raise outcome
