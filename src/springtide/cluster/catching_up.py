"""Catching up with the cluster when a term begins: a cache must show what was written before it.

A process that takes over has followed the cluster while it stood by, but its watches may lag behind what its
predecessor did last, or what it did itself in an earlier term. It therefore asks once what there is, and waits until
its stores have come as far. The version of that answer would not do: it grows with every write of any kind, and a store
hears of those that do not concern it by bookmarks alone, a minute apart. The versions of the objects do: each is one
that a watch tells.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import msgspec

from springtide.cluster.backoff import Backoff
from springtide.cluster.clock import Clock
from springtide.cluster.errors import ClusterError
from springtide.cluster.port import Transport
from springtide.cluster.resources import Key, Selection, key_of, version_of
from springtide.cluster.store import Store

_PAGE = 500
_RETRIES = Backoff(first=0.5, longest=30.0)

log = logging.getLogger(__name__)


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = msgspec.field(default="", name="resourceVersion")


class _Version(msgspec.Struct, frozen=True):
    """As little of an object as tells its version."""

    metadata: _Metadata


async def catch_up(transport: Transport, selection: Selection, store: Store[Any], clock: Clock) -> None:
    """Wait until a store shows everything that the server holds now, whoever wrote it."""
    failures = 0
    while True:
        try:
            present, version = await _present(transport, replace(selection, view=_Version))
            break
        except ClusterError as failure:
            failures += 1
            pause = _RETRIES.after(failures)
            log.info("what there is of %s is asked again in %.1f s: %s", selection, pause, failure)
            await clock.sleep(pause)
    await store.reached(max(present.values(), default=0))
    for key in store.keys():  # noqa: SIM118 - a store is no dictionary: its keys are in order
        if key not in present:
            await store.lost(key, version)


async def _present(transport: Transport, selection: Selection) -> tuple[dict[Key, int], int]:
    """Ask for the versions of all objects, and for that at which they were read."""
    page = await transport.list(selection, limit=_PAGE)
    present = {key_of(item): version_of(item) for item in page.items}
    while page.continue_:
        page = await transport.list(selection, limit=_PAGE, continue_=page.continue_)
        present |= {key_of(item): version_of(item) for item in page.items}
    return present, int(page.version)
