"""The HTML page: self-contained, safe, and complete."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from tests.cli.pictures import samples
from tests.cli.pictures.samples import LOS_ANGELES, START, instant

from springtide.apis.forecast import Forecast, LaneStyle
from springtide.cli.pictures.html import render_html

NOW = instant("2026-11-02T13:20", LOS_ANGELES)


class Page(HTMLParser):
    """Parses a page into its elements and its text, and checks that tags match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("rect", "path", "circle"), f"<{tag}/> would swallow what follows"
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def count(self, tag: str) -> int:
        return [name for name, _ in self.elements].count(tag)


def page(*forecasts: Forecast, title: str | None = None) -> Page:
    return Page(render_html(forecasts, zone=None, now=NOW, title=title))


def test_there_is_a_drawing_and_a_table_of_changes_for_each_object() -> None:
    made = page(*samples.all_samples())

    assert made.count("section") == 4
    assert made.count("svg") == 4 + 1  # and the one that holds the hatchings
    assert made.count("details") == sum(len(forecast.lanes) for forecast in samples.all_samples())
    changes = sum(len(lane.changes) for forecast in samples.all_samples() for lane in forecast.lanes)
    assert made.count("time") == changes


def test_a_row_has_time_distance_value_and_reason() -> None:
    text = "|".join(page(samples.weekly_capacity()).words)

    assert "Mon 2 Nov 2026 17:00 PST|in 3h 40min|2|behaviors[2] nights: weekdays 17:00 to 09:00" in text


def test_identifiers_are_unique_however_many_drawings_there_are() -> None:
    ids = [attributes["id"] for _, attributes in page(*samples.all_samples()).elements if "id" in attributes]

    assert sorted(set(map(str, ids))) == sorted(map(str, ids))


def test_problems_are_listed_with_the_object() -> None:
    words = "".join(page(samples.buffer()).words)

    assert "warning spec.schedule.windows[0]: the window is shorter than a day's peak (end it at 20)" in words


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    text = render_html(samples.all_samples(), zone=None, now=NOW, title=None)
    made = Page(text)

    policy = [attributes.get("content") for tag, attributes in made.elements if "http-equiv" in attributes]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert set(re.findall(r"https?://[^\"<]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in made.elements}
    assert not [name for _, attributes in made.elements for name in attributes if name.startswith("on")]


def test_names_are_escaped() -> None:
    evil = "</title></style><script>alert(1)</script>\"'"
    lane = samples.lane(evil, LaneStyle.LEVEL, 1, [(START + 9, 2)], because=evil)
    made = page(samples.forecast(lane, name=evil), title=evil)

    assert made.count("script") == 0
    assert any(evil in words for words in made.words)


def test_a_long_table_counts_the_rows_that_it_leaves_out() -> None:
    made = page(samples.every_five_minutes())

    assert made.count("time") == 400
    assert "… and 25,520 more; -o json shows all" in made.words


def test_an_empty_preview_is_a_page() -> None:
    assert "nothing to show" in page().words
    assert "nothing in this object depends on time" in page(samples.forecast()).words
