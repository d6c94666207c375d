"""Label selectors of requests, compared with those of the API server in memory, which share no code with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.apiserver.selectors import parse_labels
from springtide.cluster.errors import BadRequest
from springtide.metrics.external.app import SeriesSelector

SHOP = {"name": "shop", "namespace": "default"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", True, id="everything"),
        pytest.param("  ", True, id="blank"),
        pytest.param("name=shop", True, id="equal"),
        pytest.param("name==shop", True, id="equal-twice"),
        pytest.param("name = depot", False, id="another"),
        pytest.param("name!=shop", False, id="unequal"),
        pytest.param("zone!=a", True, id="unequal-to-what-is-not-there"),
        pytest.param("name in (depot, shop)", True, id="in"),
        pytest.param("name in(depot,shop)", True, id="in-without-a-space"),
        pytest.param("name notin (shop)", False, id="notin"),
        pytest.param("zone notin (a)", True, id="notin-of-what-is-not-there"),
        pytest.param("name", True, id="exists"),
        pytest.param("!name", False, id="does-not-exist"),
        pytest.param("!zone", True, id="does-not-exist-indeed"),
        pytest.param("name=shop,namespace in (default)", True, id="both"),
        pytest.param("name=shop,namespace=test", False, id="one-of-both"),
        pytest.param("name=", False, id="empty-value"),
    ],
)
def test_matches(text: str, expected: bool) -> None:
    assert SeriesSelector.parse(text).matches(SHOP) is expected


@pytest.mark.parametrize(
    "text", ["=shop", "name in shop", "name in (a", "name=a b", "name,", ",name", "name=a/b", "a&b"]
)
def test_invalid_selectors_are_quoted(text: str) -> None:
    with pytest.raises(BadRequest, match="expected such as name=shop"):
        SeriesSelector.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"name in ({'   ,' * 60}!", id="not-closed"),
        pytest.param(f"name in ({'   ,' * 60}!)", id="not-a-value"),
        pytest.param(f"name in ({'a ,' * 60}(", id="opened-again"),
    ],
)
def test_hostile_lists_are_refused_quickly(text: str) -> None:
    """A user must not be able to block the process."""
    with pytest.raises(BadRequest):
        SeriesSelector.parse(text)


_NAMES = st.sampled_from(["name", "namespace", "example.com/zone", "in", "notin"])
_VALUES = st.sampled_from(["shop", "depot", "a-b", "in", ""])
_SIGNS = st.sampled_from(["=", "==", "!=", " = "])
_REQUIREMENTS = st.one_of(
    st.builds("{}{}{}".format, _NAMES, _SIGNS, _VALUES),
    st.builds(
        lambda name, word, values: f"{name} {word} ({', '.join(values)})",
        _NAMES,
        st.sampled_from(["in", "notin"]),
        st.lists(_VALUES, min_size=1, max_size=3),
    ),
    st.builds("{}{}".format, st.sampled_from(["", "!", "! "]), _NAMES),
)
_LABELS = st.dictionaries(_NAMES, _VALUES)


@given(st.lists(_REQUIREMENTS, max_size=3).map(",".join), _LABELS)
def test_same_as_the_api_server(text: str, labels: dict[str, str]) -> None:
    assert SeriesSelector.parse(text).matches(labels) is parse_labels(text).matches(labels)


def test_a_selector_that_is_too_long_is_refused() -> None:
    with pytest.raises(BadRequest, match="has 16005 characters, expected at most 4096"):
        SeriesSelector.parse(f"name={' ' * 16_000}")
