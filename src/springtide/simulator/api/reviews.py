"""How writes are put before reviewers whom the server cannot wait for.

A verb is a plain call that takes effect as a whole, and a reviewer may be a webhook at the other end of a network. So
a verb that needs an answer which nobody has given yet stops with `ReviewNeeded`, before anything has happened; whoever
made the call gets the answer and makes the call again. What the first try drew or read from the clock the second one
finds in the `Hearing` of the request, so the same question comes up in the same words. If the question is another one,
because somebody else has written meanwhile, it is asked anew: what takes effect is exactly what was agreed to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from springtide.cluster.port import Write
from springtide.cluster.resources import Key, Object, Resource
from springtide.simulator.api.lifecycle import Birth


class Stage(StrEnum):
    """When reviewers are asked about a request."""

    MUTATING = "mutating"
    """Before the rules of the kind are: answers may change the object."""
    REINVOKING = "reinvoking"
    """Again, after reviewers and then the cluster have changed the object; only those who want that are asked."""
    VALIDATING = "validating"
    """At the end: answers are yes or no."""


class Operation(StrEnum):
    """What a request does, as reviewers are told."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class Matter:
    """What a request is about."""

    operation: Operation
    resource: Resource
    subresource: str
    key: Key
    """The name is empty as long as the server has not made one."""
    options: Object
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Review:
    """One question: may this become of that?"""

    stage: Stage
    matter: Matter
    old: Object | None
    new: Object | None


class ReviewNeeded(Exception):
    """A verb cannot go on before these questions are answered; nothing has happened."""

    def __init__(self, *reviews: Review) -> None:
        super().__init__(f"{len(reviews)} reviews needed")
        self.reviews = reviews


class Hearing(Protocol):
    """What one request, which may be tried several times, has drawn and been answered so far."""

    now: int
    """The instant of the request."""

    def birth(self, draw: Callable[[], Birth]) -> Birth:
        """Give what the server gives to a new object: the same in every try."""
        ...

    def heard(self, review: Review) -> Object | None:
        """Give the object as reviewers leave it, the very one that was shown where they change nothing.

        Raises `ReviewNeeded` where the question is still open.
        """
        ...


class View(NamedTuple):
    """How the object of a request is shown to reviewers, and how their changes get back into it."""

    of: Callable[[Object], Object]
    onto: Callable[[Object, Object], Object]


WHOLE = View(lambda item: item, lambda _, shown: shown)


def matter_of(
    operation: Operation, resource: Resource, key: Key, write: Write, subresource: str = "", **options: Any
) -> Matter:
    """Describe a request."""
    given: Object = {"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
    if operation is not Operation.DELETE and write.manager:
        given["fieldManager"] = write.manager
    if write.dry_run:
        given["dryRun"] = ["All"]
    given |= {name: value for name, value in options.items() if value is not None}
    return Matter(operation, resource, subresource, key, given, write.dry_run)
