"""Collisions in words, and whether they fall into the picture."""

from __future__ import annotations

import pytest
from tests.cli.pictures import samples
from tests.cli.pictures.samples import DAY, START

from springtide.apis.forecast import Collision, LaneStyle
from springtide.cli.pictures.clashes import clashes_of, told
from springtide.cli.pictures.clock import wall_clock

BEFORE, WITHIN, AFTER = START - 2 * DAY, START + DAY, START + 9 * DAY


@pytest.mark.parametrize(
    ("style", "start", "until", "sentence", "length", "drawn"),
    [
        pytest.param(
            LaneStyle.LEVEL, WITHIN, WITHIN + 3600, "Sat 31 Oct 2026 19:00 – 20:00 UTC: a and b", 3600, True, id="span"
        ),
        pytest.param(
            LaneStyle.LEVEL, WITHIN, None, "from Sat 31 Oct 2026 19:00 UTC on: a and b", 6 * DAY, True, id="open"
        ),
        pytest.param(LaneStyle.FIRINGS, WITHIN, WITHIN, "Sat 31 Oct 2026 19:00 UTC: a and b", 0, True, id="firings"),
        pytest.param(LaneStyle.LEVEL, WITHIN, WITHIN, "Sat 31 Oct 2026 19:00 UTC: a and b", 0, True, id="instant"),
        pytest.param(
            LaneStyle.LEVEL,
            BEFORE,
            WITHIN,
            "Wed 28 Oct 2026 19:00 UTC – Sat 31 Oct 19:00 UTC: a and b",
            3 * DAY,
            True,
            id="begun",
        ),
        pytest.param(
            LaneStyle.LEVEL, BEFORE, BEFORE + 3600, "Wed 28 Oct 2026 19:00 – 20:00 UTC: a and b", 3600, False, id="past"
        ),
        pytest.param(LaneStyle.FIRINGS, AFTER, AFTER, "Sun 8 Nov 2026 19:00 UTC: a and b", 0, False, id="later"),
    ],
)
def test_a_collision_is_told_with_its_time(
    style: LaneStyle, start: int, until: int | None, sentence: str, length: int, drawn: bool
) -> None:
    lane = samples.lane("x", style, 1, [])
    forecast = samples.forecast(lane, collisions=(Collision(start, until, "a and b"),))

    (clash,) = clashes_of(forecast, wall_clock("UTC"))

    assert (1, start, sentence, drawn) == (clash.number, clash.start, clash.sentence, clash.drawn)
    assert length == clash.end - clash.start


@pytest.mark.parametrize(
    ("days", "when"),
    [
        pytest.param(1, "Sat 31 Oct 2026 19:00 UTC", id="once"),
        pytest.param(3, "Sat 31 Oct 2026 19:00 UTC; Sun 1 Nov 2026 19:00 UTC; Mon 2 Nov 2026 19:00 UTC", id="thrice"),
        pytest.param(
            4, "Sat 31 Oct 2026 19:00 UTC; Sun 1 Nov 2026 19:00 UTC; Mon 2 Nov 2026 19:00 UTC and once more", id="four"
        ),
        pytest.param(
            6,
            "Sat 31 Oct 2026 19:00 UTC; Sun 1 Nov 2026 19:00 UTC; Mon 2 Nov 2026 19:00 UTC and 3 more times",
            id="more",
        ),
    ],
)
def test_a_collision_that_comes_again_is_told_once(days: int, when: str) -> None:
    again = tuple(Collision(WITHIN + day * DAY, WITHIN + day * DAY, "a and b") for day in range(days))
    lane = samples.lane("x", LaneStyle.FIRINGS, 1, [])
    other = Collision(WITHIN, WITHIN, "a and c")

    clashes = clashes_of(samples.forecast(lane, collisions=(*again, other)), wall_clock("UTC"))

    assert [clash.number for clash in clashes] == [*(1 for _ in again), 2], "every one is drawn"
    assert told(clashes) == [(1, f"{when}: a and b"), (2, "Sat 31 Oct 2026 19:00 UTC: a and c")]
