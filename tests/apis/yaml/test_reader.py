"""Documents: how files are split, positions of fields, and problems of the notation."""

from __future__ import annotations

import pytest

from springtide.apis.problems import Path
from springtide.apis.yaml import Document, UnreadableDocument, read
from springtide.apis.yaml.nodes import PortableParser, fastest_parser

MANIFEST = """\
# A pool
kind: NodePool
spec:
  budgets:
  - nodes: 10%
    reasons: [Drifted, "Empty"]
  -
    nodes: 5
  limits: {cpu: 4, "memory": 1Gi}
  empty:
"""


def document(text: str) -> Document:
    (result,) = read(text)
    assert isinstance(result, Document)
    return result


@pytest.mark.parametrize(
    ("path", "at", "value_at"),
    [
        ((), (2, 1), (2, 1)),
        (("kind",), (2, 1), (2, 7)),
        (("spec",), (3, 1), (4, 3)),
        (("spec", "budgets"), (4, 3), (5, 3)),
        (("spec", "budgets", 0), (5, 5), (5, 5)),
        (("spec", "budgets", 0, "nodes"), (5, 5), (5, 12)),
        (("spec", "budgets", 0, "reasons", 1), (6, 24), (6, 24)),
        (("spec", "budgets", 1, "nodes"), (8, 5), (8, 12)),
        (("spec", "limits", "memory"), (9, 20), (9, 30)),
        (("spec", "empty"), (10, 3), (10, 9)),
        pytest.param(("spec", "budgets", 0, "schedule"), (5, 5), (5, 5), id="no-such-key"),
        pytest.param(("spec", "budgets", 7, "x"), (4, 3), (5, 3), id="no-such-item"),
        pytest.param(("spec", "budgets", -1), (4, 3), (5, 3), id="negative-item"),
        pytest.param(("kind", "x", 3), (2, 1), (2, 7), id="inside-a-scalar"),
        pytest.param(("status",), (2, 1), (2, 1), id="no-such-root"),
    ],
)
def test_positions(path: Path, at: tuple[int, int], value_at: tuple[int, int]) -> None:
    manifest = document(MANIFEST)

    assert at == manifest.position(path)
    assert value_at == manifest.value_position(path)


def test_positions_are_relative_to_the_file() -> None:
    first, second, third = read("a: 1\n--- # two\n\nb:\n  c: 2\n--- {d: 3}\n")
    assert isinstance(first, Document)
    assert isinstance(second, Document)
    assert isinstance(third, Document)

    assert [first.position(("a",)), second.position(("b", "c")), third.position(("d",))] == [(1, 1), (5, 3), (6, 6)]
    assert [first.first_line, second.first_line, third.first_line] == [1, 4, 6]


def test_positions_are_right_after_wide_characters_and_other_line_breaks() -> None:
    manifest = document("a: 😀é\r\nb: {'ü': 1, c: 2}\r\nd: 3\r\n")

    assert manifest.position(("b", "c")) == (2, 13)
    assert manifest.position(("d",)) == (3, 1)


def test_merged_fields_have_the_position_of_their_source() -> None:
    manifest = document("base: &base\n  p: 1\n  q: 2\nuse:\n  <<: *base\n  q: 3\n")

    assert manifest.value["use"] == {"p": 1, "q": 3}
    assert manifest.position(("use", "p")) == (2, 3)
    assert manifest.position(("use", "q")) == (6, 3)


def test_the_first_of_several_merged_mappings_wins_and_aliases_are_copies() -> None:
    manifest = document("x: &a {p: 1}\nz: &b {p: 2, r: 3}\nu:\n  <<: [*a, *b]\n")

    assert manifest.value["u"] == {"p": 1, "r": 3}
    manifest.value["x"]["p"] = 9
    assert manifest.value["u"]["p"] == 1


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("# only a comment\n", [], id="comment"),
        pytest.param("---\n---\n# x\n---\n", [], id="empty-documents"),
        pytest.param("null\n---\n~\n", [], id="null-documents"),
        pytest.param("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}], id="two"),
        pytest.param("---\na: 1\n...\nb: 2\n", [{"a": 1}, {"b": 2}], id="end-marker"),
        pytest.param("a: 1\r\n---\r\nb: 2", [{"a": 1}, {"b": 2}], id="crlf"),
        pytest.param("--- {a: 1}\n--- |\n text\n", [{"a": 1}, "text\n"], id="content-beside-the-marker"),
        pytest.param("a: 1\n---b: 2\n---\nc: 3\n", [{"a": 1, "---b": 2}, {"c": 3}], id="not-a-marker"),
        pytest.param("a: |\n  ---\n  b\n", [{"a": "---\nb\n"}], id="indented-in-a-block"),
        pytest.param("%YAML 1.1\n# x\n---\na: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}], id="directive"),
        pytest.param("a: 1\n...\n%YAML 1.1\n---\nb: 2\n", [{"a": 1}, {"b": 2}], id="second-directive"),
        pytest.param("\ufeffa: 1\n", [{"a": 1}], id="byte-order-mark"),
        pytest.param('{\n\t"a":\t[1,\t2],\n\t"b": "x"\n}', [{"a": [1, 2], "b": "x"}], id="json-with-tabs"),
        pytest.param('{"a": 1}\n---\n{"a": 2}', [{"a": 1}, {"a": 2}], id="json-documents"),
        pytest.param("a: 1\t# c\nb:\t2\n", [{"a": 1, "b": 2}], id="tabs-between"),
        pytest.param("a: &x 1\nb: *x\n", [{"a": 1, "b": 1}], id="alias"),
        pytest.param("a: [1,2,]\n", [{"a": [1, 2]}], id="trailing-comma"),
        pytest.param("a: {b, c: d}\n", [{"a": {"b": None, "c": "d"}}], id="key-only"),
    ],
)
@pytest.mark.parametrize("parser", [fastest_parser, PortableParser], ids=["fastest", "portable"])
def test_files(parser: type[PortableParser], text: str, values: list[object]) -> None:
    results = read(text, parser)

    assert values == [result.value for result in results if isinstance(result, Document)]
    assert len(values) == len(results)


def test_texts_of_documents_join_to_the_file() -> None:
    text = "# top\n---\na: 1 # one\n# end\n---\n\n# two\nb: 2\n...\n--- # three\nc: 3"
    documents = [result for result in read(text) if isinstance(result, Document)]

    assert [document.text for document in documents] == ["a: 1 # one\n# end\n", "\n# two\nb: 2\n", "# three\nc: 3"]
    for one in documents:
        assert one.text == text[one.offset : one.offset + len(one.text)]


def test_an_unreadable_document_does_not_hide_the_others() -> None:
    results = read('a: 1\n---\nb: "open\n---\nc: [1\n---\nd: 4\n')

    assert [result.value for result in results if isinstance(result, Document)] == [{"a": 1}, {"d": 4}]
    assert [(result.line, result.column) for result in results if isinstance(result, UnreadableDocument)] == [
        (3, 4),
        (5, 4),
    ]
    assert [Document, UnreadableDocument, UnreadableDocument, Document] == [type(result) for result in results]


@pytest.mark.parametrize(
    ("text", "path", "at", "message", "hint"),
    [
        pytest.param(
            "a: 1\nb: 2\na: 3\n",
            ("a",),
            (3, 1),
            "is repeated in this mapping, first on line 1",
            "keep one",
            id="repeated",
        ),
        pytest.param("x: {a: 1, a: 2}\n", ("x", "a"), (1, 11), "is repeated", "keep one", id="repeated-in-braces"),
        pytest.param(
            "kind: A\nb: 1\nkind: B\n", ("kind",), (3, 1), "is repeated", "`---` is missing", id="missing-separator"
        ),
        pytest.param("x:\n  kind: A\n  kind: B\n", ("x", "kind"), (3, 3), "is repeated", "keep one", id="kind-inside"),
        pytest.param("1: a\n'1': b\n", ("1",), (2, 1), "`1` is repeated", "keep one", id="repeated-after-conversion"),
        pytest.param("a:\n  ? [x]\n  : y\n", ("a",), (2, 5), "cannot be a key", "name before", id="list-as-key"),
        pytest.param("~: y\n", (), (1, 1), "key is empty or null", "name before", id="null-key"),
        pytest.param("? \n: y\n", (), (1, 2), "key is empty or null", "name before", id="empty-key"),
        pytest.param("a: {{ .Values.x }}\n", ("a",), (1, 5), "mapping cannot be a key", "render", id="template"),
        pytest.param("a: !foo x\n", ("a",), (1, 4), "tag `!foo`", "without a tag", id="unknown-tag"),
        pytest.param("a: !!binary aGk=\n", ("a",), (1, 4), "tag `!!binary`", "without a tag", id="binary"),
        pytest.param("a: !!set {x}\n", ("a",), (1, 4), "tag `!!set`", "without a tag", id="set"),
        pytest.param("a: !!int x\n", ("a",), (1, 4), "`x` is no int", "remove the tag", id="wrong-tag"),
        pytest.param("a: !!int true\n", ("a",), (1, 4), "`true` is no int", "remove the tag", id="bool-is-no-int"),
        pytest.param("a: .nan\n", ("a",), (1, 4), "`.nan` is not a number", "finite", id="nan"),
        pytest.param("a: [-.inf]\n", ("a", 0), (1, 5), "`-.inf` is not a number", "finite", id="infinity"),
        pytest.param("a: {<<: 5}\n", ("a",), (1, 5), "not a mapping", "alias", id="merge-of-a-number"),
    ],
)
def test_problems_of_the_notation(text: str, path: Path, at: tuple[int, int], message: str, hint: str) -> None:
    (found,) = document(text).problems

    assert path == found.problem.path
    assert at == found.position
    assert message in found.problem.message
    assert hint in found.problem.hint
    assert found.problem.severity == "error"


def test_the_first_line_of_a_repeated_key_is_relative_to_the_file() -> None:
    _, second = read("x: 1\n---\na: 1\na: 2\n")
    assert isinstance(second, Document)

    assert "first on line 3" in second.problems[0].problem.message


def test_the_last_value_of_a_repeated_key_counts() -> None:
    assert document("a: 1\na: 2\n").value == {"a": 2}


def test_a_null_document_with_a_problem_is_kept() -> None:
    assert len(document("!foo ~\n").problems) == 1


def bomb(levels: int) -> str:
    names = "abcdefghij"
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for name, before in zip(names[1:levels], names, strict=False):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]")
    return "\n".join(lines)


DEEP_BY_ALIAS = f"a: &a {'[' * 60}{']' * 60}\nb: {'[' * 60}*a{']' * 60}"


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        pytest.param("[" * 200 + "]" * 200, (1, 101), "more than 100 deep", id="brackets"),
        pytest.param("[" * 100_000, (1, 101), "more than 100 deep", id="endless-brackets"),
        pytest.param("\n".join(" " * n + "a:" for n in range(200)), (101, 101), "more than 100 deep", id="indented"),
        pytest.param("- " * 200 + "x", (1, 201), "more than 100 deep", id="dashes"),
        pytest.param(DEEP_BY_ALIAS, (2, 64), "more than 100 deep", id="by-alias"),
        pytest.param(bomb(10), (5, 36), "expand to more than 100000 values", id="bomb"),
        pytest.param("&a [*a]", (1, 5), "`*a` is inside the value that it refers to", id="endless"),
        pytest.param("a: *b\n", (1, 4), "`*b` refers to no anchor", id="unknown-alias"),
    ],
)
@pytest.mark.parametrize("parser", [fastest_parser, PortableParser], ids=["fastest", "portable"])
def test_limits(parser: type[PortableParser], text: str, at: tuple[int, int], message: str) -> None:
    (result,) = read(text, parser)
    assert isinstance(result, UnreadableDocument)

    assert at == (result.line, result.column)
    assert message in result.message
    assert result.hint


def test_documents_within_the_limits_are_parsed() -> None:
    assert len(document("[" * 99 + "{a: 1}" + "]" * 99).value) == 1
    assert len(document(bomb(4)).value) == 4


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        pytest.param("a: 1\nb: \x00\n", (2, 4), "U+0000", id="nul"),
        pytest.param("a: \x07", (1, 4), "U+0007", id="bell"),
        pytest.param("a: 1\r\nb: x\x7f\n", (2, 5), "U+007F", id="delete"),
        pytest.param("a: \ud83d", (1, 4), "U+D83D", id="half-of-a-surrogate-pair"),
        pytest.param("a: caf\udce9", (1, 7), "0xE9 is not UTF-8", id="latin-1"),
        pytest.param("a: 1\n\ufeffb: 2", (2, 1), "byte order mark", id="joined-files"),
    ],
)
def test_rejected_characters(text: str, at: tuple[int, int], message: str) -> None:
    *_, after = read(f"{text}\n---\nok: 1\n")
    first, *_ = read(text)
    assert isinstance(first, UnreadableDocument)

    assert at == (first.line, first.column)
    assert message in first.message
    assert isinstance(after, Document)
