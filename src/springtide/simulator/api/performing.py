"""How a request that may need an answer from outside meets a server whose verbs cannot wait.

The verbs of the API server are plain calls that take effect as a whole. A transport does not call them itself: it
gives the call to a `Perform`, which makes it at once, or asks webhooks first and makes it when they have agreed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

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
class Performed(Generic[T]):
    """What a call gave, and what the user is warned of."""

    value: T
    warnings: tuple[str, ...] = ()


class Perform(Protocol):
    """Makes a call into the API server for a user, when whoever must be asked has agreed."""

    async def __call__(self, verb: Callable[[], T], user: User) -> Performed[T]:
        """Make the call; it may be tried several times, and takes effect once."""
        ...


async def at_once(verb: Callable[[], T], user: User) -> Performed[T]:  # noqa: ARG001
    """Make a call where nobody is to be asked."""
    return Performed(verb())
