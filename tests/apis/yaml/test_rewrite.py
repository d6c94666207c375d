"""A rewritten document has its new value, and the notation of everything that did not change stays."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apis.yaml.trees import mappings, mutated

from springtide.apis.yaml import Document, dump, read, rewrite, same

if TYPE_CHECKING:
    from collections.abc import Callable


MANIFEST = """\
# What this is for
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA # a kind
metadata:
  name: 'shop'
spec:
  scaleTargetRef:
    apiVersion: app/v1   # a typo

    kind: Deployment
  rules:
  # morning
  - ruleName: "Scale-Up"
    schedule: "30 08 * * *"   # before work
    targetReplicas: 1000
  # evening
  - ruleName: "Scale-Down"
    # when all are gone
    schedule: "0 11 * * *"
    targetReplicas: 1
  budgets: [{nodes: 10, reason: drifted}, {nodes: 5}]   # on one line
  note: |
    # not a comment
    text
# The end
"""


def value_of(text: str) -> Any:
    (document,) = read(text)
    assert isinstance(document, Document)
    return document.value


def changed(text: str, change: Callable[[Any], object]) -> tuple[str, bool]:
    old = value_of(text)
    new = deepcopy(old)
    change(new)
    result, kept = rewrite(text, old, new)
    assert same(value_of(result), new)
    return result, kept


def rename_rules(manifest: Any) -> None:
    for rule in manifest["spec"]["rules"]:
        rule["name"] = rule.pop("ruleName")


@pytest.mark.parametrize(
    ("change", "replacements"),
    [
        pytest.param(lambda m: None, [], id="nothing"),
        pytest.param(rename_rules, [("ruleName:", "name:")], id="keys-renamed"),
        pytest.param(
            lambda m: m["spec"]["scaleTargetRef"].update(apiVersion="apps/v1"), [("app/v1 ", "apps/v1 ")], id="value"
        ),
        pytest.param(lambda m: m["metadata"].update(name="it's"), [("'shop'", "'it''s'")], id="quotes-stay"),
        pytest.param(lambda m: m["metadata"].update(name=5), [("'shop'", "5")], id="quotes-go-with-the-text"),
        pytest.param(lambda m: m.update(kind="NO"), [("CronFederatedHPA", '"NO"')], id="quotes-where-needed"),
        pytest.param(
            lambda m: m["metadata"].update(labels={"a": ["b"]}),
            [("  name: 'shop'\n", "  name: 'shop'\n  labels:\n    a:\n    - b\n")],
            id="entry-added",
        ),
        pytest.param(
            lambda m: m.update(spec={"first": 1, **m["spec"]}),
            [("spec:\n", "spec:\n  first: 1\n")],
            id="entry-added-in-front",
        ),
        pytest.param(
            lambda m: m["spec"]["rules"].__setitem__(1, {"first": 1, **m["spec"]["rules"][1]}),
            [('- ruleName: "Scale-Down"', '- first: 1\n    ruleName: "Scale-Down"')],
            id="entry-added-behind-the-dash",
        ),
        pytest.param(
            lambda m: m["spec"]["rules"][0].pop("ruleName"),
            [('- ruleName: "Scale-Up"\n    schedule', "- schedule")],
            id="entry-removed-behind-the-dash",
        ),
        pytest.param(
            lambda m: m["spec"]["rules"][1].pop("ruleName"),
            [('- ruleName: "Scale-Down"\n    # when', "- # when")],
            id="entry-removed-above-a-comment",
        ),
        pytest.param(
            lambda m: m["spec"]["rules"][1].pop("schedule"),
            [('    # when all are gone\n    schedule: "0 11 * * *"\n', "")],
            id="entry-removed-with-its-comment",
        ),
        pytest.param(
            lambda m: m["spec"]["rules"][0].pop("schedule"),
            [('    schedule: "30 08 * * *"   # before work\n', "")],
            id="entry-removed-with-its-trailing-comment",
        ),
        pytest.param(
            lambda m: m["spec"]["rules"].pop(0),
            [(MANIFEST[MANIFEST.index("  # morning") : MANIFEST.index("  # evening")], "")],
            id="item-removed-with-its-comment",
        ),
        pytest.param(
            lambda m: m["spec"]["rules"].insert(1, {"name": "noon", "at": "12:00"}),
            [("  # evening", '  - name: noon\n    at: "12:00"\n  # evening')],
            id="item-inserted",
        ),
        pytest.param(
            lambda m: m["spec"]["rules"].insert(0, "x"),
            [("  # morning", "  - x\n  # morning")],
            id="item-inserted-in-front",
        ),
        pytest.param(
            lambda m: m["spec"]["budgets"][0].update(reasons=[m["spec"]["budgets"][0].pop("reason")]),
            [("reason: drifted", "reasons: [drifted]")],
            id="renamed-and-wrapped",
        ),
        pytest.param(
            lambda m: m["spec"]["budgets"].pop(0), [("{nodes: 10, reason: drifted}, ", "")], id="flow-item-removed"
        ),
        pytest.param(lambda m: m["spec"]["budgets"].pop(1), [(", {nodes: 5}", "")], id="last-flow-item-removed"),
        pytest.param(
            lambda m: m["spec"]["budgets"].append("a, b"),
            [("{nodes: 5}]", '{nodes: 5}, "a, b"]')],
            id="flow-item-added",
        ),
        pytest.param(
            lambda m: m["spec"]["budgets"].insert(0, 1),
            [("[{nodes: 10", "[1, {nodes: 10")],
            id="flow-item-added-in-front",
        ),
        pytest.param(
            lambda m: m["spec"]["budgets"][1].update(x={"z": 1}),
            [("{nodes: 5}", "{nodes: 5, x: {z: 1}}")],
            id="flow-entry-added",
        ),
        pytest.param(
            lambda m: m.update(kind=["a", {"b": 1}]),
            [("kind: CronFederatedHPA # a kind\n", "kind: # a kind\n- a\n- b: 1\n")],
            id="word-becomes-list",
        ),
        pytest.param(
            lambda m: m["spec"].update(note="short"),
            [("|\n    # not a comment\n    text\n", "short\n")],
            id="block-becomes-word",
        ),
        pytest.param(
            lambda m: m["spec"].update(note="two\nlines\n"),
            [("# not a comment\n    text\n", "two\n    lines\n")],
            id="block-becomes-block",
        ),
        pytest.param(
            lambda m: m["metadata"].clear(), [("metadata:\n  name: 'shop'\n", "metadata: {}\n")], id="emptied"
        ),
        pytest.param(
            lambda m: m["spec"]["rules"].clear(),
            [(MANIFEST[MANIFEST.index("  rules:") : MANIFEST.index("  budgets")], "  rules: []\n")],
            id="emptied-with-its-comments",
        ),
    ],
)
def test_only_changed_parts_are_edited(change: Callable[[Any], object], replacements: list[tuple[str, str]]) -> None:
    expected = MANIFEST
    for old, new in replacements:
        assert old in expected
        expected = expected.replace(old, new)

    result, kept = changed(MANIFEST, change)

    assert expected == result
    assert kept


@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [
        pytest.param("a:\n", lambda m: m.update(a=1), "a: 1\n", id="empty-value"),
        pytest.param("a: # c\n", lambda m: m.update(a={"b": 1}), "a: # c\n  b: 1\n", id="empty-value-with-comment"),
        pytest.param(
            "-\n- x\n", lambda m: m.__setitem__(0, {"a": 1, "b": 2}), "- a: 1\n  b: 2\n- x\n", id="empty-item"
        ),
        pytest.param("- x # c\n", lambda m: m.__setitem__(0, {"a": 1}), "- # c\n  a: 1\n", id="item-with-comment"),
        pytest.param("a: {}\n", lambda m: m["a"].update(b=1), "a:\n  b: 1\n", id="empty-braces"),
        pytest.param("{a: 1}", lambda m: m.update(a=2), "{a: 2}", id="no-line-break-at-the-end"),
        pytest.param("a: 1", lambda m: m.update(b=2), "a: 1\nb: 2", id="line-break-between-only"),
        pytest.param("a: 1\r\nb: 2\r\n", lambda m: m.update(c=[3]), "a: 1\r\nb: 2\r\nc:\r\n- 3\r\n", id="crlf"),
        pytest.param("- - a\n  - b\n- c\n", lambda m: m[0].pop(0), "- - b\n- c\n", id="nested-dashes"),
        pytest.param(
            "a:\n    - b\n    - c\n",
            lambda m: m["a"].append("d"),
            "a:\n    - b\n    - c\n    - d\n",
            id="indented-list",
        ),
        pytest.param(
            '{"a": 1,\n "b": [1, 2]}\n', lambda m: m["b"].append(3), '{"a": 1,\n "b": [1, 2, 3]}\n', id="json"
        ),
        pytest.param("a: [x, y, z]\n", lambda m: m.update(a=["y", "z", "w"]), "a: [y, z, w]\n", id="shifted-list"),
        pytest.param("? a\n: 1\n? b\n: 2\n", lambda m: m.pop("b"), "? a\n: 1\n", id="explicit-keys"),
        pytest.param("é: 😀 # ü\nb: 1\n", lambda m: m.update(b=2), "é: 😀 # ü\nb: 2\n", id="wide-characters"),
    ],
)
def test_small_texts(text: str, change: Callable[[Any], object], expected: str) -> None:
    assert (expected, True) == changed(text, change)


def test_a_text_that_cannot_be_edited_is_dumped_and_reported() -> None:
    result, kept = changed("# top\nx: &a {p: 1}\ny:\n  <<: *a # merged\n  q: 2\n", lambda m: m["y"].pop("p"))

    assert not kept
    assert "merged" not in result


def test_a_comment_inside_a_replaced_value_is_lost_and_reported() -> None:
    result, kept = changed("a:\n  # why\n  b: 1\nc: 2\n", lambda m: m.update(a="x"))

    assert (result, kept) == ("a: x\nc: 2\n", False)


def test_an_alias_that_changes_is_written_out() -> None:
    result, kept = changed("a: &x {p: 1} # one\nb: *x # two\n", lambda m: m["b"].update(p=2))

    assert (result, kept) == ("a: &x {p: 1} # one\nb: # two\n  p: 2\n", True)


def test_another_root_is_dumped() -> None:
    assert rewrite("a: 1\n", {"a": 1}, [1]) == ("- 1\n", True)
    assert rewrite("a: 1 # c\n", {"a": 1}, [1]) == ("- 1\n", False)


def test_a_text_with_another_value_than_stated_is_dumped() -> None:
    assert rewrite("a: 1\n", {"a": 2}, {"a": 3}) == ("a: 3\n", False)
    assert rewrite("a: [", {"a": 2}, {"a": 3}) == ("a: 3\n", False)


def test_numbers_strings_and_booleans_are_different_values() -> None:
    for old, new in [(1, True), (1, 1.0), (1, "1"), (None, "")]:
        result, _ = rewrite(dump({"a": old}), {"a": old}, {"a": new})
        assert same({"a": new}, value_of(result))


def commented(text: str) -> str:
    """Return the text with a comment on and above every line that can have one."""
    lines: list[str] = []
    block_indent: int | None = None
    for number, line in enumerate(text.splitlines()):
        indent = len(line) - len(line.lstrip())
        if block_indent is not None and (indent > block_indent or not line.strip()):
            lines.append(line)
            continue
        block_indent = None
        if re.search(r"(?::|-) \|[+-]?$", line):
            # The text of a block ends where the indentation of its key, not of its dashes, is reached again.
            block_indent = indent
            lines.append(line)
            continue
        lines += [f"{' ' * indent}# above {number}", f"{line} # on {number}"]
    return "\n".join(lines) + "\n"


@st.composite
def rewritings(draw: st.DrawFn) -> tuple[str, Any, Any]:
    """Draw a commented document with its value, and a new value for it."""
    old = draw(mappings)
    new: Any = old
    for _ in range(draw(st.integers(1, 3))):
        new = draw(mutated(new))
    return commented(dump(old)), old, new


@settings(max_examples=400)
@given(rewritings())
def test_every_rewritten_text_has_its_value_and_the_comments_that_it_reports(case: tuple[str, Any, Any]) -> None:
    text, old, new = case
    assert same(old, value_of(text))

    result, kept = rewrite(text, old, new)

    if new is None:
        assert not read(result)
        return
    assert same(new, value_of(result))
    if kept and isinstance(new, dict):
        untouched = {name for name in old if name in new and same(old[name], new[name])}
        for name in untouched:
            for comment in comments_of_entry(text, old, name):
                assert f"{comment}\n" in result


def comments_of_entry(text: str, value: dict[str, Any], name: str) -> list[str]:
    """Return the comments on and above the lines of one entry of the root."""
    starts = {read_line(text, other): other for other in value}
    lines = text.splitlines()
    first = read_line(text, name)
    last = min((line for line in starts if line > first), default=len(lines) + 1)
    block = "\n".join(lines[first - 1 : last - 1])
    return re.findall(r"# (?:on|above) \d+$", block, re.MULTILINE)[:-1] or []


def read_line(text: str, name: str) -> int:
    (document,) = read(text)
    assert isinstance(document, Document)
    return document.position((name,)).line


@settings(max_examples=150)
@given(mappings, mappings)
def test_any_document_becomes_any_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    result, _ = rewrite(commented(dump(old)), old, new)

    assert same(new, value_of(result))
