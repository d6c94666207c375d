"""The places at which a write is put before its reviewers, in the order of a kube-apiserver.

Who may change an object is asked after the cluster has added its own and before the rules of the kind are: a reviewer
may fill in what they ask for. Then, with everything in its final shape, comes who may only agree. Without a hearing,
nobody is asked, and nothing here costs anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from springtide.cluster.errors import Invalid
from springtide.cluster.port import Propagation, Write
from springtide.cluster.resources import Key, Object, key_of
from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.api.lifecycle import (
    Birth,
    Check,
    Part,
    changed,
    check,
    is_generated,
    newborn,
    unborn,
    uncounted,
)
from springtide.simulator.api.patches.managed import entries
from springtide.simulator.api.reviews import (
    Hearing,
    Matter,
    Operation,
    Review,
    ReviewNeeded,
    Stage,
    View,
    matter_of,
)
from springtide.simulator.api.values import with_metadata

_WRONG_TYPE = "FieldValueTypeInvalid"


class Reviewing:
    """Puts writes before reviewers, while there is a hearing."""

    def __init__(self) -> None:
        self.hearing: Hearing | None = None
        self._refusal: Invalid | None = None
        """What is wrong with the object of the verb, which reviewers may still put right."""

    @contextmanager
    def held(self, hearing: Hearing) -> Iterator[None]:
        """Hold a hearing for the one verb that is called within the block."""
        self.hearing = hearing
        try:
            yield
        finally:
            self.hearing = None

    def decided(self) -> None:
        """Take note that the request is agreed to: what it still takes is the server's own doing."""
        self.hearing = None

    def birth(self, draw: Callable[[], Birth]) -> Birth:
        """Give what the server gives to a new object."""
        return draw() if self.hearing is None else self.hearing.birth(draw)

    def first_check(self) -> Check:
        """Give what an object must pass before others have added to it: all, unless reviewers may put it right."""
        return check if self.hearing is None else self._check

    def new(
        self,
        kind: ServedKind,
        born: Object,
        birth: Birth,
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
        key = Key(namespace, "" if is_generated(born, birth) else name)
        # The cluster adds only to objects that are in order.
        given = completed(kind, born) if self._refusal is None else born
        item = _amended(
            hearing,
            matter_of(Operation.CREATE, kind.resource, key, write),
            None,
            given,
            draft=lambda item: unborn(item, birth),
            taken=lambda _, answer: newborn(kind, answer, namespace, birth),
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
            matter = matter_of(Operation.CREATE, kind.resource, key_of(item), write)
            self.hearing.heard(Review(Stage.VALIDATING, matter, None, item))

    def change(
        self, kind: ServedKind, old: Object, new: Object, write: Write, subresource: str, part: Part, view: View
    ) -> Object:
        """Give an object after a change as its reviewers leave it."""
        hearing = self.hearing
        if hearing is None:
            return new
        matter = matter_of(Operation.UPDATE, kind.resource, key_of(old), write, subresource)
        before = view.of(old)
        left = _amended(
            hearing,
            matter,
            before,
            new,
            draft=lambda item: uncounted(view.of(item), before),
            taken=lambda item, answer: changed(kind, view.onto(item, answer), old, part),
        )
        if left is new:
            self._refuse()
        hearing.heard(Review(Stage.VALIDATING, matter, before, view.of(left)))
        return left

    def body(self, kind: ServedKind, key: Key, body: Object, write: Write, subresource: str) -> Object:
        """Give what is done to an object by a creation, as reviewers leave it; from here on nobody is asked."""
        if self.hearing is not None:
            matter = matter_of(Operation.CREATE, kind.resource, key, write, subresource)
            body = _amended(self.hearing, matter, None, body)
            self.hearing.heard(Review(Stage.VALIDATING, matter, None, body))
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
        open_questions: list[Review] = []
        for item in items:
            matter = matter_of(
                Operation.DELETE,
                kind.resource,
                Key(item["metadata"].get("namespace", ""), name),
                write,
                propagationPolicy=policy,
                gracePeriodSeconds=grace_seconds,
            )
            try:
                for stage in (Stage.MUTATING, Stage.VALIDATING):
                    hearing.heard(Review(stage, matter, item, None))
            except ReviewNeeded as needed:
                open_questions += needed.reviews
        if open_questions:
            raise ReviewNeeded(*open_questions)
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
    hearing: Hearing,
    matter: Matter,
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
    for stage in (Stage.MUTATING, Stage.REINVOKING):
        shown = draft(new)
        answer = hearing.heard(Review(stage, matter, old, shown))
        if answer is shown or answer is None:
            break
        new = taken(new, _with_sound_owners(answer, shown))
        if stage is Stage.MUTATING:
            new = again(new)
    return new


def _with_sound_owners(answer: Object, shown: Object) -> Object:
    """Give an answer with managed fields that can be read: its own, or those that the reviewer was shown."""
    metadata, known = answer.get("metadata") or {}, entries.stored(shown)
    if metadata.get("managedFields") in (None, [], known):
        return answer
    return with_metadata(answer, managedFields=entries.sent(metadata) or known or None)
