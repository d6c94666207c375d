"""Kinds that may not be installed: who can do without does not wait for them, and sees them when they come."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.cluster.managed import WORK, Process, length, stamper
from tests.cluster.small_world import START, USER, SmallWorld
from tests.cluster.test_manager import play

from springtide.cluster.controller import Cached, Watch, to_nobody
from springtide.cluster.resources import Resource, Selection
from springtide.metrics.checks import caches_are_filled
from springtide.simulator.time import VirtualClock

CALENDARS = Resource("springtide.dev", "v1alpha1", "calendars", "Calendar", namespaced=False)
HOLIDAYS = {
    "apiVersion": "springtide.dev/v1alpha1",
    "kind": "Calendar",
    "metadata": {"name": "holidays"},
    "spec": {"dates": ["2026-12-24"]},
}
MAYBE = Cached(Selection(CALENDARS))


def problems(process: Process) -> list[str]:
    """List what the process is not ready for."""
    return [finding.name for finding in caches_are_filled(process.manager)() if finding.problem]


def test_what_is_optional_and_not_installed_holds_nobody_back(caplog: pytest.LogCaptureFixture) -> None:
    """Work begins at once, the process is ready, nobody is warned, and what is installed later shows by itself."""
    caplog.set_level(logging.INFO)
    kind = stamper(watches=(Watch(WORK), Watch(MAYBE, to_nobody, optional=True)))

    async def story(world: SmallWorld, clock: VirtualClock) -> None:
        world.config_map("a", text="xyz")
        process = Process(world, clock, kind)
        await clock.sleep(5)
        assert length(world, "a") == "3"
        assert problems(process) == []
        await clock.sleep(200)
        assert [record.levelname for record in caplog.records if "is not served" in record.message] == ["INFO"]

        world.install_calendars()
        world.server.create(CALENDARS, HOLIDAYS, USER)
        await clock.sleep(120)
        found: dict[str, Any] = {cache.selection: cache.objects for cache in process.manager.cache_health()}
        assert found["calendars.springtide.dev"] == 1
        await process.manager.stop()

    play(story)


def test_what_is_needed_and_not_installed_is_waited_for() -> None:
    """One controller that needs a kind makes it needed, whoever else could do without."""
    easy = stamper(watches=(Watch(WORK), Watch(MAYBE, to_nobody, optional=True)))
    strict = stamper(name="strict", watches=(Watch(WORK), Watch(MAYBE, to_nobody)))

    async def story(world: SmallWorld, clock: VirtualClock) -> None:
        world.config_map("a", text="xyz")
        process = Process(world, clock, easy, strict)
        await clock.sleep(60)
        assert (bool(easy.seen), strict.seen) == (True, [])
        assert easy.seen[0][1] >= START + 30, "everybody waits a while for what somebody needs"
        assert problems(process) == ["cache calendars.springtide.dev"]
        world.install_calendars()
        await clock.sleep(60)
        assert strict.seen
        assert problems(process) == []
        await process.manager.stop()

    play(story)
