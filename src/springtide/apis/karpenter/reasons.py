"""Why a node is disrupted, and the many names that people give these reasons."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """A reason for which a budget can hold nodes back, in the order in which they are shown."""

    EMPTY = "Empty"
    DRIFTED = "Drifted"
    UNDERUTILIZED = "Underutilized"
    EXPIRED = "Expired"


REASONS: tuple[Reason, ...] = tuple(Reason)

ALIASES: dict[str, Reason] = {
    "empty": Reason.EMPTY,
    "emptiness": Reason.EMPTY,
    "drifted": Reason.DRIFTED,
    "drift": Reason.DRIFTED,
    "underutilized": Reason.UNDERUTILIZED,
    "underutilised": Reason.UNDERUTILIZED,
    "consolidation": Reason.UNDERUTILIZED,
    "consolidate": Reason.UNDERUTILIZED,
    "expired": Reason.EXPIRED,
    "expiration": Reason.EXPIRED,
    "expiry": Reason.EXPIRED,
    "expire": Reason.EXPIRED,
}
"""Every accepted name in lower case; case never matters."""


def reason_named(name: str) -> Reason | None:
    """Find the reason that a name means, in any case; none where it means none."""
    return ALIASES.get(name.lower())
