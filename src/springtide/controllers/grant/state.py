"""What objects of each namespace may reach outside of the cluster: all Grants together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from springtide.apis.springtide.grants import Grant, GrantedResource, GrantSpec, is_granted, missing_grant_message
from springtide.cluster.controller import Cached, Permission
from springtide.cluster.resources import Object, Resource, Selection
from springtide.cluster.state import SharedState
from springtide.cluster.store import Delta
from springtide.controllers.validated import try_validation, validated

GRANTS = Resource("springtide.dev", "v1alpha1", "grants", "Grant", namespaced=False)
PERMISSIONS = (Permission(GRANTS, ("get", "list", "watch")),)


@dataclass(frozen=True, slots=True)
class GrantPolicy:
    """A service of the process: whether objects may reach what no Grant lists."""

    everything: bool = False
    """True only in embedded and simulated clusters, where the users who write objects also own the process."""


@dataclass(frozen=True, slots=True)
class _GrantRecord:
    spec: GrantSpec | None
    """None: the object has errors, and allows nothing."""


def _record(grant: Object) -> _GrantRecord:
    # Validated as the Grant controller does it, so that the status says what is enforced; no error depends on the time.
    sound = validated(grant, Grant, now=0, default_zone="UTC").sound
    return _GrantRecord(sound.spec if sound is not None else None)


ALL_GRANTS = Cached(Selection(GRANTS), record=_record, trial=try_validation)


class Grants(SharedState[None]):
    """All Grants of the cluster; a change of one may concern every object that needs one."""

    optional_sources = (ALL_GRANTS,)
    needs = (GrantPolicy,)

    def __init__(self, policy: GrantPolicy) -> None:
        self._policy = policy

    def apply(self, cached: Cached, delta: Delta[_GrantRecord]) -> None:  # noqa: ARG002 - the cache is read instead
        """Notify readers of a change."""
        self.publish(None)

    def refusal(self, namespace: str, reach: GrantedResource, target: str) -> str | None:
        """Say that no Grant allows a target, or give None where objects of the namespace may reach it."""
        if self._policy.everything or is_granted(self._specs(), namespace, reach, target):
            return None
        return missing_grant_message(namespace, reach, target)

    def _specs(self) -> Iterator[GrantSpec]:
        for granted in self.store(ALL_GRANTS).values():
            if granted.spec is not None:
                yield granted.spec
