"""An explanation on a screen: what stands where, and that nothing runs off it."""

from __future__ import annotations

from dataclasses import replace

import click
import pytest

from springtide.apis.explaining import Coming, Explanation, Happening, Observation, Stop, Subject
from springtide.apis.meta.instants import parse_instant
from springtide.cli.explaining import render

AT = parse_instant("2026-11-16T23:30:00Z")
HELD = "fewer than 9 not before 2026-11-16T23:34:00Z: within the last 300 s more replicas were asked for than now"
EXPLANATION = Explanation(
    subject=Subject(
        api_version="autoscaling.karpenter.sh/v1alpha1",
        kind="HorizontalAutoscaler",
        namespace="shop",
        name="web",
        at=AT,
    ),
    zone="Europe/Berlin",
    wants={"replicas": 9},
    headline="9 replicas",
    because=("`peak` is 2, at 1 for each replica: 2 replicas", "the bounds are 1 and 10"),
    next=(
        Coming(AT + 300, 6, "replicas", "behaviour `early` starts (00:35 Europe/Berlin)", "Europe/Berlin"),
        Coming(AT + 36_000, {"min": 5}, "up", "rule `up` fires (18:30 Asia/Tokyo)", "Asia/Tokyo"),
    ),
    stopped=(Stop("AbleToScale is False", HELD, AT + 240),),
    conditions=(
        Observation("Ready", "False", "Held", HELD, AT),
        Observation("AbleToScale", "False", "Held", HELD, AT),
        Observation("Active", "True", "MetricsRead", "all metrics are read", None),
    ),
    history=(
        Happening(AT - 60, "SuccessfulRescale: from 6 to 9 replicas"),
        Happening(AT - 90, f"Held: {HELD}", bad=True),
    ),
    notes=("a note",),
)
WIDE = """\
HorizontalAutoscaler/web in namespace shop, Tue 2026-11-17 00:30 Europe/Berlin (Mon 23:30 UTC)

wants       9 replicas
because     `peak` is 2, at 1 for each replica: 2 replicas
            the bounds are 1 and 10
next        Tue 2026-11-17 00:35             Mon 23:35 UTC  in 5min  6      behaviour `early` starts
            Tue 2026-11-17 18:30 Asia/Tokyo  09:30 UTC      in 10h   min 5  rule `up` fires
stopped by  AbleToScale is False: fewer than 9 not before 2026-11-16T23:34:00Z: within the last 300
              s more replicas were asked for than now; until Tue 2026-11-17 00:34 Europe/Berlin (Mon
              23:34 UTC)
conditions  False   Ready: Held
            False   AbleToScale: Held
            True    Active: all metrics are read
happened    Tue 2026-11-17 00:29  SuccessfulRescale: from 6 to 9 replicas
notes       a note
"""


def test_everything_has_its_place() -> None:
    assert click.unstyle(render(EXPLANATION, width=200, unicode=True)) == WIDE


@pytest.mark.parametrize("width", [44, 60, 80, 100, 200])
def test_nothing_runs_off_the_screen(width: int) -> None:
    lines = click.unstyle(render(EXPLANATION, width=width, unicode=True)).splitlines()
    assert [line for line in lines if len(line) > min(width, 100)] == []


def test_lines_are_broken_between_cells() -> None:
    """A time that is longer than a line would be one for nobody."""
    lines = click.unstyle(render(EXPLANATION, width=60, unicode=True)).splitlines()
    begin = lines.index("            Tue 2026-11-17 18:30 Asia/Tokyo  09:30 UTC")
    assert lines[begin + 1 : begin + 3] == ["              in 10h   min 5", "              rule `up` fires"]


def test_a_column_of_nothing_takes_no_room() -> None:
    """Where the times are in UTC, nothing stands beside them."""
    in_utc = replace(EXPLANATION, zone="UTC", next=(Coming(AT + 300, {"min": 5}, "up", "rule `up` fires", "UTC"),))
    text = click.unstyle(render(in_utc, width=80, unicode=True))
    assert "next        Mon 2026-11-16 23:35  in 5min  min 5  rule `up` fires\n" in text


def test_where_nothing_is_in_the_way_it_says_so() -> None:
    calm = Explanation(
        subject=Subject(
            api_version="autoscaling.karpenter.sh/v1alpha1",
            kind="MetricsProducer",
            namespace=None,
            name="peak\x07",
            at=AT,
        ),
        zone="UTC",
        wants={},
        headline="2 replicas",
        because=(),
    )
    text = click.unstyle(render(calm, width=80, unicode=True))
    assert "stopped by  nothing\n" in text
    assert "next" not in text
    assert "\x07" not in text
