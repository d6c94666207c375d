"""Patterns of label matchers match as Prometheus' engine does, and no pattern takes long."""

from __future__ import annotations

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.apis.scheduled.label_patterns import OversizedPatternError, PatternError, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        pytest.param("", "", True, id="empty"),
        pytest.param("", "a", False, id="empty-refuses-text"),
        pytest.param("web", "web", True, id="text"),
        pytest.param("web", "web-1", False, id="anchored-at-the-end"),
        pytest.param("web", "my-web", False, id="anchored-at-the-start"),
        pytest.param("web|db", "db", True, id="alternative"),
        pytest.param("web|db", "db-1", False, id="alternatives-are-anchored"),
        pytest.param("web|", "", True, id="empty-alternative"),
        pytest.param("web-.*", "web-", True, id="star-of-none"),
        pytest.param("web-.+", "web-", False, id="plus-of-none"),
        pytest.param("a.b", "a\nb", True, id="dot-matches-a-newline"),
        pytest.param("(?P<x>a)b", "ab", True, id="named-group"),
        pytest.param("[a-c]{2,3}", "abca", False, id="counted"),
        pytest.param("[^0-9]", "5", False, id="negated-class"),
        pytest.param("[[:alpha:]]+", "ab", True, id="posix-class"),
        pytest.param("\\pL+", "éa", True, id="unicode-class"),
        pytest.param("\\w+", "é", False, id="word-characters-are-ascii"),
        pytest.param("(?i)web", "WEB", True, id="flags"),
        pytest.param("a\\.b", "axb", False, id="escaped-dot"),
        pytest.param("\\Qa.b\\E", "a.b", True, id="quoted"),
        pytest.param("^web-.*$", "web-1", True, id="redundant-anchors"),
        pytest.param("a\\b.b", "a-b", True, id="word-boundary"),
        pytest.param("a\\\\C", "a\\C", True, id="escaped-backslash-before-c"),
        pytest.param("é+", "éé", True, id="beyond-ascii"),
    ],
)
def test_match(pattern: str, text: str, matches: bool) -> None:
    assert compile_pattern(pattern).matches(text) == matches


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        pytest.param("(a", "missing ): (a", id="unclosed-group"),
        pytest.param("a)", "unexpected ): a)", id="unopened-group"),
        pytest.param("[a", "missing ]: [a", id="unclosed-class"),
        pytest.param("[b-a]", "invalid character class range: b-a", id="range-reversed"),
        pytest.param("*a", "no argument for repetition operator: *", id="repetition-of-nothing"),
        pytest.param("a**", "bad repetition operator: **", id="repetition-of-a-repetition"),
        pytest.param("a{1001}", "invalid repetition size: {1001}", id="count-too-large"),
        pytest.param("(a{100}){100}", "invalid repetition size: {100}", id="counts-multiply"),
        pytest.param("(?=a)", "invalid perl operator: (?=", id="look-ahead"),
        pytest.param("(a)\\1", "invalid escape sequence: \\1", id="back-reference"),
        pytest.param("\\C", "invalid escape sequence: \\C", id="one-byte"),
        pytest.param("a\\", "trailing \\", id="trailing-backslash"),
        pytest.param("\ud800", "not valid Unicode", id="surrogate"),
    ],
)
def test_invalid_patterns_are_refused_with_the_reason(
    pattern: str, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(PatternError, match=re.escape(words)):
        compile_pattern(pattern)
    assert capfd.readouterr().err == ""  # the library logs nothing by itself


@pytest.mark.parametrize("pattern", ["\\pL{500}", "[^a]{900}" * 4], ids=["unicode-class", "counted"])
def test_a_pattern_that_needs_too_much_memory_is_refused(pattern: str) -> None:
    with pytest.raises(OversizedPatternError, match="it needs more than 256 KiB of memory"):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("(a+)+b", id="nested"),
        pytest.param("(a|a)*b", id="ambiguous"),
        pytest.param("a*a*a*a*a*a*a*a*a*a*b", id="in-a-row"),
        pytest.param("(a|b)*a(a|b){400}c", id="many-states"),
        pytest.param("(?:(?:a?){50}){20}b", id="nested-counts"),
    ],
)
def test_hostile_patterns_take_linear_time(pattern: str) -> None:
    """A backtracking engine would not finish with any of these."""
    compiled = compile_pattern(pattern)
    began = process_time()

    for _ in range(10):
        assert not compiled.matches("a" * 253)

    assert process_time() - began < 0.5
    assert compiled.steps_per_character >= 1


_ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\.", "c"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{1,}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    )


@given(st.recursive(_ATOMS, _larger, max_leaves=6), st.lists(st.text("abc.\n", max_size=5), max_size=10))
def test_same_as_the_engine_of_python_where_the_dialects_agree(pattern: str, texts: list[str]) -> None:
    compiled, python = compile_pattern(pattern), re.compile(pattern, re.DOTALL)
    for text in texts:
        assert compiled.matches(text) == bool(python.fullmatch(text)), (pattern, text)


def test_a_short_pattern_costs_one_step() -> None:
    """Each character counts, and a larger program costs more."""
    assert compile_pattern("a").steps_per_character == 1
    assert compile_pattern("(?:ab|ba){50}").steps_per_character > 1
