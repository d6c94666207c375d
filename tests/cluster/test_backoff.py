"""Delays after failures, as arithmetic."""

from __future__ import annotations

import math

import pytest

from springtide.cluster.backoff import Backoff, Bucket, Rate


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [
        pytest.param(-1, 0.0, id="fewer than none"),
        pytest.param(0, 0.0, id="none"),
        pytest.param(1, 0.005, id="first"),
        pytest.param(2, 0.01, id="second"),
        pytest.param(11, 5.12, id="eleventh"),
        pytest.param(18, 655.36, id="last below the limit"),
        pytest.param(19, 1000.0, id="first at the limit"),
        pytest.param(10**9, 1000.0, id="no overflow"),
    ],
)
def test_delays_double_up_to_the_limit(failures: int, seconds: float) -> None:
    assert Backoff().after(failures) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("jitter", "luck", "seconds"),
    [
        pytest.param(0.0, 0.9, 30.0, id="without jitter luck is nothing"),
        pytest.param(1.0, 0.0, 30.0, id="no luck adds nothing"),
        pytest.param(1.0, 0.5, 45.0, id="luck adds beyond the limit"),
        pytest.param(0.1, 0.5, 31.5, id="a small share"),
    ],
)
def test_jitter_adds_a_share_of_the_delay(jitter: float, luck: float, seconds: float) -> None:
    assert Backoff(first=0.8, longest=30.0, jitter=jitter).after(50, luck=luck) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("rate", "times", "delays"),
    [
        pytest.param(Rate(10, 3), [0, 0, 0, 0, 0], [0, 0, 0, 0.1, 0.2], id="a burst, then one by one"),
        pytest.param(Rate(10, 1), [0, 0, 0.5], [0, 0.1, 0], id="no burst; time refills"),
        pytest.param(Rate(1, 2), [0, 0, 1, 1], [0, 0, 0, 1], id="one token comes back in a second"),
        pytest.param(Rate(1, 2), [0, 100, 100, 100], [0, 0, 0, 1], id="a long wait saves up no more than a burst"),
        pytest.param(Rate(1, 1), [0, 0, 0, 2.5], [0, 1, 2, 0.5], id="turns that were promised count"),
        pytest.param(Rate(math.inf, 1), [0, 0, 0], [0, 0, 0], id="no limit"),
    ],
)
def test_a_bucket_shares_its_rate(rate: Rate, times: list[float], delays: list[float]) -> None:
    bucket = Bucket(rate)

    assert [bucket.reserve(now) for now in times] == pytest.approx(delays)
