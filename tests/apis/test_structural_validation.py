"""Structural validation: every problem at once, each at its place, with the fix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from springtide.apis.kinds import Count, NonEmpty, Quantity, ValidationContext, View, Zone, as_set, by_key, doc, int32
from springtide.apis.placeholders import placeholder
from springtide.apis.problems import Problem, error, format_path
from springtide.apis.schema import ValueShape, ViewSchema, nearest
from springtide.apis.structural_validation import check_structure

CONTEXT = ValidationContext(now=0)


class Part(View, kw_only=True):
    """A part."""

    name: Annotated[NonEmpty, doc("Name of the part.")]
    low: Annotated[Count | None, doc("Lower bound.")] = None
    high: Annotated[Count | None, doc("Upper bound.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:
        if self.low is not None and self.high is not None and self.low > self.high:
            yield error(("low",), "is above high")


class Spec(View, kw_only=True):
    """A spec."""

    __mistaken__ = {"pieces": "write `parts`"}

    parts: Annotated[tuple[Part, ...], by_key("name"), doc("The parts.")]
    mode: Annotated[Literal["Slow", "Fast"], doc("How.")] = "Slow"
    share: Annotated[Annotated[int, int32(0, 100)] | None, doc("Percent.")] = None
    code: Annotated[Annotated[str, Meta(pattern="^[a-z]+$", max_length=5)] | None, doc("Code.")] = None
    zone: Annotated[Zone | None, doc("Zone.")] = None
    limits: Annotated[dict[str, Quantity] | None, doc("Limits.")] = None
    tags: Annotated[Annotated[tuple[str, ...], Meta(max_length=3), as_set] | None, doc("Tags.")] = None
    enabled: Annotated[bool, doc("Switch.")] = True
    either: Annotated[str | int | None, doc("Number or text.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:
        for position, part in enumerate(self.parts):
            if part.name == "forbidden":
                yield error(("parts", position, "name"), "is forbidden")


class Thing(View, kw_only=True):
    """A thing."""

    spec: Annotated[Spec, doc("What is wanted.")]
    status: Annotated[dict[str, str] | None, doc("What is.")] = None


def found(spec: Any, *, foreign: bool = False) -> list[tuple[str, str, str]]:
    """Check a spec and give (path, message, hint)."""
    problems = check_structure({"spec": spec}, Thing, CONTEXT, foreign=foreign).problems
    return [(format_path(problem.path), problem.message, problem.hint) for problem in problems]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"parts": []}, [], id="smallest"),
        pytest.param({}, [("spec.parts", "is missing", "write `parts`: the parts")], id="missing"),
        pytest.param({"parts": None}, [("spec.parts", "is missing", "write `parts`: the parts")], id="null is absent"),
        pytest.param("x", [("spec", 'must be a mapping, is the string "x"', "")], id="not a mapping"),
        pytest.param(
            {"parts": {"name": "a"}},
            [("spec.parts", "must be a list, is a mapping", "start the entry with `- `")],
            id="list without dash",
        ),
        pytest.param(
            {"parts": [], "mode": "fast"},
            [("spec.mode", 'must be one of Fast, Slow, is "fast"', "did you mean Fast?")],
            id="enum in another case",
        ),
        pytest.param(
            {"parts": [], "share": 101}, [("spec.share", "must be at most 100, is 101", "")], id="above the bound"
        ),
        pytest.param(
            {"parts": [], "share": "5"},
            [("spec.share", 'must be a whole number, is the string "5"', "remove the quotes: 5")],
            id="quoted number",
        ),
        pytest.param(
            {"parts": [], "share": True},
            [("spec.share", "must be a whole number, is true", "")],
            id="bool is no number",
        ),
        pytest.param(
            {"parts": [], "code": 5},
            [("spec.code", "must be a string, is 5", 'put it in quotes: "5"')],
            id="number for a string",
        ),
        pytest.param(
            {"parts": [], "code": "ABC"}, [("spec.code", '"ABC" does not have the form ^[a-z]+$', "")], id="pattern"
        ),
        pytest.param(
            {"parts": [], "code": "toolong"},
            [("spec.code", "must have at most 5 characters, has 7", "")],
            id="too long",
        ),
        pytest.param(
            {"parts": [], "enabled": "yes"},
            [("spec.enabled", 'must be true or false, is the string "yes"', "")],
            id="yes is no bool",
        ),
        pytest.param(
            {"parts": [], "tags": ["a", "b", "a"]},
            [("spec.tags[2]", '"a" is listed twice, first at position 0', "each must be unique")],
            id="set",
        ),
        pytest.param(
            {"parts": [], "tags": ["a", "b", "c", "d"]},
            [("spec.tags", "must have at most 3 entries, has 4", "")],
            id="too many",
        ),
        pytest.param(
            {"parts": [], "either": 5.5}, [("spec.either", "must be a number or a string, is 5.5", "")], id="float"
        ),
        pytest.param({"parts": [], "limits": {"cpu": 0.5, "memory": "1Gi"}}, [], id="quantities may have fractions"),
        pytest.param(
            {"parts": [{"name": "a"}, {"name": "a"}]},
            [("spec.parts[1].name", '"a" is listed twice, first at position 0', "each must be unique")],
            id="repeated key",
        ),
        pytest.param(
            {"parts": [], "Mode": "Fast"}, [("spec.Mode", "unknown field `Mode`", "did you mean `mode`?")], id="case"
        ),
        pytest.param(
            {"pieces": []}, [("spec.pieces", "unknown field `pieces`", "write `parts`")], id="known mistake, said once"
        ),
        pytest.param(
            {"parts": [{"name": "a", "share": 5}]},
            [("spec.parts[0].share", "unknown field `share`", "`share` belongs under `spec`")],
            id="misplaced",
        ),
        pytest.param(
            {"parts": [{"name": "a", "zzz": 5}]},
            [("spec.parts[0].zzz", "unknown field `zzz`", "known here: high, low, name")],
            id="unheard of",
        ),
    ],
)
def test_a_problem_has_a_path_a_message_and_a_fix(spec: Any, expected: list[tuple[str, str, str]]) -> None:
    assert found(spec) == expected


def test_all_problems_are_reported_at_once() -> None:
    spec = {"parts": [{"low": -1}, {"name": "b", "low": 3, "high": 2}], "share": -5, "zone": "Mars/Olympus", "x": 1}
    paths = [path for path, _, _ in found(spec)]
    assert sorted(paths) == [
        "spec.parts[0].low",
        "spec.parts[0].name",
        "spec.parts[1].low",
        "spec.share",
        "spec.x",
        "spec.zone",
    ]


def test_a_bad_entry_hides_nothing_about_its_neighbours_and_their_positions_stay_true() -> None:
    spec = {"parts": [{"name": 5}, {"name": "forbidden"}]}
    assert [(path, message) for path, message, _ in found(spec)] == [
        ("spec.parts[0].name", "must be a string, is 5"),
        ("spec.parts[1].name", "is forbidden"),
    ]


def test_an_unknown_field_of_a_foreign_kind_is_an_error_only_with_a_likely_name() -> None:
    severities = {
        problem.path[-1]: problem.severity
        for problem in check_structure(
            {"spec": {"parts": [], "Mode": "Fast", "brandNew": 1}}, Thing, CONTEXT, foreign=True
        ).problems
    }
    assert severities == {"Mode": "error", "brandNew": "warning"}


def test_status_is_not_validated() -> None:
    assert check_structure({"spec": {"parts": []}, "status": {"a": 5}}, Thing, CONTEXT).problems == []


def test_the_view_is_made_where_the_structure_allows_it() -> None:
    checked = check_structure({"spec": {"parts": [{"name": "a"}], "unknown": 1}}, Thing, CONTEXT)
    assert isinstance(checked.view, Thing)
    assert checked.view.spec.parts[0].name == "a"


class Tripping(View, kw_only=True):
    """A view that raises over its own parts."""

    zone: Annotated[str, doc("Zone.")]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:
        if self.zone == "reported":
            yield error(("zone",), "is bad")
        if self.zone:
            msg = "cannot go on"
            raise ValueError(msg)


def test_a_view_may_trip_over_what_it_has_reported_but_not_over_anything_else() -> None:
    assert [problem.message for problem in check_structure({"zone": "reported"}, Tripping, CONTEXT).problems] == [
        "is bad"
    ]
    with pytest.raises(ValueError, match="cannot go on"):
        check_structure({"zone": "unreported"}, Tripping, CONTEXT)


class Choice(View, kw_only=True):
    """A view whose fields depend on each other."""

    kind: Annotated[Literal["Small", "Large"], doc("Which.")]
    least: Annotated[Count, doc("Least.")]
    most: Annotated[Annotated[int, int32(1, 100)], doc("Most.")]
    note: Annotated[str | None, doc("Note.")] = None
    parts: Annotated[tuple[Part, ...] | None, doc("Parts.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:
        if self.least > self.most:
            yield error(("least",), "`least` is above `most`")
        if self.note == "bad":
            yield error(("note",), "is a bad note")
        if not self.parts:
            yield error(("parts",), "there are no parts")
        if self.kind == "Small" and self.least > 5:
            yield error(("least",), "is too much for the kind Small")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(
            {"kind": "Large", "least": 50, "most": 1000, "note": "bad", "parts": [{"name": "a"}]},
            ["most", "note"],
            id="what has nothing to do with the mistake is still found",
        ),
        pytest.param(
            {"kind": "Large", "least": 50, "note": "bad", "parts": [{"name": "a"}]},
            ["most", "note"],
            id="also where a field is missing",
        ),
        pytest.param(
            {"kind": "Large", "least": 1, "most": 2, "note": "bad", "parts": [{"name": 1}]},
            ["note", "parts[0].name"],
            id="a list whose entries are all wrong is not called empty",
        ),
        pytest.param(
            {"kind": "Lrge", "least": 50, "most": 60, "note": "bad", "parts": [{"name": "a"}]},
            ["kind", "note"],
            id="but nothing that depends on a word that was not understood",
        ),
    ],
)
def test_a_value_that_cannot_be_used_hides_no_other_problem(value: Any, expected: list[str]) -> None:
    problems = check_structure(value, Choice, CONTEXT).problems
    assert sorted(format_path(problem.path) for problem in problems) == expected


def test_texts_that_a_format_refuses_hide_nothing_either() -> None:
    spec = {"parts": [{"name": "forbidden"}], "zone": "Mars/Olympus"}
    assert sorted(path for path, _, _ in found(spec)) == ["spec.parts[0].name", "spec.zone"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        pytest.param("nmae", "name", id="two-letters-swapped-inside"),
        pytest.param("anme", "name", id="two-letters-swapped-at-the-start"),
        pytest.param("naem", "name", id="two-letters-swapped-at-the-end"),
        pytest.param("nam", "name", id="abbreviation"),
        pytest.param("mane", None, id="letters-that-are-not-neighbours"),
        pytest.param("n" * 81, None, id="too-long-to-be-a-name"),
    ],
)
def test_a_name_is_suggested_for_one_typing_error(word: str, expected: str | None) -> None:
    """Two swapped neighbours count as one error."""
    assert nearest(word, ["name", "replicas"]) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(ViewSchema(ValueShape.MAP), {}, id="map"),
        pytest.param(ViewSchema(ValueShape.MAP, shortest=1), None, id="map-that-must-not-be-empty"),
        pytest.param(ViewSchema(ValueShape.BOOLEAN), False, id="boolean"),
        pytest.param(ViewSchema(ValueShape.INTEGER, minimum=3), 3, id="integer-with-a-minimum"),
        pytest.param(ViewSchema(ValueShape.STRING, enum=("a", "b")), "a", id="enum"),
        pytest.param(ViewSchema(ValueShape.STRING, pattern="^[0-9]+$"), "0", id="pattern"),
    ],
)
def test_a_placeholder_is_a_value_that_a_view_accepts(schema: ViewSchema, expected: Any) -> None:
    """None where there is no simple one: then no view is made."""
    made = placeholder(schema)

    assert (None if made is None else made.value) == expected


def test_an_open_object_may_have_fields_that_are_not_declared() -> None:
    """They are not looked at, while other objects of the same kind are."""
    open_schema = ViewSchema(ValueShape.OBJECT, keywords=(("x-kubernetes-preserve-unknown-fields", True),))

    assert (open_schema.open, ViewSchema(ValueShape.OBJECT).open) == (True, False)
