"""A reflector keeps its store equal to the server, through failures and restarts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from random import Random

import pytest
from tests.cluster.scripted_transport import (
    PODS,
    Asked,
    Quiet,
    ScriptedTransport,
    Stream,
    added,
    bookmark,
    deleted,
    modified,
    pod,
)

from springtide.cluster.clock import Backoff
from springtide.cluster.errors import (
    BadRequest,
    ClusterError,
    ConnectionLost,
    Forbidden,
    Gone,
    Invalid,
    MethodNotAllowed,
    NotFound,
    RequestTimeout,
    ServerError,
    TooManyRequests,
)
from springtide.cluster.reflector import Reflector, ReflectorSettings
from springtide.cluster.resources import Selection
from springtide.cluster.store import Delta, Store
from springtide.cluster.transport import ListPage, WatchEvent, WatchEventType
from springtide.simulator.virtual_time import VirtualClock, run

WHOLE_SECONDS = ReflectorSettings(retries=Backoff(first=1.0, longest=8.0))
SYNCED = (added("a", 5, "n1"), added("b", 7, "n1"), bookmark(10, end=True))
"""The initial events of a WatchList of two pods."""

Answers = Sequence[ListPage | Stream | ClusterError]


class ReflectorRun:
    """A reflector with a scripted transport, and every delta of its store."""

    def __init__(self, clock: VirtualClock, answers: Answers, settings: ReflectorSettings, seed: int = 0) -> None:
        self.transport = ScriptedTransport(clock, answers)
        self.store: Store[str] = Store(lambda item: item["spec"]["nodeName"])
        self.deltas: list[tuple[str, str | None, str | None]] = []
        self.store.listen(self._note)
        self.reflector = Reflector(
            self.transport, Selection(PODS), self.store, clock=clock, random=Random(seed), settings=settings
        )

    def _note(self, delta: Delta[str]) -> None:
        self.deltas.append((delta.key.name, delta.old, delta.new))

    @property
    def contents(self) -> dict[str, str]:
        return {key.name: value for key, value in zip(self.store.keys(), self.store.values(), strict=True)}

    @property
    def times(self) -> list[float]:
        return [round(asked.at, 3) for asked in self.transport.asked]


def run_reflector(
    answers: Answers, *, seconds: float = 100, settings: ReflectorSettings = WHOLE_SECONDS, seed: int = 0
) -> ReflectorRun:
    """Run a reflector for a while with scripted answers."""

    async def main(clock: VirtualClock) -> ReflectorRun:
        result = ReflectorRun(clock, answers, settings, seed)
        running = asyncio.create_task(result.reflector.run())
        await clock.sleep(seconds)
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert result.transport.open == 0
        return result

    return run(main)


def watch(version: str = "") -> Asked:
    return Asked("watch", version)


def watch_list(version: str = "") -> Asked:
    return Asked("watch", version, initial_events=True)


def listing(version: str = "", continue_: str = "") -> Asked:
    return Asked("list", version, limit=500, continue_=continue_)


@pytest.mark.parametrize(
    ("answers", "asked", "contents", "version"),
    [
        pytest.param([Stream(SYNCED)], [watch_list()], {"a": "n1", "b": "n1"}, 10, id="a WatchList"),
        pytest.param([Stream([bookmark(3, end=True)])], [watch_list()], {}, 3, id="an empty WatchList"),
        pytest.param(
            [Stream([added("a", 5), bookmark(6), modified("a", 7, "n1"), added("b", 8), deleted("b", 9), SYNCED[-1]])],
            [watch_list()],
            {"a": "n1"},
            10,
            id="changes before the WatchList is complete",
        ),
        pytest.param(
            [Stream([*SYNCED, modified("a", 11, "n2"), deleted("b", 12), added("c", 13, "n3")])],
            [watch_list()],
            {"a": "n2", "c": "n3"},
            13,
            id="a WatchList continues as a watch",
        ),
        pytest.param(
            [Stream([*SYNCED, bookmark(20)])], [watch_list()], {"a": "n1", "b": "n1"}, 20, id="bookmarks advance"
        ),
        pytest.param(
            [Stream([*SYNCED, bookmark(20)], ends=True), Stream([added("c", 21)])],
            [watch_list(), watch("20")],
            {"a": "n1", "b": "n1", "c": ""},
            21,
            id="after the end of a stream the watch continues, without a list",
        ),
        pytest.param(
            [Stream([*SYNCED, modified("a", 11), ConnectionLost("reset")]), Stream([deleted("a", 12)])],
            [watch_list(), watch("11")],
            {"b": "n1"},
            12,
            id="after a broken stream the watch continues, without a list",
        ),
        pytest.param(
            [Stream([*SYNCED, Gone("compacted")]), Stream([added("b", 11, "n2"), bookmark(30, end=True)])],
            [watch_list(), watch_list("10")],
            {"b": "n2"},
            30,
            id="after a compacted version a relist, not older than the store",
        ),
        pytest.param(
            [Stream([added("a", 5)], ends=True), Stream(SYNCED)],
            [watch_list(), watch_list()],
            {"a": "n1", "b": "n1"},
            10,
            id="a WatchList that ends too early is discarded",
        ),
        pytest.param(
            [
                Stream([*SYNCED, Gone("compacted")]),
                Gone("compacted"),
                Stream([bookmark(30, end=True)]),
            ],
            [watch_list(), watch_list("10"), watch_list()],
            {},
            30,
            id="a server that cannot serve the version of the store is asked for the newest",
        ),
        pytest.param(
            [
                Stream([*SYNCED, Gone("compacted")]),
                Gone("compacted"),
                Stream([bookmark(30, end=True), bookmark(31), Gone("compacted")]),
                Stream([bookmark(40, end=True)]),
            ],
            [watch_list(), watch_list("10"), watch_list(), watch_list("31")],
            {},
            40,
            id="after its answer the version is required again",
        ),
        pytest.param(
            [Stream([*SYNCED, Gone("compacted")]), Stream([bookmark(9, end=True)]), Stream([bookmark(12, end=True)])],
            [watch_list(), watch_list("10"), watch_list()],
            {},
            12,
            id="a stale WatchList is refused",
        ),
        pytest.param(
            [Stream([*SYNCED, Forbidden("no")]), Stream([bookmark(12, end=True)])],
            [watch_list(), watch_list("10")],
            {},
            12,
            id="a permanent failure of a watch leads to a relist",
        ),
        *(
            pytest.param(
                [error, ListPage([pod("a", 5)], "10"), Stream([modified("a", 11, "n1")])],
                [watch_list(), listing(), watch("10")],
                {"a": "n1"},
                11,
                id=f"no WatchList ({type(error).__name__}): a list, and a watch from its version",
            )
            for error in (BadRequest("what?"), Invalid("sendInitialEvents: Forbidden"), MethodNotAllowed("no"))
        ),
        pytest.param(
            [
                Invalid("no WatchList"),
                ListPage([pod("a", 5)], "10", "more"),
                ListPage([pod("b", 6)], "10", "rest"),
                ListPage([pod("c", 7)], "10"),
            ],
            [watch_list(), listing(), listing("", "more"), listing("", "rest"), watch("10")],
            {"a": "", "b": "", "c": ""},
            10,
            id="pages",
        ),
        pytest.param(
            [
                Invalid("no WatchList"),
                ListPage([pod("a", 5), pod("b", 5)], "10", "more"),
                Gone("the continue token is too old"),
                ListPage([pod("a", 20), pod("z", 20)], "20"),
                Stream([Quiet(9), Gone("compacted")]),
                ListPage([pod("a", 30)], "30"),
            ],
            [watch_list(), listing(), listing("", "more"), Asked("list"), watch("20"), listing("20"), watch("30")],
            {"a": ""},
            30,
            id="pages that expire lead to one unpaged list",
        ),
        pytest.param(
            [
                Invalid("no WatchList"),
                ListPage([pod("a", 5)], "10"),
                Stream([Quiet(5), Gone("compacted")]),
                ListPage([pod("b", 20)], "20"),
            ],
            [watch_list(), listing(), watch("10"), listing("10"), watch("20")],
            {"b": ""},
            20,
            id="a missing WatchList is remembered",
        ),
        pytest.param(
            [
                Invalid("no WatchList"),
                ListPage([pod("a", 5)], "10"),
                Stream([Quiet(5), Gone("compacted")]),
                ListPage([pod("old", 3)], "4"),
                ListPage([pod("b", 20)], "20"),
            ],
            [watch_list(), listing(), watch("10"), listing("10"), listing(), watch("20")],
            {"b": ""},
            20,
            id="a stale list is refused",
        ),
    ],
)
def test_requests_and_resulting_state(
    answers: Answers, asked: list[Asked], contents: dict[str, str], version: int
) -> None:
    result = run_reflector(answers)

    assert result.transport.asked == asked
    assert result.contents == contents
    assert result.store.version == version
    assert result.store.synced


def test_the_store_is_empty_until_the_first_list_is_complete() -> None:
    result = run_reflector([Stream([added("a", 5), bookmark(7)])])

    assert result.contents == {}
    assert not result.store.synced
    assert result.deltas == []


def test_a_relist_makes_deltas_only_for_differences() -> None:
    again = [added("a", 5, "n1"), added("b", 12, "n2"), added("c", 13, "n3"), bookmark(30, end=True)]
    result = run_reflector([Stream([*SYNCED, added("d", 11, "n4"), Gone("compacted")]), Stream(again)])

    assert result.deltas[3:] == [("d", "n4", None), ("b", "n1", "n2"), ("c", None, "n3")]
    assert result.reflector.relists == 1


def test_a_replay_after_a_reconnect_makes_no_deltas() -> None:
    replay = [added("b", 7, "n1"), modified("a", 8, "old"), deleted("b", 11), modified("a", 12, "n3")]
    result = run_reflector([Stream([*SYNCED, deleted("b", 11)], ends=True), Stream(replay)])

    assert result.contents == {"a": "n3"}
    assert result.deltas[2:] == [("b", "n1", None), ("a", "n1", "n3")]


def test_a_restart_of_the_server_makes_no_deltas() -> None:
    down = [ConnectionLost("refused")] * 3
    result = run_reflector([Stream([*SYNCED, ConnectionLost("reset")]), *down, Stream([modified("a", 11, "n2")])])

    assert result.deltas == [("a", None, "n1"), ("b", None, "n1"), ("a", "n1", "n2")]
    assert result.reflector.relists == 0


@pytest.mark.parametrize(
    ("answers", "times"),
    [
        pytest.param([RequestTimeout("slow")] * 6, [0, 1, 3, 7, 15, 23, 31], id="backoff doubles up to the limit"),
        pytest.param(
            [ServerError("boom"), ServerError("boom"), Stream([*SYNCED, added("c", 11), ServerError("boom")])],
            [0, 1, 3, 4],
            id="an event resets the backoff",
        ),
        pytest.param(
            [ServerError("boom"), ServerError("boom"), Stream([*SYNCED, ServerError("boom")])],
            [0, 1, 3, 7],
            id="a list alone does not reset the backoff",
        ),
        pytest.param([Stream(SYNCED, ends=True)], [0, 0], id="an orderly end is no failure"),
        pytest.param([TooManyRequests("later", retry_after=25)], [0, 25], id="Retry-After is respected"),
        pytest.param(
            [TooManyRequests("later", retry_after=0.1)], [0, 1], id="a short Retry-After does not shorten the backoff"
        ),
        pytest.param(
            [*[NotFound("no such kind")] * 3, *[TooManyRequests("initializing", retry_after=0.1)] * 2],
            [0, 1, 3, 7, 8, 10],
            id="Retry-After resets an earlier backoff",
        ),
        pytest.param(
            [Stream([*SYNCED, Quiet(9), Gone("x")])], [0, 9], id="a compacted version leads to a relist at once"
        ),
        pytest.param(
            [Stream([*SYNCED, Quiet(9), Gone("x")]), Gone("x"), Gone("x")],
            [0, 9, 11, 15],
            id="but not in a loop",
        ),
        pytest.param([Stream(SYNCED, ends=True), Stream(())], [0, 0], id="a watch that stays open"),
        pytest.param(
            [Stream(SYNCED, ends=True), Stream((), ends=True), Stream((), ends=True)],
            [0, 0, 1, 3],
            id="a watch that ends at once is a failure",
        ),
        pytest.param(
            [Stream(SYNCED, ends=True), Stream([Quiet(1)], ends=True), Stream([bookmark(12)], ends=True)],
            [0, 0, 1, 1],
            id="a watch with a duration or an event is no failure",
        ),
        pytest.param(
            [
                Stream(SYNCED, ends=True),
                *[ConnectionLost("refused")] * 2,
                Stream([Quiet(2)], ends=True),
                ConnectionLost("refused"),
            ],
            [0, 0, 1, 3, 5, 6],
            id="and resets the backoff",
        ),
        pytest.param([Stream([added("a", 5)], ends=True)], [0, 1], id="an early end of a WatchList is a failure"),
        pytest.param(
            [Stream([*SYNCED, Quiet(20), ConnectionLost("cut")]), *[Stream([Quiet(20), ConnectionLost("cut")])] * 2],
            [0, 20 + 1, 41 + 2, 63 + 4],
            id="broken watches without events are failures",
        ),
        pytest.param(
            [Stream([*SYNCED, Quiet(70), ConnectionLost("cut")]), *[Stream([Quiet(70), ConnectionLost("cut")])] * 2],
            [0, 70 + 1, 141 + 1, 212 + 1],
            id="broken watches of a minute are no failures",
        ),
        pytest.param(
            [Stream([bookmark(10 * n, end=True), added("a", 10 * n + 1), Gone("x")]) for n in (1, 2, 3)],
            [0, 1, 3, 7],
            id="versions compacted right after a list wait for backoff",
        ),
    ],
)
def test_times_of_requests(answers: Answers, times: list[float]) -> None:
    assert run_reflector(answers, seconds=250 if times[-1] > 100 else 100).times == times


def test_repeated_server_errors_of_a_watch_lead_to_a_relist() -> None:
    """The server may never have the version, and answer with a 5xx."""
    result = run_reflector(
        [Stream(SYNCED, ends=True), *[ServerError("too large")] * 5, Stream([bookmark(12, end=True)])]
    )

    assert result.transport.asked == [watch_list(), *[watch("10")] * 5, watch_list("10")]


def test_repeated_connection_failures_lead_to_no_relist() -> None:
    """When the server is back, all clients reconnect at once, and must not all list everything."""
    result = run_reflector([Stream(SYNCED, ends=True), *[ConnectionLost("refused")] * 7], seconds=200)

    assert result.transport.asked == [watch_list(), *[watch("10")] * 8]


def test_a_server_at_a_lower_version_is_not_followed(caplog: pytest.LogCaptureFixture) -> None:
    """It was restored from a backup, or lags behind: an administrator must look."""
    again = [Stream([added("z", 3, "n9"), bookmark(4, end=True)])] * 9
    with caplog.at_level(logging.WARNING):
        result = run_reflector([Stream([*SYNCED, Quiet(9), Gone("compacted")]), *again])

    assert (result.contents, result.store.version) == ({"a": "n1", "b": "n1"}, 10)
    words = "the server lists pods at version 4, although it showed 10 before"
    assert str(result.reflector.last_error) == words
    assert all(words in record.message for record in caplog.records)
    assert len(caplog.records) > 5


def test_a_server_that_went_back_is_noticed_without_watch_events(caplog: pytest.LogCaptureFixture) -> None:
    """It waits until it has reached the version; by then its objects are different, so they are listed again."""
    silence = Stream([Quiet(90)], ends=True)
    behind = [bookmark(4, end=True)]
    with caplog.at_level(logging.WARNING):
        result = run_reflector(
            [Stream(SYNCED, ends=True), silence, ListPage([], "4"), Stream(behind), Stream([bookmark(12, end=True)])],
            seconds=200,
        )

    assert result.transport.asked == [watch_list(), watch("10"), Asked("list", limit=1), watch_list(), watch_list()]
    words = "the server lists pods at version 4, although it showed 10 before"
    assert [words in record.message for record in caplog.records] == [True, True]
    assert (result.contents, result.store.version, result.reflector.relists) == ({}, 12, 1)


def test_a_silent_server_is_only_asked_for_its_version() -> None:
    silence = Stream([Quiet(90)], ends=True)
    result = run_reflector(
        [Stream(SYNCED, ends=True), silence, ListPage([], "10"), silence, ListPage([], "99")], seconds=200
    )

    assert result.transport.asked == [
        watch_list(),
        *(watch("10"), Asked("list", limit=1)) * 2,
        watch("10"),
    ]
    assert (result.contents, result.reflector.relists, result.reflector.last_contact) == (
        {"a": "n1", "b": "n1"},
        0,
        180.0,
    )


def test_an_unreadable_object_is_left_out() -> None:
    """In a WatchList, in pages, and in a watch; the version advances."""
    specless = WatchEvent(
        WatchEventType.ADDED, {"metadata": {"namespace": "default", "name": "odd", "resourceVersion": "9"}}
    )
    conversations: list[Answers] = [
        [Stream([*SYNCED[:2], specless, SYNCED[2], added("c", 11)])],
        [Invalid("no WatchList"), ListPage([*[one.object for one in SYNCED[:2]], specless.object], "10")],
    ]
    for answers in conversations:
        result = run_reflector(answers)
        assert result.contents.keys() >= {"a", "b"}
        assert [key.name for key in result.store.unreadable] == ["odd"]
        assert result.store.version >= 10


def test_backoff_is_that_of_kubernetes_clients() -> None:
    result = run_reflector([ConnectionLost("refused")] * 9, seconds=400, settings=ReflectorSettings())
    pauses = [after - before for before, after in zip(result.times, result.times[1:], strict=False)]

    for pause, least in zip(pauses, [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30], strict=True):
        assert least <= pause <= 2 * least
    assert len({round(pause / least, 3) for pause, least in zip(pauses, [0.8, 1.6, 3.2], strict=False)}) == 3


def test_watches_are_restarted_after_five_to_ten_minutes_at_random() -> None:
    result = run_reflector(
        [Stream(SYNCED), *(Stream([bookmark(version)]) for version in range(11, 200))], seconds=36_000
    )
    timeouts = [asked.timeout for asked in result.transport.asked]

    assert len(timeouts) > 60
    assert all(timeout is not None and 300 <= timeout <= 600 for timeout in timeouts)
    assert len(set(timeouts)) > 30


def test_the_same_seed_leads_to_the_same_times() -> None:
    answers = [ConnectionLost("refused")] * 5
    first, second, other = (run_reflector(answers, settings=ReflectorSettings(), seed=seed).times for seed in (1, 1, 2))

    assert first == second
    assert first != other


def test_the_page_size_is_a_setting() -> None:
    result = run_reflector([Invalid("no WatchList"), ListPage([], "10")], settings=ReflectorSettings(page_size=7))

    assert result.transport.asked[1] == Asked("list", "", limit=7)


def test_health() -> None:
    async def main(clock: VirtualClock) -> None:
        error = ServerError("boom")
        stream = Stream([*SYNCED, Quiet(4), error])
        result = ReflectorRun(clock, [stream, error, Stream([Quiet(10), added("c", 11)])], WHOLE_SECONDS)
        reflector = result.reflector
        assert (reflector.last_contact, reflector.last_error) == (None, None)
        running = asyncio.create_task(reflector.run())
        await clock.sleep(4.5)
        assert (reflector.last_contact, reflector.last_error) == (0.0, error)
        await clock.sleep(10)
        assert (reflector.last_contact, reflector.last_error) == (0.0, error)
        await clock.sleep(10)
        assert (reflector.last_contact, reflector.last_error) == (17.0, None)
        running.cancel()

    run(main)


def test_a_failing_listener_does_not_stop_the_reflector(caplog: pytest.LogCaptureFixture) -> None:
    async def main(clock: VirtualClock) -> ReflectorRun:
        result = ReflectorRun(clock, [Stream([*SYNCED, modified("a", 11, "n2")])], WHOLE_SECONDS)

        def fail(delta: Delta[str]) -> None:
            raise LookupError

        result.store.listen(fail)
        running = asyncio.create_task(result.reflector.run())
        await clock.sleep(5)
        assert not running.done()
        running.cancel()
        return result

    with caplog.at_level(logging.ERROR):
        result = run(main)

    assert result.contents == {"a": "n2", "b": "n1"}
    assert len(caplog.records) == 3


@pytest.mark.parametrize(
    ("error", "level"),
    [
        pytest.param(ServerError("boom"), logging.INFO, id="transient failures are info"),
        pytest.param(Gone("compacted"), logging.INFO, id="compacted versions are info"),
        pytest.param(Forbidden("pods is forbidden"), logging.WARNING, id="permanent failures are warnings"),
    ],
)
def test_failures_are_logged(error: ClusterError, level: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        run_reflector([ConnectionLost("cut"), error])

    expected = f"watching pods failed, next try in 2.0 s: {error}"
    assert [(record.levelno, record.message) for record in caplog.records[1:]] == [(level, expected)]


def test_a_kind_that_is_not_installed_is_named() -> None:
    result = run_reflector([NotFound("404 page not found")])

    assert str(result.reflector.last_error) == "v1 Pod is not served, is its CRD installed? (404 page not found)"
