"""Manifests: reads them from files, folders and standard input, and validates them.

`check_sources` parses and validates each manifest once. Its result, `CheckedManifests`, is what every later step uses:
reports, forecasts, explanations, and staging for an embedded or simulated cluster. Problems carry their place in the
file, in the shape that `check -o json` prints.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import msgspec

from springtide.almanac import known_zones
from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import LoadedObject, UnknownObject, is_skipped, load, unknown_objects
from springtide.apis.problems import Problem, Severity, format_path
from springtide.apis.references import IN_FILES, LookupScope, ObjectKey, check_cross_object
from springtide.apis.structural_validation import shorten
from springtide.apis.yaml import UnreadableDocument

SUFFIXES = (".yaml", ".yml", ".json")
"""File name suffixes of manifests."""


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """The cluster, and the namespaces of it, that a command reads."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    """None: the namespace of the kubeconfig context."""
    all_namespaces: bool = False
    """Whether all namespaces are read."""
    requested: bool = False
    """Whether the command line selects a cluster at all."""


@dataclass(frozen=True, slots=True)
class ManifestSource:
    """The text of one file, and the name to report it under."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class UnreadableSource:
    """An input that could not be read."""

    name: str
    message: str
    hint: str = ""


def read_sources(paths: tuple[str, ...]) -> tuple[list[ManifestSource], list[UnreadableSource]]:
    """Read files, folders and `-`; an input that cannot be read is reported and does not stop the others."""
    sources: list[ManifestSource] = []
    unread: list[UnreadableSource] = []
    seen: set[str] = set()
    for path in paths:
        names, failure = _expand(path)
        if failure is not None:
            unread.append(failure)
        for name in names:
            # A file that is named twice, directly or by its folder, is read once.
            if (real := name if name == "-" else os.path.realpath(name)) in seen:
                continue
            seen.add(real)
            outcome = _read(name)
            if isinstance(outcome, ManifestSource):
                sources.append(outcome)
            else:
                unread.append(outcome)
    return sources, unread


def zones_named_in(sources: Iterable[ManifestSource]) -> list[str]:
    """List the time zones that objects of these sources name, each once."""
    context = ValidationContext(now=0, deep_search=False)
    loaded = (item for source in sources for item in load(source.text, context))
    named = (zone for item in loaded if isinstance(item, LoadedObject) for zone in _zones_in(item.value.get("spec")))
    return [zone for zone in dict.fromkeys(named) if zone in known_zones()]


def _zones_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            if key.lower() == "timezone" and isinstance(part, str):
                yield part
            yield from _zones_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from _zones_in(part)


def _expand(path: str) -> tuple[list[str], UnreadableSource | None]:
    """List the manifests below a folder, sorted by path; any other path stands for itself."""
    if path == "-" or not Path(path).is_dir():
        return [path], None
    found = [
        os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names if name.endswith(SUFFIXES)
    ]
    if not found:
        return [], UnreadableSource(path, f"no {', '.join(SUFFIXES)} file in this folder")
    return sorted(found), None


def _read(name: str) -> ManifestSource | UnreadableSource:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as failure:
        return UnreadableSource(name, (failure.strerror or str(failure)).lower())
    label = "<stdin>" if name == "-" else name
    try:
        return ManifestSource(label, data.decode("utf-8-sig"))
    except UnicodeDecodeError as failure:
        line = data[: failure.start].count(b"\n") + 1
        return UnreadableSource(label, f"line {line}: not UTF-8 text")


class LocatedProblem(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A problem, the object that has it, and its place in the file; objects read from a cluster have no lines."""

    file: str
    """The file, or `cluster:NAMESPACE/KIND/NAME`."""
    line: int | None = None
    column: int | None = None
    api_version: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    path: str = ""
    message: str
    hint: str = ""
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class CheckedManifest:
    """A validated object, the file it was read from, and its problems."""

    file: str
    object: LoadedObject
    problems: tuple[LocatedProblem, ...]


@dataclass(frozen=True, slots=True)
class ParsedManifest:
    """An object as it was written, and where."""

    file: str
    line: int
    value: Any


@dataclass(frozen=True, slots=True)
class CheckedManifests:
    """Manifests that were read and validated together, and their problems."""

    manifests: tuple[CheckedManifest, ...]
    """Objects of the kinds that Springtide knows."""
    problems: tuple[LocatedProblem, ...]
    skipped: tuple[str, ...]
    """A note for each object of a kind that Springtide does not know."""
    unreadable: bool
    """Whether an input could not be read or parsed."""
    related: tuple[LoadedObject, ...] = ()
    """Objects that were read because the others refer to them; their own problems are not reported."""
    parsed: tuple[ParsedManifest, ...] = ()
    """All objects of all kinds as they were written, in the order of the files."""

    @property
    def objects(self) -> tuple[LoadedObject, ...]:
        """All objects of known kinds, related ones included."""
        return (*(manifest.object for manifest in self.manifests), *self.related)

    @property
    def errors(self) -> int:
        """The number of errors."""
        return sum(problem.severity == "error" for problem in self.problems)

    @property
    def warnings(self) -> int:
        """The number of warnings."""
        return len(self.problems) - self.errors

    def problems_of(self, loaded: LoadedObject) -> tuple[LocatedProblem, ...]:
        """Return the problems of one of the objects; of a related one those that are reported."""
        for manifest in self.manifests:
            if manifest.object is loaded:
                return manifest.problems
        key = (loaded.kind.kind, loaded.namespace, loaded.name)
        return tuple(found for found in self.problems if (found.kind, found.namespace, found.name) == key)

    def exit_code(self, *, strict: bool) -> int:
        """Return the exit code: 0 fine, 1 errors (or warnings, if strict), 2 an input could not be read."""
        if self.unreadable:
            return 2
        return 1 if self.errors or (strict and self.problems) else 0


_CLUSTER = LookupScope(
    "in the cluster",
    "create it, or name another one",
    "its days are not taken into account; create the Calendar",
    complete=True,
)


def check_sources(
    sources: Iterable[ManifestSource], unread: Iterable[UnreadableSource], context: ValidationContext
) -> CheckedManifests:
    """Parse and validate sources: each object by itself, then the references between all of them."""
    problems = [_unread(item) for item in unread]
    unreadable = bool(problems)
    loaded: list[tuple[str, LoadedObject]] = []
    parsed: list[ParsedManifest] = []
    skipped: list[str] = []
    for source in sources:
        for item in load(source.text, context):
            if not isinstance(item, UnreadableDocument):
                value = reduce(getitem, item.root, item.document.value)
                parsed.append(ParsedManifest(source.name, item.document.first_line, value))
            match item:
                case UnreadableDocument():
                    unreadable = True
                    problems.append(_unreadable(source, item))
                case UnknownObject():
                    if is_skipped(item):
                        skipped.append(f"{source.name}: {_skip_note(item)}")
                    problems += (_locate_unknown(source, item, problem) for problem in item.problems)
                case LoadedObject():
                    loaded.append((source.name, _judged(item)))
    manifests = _cross_checked(loaded, (), context, IN_FILES)
    return CheckedManifests(manifests, _sorted(problems, manifests), tuple(skipped), unreadable, parsed=tuple(parsed))


def _judged(item: LoadedObject) -> LoadedObject:
    if not item.kind.builtin:
        return item
    from springtide.assembly.builtin_validation import judge  # imported late: only these kinds need the rules

    return judge(item)


def check_cluster_objects(
    loaded: Sequence[tuple[str, LoadedObject]],
    related: Sequence[tuple[str, LoadedObject]],
    unread: Iterable[UnreadableSource],
    context: ValidationContext,
    *,
    unseen: frozenset[ObjectKey],
) -> CheckedManifests:
    """Validate objects read from a cluster; of the related objects, report only conflicts with the others."""
    problems = [_unread(item) for item in unread]
    scope = replace(_CLUSTER, unseen=unseen)
    others = [item for _, item in related]
    manifests = tuple(map(_without_lines, _cross_checked(loaded, others, context, scope)))
    conflicting = tuple(map(_without_lines, _conflicting(related, [item for _, item in loaded], context, scope)))
    found = _sorted(problems, (*manifests, *conflicting))
    return CheckedManifests(manifests, found, (), bool(problems), tuple(others))


def misnamed_kinds(source: ManifestSource) -> list[LocatedProblem]:
    """Find objects of a source whose group or kind is wrong, without validating the others."""
    return [
        _locate_unknown(source, unknown, problem)
        for unknown in unknown_objects(source.text)
        if unknown.api_version and unknown.kind
        for problem in unknown.problems
    ]


def _conflicting(
    related: Sequence[tuple[str, LoadedObject]],
    requested: Sequence[LoadedObject],
    context: ValidationContext,
    scope: LookupScope,
) -> Iterator[CheckedManifest]:
    """Yield the related objects with the problems that they have only because of the requested ones.

    A conflict has two sides, and most checks report it on one of them. What is reported on a requested object as well
    is left out.
    """
    others = [item for _, item in related]
    alone = check_cross_object(others, context, scope)
    together = check_cross_object([*requested, *others], context, scope)
    of_requested, of_related = together[: len(requested)], together[len(requested) :]
    for position, (file, item) in enumerate(related):
        added = _added(alone[position], of_related[position])
        if not added:
            continue
        rest = [*requested, *others[:position], *others[position + 1 :]]
        without = check_cross_object(rest, context, scope)
        if not any(_added(before, after) for before, after in zip(without, of_requested, strict=False)):
            yield _manifest(file, replace(item, problems=tuple(_at_written_paths(item, added))))


def _added(before: Sequence[Problem], after: Sequence[Problem]) -> list[Problem]:
    return [problem for problem in after if problem not in before]


def _cross_checked(
    loaded: Sequence[tuple[str, LoadedObject]],
    related: Sequence[LoadedObject],
    context: ValidationContext,
    scope: LookupScope,
) -> tuple[CheckedManifest, ...]:
    """Add the problems of references between objects to those of each object."""
    found = check_cross_object([*(item for _, item in loaded), *related], context, scope)
    return tuple(
        _manifest(file, replace(item, problems=(*item.problems, *_at_written_paths(item, added))))
        for (file, item), added in zip(loaded, found[: len(loaded)], strict=True)
    )


def _sorted(problems: Iterable[LocatedProblem], manifests: Iterable[CheckedManifest]) -> tuple[LocatedProblem, ...]:
    everything = (*problems, *(problem for manifest in manifests for problem in manifest.problems))
    return tuple(
        sorted(
            everything, key=lambda found: (found.file, found.line or 0, found.column or 0, found.path, found.message)
        )
    )


def _without_lines(manifest: CheckedManifest) -> CheckedManifest:
    without_lines = (msgspec.structs.replace(problem, line=None, column=None) for problem in manifest.problems)
    return replace(manifest, problems=tuple(without_lines))


def _skip_note(unknown: UnknownObject) -> str:
    from springtide.apis.importers import is_importable  # imported late: most commands never need it

    what = " ".join(filter(None, (unknown.kind, unknown.name)))
    remedy = "; `springtide convert` reads it" if is_importable(unknown.api_version, unknown.kind) else ""
    return f"{shorten(what)} ({shorten(unknown.api_version)}): not a kind that Springtide knows, skipped{remedy}"


def _unread(item: UnreadableSource) -> LocatedProblem:
    return LocatedProblem(file=item.name, message=item.message, hint=item.hint)


def _unreadable(source: ManifestSource, item: UnreadableDocument) -> LocatedProblem:
    return LocatedProblem(file=source.name, line=item.line, column=item.column, message=item.message, hint=item.hint)


def _locate_unknown(source: ManifestSource, unknown: UnknownObject, problem: Problem) -> LocatedProblem:
    position = unknown.place(problem)
    return LocatedProblem(
        file=source.name,
        line=position.line,
        column=position.column,
        api_version=unknown.api_version or None,
        kind=unknown.kind or None,
        name=unknown.name or None,
        path=format_path(problem.path),
        message=problem.message,
        hint=problem.hint,
        severity=problem.severity,
    )


def _at_written_paths(loaded: LoadedObject, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Replace canonical paths by the paths in the user's manifest."""
    for problem in problems:
        yield msgspec.structs.replace(problem, path=loaded.written(problem.path))


def _manifest(file: str, loaded: LoadedObject) -> CheckedManifest:
    return CheckedManifest(file, loaded, tuple(_located(file, loaded, problem) for problem in loaded.problems))


def _located(file: str, loaded: LoadedObject, problem: Problem) -> LocatedProblem:
    position = loaded.place(problem)
    return LocatedProblem(
        file=file,
        line=position.line,
        column=position.column,
        api_version=loaded.api_version,
        kind=loaded.kind.kind,
        namespace=loaded.namespace,
        name=loaded.name,
        path=format_path(problem.path),
        message=problem.message,
        hint=problem.hint,
        severity=problem.severity,
    )
