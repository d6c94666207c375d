"""Objects loaded from manifests: their tree, their typed view, their problems with positions, and their forecast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from springtide.almanac import CalendarError, DayCalendar
from springtide.apis import scheme
from springtide.apis.forecast import Forecast, ForecastQuery, Outlook
from springtide.apis.kinds import Kind, KindVersion, ValidationContext, View
from springtide.apis.problems import Path, Problem, error, has_errors, original_path
from springtide.apis.schema import nearest
from springtide.apis.springtide.calendars import Calendar as CalendarKind
from springtide.apis.springtide.calendars import compile_calendar
from springtide.apis.validation import ANNOTATION_PATH, validate_object
from springtide.apis.yaml import Document, Position, UnreadableDocument, document_without_text, read_repaired

_ROOT_KEYS = ("apiVersion", "kind", "metadata", "spec", "status")


@dataclass(frozen=True, slots=True)
class LoadedObject:
    """An object of a known kind."""

    document: Document
    root: Path
    """The path of the object in its document: below `items` for the items of a List."""
    kind: Kind
    version: KindVersion
    value: dict[str, Any]
    """The canonical tree: extensions merged, aliases resolved."""
    view: View | None
    """The typed view; None if the structure does not allow one."""
    problems: tuple[Problem, ...]
    origins: dict[Path, Path] = field(default_factory=dict)
    places: dict[Problem, Position] = field(default_factory=dict)
    """Positions of problems of the text itself, such as a duplicate key, which a path does not identify."""

    @property
    def api_version(self) -> str:
        """Group and version."""
        return self.kind.api_version(self.version)

    @property
    def name(self) -> str:
        """The name of the object; empty if it has none."""
        return self._metadata("name") or self._metadata("generateName")

    @property
    def namespace(self) -> str | None:
        """The namespace that the object will be in; None for cluster-scoped kinds."""
        return (self._metadata("namespace") or "default") if self.kind.scope == "Namespaced" else None

    @property
    def sound(self) -> bool:
        """Whether the object has no errors."""
        return self.view is not None and not has_errors(self.problems)

    def written(self, path: Path) -> Path:
        """Turn a canonical path into the one that the user wrote."""
        return original_path(path, self.origins)

    def place(self, problem: Problem) -> Position:
        """Return the position of a problem in the text."""
        return self.places.get(problem) or self.position(problem.path)

    def position(self, path: Path) -> Position:
        """Return the position of a field in the text, or of the annotation that it comes from."""
        if not _exists(self.document.value, (*self.root, *path)) and _exists(self.value, path):
            annotated = (*self.root, *ANNOTATION_PATH)
            if _exists(self.document.value, annotated):
                return self.document.position(annotated)
        return self.document.position((*self.root, *path))

    def _metadata(self, key: str) -> str:
        metadata = self.value.get("metadata")
        found = metadata.get(key) if isinstance(metadata, dict) else None
        return found if isinstance(found, str) else ""


@dataclass(frozen=True, slots=True)
class UnknownObject:
    """An object of an unknown kind: skipped with a note, or with problems if a known kind was probably meant."""

    document: Document
    root: Path
    api_version: str
    kind: str
    name: str
    problems: tuple[Problem, ...]
    places: dict[Problem, Position] = field(default_factory=dict)

    def place(self, problem: Problem) -> Position:
        """Return the position of a problem in the text."""
        return self.places.get(problem) or self.document.position((*self.root, *problem.path))


ReadResult = LoadedObject | UnknownObject | UnreadableDocument


def load(text: str, context: ValidationContext) -> list[ReadResult]:
    """Read every document of a text; one that cannot be parsed does not prevent reading the others."""
    return list(_load(text, context))


def _load(text: str, context: ValidationContext) -> Iterator[ReadResult]:
    for document in read_repaired(text):
        if isinstance(document, UnreadableDocument):
            yield document
            continue
        for root, value in members_of(document.value):
            yield _object(document, root, value, context)


def unknown_objects(text: str) -> Iterator[UnknownObject]:
    """Yield the objects of unknown kinds of a text; nothing is validated."""
    for document in read_repaired(text):
        if not isinstance(document, UnreadableDocument):
            for root, value in members_of(document.value):
                if isinstance(value, dict) and _find_kind(value) is None:
                    yield _unknown_object(document, root, value, {})


def load_tree(value: dict[str, Any], context: ValidationContext) -> LoadedObject | UnknownObject:
    """Read an object from a tree instead of a text: its problems have paths, but no position."""
    return _object(document_without_text(value), (), value, context)


def members_of(value: Any) -> Iterator[tuple[Path, Any]]:
    """Yield the objects of a document with their paths: the document itself, or the items of a List.

    An item of a typed List (`ConfigMapList`) that has neither `apiVersion` nor `kind` has those of its List.
    """
    kind = value.get("kind") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list):
        inherited = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
        for position, item in enumerate(value["items"]):
            untyped = inherited["kind"] and isinstance(item, dict) and not item.keys() & inherited.keys()
            yield ("items", position), {**inherited, **item} if untyped else item
    else:
        yield (), value


def _object(document: Document, root: Path, value: Any, context: ValidationContext) -> LoadedObject | UnknownObject:
    places = {
        msgspec.structs.replace(placed.problem, path=placed.problem.path[len(root) :]): placed.position
        for placed in document.problems
        if placed.problem.path[: len(root)] == root
    }
    if not isinstance(value, dict):
        what = "a list" if isinstance(value, list) else "a single value"
        problems = (*places, error((), f"an object must be a mapping, is {what}"))
        return UnknownObject(document, root, "", "", "", problems, places)
    found = _find_kind(value)
    if found is None:
        return _unknown_object(document, root, value, places)
    return _known_object(document, root, value, found, context, places)


def _find_kind(value: dict[str, Any]) -> tuple[Kind, KindVersion] | None:
    api_version, kind = type_field(value, "apiVersion"), type_field(value, "kind")
    return scheme.find_kind(api_version, kind) if api_version and kind else None


def _unknown_object(
    document: Document, root: Path, value: dict[str, Any], places: dict[Problem, Position]
) -> UnknownObject:
    api_version, kind = type_field(value, "apiVersion"), type_field(value, "kind")
    metadata = value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    problems = (*places, *_unknown_kind(value, api_version, kind))
    return UnknownObject(document, root, api_version, kind, name if isinstance(name, str) else "", problems, places)


def _known_object(
    document: Document,
    root: Path,
    value: dict[str, Any],
    found: tuple[Kind, KindVersion],
    context: ValidationContext,
    places: dict[Problem, Position],
) -> LoadedObject:
    validated = validate_object(value, *found, context)
    problems = (*places, *validated.problems)
    return LoadedObject(document, root, *found, validated.value, validated.view, problems, validated.origins, places)


def type_field(value: dict[str, Any], key: str) -> str:
    """Read `apiVersion` or `kind`, also if that key is misspelt, so that the object can still be validated."""
    found = value.get(key)
    if found is None:
        misspelt = misspelled_key(key, value)
        found = value.get(misspelt) if misspelt is not None else None
    return found if isinstance(found, str) else ""


def misspelled_key(key: str, value: dict[str, Any]) -> str | None:
    """Find the top-level key that is a misspelling of another one."""
    return next((name for name in value if name not in _ROOT_KEYS and nearest(name, [key]) == key), None)


def _unknown_kind(value: dict[str, Any], api_version: str, kind: str) -> Iterator[Problem]:
    for key in ("apiVersion", "kind"):
        if value.get(key) is None:
            misspelt = misspelled_key(key, value)
            if misspelt is not None:
                yield error((misspelt,), f"unknown field `{misspelt}`", f"did you mean `{key}`?")
            else:
                yield error((key,), "is missing", "every object needs `apiVersion` and `kind`")
        elif not isinstance(value[key], str):
            yield error((key,), "must be a string")
    if not api_version or not kind:
        return
    versions = scheme.api_versions_of(kind)
    like = scheme.nearest_kind(kind)
    if versions and _is_wrong_group(api_version, kind, versions):
        yield error(("apiVersion",), f"there is no {kind} in {api_version}", f"write {' or '.join(versions)}")
    elif not versions and like is not None and _is_misspelling(api_version, scheme.api_versions_of(like)):
        yield error(("kind",), f"there is no kind {kind} in {api_version}", f"did you mean {like}?")


def _is_wrong_group(api_version: str, kind: str, versions: list[str]) -> bool:
    """Return whether no project is known to have a kind of this name in this group.

    Names of built-in kinds are common: there only a misspelt group is wrong.
    """
    if scheme.is_builtin(kind):
        return _is_misspelling(api_version, versions)
    return not scheme.is_of_another_project(api_version.rpartition("/")[0], kind)


def _is_misspelling(api_version: str, versions: list[str]) -> bool:
    """Return whether a version or group is wrong, rather than of another project's kind of the same name."""
    group = api_version.rpartition("/")[0]
    groups = [version.rpartition("/")[0] for version in versions]
    return not group or group in groups or nearest(group, groups) is not None


def _exists(value: Any, path: Path) -> bool:
    for step in path:
        match value:
            case dict() if step in value:
                value = value[step]
            case list() if isinstance(step, int) and step < len(value):
                value = value[step]
            case _:
                return False
    return True


def is_skipped(stray: UnknownObject) -> bool:
    """Return whether an object is skipped with a note, because it has no problems."""
    return not has_errors(stray.problems)


def calendars_in(objects: Iterable[LoadedObject]) -> dict[str, DayCalendar]:
    """Compile the calendars among these objects, by name; one with errors is left out."""
    compiled: dict[str, DayCalendar] = {}
    for loaded in objects:
        if isinstance(loaded.view, CalendarKind) and loaded.sound:
            try:
                compiled[loaded.name] = compile_calendar(loaded.view.spec)
            except CalendarError:
                continue  # reported as a problem of the calendar
    return compiled


def forecast_of(loaded: LoadedObject, query: ForecastQuery) -> Forecast | None:
    """Forecast one object; None for kinds that do not depend on time.

    Of an object with errors only the valid parts have lanes: valid rules beside an invalid one, and budgets, because an
    invalid budget blocks.
    """
    forecaster = loaded.version.forecaster
    if forecaster is None:
        return None
    outlook = forecaster(loaded.view, query) if loaded.sound else _partial_forecast(loaded, query)
    return Forecast(
        api_version=loaded.api_version,
        kind=loaded.kind.kind,
        namespace=loaded.namespace,
        name=loaded.name,
        start=query.start,
        until=query.until,
        zones=outlook.zones,
        lanes=outlook.lanes,
        collisions=outlook.collisions,
        problems=loaded.problems,
        levels=outlook.levels,
    )


def _partial_forecast(loaded: LoadedObject, query: ForecastQuery) -> Outlook:
    partial_forecaster = loaded.version.partial_forecaster
    outlook = partial_forecaster(loaded.view, loaded.value, query) if partial_forecaster is not None else None
    return outlook or Outlook(zones=(query.default_zone,), lanes=())


def with_calendars(query: ForecastQuery, objects: Iterable[LoadedObject]) -> ForecastQuery:
    """Return the query with the calendars among these objects."""
    return replace(query, calendars=calendars_in(objects))
