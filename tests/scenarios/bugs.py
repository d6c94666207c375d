"""Deliberate bugs of the runtime, switched on by tests only: a scenario that does not find them proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from springtide.cluster.client import Client
from springtide.cluster.errors import Conflict
from springtide.cluster.lease import Leadership, Term
from springtide.cluster.origins import Origin
from springtide.cluster.port import Patch, Write
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.store import Store


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
    """Nobody asks before a write leaves whether the lease is still ours."""
    monkeypatch.setattr(Term, "permit", lambda self: None)


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
            key = Origin.of(of).key
            return await self._transport.patch(resource, key, patch, write, subresource=subresource)

    monkeypatch.setattr(Client, "patch", careless)


def take_a_conflict_for_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is too late for the lease believes to hold it."""
    take = Leadership._take

    async def careless(self: Leadership, term: Term, lease: Object) -> Any:
        try:
            return await take(self, term, lease)
        except Conflict:
            return self._held(term, self._clock.monotonic(), lease)

    monkeypatch.setattr(Leadership, "_take", careless)


BUGS: tuple[Callable[[pytest.MonkeyPatch], None], ...] = (
    skip_the_relist_diff,
    keep_what_is_gone,
    skip_the_deadline_check,
    ignore_a_conflict,
    take_a_conflict_for_success,
)
