"""Texts with one possible correction are repaired; all others are returned unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from springtide.apis.yaml import Document, UnreadableDocument, read, read_repaired, repair

HASH = "wrote `#` for `//`"
MARKER = "wrote `---` before it"


@pytest.mark.parametrize(
    ("text", "repaired", "repairs"),
    [
        pytest.param("a:\n  // hi\n  b: 1\n", "a:\n  # hi\n  b: 1\n", [(2, HASH)], id="comment-line"),
        pytest.param(
            "a:\n  // one\n  // two\n  - b: 1\n",
            "a:\n  # one\n  # two\n  - b: 1\n",
            [(2, HASH), (3, HASH)],
            id="comment-lines",
        ),
        pytest.param('a: "x" // y\n', 'a: "x" # y\n', [(1, HASH)], id="trailing-comment"),
        pytest.param(
            "a:\n  ref\n    name: x\n",
            "a:\n  ref:\n    name: x\n",
            [(2, "wrote `ref:` for `ref`")],
            id="colon",
        ),
        pytest.param(
            "a:\n  ref # why\n  - x\n",
            "a:\n  ref: # why\n  - x\n",
            [(2, "wrote `ref:` for `ref`")],
            id="colon-list",
        ),
        pytest.param(
            "// top\na:\n  ref // why\n    b: 1 // one\n  c: http://x//y // two\n",
            "# top\na:\n  ref: # why\n    b: 1 # one\n  c: http://x//y # two\n",
            [(1, HASH), (3, "wrote `ref:` for `ref`"), (4, HASH), (5, HASH)],
            id="everything",
        ),
        pytest.param(
            'a: // x\n  b: "k // v"\n  c: |\n    // script\n  d: e // f\n',
            'a: # x\n  b: "k // v"\n  c: |\n    // script\n  d: e # f\n',
            [(1, HASH), (5, HASH)],
            id="texts-stay",
        ),
        pytest.param(
            "a: 1 // text\n---\nb: // x\n  c: 1\n---\nd: 1\n",
            "a: 1 // text\n---\nb: # x\n  c: 1\n---\nd: 1\n",
            [(3, HASH)],
            id="one-of-several-documents",
        ),
        pytest.param("a: // x\r\n  b: 1\r\n", "a: # x\r\n  b: 1\r\n", [(1, HASH)], id="crlf"),
        pytest.param("a: // x\n  b: 1\n---\nc: [1\n", "a: # x\n  b: 1\n---\nc: [1\n", [(1, HASH)], id="beside-another"),
        pytest.param(
            "apiVersion: v1\nkind: A\n\n# the other\napiversion: v1\nkind: B\n",
            "apiVersion: v1\nkind: A\n\n# the other\n---\napiversion: v1\nkind: B\n",
            [(5, MARKER)],
            id="marker",
        ),
        pytest.param(
            "kind: A\nmetadata: {}\nkind: B\nmetadata: {}\nkind: C\n",
            "kind: A\nmetadata: {}\n---\nkind: B\nmetadata: {}\n---\nkind: C\n",
            [(3, MARKER), (5, MARKER)],
            id="markers",
        ),
    ],
)
def test_repairs(text: str, repaired: str, repairs: list[tuple[int, str]]) -> None:
    result, found = repair(text)

    assert (repaired, repairs) == (result, [(made.position.line, made.done) for made in found])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: 1 // text\nb: http://x\n", id="readable"),
        pytest.param("", id="empty"),
        pytest.param("a: [1\n", id="bracket"),
        pytest.param("a: // x\n  b: 1\nc: [1\n", id="repairable-and-not"),
        pytest.param("a: 1\na: 2\n", id="repeated-key"),
        pytest.param("metadata: {}\nmetadata: {}\n", id="says-not-what-it-is"),
        pytest.param("a:\n  b 3\n  c: 1\n", id="word-and-value"),
        pytest.param("a:\n  word\n  c: 1\n", id="word-without-block"),
        pytest.param("a: \x00\n", id="no-text"),
        pytest.param("a: \ud800 // x\n", id="half-a-character"),
    ],
)
def test_no_repair(text: str) -> None:
    assert (text, []) == repair(text)


@pytest.mark.parametrize("name", ["scheduled-capacity-1", "scheduled-capacity-2"])
def test_manifests_of_the_designs_are_readable_after_repair(name: str) -> None:
    fixtures = Path(__file__).parents[2] / "fixtures" / "designs"
    repaired, repairs = repair((fixtures / f"{name}.yaml").read_text())
    (document,) = read(repaired)
    assert isinstance(document, Document)

    assert repairs
    assert "//" not in repaired
    assert document.value["kind"] == "MetricsProducer"


def test_a_mistake_does_not_hide_later_problems() -> None:
    """Mistakes are reported, and documents are parsed as repaired, with positions of the original file."""
    text = "a: // one\n  b: 1 // two\n---\nkind: A\nspec: 1\nkind: B\nspec: 2\n"
    first, second, document, one, other = read_repaired(text)

    assert isinstance(first, UnreadableDocument)
    assert isinstance(second, UnreadableDocument)
    assert [(found.line, found.column) for found in (first, second)] == [(1, 4), (2, 8)]
    assert isinstance(document, Document)
    assert isinstance(one, Document)
    assert isinstance(other, Document)
    assert [found.value for found in (document, one, other)] == [
        {"a": {"b": 1}},
        {"kind": "A", "spec": 1},
        {"kind": "B", "spec": 2},
    ]
    assert other.position(("spec",)) == (7, 1)
    assert [placed.position for placed in other.problems] == [(6, 1)]
