"""No text, list or mapping of any kind costs more than linear time to validate.

The fields are those of the declared kinds, so that a new field is tested as soon as it exists. A field that several
kinds have in common is tested once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import pytest
from tests.costs.growth import excessive_steps, excessive_time

from springtide.apis import structural_validation
from springtide.apis.formats import FORMATS
from springtide.apis.kinds import Kind, KindVersion, ValidationContext, View
from springtide.apis.placeholders import placeholder
from springtide.apis.problems import Path, Problem, error
from springtide.apis.schema import ValueShape, ViewSchema, schema_of
from springtide.apis.scheme import KINDS
from springtide.apis.structural_validation import MAX_TEXT
from springtide.apis.validation import ANNOTATION, MAX_ANNOTATION, validate_object

CONTEXT = ValidationContext(now=1_780_000_000, deep_search=False)
PUMPS = (" ", "a", "0", ".", "-", "a.", "1,", "(", "\\", "\n", "é", "{a=", "a+", "* ", '"')
"""What a text is filled with: each of these, repeated, makes some pattern or parser go back and forth."""
MOST_DEPTH = 16
ENTRIES = 300


@dataclass(frozen=True)
class Place:
    """A part of a kind, by its path; 0 stands for an entry of a list, and `key` for one of a mapping."""

    kind: Kind
    version: KindVersion
    path: tuple[str | int, ...]
    schemas: tuple[ViewSchema, ...]
    """The schemas of the root and of every step of the path."""

    @property
    def schema(self) -> ViewSchema:
        """The schema of the part itself."""
        return self.schemas[-1]

    def object_with(self, value: Any) -> dict[str, Any]:
        """Build an object that has a value here, and otherwise what is required."""
        for step, schema in zip(reversed(self.path), reversed(self.schemas[:-1]), strict=True):
            if isinstance(step, int):
                value = [value]
            else:
                value = {**_required(schema), step: value}
        metadata = {"name": "one", **value.get("metadata", {})}
        return {
            **value,
            "apiVersion": self.kind.api_version(self.version),
            "kind": self.kind.kind,
            "metadata": metadata,
        }

    def __str__(self) -> str:
        path = ".".join("[]" if step == 0 else str(step) for step in self.path)
        return f"{self.kind.kind}-{self.version.name}-{path or 'root'}".replace(".[]", "[]")


def _required(schema: ViewSchema) -> dict[str, Any]:
    whole = placeholder(schema)
    return dict(whole.value) if whole is not None and isinstance(whole.value, dict) else {}


def places() -> list[Place]:
    """List all parts of all kinds, those that kinds have in common once; Kubernetes ignores the status of manifests."""
    found: list[Place] = []
    known: set[tuple[type[View] | None, tuple[str | int, ...]]] = set()

    def walk(place: Place, view: type[View] | None, below: tuple[str | int, ...]) -> None:
        schema = place.schema
        if schema.shape is ValueShape.OBJECT and schema.view is not None:
            view, below = schema.view, ()
        if (view, below) in known or len(place.path) > MOST_DEPTH:
            return
        known.add((view, below))
        found.append(place)
        steps: list[tuple[str | int, ViewSchema]] = []
        if schema.shape is ValueShape.OBJECT:
            steps = [(each.name, each.schema) for each in schema.fields if place.path or each.name != "status"]
        elif schema.items is not None:
            steps = [(0 if schema.shape is ValueShape.LIST else "key", schema.items)]
        for step, inner in steps:
            longer = Place(place.kind, place.version, (*place.path, step), (*place.schemas, inner))
            walk(longer, view, (*below, step))

    for kind in KINDS:
        for version in kind.versions:
            walk(Place(kind, version, (), (schema_of(version.view),)), None, ())
    return found


TEXTS = (ValueShape.STRING, ValueShape.INT_OR_STRING, ValueShape.ANY)
COLLECTIONS = (ValueShape.OBJECT, ValueShape.LIST, ValueShape.MAP)


def named(shapes: tuple[ValueShape, ...], *, builtin: bool = True) -> list[Any]:
    """List the parts of these shapes as parameters of a test, with or without those of kinds of other projects."""
    found = [place for place in places() if place.schema.shape in shapes and (builtin or not place.kind.builtin)]
    return [pytest.param(place, id=str(place)) for place in found]


def validation(place: Place, value: Any) -> Callable[[], object]:
    """Return the validation of an object with a value at a place."""
    item = place.object_with(value)
    return lambda: validate_object(item, place.kind, place.version, CONTEXT)


def pumped(pump: str, size: int) -> str:
    """Repeat a pump up to a size, with an end that does not fit: whatever has matched is tried in other ways."""
    return (pump * size)[: size - 1] + "!"


def test_every_kind_is_among_the_places() -> None:
    assert {place.kind.kind for place in places()} == {kind.kind for kind in KINDS}
    assert sum(place.schema.shape in TEXTS for place in places()) > 200


@pytest.mark.parametrize("place", named(TEXTS))
def test_texts(place: Place) -> None:
    """As long as they may be, and where there is no limit, much longer."""
    longest = place.schema.longest or MAX_TEXT
    for pump in PUMPS:

        def make(size: int, pump: str = pump) -> Callable[[], object]:
            return validation(place, pumped(pump, size))

        for size in {longest, 4 * MAX_TEXT} if place.schema.longest is None else {longest}:
            found = excessive_time(make, size)
            assert not found, f"{pump!r}: {found}"


def usable_entries(place: Place, size: int) -> Iterator[tuple[str, Any]]:
    """Yield entries of a list or mapping that have no error of their own."""
    items = place.schema.items
    usable = placeholder(items) if items is not None else None
    for number in range(size):
        yield f"name-{number}", usable.value if usable is not None else {}


def wrong_entries(place: Place, size: int) -> Iterator[tuple[str, Any]]:
    """Yield entries of wrong types, and fields that do not exist: similar to those that do, or long."""
    fields = [field.name for field in place.schema.fields] or ["name"]
    for number in range(size):
        name = f"{'ä ' * 40}{number}" if number % 2 else f"{fields[number // 2 % len(fields)]}{number}"
        yield name, [[number]] if number % 3 else number


Entries: TypeAlias = Callable[[Place, int], Iterator[tuple[str, Any]]]


@pytest.mark.parametrize("entries", [usable_entries, wrong_entries])
@pytest.mark.parametrize("place", named(COLLECTIONS, builtin=False))
def test_collections(place: Place, entries: Entries) -> None:
    """With many entries or unknown fields."""

    def make(size: int) -> Callable[[], object]:
        given = dict(entries(place, size))
        return validation(place, list(given.values()) if place.schema.shape is ValueShape.LIST else given)

    found = excessive_steps(make, ENTRIES // 4) or excessive_time(make, 8 * ENTRIES)
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        *(pytest.param(partial(pumped, pump), id=f"filled-with-{number}") for number, pump in enumerate(PUMPS)),
        *(
            pytest.param(lambda size, line=line: (line * size)[:size].rpartition("\n")[0], id=name)
            for name, line in {
                "documents": "---\n",
                "items": "- a\n",
                "fields": "a: 1\n",
                "keys": "? a\n",
                "anchors": "- &a a\n",
                "comments": "# a\n",
            }.items()
        ),
        pytest.param(lambda size: "\n".join(f"k{number}: {number}" for number in range(size // 12)), id="many-fields"),
        pytest.param(lambda size: f"a: [{'1,' * (size // 2 - 4)}]", id="flow-list"),
        pytest.param(lambda size: f"a: {{{','.join(f'k{number}' for number in range(size // 8))}}}", id="flow-mapping"),
        pytest.param(lambda size: f"a: {'[' * (size - 4)}", id="open-brackets"),
        pytest.param(lambda size: f"a: {'[' * (size // 2 - 4)}{']' * (size // 2 - 4)}", id="nested"),
        pytest.param(lambda size: f'a: "{"x" * (size - 6)}', id="open-quote"),
        pytest.param(lambda size: f"a: |\n{'  x' * ((size - 6) // 3)}", id="block-text"),
        pytest.param(lambda size: f"schedule:\n  defaultReplicas: '1{' ' * (size - 40)}x'", id="malformed-number"),
    ],
)
def test_extensions(text: Callable[[int], str]) -> None:
    """The annotation is a YAML document of a user, which is read before the kind matters."""
    place = places()[0]

    def make(size: int) -> Callable[[], object]:
        item = place.object_with({})
        item["metadata"]["annotations"] = {ANNOTATION: text(size)}
        return lambda: validate_object(item, place.kind, place.version, CONTEXT)

    found = excessive_time(make, MAX_ANNOTATION // 4)
    assert not found


def quadratic_format(text: str) -> Iterator[Problem]:
    """Check a text by a pattern that backtracks."""
    if not re.fullmatch(r"\s*[a-z]*\s*", text):
        yield error((), "is wrong")


def quadratic_format_in_python(text: str) -> Iterator[Problem]:
    """Check a text by reading it from every position on."""
    for start in range(len(text)):
        for _ in text[start:]:
            pass
    yield error((), "is wrong")


@pytest.mark.parametrize("check", [quadratic_format, quadratic_format_in_python])
def test_a_quadratic_check_of_a_text_is_found(
    check: Callable[[str], Iterator[Problem]], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = next(place for place in places() if place.schema.format == "quantity" and place.schema.longest is None)
    monkeypatch.setitem(FORMATS, "quantity", check)
    with pytest.raises(AssertionError, match=r"' ': .* at 10000"):
        test_texts(place)


def test_a_quadratic_check_of_entries_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """All problems that were found before are read again for every value."""
    original = structural_validation._StructureChecker.visit

    def visit(self: Any, value: Any, schema: ViewSchema, path: Path) -> Any:
        for problem in self.problems * 5:
            assert problem.message
        return original(self, value, schema, path)

    place = next(place for place in places() if place.path == ("spec", "rules"))
    monkeypatch.setattr(structural_validation._StructureChecker, "visit", visit)
    with pytest.raises(AssertionError, match="steps at"):
        test_collections(place, wrong_entries)


TEXT_FIELDS = [
    pytest.param(place, id=str(place))
    for place in places()
    if place.schema.shape is ValueShape.STRING and place.path[0] == "spec" and not place.kind.builtin
    if not place.schema.enum
]


@pytest.mark.parametrize("place", TEXT_FIELDS)
def test_a_text_of_the_annotation_is_as_long_as_one_of_the_spec(place: Place) -> None:
    """What is merged from the annotation has the maximum lengths of the schema, which the stock CRDs do not have."""
    longest = place.schema.longest or MAX_TEXT
    item = place.object_with("a" * (longest + 1))
    annotations = {ANNOTATION: json.dumps(item["spec"])}
    for one in item, {**item, "spec": {}, "metadata": {"name": "one", "annotations": annotations}}:
        found = [problem.message for problem in validate_object(one, place.kind, place.version, CONTEXT).problems]
        assert f"must have at most {longest} characters, has {longest + 1}" in found
