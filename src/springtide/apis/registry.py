"""Every kind that Springtide reads, and how it is found from what an object says of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from springtide.apis import core, karmada, karpenter, scheduled, springtide, xk8s
from springtide.apis.kinds import Kind, Reading, Version
from springtide.apis.suggestions import nearest

KINDS: tuple[Kind, ...] = (
    *scheduled.KINDS,
    *karmada.KINDS,
    *xk8s.KINDS,
    *karpenter.KINDS,
    *springtide.KINDS,
    *core.KINDS,
)

FIXES: dict[str, Callable[[dict[str, Any]], Reading]] = {
    kind.group: package.fixes for package in (scheduled, karmada, xk8s, karpenter, springtide) for kind in package.KINDS
}
"""For each API group the repair of slips that can mean only one thing."""


_BY_HEAD = {(kind.api_version(version), kind.kind): (kind, version) for kind in KINDS for version in kind.versions}


def find(api_version: str, kind: str) -> tuple[Kind, Version] | None:
    """Find a kind by exactly what an object says."""
    return _BY_HEAD.get((api_version, kind))


def api_versions_of(kind: str) -> list[str]:
    """List under which groups and versions a kind exists, the one to prefer first."""
    return [
        candidate.api_version(version)
        for candidate in KINDS
        if candidate.kind == kind
        for version in sorted(candidate.versions, key=lambda version: not version.storage)
    ]


def kind_like(kind: str) -> str | None:
    """Find the kind that a name is a slip of."""
    return nearest(kind, dict.fromkeys(candidate.kind for candidate in KINDS))
