"""Mutated files: `read` returns documents and positions of failures, and never raises."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.apis.yaml import Document, UnreadableDocument, read, read_repaired, repair
from springtide.apis.yaml.nodes import LINE_BREAK, PortableParser

DESIGNS = sorted((Path(__file__).parents[2] / "fixtures" / "designs").glob("*.yaml"))
AWKWARD = """\
%YAML 1.1
---
x: &base {p: 1, "q": 'two', r: [a, b, {c: d}]}
u:
  <<: *base
  q: 3
  text: |
    # not a comment
    line

  fold: >-
    a
    b
  empty:
  multi: one
    two # c
---
{"kind": "List", "items": [{"a": 1.5, "b": null},
\t{"a": true}]}
---
- a
-   - b
    - c
  # comment
- k: v

  z: 08
"""
SAMPLES = [AWKWARD, *(path.read_text() for path in DESIGNS)]

JUNK = [
    *(
        "",
        '"',
        "'",
        "[",
        "]",
        "{",
        "}",
        ": ",
        ":",
        "- ",
        ", ",
        "#",
        " # ",
        "// x",
        " // x",
        "? ",
        "| ",
        "> ",
        "%",
        "@",
        "`",
    ),
    *(
        "&a ",
        "*a",
        "!t ",
        "!!int ",
        "<<: *base",
        "{{ x }}",
        "~",
        "0x",
        "1e9",
        ".nan",
        "NO",
        "\\",
        '"\\UFFFFFFFF"',
        '"\\ud800"',
    ),
    *(
        "\n",
        "\r",
        "\r\n",
        "\t",
        "  ",
        "\n---\n",
        "\n...\n",
        "---",
        "\x00",
        "\x85",
        "\u2028",
        "\ufeff",
        "\ud83d",
        "é",
        "😀",
    ),
]

mutations = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from([0, 0, 1, 2, 5, 30]), st.sampled_from(JUNK) | st.text(max_size=3)),
    min_size=1,
    max_size=6,
)


def mutated(text: str, changes: list[tuple[float, int, str]]) -> str:
    for where, length, junk in changes:
        start = int(where * len(text))
        text = text[:start] + junk + text[start + length :]
    return text


@settings(max_examples=500)
@given(st.sampled_from(SAMPLES), mutations)
def test_every_result_has_a_position_in_the_file(sample: str, changes: list[tuple[float, int, str]]) -> None:
    text = mutated(sample, changes)
    last_line = 1 + len(LINE_BREAK.findall(text))

    for result in read(text):
        if isinstance(result, UnreadableDocument):
            places = [(result.line, result.column)]
            assert result.message
        else:
            places = [result.position(()), *(found.position for found in result.problems)]
            assert result.text == text[result.offset : result.offset + len(result.text)]
        assert all(1 <= line <= last_line and column >= 1 for line, column in places)


@settings(max_examples=300)
@given(st.sampled_from(SAMPLES), mutations)
def test_a_repair_makes_documents_readable_or_leaves_them(sample: str, changes: list[tuple[float, int, str]]) -> None:
    text = mutated(sample, changes)
    before = sum(isinstance(result, UnreadableDocument) for result in read(text))

    repaired, repairs = repair(text)

    assert bool(repairs) == (repaired != text)
    assert before >= sum(isinstance(result, UnreadableDocument) for result in read(repaired))
    assert (repaired, []) == repair(repaired)


@settings(max_examples=300)
@given(st.sampled_from(SAMPLES), mutations)
def test_read_repaired_gives_what_repair_gives(sample: str, changes: list[tuple[float, int, str]]) -> None:
    text = mutated(sample, changes)

    expected = [result.value for result in read_repaired(text) if isinstance(result, Document)]

    assert [result.value for result in read(repair(text)[0]) if isinstance(result, Document)] == expected


@settings(max_examples=60)
@given(st.sampled_from(SAMPLES), mutations)
def test_the_portable_parser_never_raises_either(sample: str, changes: list[tuple[float, int, str]]) -> None:
    for result in read(mutated(sample, changes), PortableParser):
        assert isinstance(result, Document | UnreadableDocument)


@pytest.mark.parametrize("sample", SAMPLES, ids=["awkward", *(path.stem for path in DESIGNS)])
def test_both_parsers_give_the_same_values(sample: str) -> None:
    fast, portable = read(sample), read(sample, PortableParser)

    assert fast == portable
    for one, other in zip(fast, portable, strict=True):
        if isinstance(one, Document) and isinstance(other, Document):
            assert one.position(()) == other.position(())
            for key in one.value if isinstance(one.value, dict) else []:
                assert one.position((key,)) == other.position((key,))
                assert one.value_position((key,)) == other.value_position((key,))
