"""Patterns match as those of Prometheus do, and never take long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.metrics.reading.patterns import Pattern, UnknownPattern


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        pytest.param("", "", True, id="nothing"),
        pytest.param("", "a", False, id="nothing-is-not-something"),
        pytest.param("web", "web", True, id="text"),
        pytest.param("web", "web-1", False, id="anchored-at-the-end"),
        pytest.param("web", "my-web", False, id="anchored-at-the-start"),
        pytest.param("web|db", "db", True, id="alternative"),
        pytest.param("web|", "", True, id="empty-alternative"),
        pytest.param("web-.*", "web-", True, id="star-of-none"),
        pytest.param("web-.+", "web-", False, id="plus-of-none"),
        pytest.param("web-.+", "web-12", True, id="plus"),
        pytest.param("web-?1", "web1", True, id="optional"),
        pytest.param("(?:a|b)+c", "abbac", True, id="group"),
        pytest.param("(?P<x>a)b", "ab", True, id="named-group"),
        pytest.param("(?<x>a)b", "ab", True, id="named-group-short"),
        pytest.param("[a-c]{2,3}", "abc", True, id="counted"),
        pytest.param("[a-c]{2,3}", "a", False, id="counted-too-few"),
        pytest.param("[a-c]{2,3}", "abca", False, id="counted-too-many"),
        pytest.param("[a-c]{2}", "ab", True, id="exactly"),
        pytest.param("[a-c]{2,}", "abcabc", True, id="at-least"),
        pytest.param("(ab?){0}c", "c", True, id="never"),
        pytest.param("a.*?b", "axxb", True, id="lazy"),
        pytest.param("[^0-9]", "a", True, id="negated-class"),
        pytest.param("[^0-9]", "5", False, id="negated-class-refuses"),
        pytest.param("[]a]", "]", True, id="bracket-first-in-class"),
        pytest.param("[a-]", "-", True, id="dash-last-in-class"),
        pytest.param("[\\d_]+", "1_2", True, id="class-in-class"),
        pytest.param("a\\.b", "a.b", True, id="escaped-dot"),
        pytest.param("a\\.b", "axb", False, id="escaped-dot-is-a-dot"),
        pytest.param("\\w+\\W\\d", "web-1", True, id="named-classes"),
        pytest.param("^web-.*$", "web-1", True, id="superfluous-anchors"),
        pytest.param("^a$|^b$", "b", True, id="superfluous-anchors-in-alternatives"),
        pytest.param("é+", "éé", True, id="beyond-ascii"),
    ],
)
def test_match(pattern: str, text: str, matches: bool) -> None:
    assert Pattern(pattern).matches(text) == matches


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        pytest.param("(?i)web", "a group with flags", id="flags"),
        pytest.param("a\\b", "`\\b`", id="word-boundary"),
        pytest.param("\\pL", "`\\p`", id="unicode-class"),
        pytest.param("[[:alpha:]]", "a `[` within brackets", id="posix-class"),
        pytest.param("[\\D]", "negated class within brackets", id="negated-in-class"),
        pytest.param("(^a)", "a `^` at this place", id="anchor-in-group"),
        pytest.param("a$b", "a `$` at this place", id="anchor-inside"),
        pytest.param("a**", "a repetition of a repetition", id="star-star"),
        pytest.param("*a", "a `*` at this place", id="star-of-nothing"),
        pytest.param("a{x}", "a `{` that begins no repetition", id="brace"),
        pytest.param("a{3,2}", "a repetition that is not within", id="counts-reversed"),
        pytest.param("a{501}", "a repetition that is not within", id="count-too-large"),
        pytest.param("[b-a]", "a range whose end comes before its beginning", id="range-reversed"),
        pytest.param("[\\d-z]", "a range whose ends are not characters", id="range-of-a-class"),
        pytest.param("(a", "a `(` without its `)`", id="unclosed-group"),
        pytest.param("a)", "a `)` without its `(`", id="unopened-group"),
        pytest.param("[a", "an end that comes too early", id="unclosed-class"),
        pytest.param("a\\", "an end that comes too early", id="lonely-backslash"),
        pytest.param("(a{100}){100}", "more than 500 characters", id="huge"),
        pytest.param("(((){500}){500}){500}", "too many repetitions", id="huge-number-of-nothings"),
        pytest.param("(" * 60 + ")" * 60, "more than 50 groups", id="deep"),
    ],
)
def test_refused(pattern: str, words: str) -> None:
    with pytest.raises(UnknownPattern, match=re.escape(words)):
        Pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("(a+)+b", id="nested"),
        pytest.param("(a|a)*b", id="ambiguous"),
        pytest.param("a*a*a*a*a*a*a*a*a*a*b", id="in-a-row"),
    ],
)
def test_explosive_patterns_do_not_explode(pattern: str) -> None:
    """Python's own engine would not come to an end with any of these."""
    assert not Pattern(pattern).matches("a" * 253)


_ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\.", "c"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{1,}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    )


@given(st.recursive(_ATOMS, _larger, max_leaves=6), st.lists(st.text("abc.", max_size=5), max_size=10))
def test_same_as_the_engine_of_python(pattern: str, texts: list[str]) -> None:
    ours, theirs = Pattern(pattern), re.compile(pattern)
    for text in texts:
        assert ours.matches(text) == bool(theirs.fullmatch(text)), (pattern, text)
