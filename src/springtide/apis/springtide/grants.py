"""What grants allow: whether objects of a namespace may reach something through our credentials.

What no grant allows is refused. Ids match by globs, as a whole. Addresses match by how they begin, but only within one
origin: scheme, host and port must be the same, and the path must begin as the granted one and stay there.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from springtide.apis.springtide.types import GrantSpec, normalize_url


class GrantedResource(Enum):
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


def is_granted(grants: Iterable[GrantSpec], namespace: str, reach: GrantedResource, target: str) -> bool:
    """Tell whether one of the grants lets objects of a namespace reach a target."""
    return any(_grants(grant, namespace, reach, target) for grant in grants)


def missing_grant_message(namespace: str, reach: GrantedResource, target: str) -> str:
    """Say what is missing, and what to write."""
    return (
        f'no Grant lets objects of namespace {namespace} reach the {reach.noun} "{target}":'
        f" list it under `{reach.field}` of a Grant for this namespace"
    )


def _grants(grant: GrantSpec, namespace: str, reach: GrantedResource, target: str) -> bool:
    if not any(matches_glob(pattern, namespace) for pattern in grant.namespaces):
        return False
    match reach:
        case GrantedResource.NODE_GROUP:
            return any(matches_glob(pattern, target) for pattern in grant.node_groups or ())
        case GrantedResource.QUEUE:
            return any(matches_glob(pattern, target) for pattern in grant.queues or ())
        case GrantedResource.URL:
            return any(is_url_within(target, prefix) for prefix in grant.urls or ())


def matches_glob(pattern: str, text: str) -> bool:
    """Tell whether a glob matches a text as a whole; only `*` and `?` mean something else than themselves.

    It takes no longer than the product of the lengths, whatever is written: of several `*`, only the last one that was
    passed is ever tried again.
    """
    at = star = retry = 0
    has_star = False
    position = 0
    while position < len(text):
        if at < len(pattern) and pattern[at] == "*":
            has_star, star, retry = True, at, position
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", text[position]):
            at += 1
            position += 1
        elif has_star:
            retry += 1
            at, position = star + 1, retry
        else:
            return False
    return not pattern[at:].strip("*")


def is_url_within(url: str, prefix: str) -> bool:
    """Tell whether an address lies within a granted one; what can be read in two ways does not."""
    asked, granted = normalize_url(url), normalize_url(prefix)
    if asked is None or granted is None or granted.query:
        return False
    return asked.origin == granted.origin and asked.path.startswith(granted.path)
