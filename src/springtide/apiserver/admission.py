"""How a request that may need an answer from outside meets a server whose verbs cannot wait.

The verbs of the API server are plain calls that take effect as a whole. A transport does not call them itself: it
gives the call to a `Perform`, which makes it at once, or asks webhooks first and makes it when they have agreed.

How writes are put before reviewers whom the server cannot wait for.

A verb is a plain call that takes effect as a whole, and a reviewer may be a webhook at the other end of a network. So
a verb that needs an answer which nobody has given yet stops with `ReviewNeeded`, before anything has happened; whoever
made the call gets the answer and makes the call again. What the first try drew or read from the clock the second one
finds in the `Hearing` of the request, so the same question comes up in the same words. If the question is another one,
because somebody else has written meanwhile, it is asked anew: what takes effect is exactly what was agreed to.

The places at which a write is put before its reviewers, in the order of a kube-apiserver.

Who may change an object is asked after the cluster has added its own and before the rules of the kind are: a reviewer
may fill in what they ask for. Then, with everything in its final shape, comes who may only agree. Without a hearing,
nobody is asked, and nothing here costs anything.
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


@dataclass(frozen=True, slots=True)
class User:
    """Who makes a request."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    def info(self) -> dict[str, Any]:
        """Write it as the `userInfo` of reviews."""
        return {"username": self.name, "groups": list(self.groups)} | ({"uid": self.uid} if self.uid else {})


ADMIN = User("springtide-admin", ("system:masters", "system:authenticated"))


@dataclass(frozen=True, slots=True)
class ExecutedWrite(Generic[T]):
    """What a call gave, and what the user is warned of."""

    value: T
    warnings: tuple[str, ...] = ()


class WriteExecutor(Protocol):
    """Makes a call into the API server for a user, when whoever must be asked has agreed."""

    async def __call__(self, verb: Callable[[], T], user: User) -> ExecutedWrite[T]:
        """Make the call; it may be tried several times, and takes effect once."""
        ...


async def execute_directly(verb: Callable[[], T], user: User) -> ExecutedWrite[T]:  # noqa: ARG001
    """Make a call where nobody is to be asked."""
    return ExecutedWrite(verb())


class AdmissionStage(StrEnum):
    """When reviewers are asked about a request."""

    MUTATING = "mutating"
    """Before the rules of the kind are: answers may change the object."""
    REINVOKING = "reinvoking"
    """Again, after reviewers and then the cluster have changed the object; only those who want that are asked."""
    VALIDATING = "validating"
    """At the end: answers are yes or no."""


class AdmissionOperation(StrEnum):
    """What a request does, as reviewers are told."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class AdmissionAttributes:
    """What a request is about."""

    operation: AdmissionOperation
    resource: Resource
    subresource: str
    key: Key
    """The name is empty as long as the server has not made one."""
    options: Object
    dry_run: bool


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """One question: may this become of that?"""

    stage: AdmissionStage
    matter: AdmissionAttributes
    old: Object | None
    new: Object | None


class AdmissionPending(Exception):
    """A verb cannot go on before these questions are answered; nothing has happened."""

    def __init__(self, *reviews: AdmissionRequest) -> None:
        super().__init__(f"{len(reviews)} reviews needed")
        self.reviews = reviews


class AdmissionContext(Protocol):
    """What one request, which may be tried several times, has drawn and been answered so far."""

    now: int
    """The instant of the request."""

    def birth(self, draw: Callable[[], ServerMetadata]) -> ServerMetadata:
        """Give what the server gives to a new object: the same in every try."""
        ...

    def heard(self, review: AdmissionRequest) -> Object | None:
        """Give the object as reviewers leave it, the very one that was shown where they change nothing.

        Raises `ReviewNeeded` where the question is still open.
        """
        ...


class AdmissionView(NamedTuple):
    """How the object of a request is shown to reviewers, and how their changes get back into it."""

    of: Callable[[Object], Object]
    onto: Callable[[Object, Object], Object]


WHOLE = AdmissionView(lambda item: item, lambda _, shown: shown)


def admission_attributes(
    operation: AdmissionOperation, resource: Resource, key: Key, write: Write, subresource: str = "", **options: Any
) -> AdmissionAttributes:
    """Describe a request."""
    given: Object = {"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
    if operation is not AdmissionOperation.DELETE and write.manager:
        given["fieldManager"] = write.manager
    if write.dry_run:
        given["dryRun"] = ["All"]
    given |= {name: value for name, value in options.items() if value is not None}
    return AdmissionAttributes(operation, resource, subresource, key, given, write.dry_run)


_WRONG_TYPE = "FieldValueTypeInvalid"


class AdmissionChain:
    """Puts writes before reviewers, while there is a hearing."""

    def __init__(self) -> None:
        self.hearing: AdmissionContext | None = None
        self._refusal: Invalid | None = None
        """What is wrong with the object of the verb, which reviewers may still put right."""

    @contextmanager
    def held(self, hearing: AdmissionContext) -> Iterator[None]:
        """Hold a hearing for the one verb that is called within the block."""
        self.hearing = hearing
        try:
            yield
        finally:
            self.hearing = None

    def decided(self) -> None:
        """Take note that the request is agreed to: what it still takes is the server's own doing."""
        self.hearing = None

    def birth(self, draw: Callable[[], ServerMetadata]) -> ServerMetadata:
        """Give what the server gives to a new object."""
        return draw() if self.hearing is None else self.hearing.birth(draw)

    def first_check(self) -> ObjectCheck:
        """Give what an object must pass before others have added to it: all, unless reviewers may put it right."""
        return check if self.hearing is None else self._check

    def new(
        self,
        kind: ServedKind,
        born: Object,
        birth: ServerMetadata,
        write: Write,
        completed: Callable[[ServedKind, Object], Object],
    ) -> Object:
        """Give a new object as the cluster, which makes it `completed`, and its reviewers leave it."""
        hearing = self.hearing
        if hearing is None:
            item = completed(kind, born)
            if item is not born:
                check(kind, item, None)
            return item
        namespace, name = key_of(born)
        key = Key(namespace, "" if has_generated_name(born, birth) else name)
        # The cluster adds only to objects that are in order.
        given = completed(kind, born) if self._refusal is None else born
        item = _amended(
            hearing,
            admission_attributes(AdmissionOperation.CREATE, kind.resource, key, write),
            None,
            given,
            draft=lambda item: without_server_metadata(item, birth),
            taken=lambda _, answer: prepare_create(kind, answer, namespace, birth),
            again=lambda item: completed(kind, item),
        )
        if item is born:
            self._refuse()
        else:
            check(kind, item, None)
        return item

    def agree_to_new(self, kind: ServedKind, item: Object, write: Write) -> None:
        """Ask who may only agree about a new object."""
        if self.hearing is not None:
            matter = admission_attributes(AdmissionOperation.CREATE, kind.resource, key_of(item), write)
            self.hearing.heard(AdmissionRequest(AdmissionStage.VALIDATING, matter, None, item))

    def change(
        self,
        kind: ServedKind,
        old: Object,
        new: Object,
        write: Write,
        subresource: str,
        part: WritePart,
        view: AdmissionView,
    ) -> Object:
        """Give an object after a change as its reviewers leave it."""
        hearing = self.hearing
        if hearing is None:
            return new
        matter = admission_attributes(AdmissionOperation.UPDATE, kind.resource, key_of(old), write, subresource)
        before = view.of(old)
        left = _amended(
            hearing,
            matter,
            before,
            new,
            draft=lambda item: without_new_generation(view.of(item), before),
            taken=lambda item, answer: prepare_update(kind, view.onto(item, answer), old, part),
        )
        if left is new:
            self._refuse()
        hearing.heard(AdmissionRequest(AdmissionStage.VALIDATING, matter, before, view.of(left)))
        return left

    def body(self, kind: ServedKind, key: Key, body: Object, write: Write, subresource: str) -> Object:
        """Give what is done to an object by a creation, as reviewers leave it; from here on nobody is asked."""
        if self.hearing is not None:
            matter = admission_attributes(AdmissionOperation.CREATE, kind.resource, key, write, subresource)
            body = _amended(self.hearing, matter, None, body)
            self.hearing.heard(AdmissionRequest(AdmissionStage.VALIDATING, matter, None, body))
            self.decided()
        return body

    def deletions(
        self,
        kind: ServedKind,
        items: Sequence[Object],
        write: Write,
        propagation: Propagation | None,
        grace_seconds: int | None,
        *,
        name: str = "",
    ) -> None:
        """Ask about objects that are to go, or one with a name: all are agreed to before the first one goes."""
        hearing = self.hearing
        if hearing is None:
            return
        policy = propagation.value if propagation else None
        open_questions: list[AdmissionRequest] = []
        for item in items:
            matter = admission_attributes(
                AdmissionOperation.DELETE,
                kind.resource,
                Key(item["metadata"].get("namespace", ""), name),
                write,
                propagationPolicy=policy,
                gracePeriodSeconds=grace_seconds,
            )
            try:
                for stage in (AdmissionStage.MUTATING, AdmissionStage.VALIDATING):
                    hearing.heard(AdmissionRequest(stage, matter, item, None))
            except AdmissionPending as needed:
                open_questions += needed.reviews
        if open_questions:
            raise AdmissionPending(*open_questions)
        self.decided()

    def _check(self, kind: ServedKind, item: Object, old: Object | None) -> None:
        """Refuse values of wrong types, as a server that cannot even read them; keep the rest for later."""
        self._refusal = None
        try:
            check(kind, item, old)
        except Invalid as refusal:
            if any(cause.reason == _WRONG_TYPE for cause in refusal.causes):
                raise
            self._refusal = refusal

    def _refuse(self) -> None:
        """Refuse an object that nobody has put right."""
        if self._refusal is not None:
            raise self._refusal


def _as_it_is(item: Object) -> Object:
    return item


def _as_answered(_: Object, answer: Object) -> Object:
    return answer


def _amended(
    hearing: AdmissionContext,
    matter: AdmissionAttributes,
    old: Object | None,
    new: Object,
    *,
    draft: Callable[[Object], Object] = _as_it_is,
    taken: Callable[[Object, Object], Object] = _as_answered,
    again: Callable[[Object], Object] = _as_it_is,
) -> Object:
    """Give an object as the reviewers who may change it leave it.

    `draft` shows it to them, `taken` makes an object of what they answer, and `again` lets the cluster add its own to
    an object that they have changed.
    """
    for stage in (AdmissionStage.MUTATING, AdmissionStage.REINVOKING):
        shown = draft(new)
        answer = hearing.heard(AdmissionRequest(stage, matter, old, shown))
        if answer is shown or answer is None:
            break
        new = taken(new, _with_sound_owners(answer, shown))
        if stage is AdmissionStage.MUTATING:
            new = again(new)
    return new


def _with_sound_owners(answer: Object, shown: Object) -> Object:
    """Give an answer with managed fields that can be read: its own, or those that the reviewer was shown."""
    metadata, known = answer.get("metadata") or {}, entries.stored(shown)
    if metadata.get("managedFields") in (None, [], known):
        return answer
    return with_metadata(answer, managedFields=entries.sent(metadata) or known or None)
