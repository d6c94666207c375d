"""`kill -9` at any moment loses nothing that was acknowledged, tears nothing, and leaves the history as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Timer

import pytest
from tests.apiserver.journal.crash_client import ClusterUnderTest, Died, Witness
from tests.apiserver.journal.https_cluster import OverHttp
from tests.apiserver.journal.piped_cluster import Piped

_ALL = 1_000_000
_LONGEST_LIFE = 0.3
_LONGEST_START = 2.0


def crash(cluster: ClusterUnderTest, *, kills: int, complete: bool) -> Witness:
    """Kill a cluster while it starts or while it is written to, and judge each time what the next life finds."""
    dice = Random(kills)
    witness = Witness(dice)
    for _ in range(kills):
        if dice.random() < 0.2:
            with suppress(Died), _killing(cluster, dice.uniform(0, _LONGEST_START)):
                cluster.start()
        cluster.start()
        witness.judge(cluster, complete=complete)
        with _killing(cluster, dice.uniform(0, _LONGEST_LIFE)):
            witness.write_until_killed(cluster)
    cluster.start()
    witness.judge(cluster, complete=complete)
    return witness


@contextmanager
def _killing(cluster: ClusterUnderTest, seconds: float) -> Iterator[None]:
    """Kill a cluster after some seconds, unless the block ends before."""
    timer = Timer(seconds, cluster.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@pytest.mark.apiserver
@pytest.mark.parametrize("kills", [pytest.param(10, id="some"), pytest.param(200, id="many", marks=pytest.mark.soak)])
def test_springtide_up_loses_nothing(tmp_path: Path, kills: int) -> None:
    with closing(OverHttp(tmp_path)) as cluster:
        witness = crash(cluster, kills=kills, complete=kills <= 10)

        assert len(witness.events) > kills


@pytest.mark.parametrize(
    ("kills", "history"),
    [
        pytest.param(3, _ALL, id="all of the history is kept"),
        pytest.param(2, 20, id="most of it is compacted"),
        pytest.param(200, _ALL, id="many kills", marks=pytest.mark.soak),
        pytest.param(50, 20, id="many kills, most of it compacted", marks=pytest.mark.soak),
    ],
)
def test_the_journal_loses_nothing(tmp_path: Path, kills: int, history: int) -> None:
    with closing(Piped(tmp_path / "data", history=history)) as cluster:
        witness = crash(cluster, kills=kills, complete=history == _ALL)

        assert len(witness.events) > kills
