"""`kill -9` at any time loses no acknowledged write and keeps the history consistent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Timer

import pytest
from tests.apiserver.journal.crash_client import ClusterUnderTest, CrashTestClient, ProcessDied
from tests.apiserver.journal.https_cluster import HttpsCluster
from tests.apiserver.journal.piped_cluster import PipedCluster

_ALL = 1_000_000
_LONGEST_LIFE = 0.3
_LONGEST_START = 2.0


def crash(cluster: ClusterUnderTest, *, kills: int, complete: bool) -> CrashTestClient:
    """Kill a cluster during start or while it is written to, and check it after each restart."""
    rng = Random(kills)
    client = CrashTestClient(rng)
    for _ in range(kills):
        if rng.random() < 0.2:
            with suppress(ProcessDied), _killing(cluster, rng.uniform(0, _LONGEST_START)):
                cluster.start()
        cluster.start()
        client.check(cluster, complete=complete)
        with _killing(cluster, rng.uniform(0, _LONGEST_LIFE)):
            client.write_until_killed(cluster)
    cluster.start()
    client.check(cluster, complete=complete)
    return client


@contextmanager
def _killing(cluster: ClusterUnderTest, seconds: float) -> Iterator[None]:
    """Kill a cluster after some seconds, unless the block ends first."""
    timer = Timer(seconds, cluster.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@pytest.mark.exhaustive
@pytest.mark.parametrize("kills", [pytest.param(10, id="some"), pytest.param(200, id="many", marks=pytest.mark.soak)])
def test_springtide_up_loses_no_acknowledged_write(tmp_path: Path, kills: int) -> None:
    with closing(HttpsCluster(tmp_path)) as cluster:
        client = crash(cluster, kills=kills, complete=kills <= 10)

        assert len(client.events) > kills


@pytest.mark.parametrize(
    ("kills", "history"),
    [
        pytest.param(3, _ALL, id="all of the history is kept"),
        pytest.param(2, 20, id="most of it is compacted"),
        pytest.param(200, _ALL, id="many kills", marks=pytest.mark.soak),
        pytest.param(50, 20, id="many kills, most of it compacted", marks=pytest.mark.soak),
    ],
)
def test_the_journal_loses_no_acknowledged_write(tmp_path: Path, kills: int, history: int) -> None:
    with closing(PipedCluster(tmp_path / "data", history=history)) as cluster:
        client = crash(cluster, kills=kills, complete=history == _ALL)

        assert len(client.events) > kills
