"""Manifests from files, folders and standard input.

Problems with the place where they stand, in the one shape that `check` and `preview` give to scripts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import LoadedObject, UnknownObject, is_skipped, load
from springtide.apis.problems import Problem, Severity, format_path
from springtide.apis.references import IN_FILES, LookupScope, ObjectKey, check_cross_object
from springtide.apis.structural_validation import shorten
from springtide.apis.yaml import UnreadableDocument

SUFFIXES = (".yaml", ".yml", ".json")
"""How the names of manifests end."""


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """A cluster, and the part of it that is meant."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    """None: the one that the kubeconfig names."""
    everywhere: bool = False
    """Whether all namespaces are meant."""
    said: bool = False
    """Whether any option was given, and so a cluster is meant at all."""


@dataclass(frozen=True, slots=True)
class ManifestSource:
    """A text that was read, and what to call it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class UnreadableSource:
    """Something that could not be read at all."""

    name: str
    message: str
    hint: str = ""


def read_sources(paths: tuple[str, ...]) -> tuple[list[ManifestSource], list[UnreadableSource]]:
    """Read everything that is named; what cannot be read is told and keeps nothing else from being read."""
    sources: list[ManifestSource] = []
    unread: list[UnreadableSource] = []
    seen: set[str] = set()
    for path in paths:
        names, failure = _expand(path)
        if failure is not None:
            unread.append(failure)
        for name in names:
            # A file that is named twice, or stands in a folder that is named as well, is read once.
            if (real := name if name == "-" else os.path.realpath(name)) in seen:
                continue
            seen.add(real)
            outcome = _read(name)
            if isinstance(outcome, ManifestSource):
                sources.append(outcome)
            else:
                unread.append(outcome)
    return sources, unread


def _expand(path: str) -> tuple[list[str], UnreadableSource | None]:
    """List the manifests below a folder, in a stable order; a file is itself."""
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
    """A problem, the object that has it, and the place in the file; an object of a cluster has no lines."""

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
    """An object, the file it was read from, and what was found about it."""

    file: str
    object: LoadedObject
    problems: tuple[LocatedProblem, ...]


@dataclass(frozen=True, slots=True)
class CheckedManifests:
    """Everything that was read, and everything that was found."""

    manifests: tuple[CheckedManifest, ...]
    problems: tuple[LocatedProblem, ...]
    skipped: tuple[str, ...]
    unreadable: bool
    companions: tuple[LoadedObject, ...] = ()
    """Objects that were read only because the others have to do with them."""

    @property
    def objects(self) -> tuple[LoadedObject, ...]:
        """Everything that is known, judged or not."""
        return (*(manifest.object for manifest in self.manifests), *self.companions)

    @property
    def errors(self) -> int:
        """How many problems are errors."""
        return sum(problem.severity == "error" for problem in self.problems)

    @property
    def warnings(self) -> int:
        """How many problems are warnings."""
        return len(self.problems) - self.errors

    def exit_code(self, *, strict: bool) -> int:
        """What scripts are told: 0 fine, 1 errors (or warnings, if strict), 2 something could not be read."""
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
    """Read and judge everything, each object by itself and all of them together."""
    problems = [_unread(item) for item in unread]
    unreadable = bool(problems)
    loaded: list[tuple[str, LoadedObject]] = []
    skipped: list[str] = []
    for source in sources:
        for item in load(source.text, context):
            match item:
                case UnreadableDocument():
                    unreadable = True
                    problems.append(_unreadable(source, item))
                case UnknownObject():
                    if is_skipped(item):
                        skipped.append(f"{source.name}: {_skipped(item)}")
                    problems += (_stray(source, item, problem) for problem in item.problems)
                case LoadedObject():
                    loaded.append((source.name, item))
    manifests = _cross_checked(loaded, (), context, IN_FILES)
    return CheckedManifests(manifests, _sorted(problems, manifests), tuple(skipped), unreadable)


def check_cluster_objects(
    loaded: Sequence[tuple[str, LoadedObject]],
    companions: Sequence[LoadedObject],
    unread: Iterable[UnreadableSource],
    context: ValidationContext,
    *,
    unseen: frozenset[ObjectKey],
) -> CheckedManifests:
    """Judge objects of a cluster; companions are known and not judged."""
    problems = [_unread(item) for item in unread]
    manifests = _cross_checked(loaded, companions, context, replace(_CLUSTER, unseen=unseen))
    manifests = tuple(_without_lines(manifest) for manifest in manifests)
    return CheckedManifests(manifests, _sorted(problems, manifests), (), bool(problems), tuple(companions))


def _cross_checked(
    loaded: Sequence[tuple[str, LoadedObject]],
    companions: Sequence[LoadedObject],
    context: ValidationContext,
    surroundings: LookupScope,
) -> tuple[CheckedManifest, ...]:
    together = check_cross_object([*(item for _, item in loaded), *companions], context, surroundings)
    return tuple(
        _manifest(file, replace(item, problems=(*item.problems, *_as_written(item, added))))
        for (file, item), added in zip(loaded, together[: len(loaded)], strict=True)
    )


def _sorted(problems: Iterable[LocatedProblem], manifests: Iterable[CheckedManifest]) -> tuple[LocatedProblem, ...]:
    everything = (*problems, *(problem for manifest in manifests for problem in manifest.problems))
    return tuple(
        sorted(
            everything, key=lambda found: (found.file, found.line or 0, found.column or 0, found.path, found.message)
        )
    )


def _without_lines(manifest: CheckedManifest) -> CheckedManifest:
    placeless = (msgspec.structs.replace(problem, line=None, column=None) for problem in manifest.problems)
    return replace(manifest, problems=tuple(placeless))


def _skipped(stray: UnknownObject) -> str:
    from springtide.apis.importers import is_importable  # most commands never need it

    what = " ".join(filter(None, (stray.kind, stray.name)))
    remedy = "; `springtide convert` reads it" if is_importable(stray.api_version, stray.kind) else ""
    return f"{shorten(what)} ({shorten(stray.api_version)}): not a kind that Springtide knows, skipped{remedy}"


def _unread(item: UnreadableSource) -> LocatedProblem:
    return LocatedProblem(file=item.name, message=item.message, hint=item.hint)


def _unreadable(source: ManifestSource, item: UnreadableDocument) -> LocatedProblem:
    return LocatedProblem(file=source.name, line=item.line, column=item.column, message=item.message, hint=item.hint)


def _stray(source: ManifestSource, stray: UnknownObject, problem: Problem) -> LocatedProblem:
    position = stray.place(problem)
    return LocatedProblem(
        file=source.name,
        line=position.line,
        column=position.column,
        api_version=stray.api_version or None,
        kind=stray.kind or None,
        name=stray.name or None,
        path=format_path(problem.path),
        message=problem.message,
        hint=problem.hint,
        severity=problem.severity,
    )


def _as_written(loaded: LoadedObject, problems: Iterable[Problem]) -> Iterator[Problem]:
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
