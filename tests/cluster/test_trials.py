"""Trials of large objects: what is tried, in which order, and what becomes of the record meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, TypeVarTuple

import pytest

from springtide.cluster import trials
from springtide.cluster.clock import WallClock
from springtide.cluster.compute import ComputeInterrupted, ComputeLimitExceeded, InlineCompute, LiveCompute
from springtide.cluster.controller import Cached
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.store import Store
from springtide.cluster.transport import WatchEvent, WatchEventType
from springtide.cluster.trials import Trials
from springtide.simulator.virtual_time import VirtualClock, run

THINGS = Resource("example.dev", "v1", "things", "Thing")
LARGE = "x" * 40_000

Args = TypeVarTuple("Args")
ComputeResult = TypeVar("ComputeResult")


def thing(name: str, text: str, version: int = 1, **metadata: Any) -> Object:
    """Build an object whose spec is a text."""
    named = {"name": name, "namespace": "a", "resourceVersion": str(version), **metadata}
    return {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": named, "spec": {"text": text}}


def spec_of(item: Object) -> str:
    """Make the record of an object."""
    return str(item["spec"]["text"])


def spin(item: Object, now: int, default_zone: str) -> None:
    """Use CPU time without end where the text begins with `endless`; a trial."""
    while item["spec"]["text"].startswith("endless"):
        pass


def fail(item: Object, now: int, default_zone: str) -> None:
    """Fail; a trial."""
    raise ValueError("a bug")


class HeldCompute(InlineCompute):
    """Runs limited calls when the test permits it, one at a time; lists the names of the objects."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.tried: list[str] = []
        self.permits = asyncio.Semaphore(0)
        self.exceeded = False
        self.failures: list[Exception] = []
        """What the next calls raise."""

    async def run_limited(
        self, function: Callable[[*Args], ComputeResult], *args: *Args, cost: float, cpu: float | None = None
    ) -> ComputeResult:
        """Run a call once it is permitted."""
        given: tuple[Any, ...] = args
        item: Object = given[1]
        self.tried.append(f"{item['metadata']['namespace']}/{item['metadata']['name']}")
        await self.permits.acquire()
        if self.failures:
            raise self.failures.pop(0)
        if self.exceeded:
            raise ComputeLimitExceeded("it took too long")
        return await super().run_limited(function, *args, cost=cost, cpu=cpu)


class Tried:
    """A store that tries large objects."""

    def __init__(self, clock: VirtualClock, trial: Callable[[Object, int, str], object] = spin) -> None:
        self.compute = HeldCompute(clock)
        cached = Cached(Selection(THINGS), record=spec_of, trial=trial)
        trials_ = Trials(self.compute, clock, default_zone="UTC")
        gated = trials_.gated(cached)
        self.store = Store[str](gated.record)
        trials_.bind({cached: self.store})
        self.store.replace((), 0)

    def write(self, item: Object, change: WatchEventType = WatchEventType.MODIFIED) -> None:
        """Let a watch report an object."""
        self.store.apply(WatchEvent(change, item))

    async def permit(self, trials_: int = 1) -> None:
        """Let so many trials end."""
        for _ in range(trials_):
            self.compute.permits.release()
            await asyncio.sleep(0.5)


def play(story: Callable[[Tried], Awaitable[None]], trial: Callable[[Object, int, str], object] = spin) -> None:
    """Play a story in virtual time."""

    async def main(clock: VirtualClock) -> None:
        await story(Tried(clock, trial))

    run(main)


def test_a_small_object_is_not_tried() -> None:
    async def story(tried: Tried) -> None:
        tried.write(thing("one", "small"))
        await asyncio.sleep(1)
        assert (tried.store.values(), tried.compute.tried) == (["small"], [])

    play(story)


def test_a_large_object_is_absent_until_it_has_passed() -> None:
    async def story(tried: Tried) -> None:
        tried.write(thing("one", LARGE))
        await asyncio.sleep(1)
        assert tried.store.values() == []
        assert tried.store.set_aside(Key("a", "one")) is None
        await tried.permit()
        assert tried.store.values() == [LARGE]
        assert tried.store.unreadable == {}

    play(story)


def test_status_and_cursor_writes_cause_no_trial() -> None:
    async def story(tried: Tried) -> None:
        tried.write(thing("one", LARGE))
        await tried.permit()
        tried.write({**thing("one", LARGE, 2, annotations={"springtide.dev/cron-cursor": "{}"}), "status": {"a": 1}})
        assert tried.store.version == 2
        assert tried.compute.tried == ["a/one"]

    play(story)


@pytest.mark.parametrize("relisted", [False, True], ids=["watch", "list"])
def test_the_former_record_stays_during_a_trial(relisted: bool) -> None:
    async def story(tried: Tried) -> None:
        tried.write(thing("one", "small"))
        edited = thing("one", LARGE, 2)
        if relisted:
            tried.store.replace([edited], 2)
        else:
            tried.write(edited)
        assert tried.store.values() == ["small"]
        await tried.permit()
        assert tried.store.values() == [LARGE]

    play(story)


@pytest.mark.parametrize("relisted", [False, True], ids=["watch", "list"])
def test_an_object_that_is_set_aside_counts_as_absent(relisted: bool) -> None:
    async def story(tried: Tried) -> None:
        aside: list[Key] = []
        tried.store.listen_to_set_aside(aside.append)
        tried.write(thing("one", "small"))
        tried.compute.exceeded = True
        tried.write(thing("one", LARGE, 2))
        await tried.permit()
        assert tried.store.values() == []
        assert aside == [Key("a", "one")]
        again = {**thing("one", LARGE, 3), "status": {"shown": True}}
        if relisted:
            tried.store.replace([again], 3)
        else:
            tried.write(again)
        held = tried.store.set_aside(Key("a", "one"))
        assert held is not None
        assert held.item["metadata"]["resourceVersion"] == "3"
        assert held.item["status"] == {"shown": True}
        assert "spec" not in held.item
        assert aside == [Key("a", "one")] * 2
        assert tried.compute.tried == ["a/one"]

    play(story)


def test_a_trial_may_end_while_the_list_is_still_read() -> None:
    async def story(tried: Tried) -> None:
        item = thing("one", LARGE, 1)
        record = tried.store.read(item)
        await tried.permit()
        tried.store.replace_records({Key("a", "one"): record}, 1)
        assert tried.store.values() == [LARGE]
        assert tried.compute.tried == ["a/one"]

    play(story)


def test_status_writes_during_a_trial_neither_repeat_nor_discard_it() -> None:
    async def story(tried: Tried) -> None:
        tried.write(thing("one", LARGE))
        tried.write(thing("two", LARGE, 2))
        await asyncio.sleep(1)
        tried.write({**thing("one", LARGE, 3), "status": {"shown": True}})
        await tried.permit()
        assert tried.store.values() == [LARGE]
        await tried.permit()
        assert tried.compute.tried == ["a/one", "a/two"]

    play(story)


@pytest.mark.parametrize(
    ("failures", "values"),
    [
        pytest.param([ComputeInterrupted("killed"), OSError("no process")], [LARGE], id="passes-later"),
        pytest.param([ComputeInterrupted("killed")] * 3, [], id="interrupted-each-time"),
    ],
)
def test_an_interrupted_trial_is_repeated(failures: list[Exception], values: list[str]) -> None:
    """What may be no fault of the object is not marked as tried, so that the next process tries it again."""

    async def story(tried: Tried) -> None:
        tried.compute.failures = list(failures)
        tried.write(thing("one", LARGE))
        for _ in range(3):
            await tried.permit()
            await asyncio.sleep(5)
        assert tried.compute.tried == ["a/one"] * 3
        assert tried.store.values() == values
        held = tried.store.set_aside(Key("a", "one"))
        assert (held is None) == bool(values)
        assert held is None or held.reason.endswith("divide it among several objects")

    play(story)


def test_the_trial_of_former_contents_decides_nothing() -> None:
    async def story(tried: Tried) -> None:
        tried.compute.exceeded = True
        tried.write(thing("one", LARGE))
        await asyncio.sleep(1)
        tried.write(thing("one", "small", 2))
        await tried.permit()
        assert tried.store.values() == ["small"]

    play(story)


def test_an_object_that_is_deleted_during_its_trial_does_not_come_back() -> None:
    async def story(tried: Tried) -> None:
        tried.write(thing("one", LARGE))
        await asyncio.sleep(1)
        tried.write(thing("one", LARGE, 2), WatchEventType.DELETED)
        await tried.permit()
        assert tried.store.values() == []
        assert tried.store.unreadable == {}

    play(story)


def test_namespaces_take_turns() -> None:
    async def story(tried: Tried) -> None:
        for number in range(3):
            tried.write(thing(f"a{number}", LARGE, number + 1))
        tried.write(thing("b0", LARGE, 4, namespace="b"))
        await tried.permit(4)
        assert tried.compute.tried == ["a/a0", "b/b0", "a/a1", "a/a2"]

    play(story)


def test_a_trial_that_fails_is_passed() -> None:
    """The reconcile will fail likewise, and report it."""

    async def story(tried: Tried) -> None:
        tried.write(thing("one", LARGE))
        await tried.permit()
        assert tried.store.values() == [LARGE]

    play(story, fail)


@pytest.mark.parametrize(
    ("item", "part"),
    [
        pytest.param(thing("one", LARGE), "`spec.text` has 40 kB", id="text"),
        pytest.param(
            thing("one", "", annotations={"springtide.dev/extensions": LARGE}),
            "`metadata.annotations.springtide.dev/extensions` has 40 kB",
            id="extensions",
        ),
        pytest.param(
            {**thing("one", ""), "spec": {"rules": [{"name": LARGE}], "other": LARGE[:30_000]}},
            "`spec.rules` has 40 kB",
            id="list",
        ),
        pytest.param(thing("one", "", annotations={LARGE: "x"}), "`metadata.annotations` has 40 kB", id="long-name"),
        pytest.param(
            {**thing("one", ""), "spec": {f"field{n}": LARGE[:1000] for n in range(40)}}, "`spec` has 41 kB", id="many"
        ),
    ],
)
def test_the_message_names_the_largest_part(item: Object, part: str) -> None:
    message = trials.failure_message(item, "it took more than 1 s of CPU time", 40_021, "abc")
    assert message.startswith(
        "set aside, nothing is done about it: when it was validated, it took more than 1 s of CPU"
    )
    assert f"; it has 40 kB, of which {part}: shorten that, or divide it among several objects (springtide " in message


def test_a_trial_without_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a live process; the event loop and other objects do not wait for it."""
    monkeypatch.setattr(trials, "MOST_CPU", 0.1)

    async def main() -> None:
        compute = LiveCompute(1)
        tried = Trials(compute, WallClock(), default_zone="UTC")
        cached = Cached(Selection(THINGS), record=spec_of, trial=spin)
        store = Store[str](tried.gated(cached).record)
        tried.bind({cached: store})
        aside = asyncio.Event()
        store.listen_to_set_aside(lambda key: aside.set())
        try:
            store.replace((thing("endless", f"endless {LARGE}"), thing("large", LARGE), thing("small", "small")), 1)
            assert [key.name for key in store.keys()] == ["small"]  # noqa: SIM118 - a store is no dictionary
            await aside.wait()
            held = store.set_aside(Key("a", "endless"))
            assert held is not None
            assert "when it was validated, it took more than 0.1 s of CPU time; it has" in held.reason
            while Key("a", "large") not in store:
                await asyncio.sleep(0.01)
        finally:
            tried.stop()
            compute.close()

    asyncio.run(main())
