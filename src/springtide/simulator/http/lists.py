"""Lists, written in slices.

A list of everything may be half a gigabyte. It is written piece by piece, as fast as the client reads, and in between
others get their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from springtide.cluster.port import Page
from springtide.cluster.resources import Object, Selection
from springtide.simulator.api.catalogue import identity_of
from springtide.simulator.api.reading import Snapshot, matcher
from springtide.simulator.api.server import ApiServer
from springtide.simulator.http.answer import Answer
from springtide.simulator.http.options import ListOptions
from springtide.simulator.http.routes import Target
from springtide.simulator.http.views import CLOSING, View

_SLICE_BYTES = 256 * 1024
_SLICE_OBJECTS = 5000


def selection_of(target: Target, options: ListOptions) -> Selection:
    """Tell which objects a list or a watch is about."""
    return Selection(target.kind.resource, target.namespace, options.labels, options.fields)


async def listed(server: ApiServer, target: Target, options: ListOptions, view: View) -> Answer:
    """Answer with a list."""
    selection = selection_of(target, options)
    if options.limit or options.continue_ or options.exact:
        page = server.list(
            selection,
            limit=options.limit,
            continue_=options.continue_,
            version=options.version,
            exact=options.exact,
        )
    else:
        snapshot = snapshot_of(server, target, selection, options.version)
        page = Page(await gathered(snapshot), str(snapshot.revision))
    return Answer(_chunks(page, view))


def snapshot_of(server: ApiServer, target: Target, selection: Selection, version: str) -> Snapshot:
    """Take everything that is selected, as it is now."""
    kind = target.kind
    return Snapshot(
        server.storage,
        server.storage.collection(identity_of(kind.resource)),
        selection,
        matcher(selection, server.catalogue.selectable(kind)),
        server.versions.serving(kind),
        version=version,
    )


async def gathered(snapshot: Snapshot) -> list[Object]:
    """Collect the objects of a snapshot, and let others have their turn meanwhile."""
    items: list[Object] = []
    for part in snapshot.slices(_SLICE_OBJECTS):
        items += part
        await asyncio.sleep(0)
    return items


async def _chunks(page: Page, view: View) -> AsyncGenerator[bytes, None]:
    pieces, size = [view.opening(page)], 0
    comma = b""
    for item in page.items:
        entry = view.entry(item)
        pieces += (comma, entry)
        comma = b","
        size += len(entry)
        if size >= _SLICE_BYTES:
            yield b"".join(pieces)
            pieces, size = [], 0
            await asyncio.sleep(0)
    pieces.append(CLOSING)
    yield b"".join(pieces)
