"""Admission: requests that mutating and validating webhooks must allow before a write takes effect.

The verbs of `ApiServer` are synchronous and atomic, so they cannot wait for a webhook. Transports therefore do not call
a verb directly but pass it to a `WriteExecutor`. `execute_directly` runs it at once; `webhooks.AdmissionWebhooks` runs
it under an `AdmissionContext`.

A verb that needs an answer which the context does not have yet raises `AdmissionPending` before it changes anything.
The executor calls the webhooks, stores their answers in the context and runs the verb again. The context also keeps
what the first attempt generated (uid, name suffix, time), so that the second attempt asks the same question. If another
client has written the object in the meantime, the question differs and the webhooks are called again: only what they
allowed is written.

`AdmissionChain` holds the points of a write at which admission runs, in the order of a kube-apiserver: mutating
webhooks after the built-in plugins and before validation (they may repair the object), validating webhooks last.
Without a context the chain does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from springtide.apiserver.kinds import ServedKind
from springtide.apiserver.patches.managed import entries
from springtide.apiserver.strategy import (
    ObjectCheck,
    ServerMetadata,
    WritePart,
    check,
    has_generated_name,
    prepare_create,
    prepare_update,
    without_new_generation,
    without_server_metadata,
)
from springtide.apiserver.values import with_metadata
from springtide.cluster.errors import Invalid
from springtide.cluster.resources import Key, Object, Resource, key_of
from springtide.cluster.transport import Propagation, Write

T = TypeVar("T")

_WRONG_TYPE = "FieldValueTypeInvalid"


@dataclass(frozen=True, slots=True)
class User:
    """The authenticated user of a request."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    def info(self) -> dict[str, Any]:
        """Return the user as the `userInfo` of a review."""
        return {"username": self.name, "groups": list(self.groups)} | ({"uid": self.uid} if self.uid else {})


ADMIN = User("springtide-admin", ("system:masters", "system:authenticated"))


@dataclass(frozen=True, slots=True)
class ExecutedWrite(Generic[T]):
    """The result of a write, and the warnings for the user."""

    value: T
    warnings: tuple[str, ...] = ()


class WriteExecutor(Protocol):
    """Runs a call into the API server for a user, once admission allows it."""

    async def __call__(self, verb: Callable[[], T], user: User) -> ExecutedWrite[T]:
        """Run the call; it may be attempted several times, and takes effect once."""
        ...


async def execute_directly(verb: Callable[[], T], user: User) -> ExecutedWrite[T]:  # noqa: ARG001
    """Run a call without admission webhooks."""
    return ExecutedWrite(verb())


class AdmissionStage(StrEnum):
    """When webhooks are called for a request."""

    MUTATING = "mutating"
    """Before validation: webhooks may change the object."""
    REINVOKING = "reinvoking"
    """A second mutating round, after the object changed: only for webhooks with a reinvocation policy of IfNeeded."""
    VALIDATING = "validating"
    """Last: webhooks allow or deny."""


class AdmissionOperation(StrEnum):
    """The operation of an admission request."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class AdmissionAttributes:
    """The attributes of a request that rules and webhooks read."""

    operation: AdmissionOperation
    resource: Resource
    subresource: str
    key: Key
    """The name is empty while the server has not generated it."""
    options: Object
    dry_run: bool


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """One object for the webhooks of one stage, before and after the write."""

    stage: AdmissionStage
    attributes: AdmissionAttributes
    old: Object | None
    new: Object | None


class AdmissionPending(Exception):
    """A verb needs the answers to these requests first; it has changed nothing."""

    def __init__(self, *reviews: AdmissionRequest) -> None:
        super().__init__(f"{len(reviews)} reviews needed")
        self.reviews = reviews


class AdmissionContext(Protocol):
    """The state of one request across attempts: what was generated, and what webhooks answered."""

    now: int
    """The time of the request."""

    def server_metadata(self, generate: Callable[[], ServerMetadata]) -> ServerMetadata:
        """Return the metadata that the server gives to a new object: the same in each attempt."""
        ...

    def admit(self, review: AdmissionRequest) -> Object | None:
        """Return the object as webhooks leave it; the same instance where they change nothing.

        Raises `AdmissionPending` where the webhooks have not been called yet.
        """
        ...


class AdmissionView(NamedTuple):
    """How webhooks see the object of a request, and how their changes are applied to it."""

    of: Callable[[Object], Object]
    onto: Callable[[Object, Object], Object]


WHOLE = AdmissionView(lambda item: item, lambda _, shown: shown)


def admission_attributes(
    operation: AdmissionOperation, resource: Resource, key: Key, write: Write, subresource: str = "", **options: Any
) -> AdmissionAttributes:
    """Describe a request for admission."""
    given: Object = {"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
    if operation is not AdmissionOperation.DELETE and write.manager:
        given["fieldManager"] = write.manager
    if write.dry_run:
        given["dryRun"] = ["All"]
    given |= {name: value for name, value in options.items() if value is not None}
    return AdmissionAttributes(operation, resource, subresource, key, given, write.dry_run)


class AdmissionChain:
    """Runs the admission stages of a write while a context is set."""

    def __init__(self) -> None:
        self.context: AdmissionContext | None = None
        self._pending_error: Invalid | None = None
        """What validation found wrong with the object; mutating webhooks may still repair it."""

    @contextmanager
    def using(self, context: AdmissionContext) -> Iterator[None]:
        """Set the context for the one verb that is called within the block."""
        self.context = context
        try:
            yield
        finally:
            self.context = None

    def finish(self) -> None:
        """Drop the context: admission is complete, and the writes that follow are the server's own."""
        self.context = None

    def server_metadata(self, generate: Callable[[], ServerMetadata]) -> ServerMetadata:
        """Return the metadata that the server gives to a new object."""
        return generate() if self.context is None else self.context.server_metadata(generate)

    def early_check(self) -> ObjectCheck:
        """Return the check to run before admission: the full one, unless webhooks may repair the object."""
        return check if self.context is None else self._check

    def admit_create(
        self,
        kind: ServedKind,
        prepared: Object,
        server_metadata: ServerMetadata,
        write: Write,
        run_plugins: Callable[[ServedKind, Object], Object],
    ) -> Object:
        """Return a new object after plugins (`run_plugins`) and mutating webhooks."""
        context = self.context
        if context is None:
            item = run_plugins(kind, prepared)
            if item is not prepared:
                check(kind, item, None)
            return item
        namespace, name = key_of(prepared)
        key = Key(namespace, "" if has_generated_name(prepared, server_metadata) else name)
        # Plugins expect valid objects.
        given = run_plugins(kind, prepared) if self._pending_error is None else prepared
        item = _mutate(
            context,
            admission_attributes(AdmissionOperation.CREATE, kind.resource, key, write),
            None,
            given,
            show=lambda item: without_server_metadata(item, server_metadata),
            accept=lambda _, answer: prepare_create(kind, answer, namespace, server_metadata),
            rerun_plugins=lambda item: run_plugins(kind, item),
        )
        if item is prepared:
            self._raise_pending_error()
        else:
            check(kind, item, None)
        return item

    def validate_create(self, kind: ServedKind, item: Object, write: Write) -> None:
        """Call validating webhooks for a new object."""
        if self.context is not None:
            attributes = admission_attributes(AdmissionOperation.CREATE, kind.resource, key_of(item), write)
            self.context.admit(AdmissionRequest(AdmissionStage.VALIDATING, attributes, None, item))

    def admit_update(
        self,
        kind: ServedKind,
        old: Object,
        new: Object,
        write: Write,
        subresource: str,
        part: WritePart,
        view: AdmissionView,
    ) -> Object:
        """Return an object after an update as webhooks leave it."""
        context = self.context
        if context is None:
            return new
        attributes = admission_attributes(AdmissionOperation.UPDATE, kind.resource, key_of(old), write, subresource)
        before = view.of(old)
        admitted = _mutate(
            context,
            attributes,
            before,
            new,
            show=lambda item: without_new_generation(view.of(item), before),
            accept=lambda item, answer: prepare_update(kind, view.onto(item, answer), old, part),
        )
        if admitted is new:
            self._raise_pending_error()
        context.admit(AdmissionRequest(AdmissionStage.VALIDATING, attributes, before, view.of(admitted)))
        return admitted

    def admit_subresource(self, kind: ServedKind, key: Key, body: Object, write: Write, subresource: str) -> Object:
        """Return the body of a binding or an eviction as webhooks leave it, and finish admission."""
        if self.context is not None:
            attributes = admission_attributes(AdmissionOperation.CREATE, kind.resource, key, write, subresource)
            body = _mutate(self.context, attributes, None, body)
            self.context.admit(AdmissionRequest(AdmissionStage.VALIDATING, attributes, None, body))
            self.finish()
        return body

    def admit_deletes(
        self,
        kind: ServedKind,
        items: Sequence[Object],
        write: Write,
        propagation: Propagation | None,
        grace_seconds: int | None,
        *,
        name: str = "",
    ) -> None:
        """Admit the deletion of objects, or of one with a name: all are allowed before the first is deleted."""
        context = self.context
        if context is None:
            return
        policy = propagation.value if propagation else None
        pending: list[AdmissionRequest] = []
        for item in items:
            attributes = admission_attributes(
                AdmissionOperation.DELETE,
                kind.resource,
                Key(item["metadata"].get("namespace", ""), name),
                write,
                propagationPolicy=policy,
                gracePeriodSeconds=grace_seconds,
            )
            try:
                for stage in (AdmissionStage.MUTATING, AdmissionStage.VALIDATING):
                    context.admit(AdmissionRequest(stage, attributes, item, None))
            except AdmissionPending as needed:
                pending += needed.reviews
        if pending:
            raise AdmissionPending(*pending)
        self.finish()

    def _check(self, kind: ServedKind, item: Object, old: Object | None) -> None:
        """Refuse values of wrong types at once; keep other problems until mutating webhooks have run."""
        self._pending_error = None
        try:
            check(kind, item, old)
        except Invalid as error:
            if any(cause.reason == _WRONG_TYPE for cause in error.causes):
                raise
            self._pending_error = error

    def _raise_pending_error(self) -> None:
        """Refuse an object that webhooks have not repaired."""
        if self._pending_error is not None:
            raise self._pending_error


def _as_it_is(item: Object) -> Object:
    return item


def _unchanged_answer(_: Object, answer: Object) -> Object:
    return answer


def _mutate(
    context: AdmissionContext,
    attributes: AdmissionAttributes,
    old: Object | None,
    new: Object,
    *,
    show: Callable[[Object], Object] = _as_it_is,
    accept: Callable[[Object, Object], Object] = _unchanged_answer,
    rerun_plugins: Callable[[Object], Object] = _as_it_is,
) -> Object:
    """Return an object as mutating webhooks leave it.

    `show` gives the object as webhooks see it, `accept` makes an object of their answer, and `rerun_plugins` runs the
    built-in plugins on an object that webhooks have changed.
    """
    for stage in (AdmissionStage.MUTATING, AdmissionStage.REINVOKING):
        shown = show(new)
        answer = context.admit(AdmissionRequest(stage, attributes, old, shown))
        if answer is shown or answer is None:
            break
        new = accept(new, _with_valid_managed_fields(answer, shown))
        if stage is AdmissionStage.MUTATING:
            new = rerun_plugins(new)
    return new


def _with_valid_managed_fields(answer: Object, shown: Object) -> Object:
    """Return an answer with valid managed fields: its own, or those of the object that the webhook was sent."""
    metadata, known = answer.get("metadata") or {}, entries.stored(shown)
    if metadata.get("managedFields") in (None, [], known):
        return answer
    return with_metadata(answer, managedFields=entries.sent(metadata) or known or None)
