"""Deliberate bugs of the runtime, switched on by tests only: a scenario that does not find them proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pytest

from springtide.cluster.client import Client
from springtide.cluster.errors import Conflict, RequestTimeout
from springtide.cluster.leader_election import LeaderElector, LeadershipTerm
from springtide.cluster.pausing import PausedObjects
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.store import Store
from springtide.cluster.transport import ObjectVersion, Patch, Write
from springtide.cluster.workqueue import WorkQueue


def skip_the_relist_diff(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a 410 the version of the new list is taken over, and what it differs in is not."""
    replace = Store.replace_records

    def careless(self: Store[Any], records: Mapping[Key, Any], version: int) -> None:
        if self.synced:
            self.advance(version)
        else:
            replace(self, records, version)

    monkeypatch.setattr(Store, "replace_records", careless)


def keep_what_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a 410 what the new list does not have any more is kept."""
    replace = Store.replace_records

    def careless(self: Store[Any], records: Mapping[Key, Any], version: int) -> None:
        replace(self, {**{key: self.get(key) for key in self.keys()}, **records}, version)

    monkeypatch.setattr(Store, "replace_records", careless)


def skip_the_deadline_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client does not check before a write that the process still holds the lease."""
    monkeypatch.setattr(LeadershipTerm, "permit", lambda self: None)


def ignore_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that meets a newer version is sent again, without asking what it overwrites."""
    patch_once = Client.patch

    async def careless(
        self: Client, resource: Resource, patch: Patch, *, of: Any, because: str, subresource: str = "", **how: Any
    ) -> Object:
        try:
            return await patch_once(self, resource, patch, of=of, because=because, subresource=subresource, **how)
        except Conflict:
            write = Write(self.manager, because, permit=self._permit)
            key = ObjectVersion.of(of).key
            return await self._transport.patch(resource, key, patch, write, subresource=subresource)

    monkeypatch.setattr(Client, "patch", careless)


def take_a_conflict_for_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate that loses the race for the lease takes itself for the leader."""
    take = LeaderElector._take

    async def careless(self: LeaderElector, term: LeadershipTerm, lease: Object) -> Any:
        try:
            return await take(self, term, lease)
        except Conflict:
            return self._held(term, self._clock.monotonic(), lease)

    monkeypatch.setattr(LeaderElector, "_take", careless)


def ignore_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What people have paused is written all the same."""
    monkeypatch.setattr(PausedObjects, "__contains__", lambda self, key: False)


def drop_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that failed does not come again."""
    monkeypatch.setattr(WorkQueue, "add_failed", lambda self, key: None)


def forget_instants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are not requeued at the time that the controller returned."""
    monkeypatch.setattr(WorkQueue, "add_at", lambda self, key, at: None)


def tell_nobody_of_a_relist(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a 410 the store is right, but those who listen do not hear what has changed."""
    replace = Store.replace_records

    def careless(self: Store[Any], records: Mapping[Key, Any], version: int) -> None:
        listeners, self._listeners = self._listeners, [] if self.synced else self._listeners
        try:
            replace(self, records, version)
        finally:
            self._listeners = listeners

    monkeypatch.setattr(Store, "replace_records", careless)


def take_a_conflict_for_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that is refused is not tried again."""
    patch_once = Client.patch

    async def careless(self: Client, *arguments: Any, **how: Any) -> Object:
        try:
            return await patch_once(self, *arguments, **how)
        except Conflict:
            return {}

    monkeypatch.setattr(Client, "patch", careless)


def take_a_timeout_for_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write with an unknown outcome is taken for one that succeeded."""
    patch_once = Client.patch

    async def careless(self: Client, *arguments: Any, **how: Any) -> Object:
        try:
            return await patch_once(self, *arguments, **how)
        except RequestTimeout:
            return {}

    monkeypatch.setattr(Client, "patch", careless)


Bug: TypeAlias = Callable[[pytest.MonkeyPatch], None]

UNDER_A_LEASE: tuple[Bug, ...] = (
    skip_the_relist_diff,
    keep_what_is_gone,
    skip_the_deadline_check,
    ignore_a_conflict,
    take_a_conflict_for_success,
    ignore_pauses,
)
"""Bugs that show where replicas take turns and people edit all the time."""

WHERE_NOTHING_COMES_AGAIN: tuple[Bug, ...] = (
    drop_what_failed,
    forget_instants,
    tell_nobody_of_a_relist,
    take_a_conflict_for_done,
    take_a_timeout_for_done,
)
"""Bugs that show only where nothing is looked at again by chance."""
