"""Asks the webhooks that a review concerns: those that change objects one after the other, the others all at once."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from springtide.cluster.errors import ApiError, BadRequest
from springtide.cluster.resources import Key, Object, Resource
from springtide.simulator.api import match_conditions
from springtide.simulator.api.admission import NAMESPACES
from springtide.simulator.api.answers import forbidden, not_found
from springtide.simulator.api.catalogue import identity_of
from springtide.simulator.api.metadata import tidied
from springtide.simulator.api.patches import json_patch
from springtide.simulator.api.performing import User
from springtide.simulator.api.reviews import Review, Stage
from springtide.simulator.api.server import ApiServer
from springtide.simulator.api.values import copied
from springtide.simulator.webhooks import messages
from springtide.simulator.webhooks.failures import CallFailed, call_failed, denied, dry_run_unsupported, internal_error
from springtide.simulator.webhooks.hearing import RequestHearing
from springtide.simulator.webhooks.matching import Invocation, invocation, is_exempt
from springtide.simulator.webhooks.registrations import Registrations, Webhook

_log = logging.getLogger(__name__)

Ask: TypeAlias = Callable[[Object, bytes, int], Awaitable[bytes]]
"""Sends a review to a `clientConfig` and gives the answer within so many seconds; `CallFailed` where there is none."""


class Asking:
    """Puts reviews to the webhooks that are registered with a server."""

    def __init__(self, server: ApiServer, registrations: Registrations, ask: Ask) -> None:
        self._server = server
        self._registrations = registrations
        self._ask = ask

    def concerns(self, review: Review) -> bool:
        """Tell whether any webhook may want to hear of this."""
        if is_exempt(review.matter.resource):
            return False
        return any(self._invocation(webhook, review) is not None for webhook in self._webhooks(review))

    async def put(self, review: Review, user: User, hearing: RequestHearing) -> None:
        """Ask about a request and note the answer; raises what the request is refused with."""
        if review.stage is Stage.VALIDATING:
            await self._agreed(review, user, hearing)
            hearing.answer(review, review.new)
        else:
            hearing.answer(review, await self._amended(review, user, hearing))

    async def _amended(self, review: Review, user: User, hearing: RequestHearing) -> Object | None:
        """Ask one webhook after the other; each sees what those before it have made of the object."""
        rounds, current = hearing.rounds, review
        for webhook in self._webhooks(review):
            if review.stage is Stage.REINVOKING and not rounds.is_due(webhook.uid):
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

    async def _agreed(self, review: Review, user: User, hearing: RequestHearing) -> None:
        """Ask all webhooks at once; of several refusals, that of the first webhook counts."""
        invoked = [each for webhook in self._webhooks(review) if (each := self._invocation(webhook, review))]
        asked = (self._verdict(each, review, user, hearing) for each in invoked)
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _changed(self, invoked: Invocation, review: Review, user: User, hearing: RequestHearing) -> Object | None:
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
        self, invoked: Invocation, review: Review, user: User, hearing: RequestHearing
    ) -> messages.Verdict | None:
        """Ask one webhook; None where it does not want to be, or cannot be and does not insist."""
        webhook = invoked.webhook
        new, old = (
            None if item is None else self._in_version(item, invoked.resource, review)
            for item in (review.new, review.old)
        )
        uid = str(uuid.uuid4())
        request = messages.request_of(review, invoked, user, uid, new, old)
        if not self._wants(webhook, request, review):
            return None
        if review.matter.dry_run and not webhook.dry_run:
            raise dry_run_unsupported(webhook.name)
        try:
            version = messages.version_for(webhook.review_versions)
            body = await self._ask(webhook.client, messages.question(version, request), webhook.timeout)
            verdict = messages.verdict(body, version, uid, may_patch=review.stage is not Stage.VALIDATING)
        except CallFailed as failure:
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

    def _wants(self, webhook: Webhook, request: Object, review: Review) -> bool:
        if not webhook.conditions:
            return True
        shown: dict[str, Any] = {name: part for name, part in request.items() if name not in ("object", "oldObject")}
        try:
            return match_conditions.holds(webhook.conditions, request["object"], request["oldObject"], shown)
        except match_conditions.ConditionFailed as failure:
            if webhook.ignores_failures:
                return False
            raise forbidden(review.matter.resource, review.matter.key.name, str(failure)) from None

    def _webhooks(self, review: Review) -> tuple[Webhook, ...]:
        if review.stage is Stage.VALIDATING:
            return self._registrations.validating()
        return self._registrations.mutating()

    def _invocation(self, webhook: Webhook, review: Review) -> Invocation | None:
        return invocation(webhook, review, self._versions, self._namespace_labels)

    def _versions(self, resource: Resource) -> list[Resource]:
        """Give the resource in all versions in which it is served."""
        identity = identity_of(resource)
        return [kind.resource for kind in self._server.catalogue.all() if identity_of(kind.resource) == identity]

    def _namespace_labels(self, name: str) -> Mapping[str, str]:
        namespace = self._server.find(NAMESPACES, Key("", name))
        if namespace is None:
            raise not_found("namespaces", name)
        labels: Mapping[str, str] = namespace["metadata"].get("labels") or {}
        return labels

    def _completed(self, item: Object, resource: Resource) -> Object:
        """Give an object with the defaults of its kind; what is no object of it, such as a scale, as it is."""
        kind = self._server.catalogue.find(resource)
        return kind.complete(copied(item)) if item["kind"] == resource.kind else item

    def _in_version(self, item: Object, resource: Resource, review: Review) -> Object:
        """Give an object in another version of its resource; what is no object of it as it is."""
        if item.get("kind") != review.matter.resource.kind or item.get("apiVersion") == resource.api_version:
            return item
        return self._server.versions.converted(self._server.catalogue.find(resource), item)


def _patched(item: Object, operations: list[Any]) -> Object:
    """Give an object after a patch, which may change all but what it is; its metadata has the right types."""
    patched = json_patch(item, operations)
    if not isinstance(patched, dict) or any(patched.get(name) != item[name] for name in ("apiVersion", "kind")):
        raise BadRequest(f"it is no {item['kind']} any more")
    return {**patched, "metadata": tidied(patched.get("metadata"))}
