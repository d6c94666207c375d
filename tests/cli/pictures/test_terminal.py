"""The picture in the terminal: never too wide, readable without colour, and correct."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import unicodedata
from itertools import pairwise

import pytest
from tests.cli.pictures import samples
from tests.cli.pictures.samples import BERLIN, DAY, LOS_ANGELES, START, instant

from springtide.apis.forecast import Forecast, Lane, LaneCollision, LaneStyle
from springtide.apis.problems import error
from springtide.cli.pictures.terminal import render_terminal

NOW = instant("2026-11-02T13:20", LOS_ANGELES)
ANSI = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = "漢字<b>\n\x1b[2J\u202eשלום" * 3


def show(
    *forecasts: Forecast,
    zone: str | None = None,
    now: int = NOW,
    width: int = 80,
    colour: bool = False,
    unicode: bool = True,
) -> list[str]:
    text = render_terminal(forecasts, zone=zone, now=now, width=width, colour=colour, unicode=unicode)
    assert text.endswith("\n")
    return text.splitlines()


def cells(text: str) -> int:
    """Count the columns that a terminal needs, by the Unicode database."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in ("W", "F") else 1
        for c in ANSI.sub("", text)
    )


def chart_row(lines: list[str], name: str) -> str:
    return next(line for line in lines if line.startswith(name))


HOSTILE_FORECAST = samples.forecast(
    samples.lane(HOSTILE, LaneStyle.LEVEL, HOSTILE, [(START + DAY, {HOSTILE: HOSTILE})], because=HOSTILE),
    *(samples.lane(HOSTILE, style, 0, [(START + DAY, HOSTILE)], because=HOSTILE * 9) for style in LaneStyle),
    name=HOSTILE,
    namespace=HOSTILE,
    collisions=(LaneCollision(START, START + DAY, HOSTILE * 9), LaneCollision(START + 99 * DAY, None, "x" * 200)),
)


@pytest.mark.parametrize("width", [1, 40, 59, 80, 120, 250])
@pytest.mark.parametrize("unicode", [True, False], ids=["unicode", "ascii"])
@pytest.mark.parametrize("colour", [True, False], ids=["colour", "plain"])
def test_no_line_is_wider_than_the_terminal(width: int, unicode: bool, colour: bool) -> None:
    forecasts = [
        *samples.all_samples(),
        HOSTILE_FORECAST,
        samples.every_five_minutes(length=3 * DAY),
        samples.forecast(),
    ]

    lines = show(*forecasts, width=width, unicode=unicode, colour=colour)

    assert max(map(cells, lines)) <= max(width, 40)


def test_without_colour_there_are_no_escape_codes_and_with_colour_the_same_text() -> None:
    plain, coloured = show(*samples.all_samples()), show(*samples.all_samples(), colour=True)

    assert not any("\x1b" in line for line in plain)
    assert plain == [ANSI.sub("", line) for line in coloured]
    assert plain != coloured


def test_without_unicode_everything_is_ascii() -> None:
    assert all(line.isascii() for line in show(*samples.all_samples(), HOSTILE_FORECAST, unicode=False))


def test_escape_codes_in_names_are_removed() -> None:
    assert not any(re.search(r"[\x00-\x1f\x7f\u202e]", line) for line in show(HOSTILE_FORECAST))


def test_the_heading_has_kind_name_namespace_range_zone_and_scale() -> None:
    heading, about, scale = show(samples.weekly_capacity())[:3]

    assert "MetricsProducer/scheduled-capacity in namespace default" in heading
    assert about.strip() == "Fri 30 Oct 2026 12:00 PDT – Fri 6 Nov 11:00 PST (7d), America/Los_Angeles"
    assert scale.strip() == "one column = 2 h 28 min"


def test_a_name_that_is_too_long_is_cut_with_an_ellipsis() -> None:
    assert chart_row(show(samples.cron_rules()), "scale-up").startswith("scale-up-mornin…  ")
    assert chart_row(show(samples.cron_rules(), width=120), "scale-up").startswith("scale-up-mornings  ")


def test_the_axis_has_the_days_of_the_drawn_zone() -> None:
    days = next(line for line in show(samples.weekly_capacity(), width=120) if "Sat 31 Oct" in line)

    assert "Sun 1 Nov" in days
    assert days.index("Sat 31 Oct") < days.index("Sun 1 Nov") < days.index("Mon 2 Nov")


def test_the_axis_of_a_short_range_has_hours() -> None:
    assert any("18" in line and "├" in line for line in show(samples.weekly_capacity(length=DAY)))
    assert any("12:30" in line and "├" in line for line in show(samples.weekly_capacity(length=3600)))


def test_levels_are_steps_with_their_values() -> None:
    lines = show(samples.weekly_capacity())
    top = chart_row(lines, "replicas")
    place = lines.index(top)

    filled = [line.count("█") for line in lines[place : place + 4]]
    assert filled == sorted(filled)
    assert "3" in top
    assert "2" in lines[place + 1]
    assert "1" in lines[place + 2]


def test_blocked_looks_different_from_any_other_budget() -> None:
    lines = show(samples.node_pool())
    places = [lines.index(chart_row(lines, name)) for name in ("Drifted", "Expired", "Empty")]
    drifted, expired, empty = (lines[place + 1] for place in places)

    assert drifted.count("╳") >= 15
    assert set(expired.removeprefix("0 (blocked)").strip()) == {"╳"}
    assert set(empty.removeprefix("∞ unlimited").strip()) == {"█"}


def test_a_buffer_is_a_bar_where_it_is_on() -> None:
    bar = chart_row(show(samples.buffer()), "active").split()[1]

    assert re.fullmatch(r"█+(·+█+)+", bar)
    assert len(re.findall(r"█+", bar)) == 6


def test_firings_are_marks_with_their_values() -> None:
    lines = show(samples.cron_rules())
    values = chart_row(lines, "relax-at-night")

    assert values.count("2–10") == 7
    assert lines[lines.index(values) + 1].count("●") == 7


def test_the_next_change_has_its_distance_and_reason() -> None:
    text = " ".join(" ".join(show(samples.weekly_capacity())).split())

    assert "next: 2 at Mon 2 Nov 17:00 PST (in 3h 40min), because behaviors[2] nights" in text


@pytest.mark.parametrize(
    ("lane", "expected"),
    [
        pytest.param(samples.lane("x", LaneStyle.LEVEL, 1, [], because="always"), "never changes: always", id="steady"),
        pytest.param(samples.lane("x", LaneStyle.FIRINGS, None, [], because="off"), "never fires: off", id="suspended"),
        pytest.param(
            samples.lane("x", LaneStyle.FIRINGS, {"min": 1}, [], because="x fires"), "never fires again", id="fired"
        ),
        pytest.param(
            samples.lane("x", LaneStyle.LEVEL, 1, [(START + 900 * DAY, 2)], until=START),
            "next: 2 at Tue 17 Apr 2029 12:00 PDT (in 896d 21h)",
            id="beyond-the-range",
        ),
        pytest.param(
            samples.lane("x", LaneStyle.LEVEL, 1, [(START + DAY, 2)]), "next: no change before Fri 6 Nov", id="past"
        ),
    ],
)
def test_the_next_change_outside_the_range(lane: Lane, expected: str) -> None:
    text = " ".join(" ".join(show(samples.forecast(lane))).split())

    assert expected in text


@pytest.mark.parametrize(("now", "shown"), [(NOW, True), (START - 1, False), (START + 8 * DAY, False)])
def test_now_is_marked_only_within_the_range(now: int, shown: bool) -> None:
    assert shown == any("▼ now" in line for line in show(samples.weekly_capacity(), now=now))


def test_now_is_marked_at_its_column() -> None:
    lines = show(samples.forecast(samples.lane("x", LaneStyle.LEVEL, 0, [])), now=START + 7 * DAY // 2, width=92)

    mark = next(line for line in lines if "▼" in line)
    assert mark.index("▼") == 12 + 80 // 2
    assert lines[lines.index(mark) + 1][mark.index("▼")] == "│"


def test_clock_changes_are_marked_and_listed() -> None:
    lines = show(samples.weekly_capacity(), width=120)

    assert any("▲ clocks go back 1h" in line for line in lines)
    assert "▲ Sun 1 Nov 2026: clocks go back 1h, from 02:00 PDT to 01:00 PST" in lines
    assert not any("clocks" in line for line in show(samples.weekly_capacity(), zone=BERLIN))


def test_collisions_are_marked_and_listed() -> None:
    lines = show(samples.weekly_capacity(), width=120)

    assert re.fullmatch(r"collisions +1╌+", chart_row(lines, "collisions"))
    assert any(line.startswith("1 Fri 30 Oct 2026 17:00 PDT – Mon 2 Nov 09:00 PST: weekend") for line in lines)


def test_the_table_has_twelve_changes_and_counts_the_rest() -> None:
    lines = show(samples.weekly_capacity(length=90 * DAY))
    rows = [line for line in lines if re.match(r"  \w{3} [ \d]\d \w{3} \d\d:\d\d P[DS]T  ", line)]

    assert len(rows) == 12
    assert rows[0].startswith("  Mon  2 Nov 17:00 PST  in 3h 40min")
    assert any(re.fullmatch(r"  … and \d+ more; -o json shows all", line) for line in lines)


def test_changes_denser_than_columns_are_shaded() -> None:
    fast: samples.Points = [(START + at, at // 600 % 2) for at in range(600, 7 * DAY, 600)]
    lines = show(samples.forecast(samples.lane("fast", LaneStyle.LEVEL, 0, fast)))

    assert "▒" * 60 in lines[lines.index(chart_row(lines, "fast")) + 1]


@pytest.mark.parametrize(
    ("forecasts", "words"),
    [([], "nothing to show"), ([samples.forecast()], "nothing in this object depends on time")],
    ids=["no-objects", "no-lanes"],
)
def test_empty_pictures_say_so(forecasts: list[Forecast], words: str) -> None:
    assert words in show(*forecasts)


def test_an_empty_range_is_a_picture() -> None:
    assert show(samples.forecast(*(samples.lane("x", style, None, []) for style in LaneStyle), length=0))


def test_the_renderer_is_cheap_to_import() -> None:
    code = "import sys, springtide.cli.pictures.terminal; print('rich.console' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_problems_are_listed_below_the_picture() -> None:
    text = " ".join(" ".join(show(samples.buffer())).split())

    assert "warning spec.schedule.windows[0]: the window is shorter than a day's peak (end it at 20)" in text


def test_an_object_with_errors_is_not_drawn() -> None:
    broken = dataclasses.replace(samples.forecast(), problems=(error(("spec",), "is missing"),))

    lines = show(broken)

    assert "not drawn because of 1 error, which `springtide check` lists" in lines
    assert "error spec: is missing" in lines


@pytest.mark.parametrize("length", [3600, 6 * 3600, 9 * DAY, 24 * DAY, 60 * DAY, 200 * DAY])
def test_labels_of_the_axis_have_even_steps(length: int) -> None:
    lines = show(samples.forecast(*samples.weekly_capacity().lanes, length=length))
    ruler = next(line for line in lines if "├" in line)

    for stretch in re.split("[├┼]", ruler)[1:]:
        middles = [(label.start() + label.end()) / 2 for label in re.finditer("[^─]+", stretch)]
        steps = [later - earlier for earlier, later in pairwise(middles)]
        assert not steps or max(steps) - min(steps) <= 2, ruler
