"""The caches of a process, and what becomes of one that is broken."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from tests.cluster.scripted import PODS, Scripted, Stream, added, bookmark, modified

from springtide.cluster.caches import RESTART, Caches
from springtide.cluster.controller import Cached
from springtide.cluster.port import Event
from springtide.cluster.reflector import ReflectorSettings
from springtide.cluster.resources import Key, Selection
from springtide.cluster.store import Store
from springtide.simulator.time import VirtualClock, run

PODS_SEEN = Cached(Selection(PODS))
SYNCED = (added("a", 5, "n1"), bookmark(10, end=True))


class Fragile(Store[Any]):
    """A store that breaks on one version."""

    def apply(self, event: Event) -> None:
        """Take all but one event."""
        if event.object["metadata"]["resourceVersion"] == "13":
            raise ZeroDivisionError
        super().apply(event)


def caches(clock: VirtualClock, streams: Sequence[Stream], *cached: Cached, store: type[Store[Any]] = Store) -> Caches:
    """Put caches together that are filled from a script."""
    return Caches(
        Scripted(clock, streams),
        clock,
        cached,
        random=Random(1),
        settings=ReflectorSettings(),
        make_store=lambda one: store(one.record, one.indexes),
    )


def test_a_cache_that_a_bug_has_stopped_begins_anew_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    """Not at once, over and over."""

    async def main(clock: VirtualClock) -> list[float]:
        streams = [Stream([*SYNCED, modified("a", 13)]), Stream([modified("a", 13)]), Stream([modified("a", 14, "n2")])]
        made = caches(clock, streams, PODS_SEEN, store=Fragile)
        made.start()
        await clock.sleep(100)
        assert [item["spec"]["nodeName"] for item in made.stores[PODS_SEEN].values()] == ["n2"]
        made.stop()
        transport = made._transport
        assert isinstance(transport, Scripted)
        return [asked.at for asked in transport.asked]

    assert run(main) == [0, RESTART, 2 * RESTART]
    assert "the cache of pods is broken" in caplog.text


def test_those_who_share_a_cache_share_its_indexes() -> None:
    """Under different names; two of one name must be the same."""

    def by_node(item: Any) -> list[str]:
        return [item["spec"]["nodeName"]]

    async def main(clock: VirtualClock) -> None:
        one = Cached(Selection(PODS), indexes={"node": by_node})
        two = Cached(Selection(PODS), indexes={"node": by_node, "name": lambda item: [item["metadata"]["name"]]})
        made = caches(clock, [Stream(SYNCED)], one, two)
        made.start()
        await made.wait_settled()
        assert made.stores[one].keys_by("node", "n1") == made.stores[two].keys_by("name", "a") == [Key("default", "a")]
        made.stop()

        other = Cached(Selection(PODS), indexes={"node": lambda item: []})
        with pytest.raises(ValueError, match="the cache of pods has two different indexes named 'node', expected one"):
            caches(clock, [], one, other)

    run(main)


def test_health() -> None:
    """What is left out and what went wrong can be seen."""

    async def main(clock: VirtualClock) -> None:
        cached = Cached(Selection(PODS), record=lambda item: {"n1": 1}[item["spec"]["nodeName"]])
        made = caches(clock, [Stream([*SYNCED, added("b", 11, "n2")])], cached)
        (before,) = made.health()
        assert (before.selection, before.synced, before.last_contact, before.last_error) == ("pods", False, None, "")
        made.start()
        await clock.sleep(1)
        (after,) = made.health()
        assert (after.synced, after.version, after.objects, after.unreadable) == (True, 11, 1, 1)
        made.stop()

    run(main)
