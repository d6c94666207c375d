"""The SVG drawing: shapes are at their instants, text is escaped, and the file stays small."""

from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree

import pytest
from tests.cli.pictures import samples
from tests.cli.pictures.samples import BERLIN, DAY, LOS_ANGELES, START, instant

from springtide.apis.forecast import Forecast, Lane, LaneCollision, LaneStyle
from springtide.cli.pictures.svg import render_svg
from springtide.cli.pictures.svg_canvas import LEFT, MARGIN, RIGHT, text_width

SVG = "{http://www.w3.org/2000/svg}"
NOW = instant("2026-11-02T13:20", LOS_ANGELES)
HOSTILE = "<script>alert('&\"')</script>\n\x1b[31m\u202e漢字 שלום ]]>"


def draw(*forecasts: Forecast, zone: str | None = None, now: int = NOW) -> ElementTree.Element:
    return ElementTree.fromstring(render_svg(forecasts, zone=zone, now=now, title=None))


def lane_shapes(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    """The shapes of a lane that have an instant, in drawing order."""
    group = root.find(f".//{SVG}g[@data-lane='{name}']")
    assert group is not None
    return group.findall(".//*[@data-at]")


def texts(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def marks(root: ElementTree.Element, kind: str) -> list[int]:
    return [int(mark.attrib["data-at"]) for mark in root.findall(f".//*[@data-mark='{kind}']")]


def x_of(at: int, forecast: Forecast) -> float:
    return LEFT + (RIGHT - LEFT) * (at - forecast.start) / (forecast.until - forecast.start)


def test_steps_are_at_the_instants_of_changes() -> None:
    forecast = samples.weekly_capacity()
    changes = forecast.lanes[0].changes

    shapes = lane_shapes(draw(forecast), "replicas")

    assert [forecast.start, *(change.at for change in changes)] == [int(shape.attrib["data-at"]) for shape in shapes]
    for shape in shapes:
        assert float(shape.attrib["x"]) == pytest.approx(x_of(int(shape.attrib["data-at"]), forecast), abs=0.01)


def test_steps_have_the_width_of_their_duration_and_the_height_of_their_value() -> None:
    forecast = samples.forecast(samples.lane("r", LaneStyle.LEVEL, 1, [(START + DAY, 4), (START + 3 * DAY, 2)]))

    shapes = lane_shapes(draw(forecast), "r")

    widths = [float(shape.attrib["width"]) for shape in shapes]
    heights = [float(shape.attrib["height"]) for shape in shapes]
    day = (RIGHT - LEFT) / 7
    assert widths == pytest.approx([day, 2 * day, 4 * day], abs=0.02)
    assert heights == pytest.approx([heights[1] / 4, heights[1], heights[1] / 2], abs=0.02)


def test_the_tooltip_has_value_time_and_reason() -> None:
    first = lane_shapes(draw(samples.weekly_capacity()), "replicas")[1]

    words = first.findtext(f"{SVG}title") or ""
    assert words.startswith("1: Fri 30 Oct 17:00 PDT – Mon 2 Nov 09:00 PST (2d 17h), behaviors[0]")


def test_a_bar_is_drawn_only_where_a_buffer_is_on() -> None:
    forecast = samples.buffer()
    on = [change.at for change in forecast.lanes[0].changes if change.value is True]

    assert [START, *on] == [int(shape.attrib["data-at"]) for shape in lane_shapes(draw(forecast), "active")]


def test_blocked_times_are_hatched_and_explained() -> None:
    root = draw(samples.node_pool())

    hatched = [shape for shape in lane_shapes(root, "Drifted") if shape.get("fill") == "url(#hatch-blocked)"]
    assert len(hatched) == 5
    assert "blocked: no node may be disrupted" in texts(root)
    assert {"blocked", "min(20%, 5)", "∞ unlimited", "20%"} <= set(texts(root))


def test_pins_have_value_and_time() -> None:
    root = draw(samples.cron_rules())

    assert [shape.tag for shape in lane_shapes(root, "relax-at-night")] == [f"{SVG}circle"] * 7
    assert {"replicas 12", "08:30", "min 2, max 10", "22:00"} <= set(texts(root))


@pytest.mark.parametrize(
    ("now", "expected"),
    [(NOW, [NOW]), (START, [START]), (START - 1, []), (START + 8 * DAY, [])],
    ids=["inside", "at-the-start", "before", "after"],
)
def test_now_is_marked_only_within_the_range(now: int, expected: list[int]) -> None:
    root = draw(samples.weekly_capacity(), now=now)

    assert expected == marks(root, "now")
    assert bool(expected) == ("now" in texts(root))


def test_clock_changes_of_the_drawn_zone_are_marked() -> None:
    back = instant("2026-11-01T09:00")

    assert [back] == marks(draw(samples.weekly_capacity()), "clocks")
    assert marks(draw(samples.weekly_capacity(), zone=BERLIN), "clocks") == []
    assert "clocks go back 1h" in texts(draw(samples.weekly_capacity()))


def test_collisions_are_hatched_numbered_and_listed() -> None:
    root = draw(samples.weekly_capacity())

    hatched = root.findall(".//*[@fill='url(#hatch-collision)']")
    assert [instant("2026-10-30T17:00", LOS_ANGELES)] == [int(shape.attrib["data-at"]) for shape in hatched]
    assert texts(root).count("1") >= 2
    assert any("weekend wins because it is listed first" in text for text in texts(root))


def test_the_number_of_a_collision_does_not_overlap_now() -> None:
    start = instant("2026-10-30T17:00", LOS_ANGELES)
    root = draw(samples.weekly_capacity(start=start), now=start)

    pill = root.find(f".//{SVG}rect[@class='now-fill']")
    badge = root.find(f".//{SVG}circle[@class='collision']")
    assert pill is not None
    assert badge is not None
    assert float(badge.attrib["cx"]) - 8 >= float(pill.attrib["x"]) + float(pill.attrib["width"])


def test_a_collision_outside_the_range_is_listed_but_not_drawn() -> None:
    late = LaneCollision(START + 900 * DAY, None, "a and b set replicas")
    root = draw(samples.forecast(samples.lane("r", LaneStyle.LEVEL, 1, []), collisions=(late,)))

    assert root.findall(".//*[@fill='url(#hatch-collision)']") == []
    assert any("2029" in text and "a and b set replicas" in text for text in texts(root))


def test_weekends_are_shaded() -> None:
    forecast = samples.weekly_capacity()
    saturday, monday = (x_of(instant(f"2026-{day}T00:00", LOS_ANGELES), forecast) for day in ("10-31", "11-02"))

    (box,) = draw(forecast).findall(".//*[@class='weekend']")

    assert float(box.attrib["x"]) == pytest.approx(saturday, abs=0.02)
    assert float(box.attrib["width"]) == pytest.approx(monday - saturday, abs=0.02)


def test_names_are_escaped() -> None:
    lane = samples.lane(HOSTILE, LaneStyle.LEVEL, HOSTILE, [(START + DAY, {HOSTILE: HOSTILE})], because=HOSTILE)
    forecast = samples.forecast(
        lane, name=HOSTILE, kind=HOSTILE, namespace=HOSTILE, collisions=(LaneCollision(START, START + DAY, HOSTILE),)
    )

    text = render_svg([forecast], zone=None, now=NOW, title=HOSTILE)

    root = ElementTree.fromstring(text)
    assert [element for element in root.iter() if "script" in str(element.tag)] == []
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", text)
    assert any("<script>alert('&\"')</script>" in (title.text or "") for title in root.iter(f"{SVG}title"))


LONG = "a-name-that-nonetheless.is-legal.in-kubernetes-" * 5


@pytest.mark.parametrize("name", [pytest.param(LONG, id="with-hyphens"), pytest.param("w" * 250, id="without-a-break")])
def test_long_names_are_written_in_full(name: str) -> None:
    changes: samples.Points = [(START + DAY, {"replicas": 2_000_000_000})]
    lanes = [samples.lane(f"{kind}{name}", kind, None, changes) for kind in LaneStyle]
    root = draw(samples.forecast(*lanes, kind=f"Kind{name}", namespace=f"namespace{name}", name=f"object{name}"))
    written = "".join(texts(root)).replace(" ", "")

    for subject in ("object", "Kind", "namespace", *LaneStyle):
        assert f"{subject}{name}" in written
    assert "…" not in written


def test_texts_beside_a_lane_are_within_their_column_and_above_the_next_lane() -> None:
    long = samples.lane(LONG, LaneStyle.FIRINGS, {"min": 1_000_000, "max": 2_000_000_000}, [])
    root = draw(samples.forecast(long, samples.lane("below", LaneStyle.LEVEL, 1, [])))
    classes = {"lane ink": (13, True), "small muted": (11, False)}
    beside = [
        text for text in root.iter(f"{SVG}text") if float(text.attrib["x"]) < LEFT and text.get("class") in classes
    ]
    (below,) = (float(text.attrib["y"]) for text in beside if text.text == "below")
    heights = [float(text.attrib["y"]) for text in beside]

    assert heights == sorted(set(heights)), "no text covers another"
    assert len([height for height in heights if height < below]) > 10
    for text in beside:
        size, bold = classes[text.attrib["class"]]
        assert MARGIN + text_width(text.text or "", size, bold=bold) <= LEFT


def test_a_long_title_has_several_lines() -> None:
    title = "Capacity of the department " * 12
    root = ElementTree.fromstring(render_svg([samples.buffer()], zone=None, now=NOW, title=title))
    lines = [text.text or "" for text in root.findall(f".//{SVG}text[@class='title ink']")]

    assert " ".join(lines) == title.strip()
    assert all(MARGIN + text_width(line, 20, bold=True) <= RIGHT for line in lines)


def test_levels_are_drawn_below_the_firings_that_set_them() -> None:
    level = samples.lane("minimum", LaneStyle.LEVEL, None, [(START + DAY, 10), (START + 3 * DAY, 2)])
    forecast = dataclasses.replace(samples.cron_rules(), levels=(level,))
    root = draw(forecast)

    assert [group.get("data-lane") for group in root.findall(f".//{SVG}g[@data-lane]")] == [
        "scale-up-mornings",
        "relax-at-night",
        "minimum",
    ]
    assert [int(shape.attrib["data-at"]) for shape in lane_shapes(root, "minimum")] == [START + DAY, START + 3 * DAY]
    assert {"10", "2"} <= set(texts(root))
    unset = draw(samples.forecast(samples.lane("minimum", LaneStyle.LEVEL, None, [])), now=START)
    assert "now not set" in texts(unset)


@pytest.mark.parametrize(
    "forecasts",
    [
        pytest.param([], id="no-objects"),
        pytest.param([samples.forecast()], id="no-lanes"),
        pytest.param([samples.forecast(*(samples.lane("x", style, None, []) for style in LaneStyle))], id="no-changes"),
        pytest.param([samples.forecast(samples.lane("x", LaneStyle.LEVEL, 1, []), length=0)], id="no-time"),
        pytest.param([samples.forecast(samples.lane("x", LaneStyle.LEVEL, 1, []), length=1)], id="a-second"),
        pytest.param([samples.weekly_capacity(length=3600), samples.cron_rules(length=3600)], id="an-hour"),
        pytest.param([samples.node_pool(length=400 * DAY), samples.buffer(length=400 * DAY)], id="400-days"),
        pytest.param([samples.forecast(*samples.weekly_capacity().lanes * 60)], id="60-lanes"),
        pytest.param([samples.forecast(start=-80 * 365 * DAY)], id="long-ago"),
        pytest.param(samples.all_samples(), id="many-objects"),
    ],
)
def test_every_shape_is_within_the_drawing(forecasts: list[Forecast]) -> None:
    root = draw(*forecasts)

    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    assert f"0 0 {width:g} {height:g}" == root.attrib["viewBox"]
    for element in root.iter():
        for name in ("x", "y", "width", "height", "cx", "cy", "r"):
            if name in element.attrib and element.tag != f"{SVG}pattern":
                limit = width if name in ("x", "width", "cx") else height
                assert 0 <= float(element.attrib[name]) <= limit, ElementTree.tostring(element)
    paths = " ".join(element.attrib["d"] for element in root.iter(f"{SVG}path"))
    assert re.fullmatch(r"[MVH0-9. ]*", paths)  # plain numbers: no exponent, no sign, no "nan"


def test_the_drawing_has_a_title_a_description_and_both_colour_schemes() -> None:
    root = ElementTree.fromstring(render_svg([samples.weekly_capacity()], zone=None, now=NOW, title="My week"))

    assert root.findtext(f"{SVG}title") == "My week"
    assert "MetricsProducer/scheduled-capacity" in (root.findtext(f"{SVG}desc") or "")
    assert "prefers-color-scheme:dark" in (root.findtext(f"{SVG}style") or "")


def test_the_drawing_loads_nothing() -> None:
    text = render_svg(samples.all_samples(), zone=None, now=NOW, title=None)

    assert re.findall(r"https?://[^\"<]*", text) == ["http://www.w3.org/2000/svg"]
    assert set(re.findall(r"url\(([^)]*)\)", text)) == {"#hatch-blocked", "#hatch-collision"}


def test_the_same_forecast_gives_the_same_bytes() -> None:
    one, two = (render_svg(samples.all_samples(), zone=None, now=NOW, title=None) for _ in range(2))

    assert one == two


def test_firings_closer_than_pixels_keep_the_file_small() -> None:
    text = render_svg([samples.every_five_minutes()], zone=None, now=NOW, title=None)

    assert len(text) < 20_000
    assert "replicas 4, every 5min (25,920×)" in text


def test_changes_closer_than_pixels_keep_the_file_small() -> None:
    def dense(style: LaneStyle) -> Lane:
        return samples.lane(style, style, 0, [(START + at, at // 300 % 2) for at in range(300, 90 * DAY, 300)])

    forecast = samples.forecast(*(dense(style) for style in LaneStyle), length=90 * DAY)

    assert len(render_svg([forecast], zone=None, now=NOW, title=None)) < 200_000
