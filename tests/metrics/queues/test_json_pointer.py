"""JSON pointers, by the examples of RFC 6901, and where they end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.metrics.queues.json_pointer import PointsNowhere, resolve

RFC = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
    "~1": 9,
}


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        pytest.param("", RFC, id="the-whole-document"),
        pytest.param("/foo", ["bar", "baz"], id="a-member"),
        pytest.param("/foo/0", "bar", id="an-entry"),
        pytest.param("/", 0, id="the-empty-name"),
        pytest.param("/a~1b", 1, id="a-slash"),
        pytest.param("/c%d", 2, id="a-percent-sign"),
        pytest.param("/e^f", 3, id="a-caret"),
        pytest.param("/g|h", 4, id="a-bar"),
        pytest.param("/i\\j", 5, id="a-backslash"),
        pytest.param('/k"l', 6, id="a-quote"),
        pytest.param("/ ", 7, id="a-space"),
        pytest.param("/m~0n", 8, id="a-tilde"),
        pytest.param("/~01", 9, id="a-tilde-that-is-not-half-of-a-slash"),
    ],
)
def test_what_a_pointer_names(pointer: str, expected: Any) -> None:
    """As the RFC has it."""
    assert resolve(RFC, pointer) == expected


@pytest.mark.parametrize(
    ("pointer", "words"),
    [
        pytest.param("/bar", 'there is no member "bar" at the top', id="no-such-member"),
        pytest.param("/foo/2", 'there is no entry "2" in the list at /foo', id="beyond-the-end"),
        pytest.param("/foo/-", 'there is no entry "-" in the list at /foo', id="the-entry-after-the-last"),
        pytest.param("/foo/01", 'there is no entry "01" in the list at /foo', id="a-leading-zero"),
        pytest.param("/foo/0/x", 'there is nothing below /foo/0 that could have a member "x"', id="below-a-text"),
    ],
)
def test_where_it_ends(pointer: str, words: str) -> None:
    """The message says where, and not what is there."""
    with pytest.raises(PointsNowhere, match="^" + words.replace("/", "\\/") + "$"):
        resolve(RFC, pointer)


@pytest.mark.parametrize("index", ["9" * 30, "9" * 5000], ids=["long", "longer-than-numbers-may-be"])
def test_a_place_that_no_list_has(index: str) -> None:
    """Whatever is written, it is a pointer that names nothing."""
    with pytest.raises(PointsNowhere, match="there is no entry"):
        resolve([1], f"/{index}")


documents = st.recursive(
    st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a/~01", max_size=3), inner, max_size=3),
)


@given(documents)
def test_every_place_has_a_pointer(document: Any) -> None:
    """Escaped as the RFC says, the way to each value leads there."""
    for pointer, value in _places(document, ""):
        assert resolve(document, pointer) is value


def _places(value: Any, pointer: str) -> list[tuple[str, Any]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    below = [
        place
        for name, inner in entries
        for place in _places(inner, f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}")
    ]
    return [(pointer, value), *below]
