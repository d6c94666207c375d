"""Texts that are not YAML: the message names the cause, at the position of the correction."""

from __future__ import annotations

from pathlib import Path

import pytest

from springtide.apis.yaml import UnreadableDocument, read
from springtide.apis.yaml.nodes import PortableParser

SLASHES = "`//` does not start a comment in YAML"

CASES = [
    pytest.param("a:\n  // hi\n  b: 1\n", (2, 3), SLASHES, "write `#` instead", id="slashes-in-mapping"),
    pytest.param("a:\n  // hi: x\n  // more\n  - b\n", (2, 3), SLASHES, "`#`", id="slashes-on-two-lines"),
    pytest.param('a: "x" // hi\nb: 1\n', (1, 8), SLASHES, "`#`", id="slashes-after-quotes"),
    pytest.param("a: // hi\n  b: 1\n", (1, 4), SLASHES, "`#`", id="slashes-after-colon"),
    pytest.param("a: [x] // hi\n", (1, 8), SLASHES, "`#`", id="slashes-after-bracket"),
    pytest.param("a: x // see: y\n", (1, 6), SLASHES, "`#`", id="slashes-with-colon"),
    pytest.param(
        "spec:\n  scalableRef\n    name: x\n",
        (2, 3),
        "`scalableRef` is not followed by a colon",
        "write `scalableRef:`",
        id="colon",
    ),
    pytest.param("spec\n  a: 1\n", (1, 1), "`spec` is not", "`spec:`", id="colon-at-root"),
    pytest.param("a:\n  b: c\n  ref\n    d: x\n", (3, 3), "`ref` is not", "`ref:`", id="colon-after-sibling"),
    pytest.param("a:\n  - ref\n      d: x\n", (2, 5), "`ref` is not", "`ref:`", id="colon-in-list"),
    pytest.param("a:\n  ref # why\n    d: x\n", (2, 3), "`ref` is not", "`ref:`", id="colon-before-comment"),
    pytest.param("a:\n  ref\n\n    # why\n    d: x\n", (2, 3), "`ref` is not", "`ref:`", id="colon-far-above"),
    pytest.param("a:\n  b 3\n  c: 1\n", (2, 3), "`b 3` has no colon", "write `b: 3`", id="colon-before-value"),
    pytest.param("a:\n  b:3\n  c: 1\n", (2, 3), "`b:3` has no space", "write `b: 3`", id="space-after-colon"),
    pytest.param("a:\n\tb: 1\n", (2, 1), "a tab indents this line", "spaces", id="tab"),
    pytest.param("a:\n  b: 1\n\tc: 2\n", (3, 1), "a tab indents this line", "spaces", id="tab-after-value"),
    pytest.param('a: "foo\nb: 1\n', (1, 4), 'the quote " that opens here', 'end the text with "', id="quote"),
    pytest.param("a: 'foo\nb: 1\n", (1, 4), "the quote ' that opens here", "end the text with '", id="single-quote"),
    pytest.param('a: "foo\nb: "bar"\n', (1, 4), 'the quote "', "end the text", id="quote-closed-by-another"),
    pytest.param('a: "one\n  two\n\n\n\n\n\n', (1, 4), "quote", "end the text", id="quote-far-above"),
    pytest.param("a: [1, 2\nb: 3\n", (1, 4), "the `[` that opens here is not closed", "write `]`", id="bracket"),
    pytest.param("a: {b: 1\nc: 2\n", (1, 4), "the `{` that opens here is not closed", "write `}`", id="brace"),
    pytest.param("a: [\n", (1, 4), "the `[` that opens here is not closed", "write `]`", id="bracket-at-end"),
    pytest.param("a: [x, [y]\nb: 1\n", (1, 4), "the `[` that opens here", "`]`", id="outer-bracket"),
    pytest.param('a: ["x" "y"]\n', (1, 9), "`,` or `]` was expected", "separate", id="missing-comma"),
    pytest.param("a: ]\n", (1, 4), "`]` has no opening bracket", "remove it", id="closing-bracket"),
    pytest.param(
        "a:\n    b: 1\n  c: 2\n", (3, 3), "indented by 2", "by 4, like `b: 1`, or by 0, like `a:`", id="dedent"
    ),
    pytest.param("a: 1\n  b: 2\n", (2, 3), "indented deeper", "indent it by 0, like `a: 1`", id="indent"),
    pytest.param(
        "a:\n    - b: 1\n      c: 2\n   - b: 3\n", (4, 4), "indented by 3", "indent it by 4, like `- b: 1`", id="item"
    ),
    pytest.param(
        "a:\n    - b: 1\n      c: 2\n     - b: 3\n",
        (4, 6),
        "indented by 5",
        "indent it by 4, like `- b: 1`",
        id="deep-item",
    ),
    pytest.param(
        "a:\n  - b: 1\n - b: 3\n", (3, 2), "indented by 1", "indent it by 2, like `- b: 1`", id="shallow-item"
    ),
    pytest.param(
        "a:\n  - - b\n   - c\n", (3, 4), "indented by 3", "by 4, like `- b`, or by 2, like `- - b`", id="items"
    ),
    pytest.param(
        "a:\n    - b: 1\n     c: 2\n", (3, 6), "indented by 5", "indent it by 6, like `b: 1`", id="key-of-item"
    ),
    pytest.param(
        "a:\n  b:\n    c: 1\n   d:\n    e: 1\n",
        (4, 4),
        "indented by 3",
        "indent it by 2, like `b:`",
        id="key-with-block",
    ),
    pytest.param("a: foo: bar\n", (1, 7), "a second `:`", 'write `a: "foo: bar"`', id="second-colon"),
    pytest.param('- a: x: "y"\n', (1, 7), "a second `:`", 'write `a: "x: \\"y\\""`', id="second-colon-and-quotes"),
    pytest.param("{{- if .x }}\na: 1\n{{- end }}\n", (1, 1), "`{{` opens a template", "render", id="template"),
    pytest.param("a:\n{% if x %}\n  b: 1\n", (2, 1), "`{%` opens a template", "render", id="jinja"),
    pytest.param("schedule: */5 * * * *\n", (1, 11), "`*` cannot begin", 'write `schedule: "*/5 * * * *"`', id="cron"),
    pytest.param(
        "schedule: */5 * * * * # often\n", (1, 11), "`*` cannot begin", '"*/5 * * * *"`', id="cron-and-comment"
    ),
    pytest.param("schedule: * * * * *\n", (1, 11), "`*` cannot begin", '"* * * * *"', id="stars"),
    pytest.param("schedule: @daily\n", (1, 11), "`@` cannot begin", '"@daily"', id="macro"),
    pytest.param("- %5\n", (1, 3), "`%` cannot begin", "put quotes", id="percent"),
    pytest.param("a: - b\n", (1, 4), "a list cannot begin", "line of its own", id="list-on-the-line"),
    pytest.param('a: "x" y\n', (1, 8), "`y` follows a complete value", "quote the whole", id="two-values"),
    pytest.param("a: 1\n0", (2, 1), "`0` is neither a key nor a value here", "remove it", id="stray-word"),
    pytest.param('"a" "b"\n', (1, 5), "follows a complete document", "`---`", id="two-documents"),
    pytest.param(": y\n", (1, 1), "there is no key before this colon", "write one", id="no-key"),
    pytest.param('a: "\\d"\n', (1, 5), "escape does not exist", "single quotes", id="escape"),
    pytest.param('a: "\\ud83d"\n', (1, 5), "escape does not exist", "single quotes", id="half-of-a-surrogate-pair"),
]


@pytest.mark.parametrize(("text", "at", "message", "hint"), CASES)
def test_causes(text: str, at: tuple[int, int], message: str, hint: str) -> None:
    (result,) = read(text)
    assert isinstance(result, UnreadableDocument)

    assert at == (result.line, result.column)
    assert message in result.message
    assert hint in result.hint


@pytest.mark.parametrize(("text", "at", "message", "hint"), CASES)
def test_positions_of_causes_are_relative_to_the_file(text: str, at: tuple[int, int], message: str, hint: str) -> None:
    *_, result = read(f"x: 1\n---\n# {message}\n{text}")
    assert isinstance(result, UnreadableDocument)

    assert (at[0] + 3, at[1]) == (result.line, result.column)
    assert hint in result.hint


@pytest.mark.parametrize("text", [case.values[0] for case in CASES if case.id != "no-key"])
def test_the_portable_parser_rejects_the_same_texts(text: object) -> None:
    (result,) = read(str(text), PortableParser)

    assert isinstance(result, UnreadableDocument)
    assert result.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: http://x//y\n", id="address"),
        pytest.param("a: |\n  // script\n  b\n", id="block"),
        pytest.param('a: "x // y"\n', id="quoted"),
        pytest.param("a: x // y\n", id="unquoted"),
    ],
)
def test_slashes_that_are_not_comments_are_kept(text: str) -> None:
    assert not any(isinstance(result, UnreadableDocument) for result in read(text))


def test_slashes_are_not_reported_for_another_mistake() -> None:
    (result,) = read("a: |\n  // script\nb: [1\n")
    assert isinstance(result, UnreadableDocument)

    assert (result.line, result.column) == (3, 4)
    assert "not closed" in result.message


@pytest.mark.parametrize("name", ["scheduled-capacity-1", "scheduled-capacity-2"])
def test_slash_comments_of_the_designs_are_reported(name: str) -> None:
    fixtures = Path(__file__).parents[2] / "fixtures" / "designs"
    (result,) = read((fixtures / f"{name}.yaml").read_text())
    assert isinstance(result, UnreadableDocument)

    assert result.message == SLASHES
