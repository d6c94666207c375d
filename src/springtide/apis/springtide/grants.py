"""What grants allow: whether objects of a namespace may reach something through our credentials.

What no grant allows is refused. Ids match by globs, as a whole. Addresses match by how they begin, but only within one
origin: scheme, host and port must be the same, and the path must be a part of the granted one and stay there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache
from posixpath import normpath
from urllib.parse import unquote, urlsplit

from springtide.apis.springtide.types import GrantSpec

_PORTS = {"http": 80, "https": 443}


class Reach(Enum):
    """What a namespace may reach: the field of a grant that lists it, and how sentences call it."""

    NODE_GROUP = ("nodeGroups", "node group")
    QUEUE = ("queues", "queue")
    URL = ("urls", "address")

    @property
    def field(self) -> str:
        """The field of a Grant's spec."""
        return self.value[0]

    @property
    def noun(self) -> str:
        """How sentences call it."""
        return self.value[1]


def allowed(grants: Iterable[GrantSpec], namespace: str, reach: Reach, target: str) -> bool:
    """Tell whether one of the grants lets objects of a namespace reach a target."""
    return any(_allows(grant, namespace, reach, target) for grant in grants)


def refusal(namespace: str, reach: Reach, target: str) -> str:
    """Say what is missing, and what to write."""
    return (
        f'no Grant lets objects of namespace {namespace} reach the {reach.noun} "{target}":'
        f" list it under `{reach.field}` of a Grant for this namespace"
    )


def _allows(grant: GrantSpec, namespace: str, reach: Reach, target: str) -> bool:
    if not any(_glob(pattern).fullmatch(namespace) for pattern in grant.namespaces):
        return False
    match reach:
        case Reach.NODE_GROUP:
            return any(_glob(pattern).fullmatch(target) for pattern in grant.node_groups or ())
        case Reach.QUEUE:
            return any(_glob(pattern).fullmatch(target) for pattern in grant.queues or ())
        case Reach.URL:
            return any(_within(target, prefix) for prefix in grant.urls or ())


@lru_cache(maxsize=4096)
def _glob(pattern: str) -> re.Pattern[str]:
    """Compile a glob in which only `*` and `?` mean something else than themselves."""
    parts = (".*" if letter == "*" else "." if letter == "?" else re.escape(letter) for letter in pattern)
    return re.compile("".join(parts), re.DOTALL)


def _within(url: str, prefix: str) -> bool:
    try:
        asked, granted = urlsplit(url), urlsplit(prefix)
        same = (
            asked.scheme in _PORTS
            and asked.scheme == granted.scheme
            and asked.hostname == granted.hostname
            and (asked.port or _PORTS[asked.scheme]) == (granted.port or _PORTS[asked.scheme])
            and asked.username is None
            and asked.password is None
        )
    except ValueError:
        return False
    path = unquote(asked.path) or "/"
    if not same or "\\" in url or path != _tidy(path):
        # What needs tidying could mean one thing here and another where it arrives.
        return False
    return path.startswith(granted.path or "/") and (not granted.query or asked.query.startswith(granted.query))


def _tidy(path: str) -> str:
    tidied = normpath(path)
    return tidied + "/" if path.endswith("/") and tidied != "/" else tidied
