"""Problems with the place where they stand, in the one shape that `check` and `preview` give to scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from springtide.apis.fields import Context
from springtide.apis.objects import LoadedObject, Stray, is_skipped, load
from springtide.apis.problems import Problem, Severity, format_path
from springtide.apis.references import FILES, Surroundings, Target, check_together
from springtide.apis.structure import shorten
from springtide.apis.yaml import Unreadable
from springtide.cli.inputs import Source, Unread


class Finding(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
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
class Manifest:
    """An object, the file it was read from, and what was found about it."""

    file: str
    object: LoadedObject
    problems: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that was read, and everything that was found."""

    manifests: tuple[Manifest, ...]
    problems: tuple[Finding, ...]
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


_CLUSTER = Surroundings(
    "in the cluster",
    "create it, or name another one",
    "its days are not taken into account; create the Calendar",
    everything=True,
)


def examine(sources: Iterable[Source], unread: Iterable[Unread], context: Context) -> Findings:
    """Read and judge everything, each object by itself and all of them together."""
    problems = [_unread(item) for item in unread]
    unreadable = bool(problems)
    loaded: list[tuple[str, LoadedObject]] = []
    skipped: list[str] = []
    for source in sources:
        for item in load(source.text, context):
            match item:
                case Unreadable():
                    unreadable = True
                    problems.append(_unreadable(source, item))
                case Stray():
                    if is_skipped(item):
                        skipped.append(f"{source.name}: {_skipped(item)}")
                    problems += (_stray(source, item, problem) for problem in item.problems)
                case LoadedObject():
                    loaded.append((source.name, item))
    manifests = _judged_together(loaded, (), context, FILES)
    return Findings(manifests, _sorted(problems, manifests), tuple(skipped), unreadable)


def examine_objects(
    loaded: Sequence[tuple[str, LoadedObject]],
    companions: Sequence[LoadedObject],
    unread: Iterable[Unread],
    context: Context,
    *,
    unseen: frozenset[Target],
) -> Findings:
    """Judge objects of a cluster; companions are known and not judged."""
    problems = [_unread(item) for item in unread]
    manifests = _judged_together(loaded, companions, context, replace(_CLUSTER, unseen=unseen))
    manifests = tuple(_without_lines(manifest) for manifest in manifests)
    return Findings(manifests, _sorted(problems, manifests), (), bool(problems), tuple(companions))


def _judged_together(
    loaded: Sequence[tuple[str, LoadedObject]],
    companions: Sequence[LoadedObject],
    context: Context,
    surroundings: Surroundings,
) -> tuple[Manifest, ...]:
    together = check_together([*(item for _, item in loaded), *companions], context, surroundings)
    return tuple(
        _manifest(file, replace(item, problems=(*item.problems, *_as_written(item, added))))
        for (file, item), added in zip(loaded, together[: len(loaded)], strict=True)
    )


def _sorted(problems: Iterable[Finding], manifests: Iterable[Manifest]) -> tuple[Finding, ...]:
    everything = (*problems, *(problem for manifest in manifests for problem in manifest.problems))
    return tuple(
        sorted(
            everything, key=lambda found: (found.file, found.line or 0, found.column or 0, found.path, found.message)
        )
    )


def _without_lines(manifest: Manifest) -> Manifest:
    placeless = (msgspec.structs.replace(problem, line=None, column=None) for problem in manifest.problems)
    return replace(manifest, problems=tuple(placeless))


def _skipped(stray: Stray) -> str:
    from springtide.apis.peers import is_converted  # most commands never need it

    what = " ".join(filter(None, (stray.kind, stray.name)))
    remedy = "; `springtide convert` reads it" if is_converted(stray.api_version, stray.kind) else ""
    return f"{shorten(what)} ({shorten(stray.api_version)}): not a kind that Springtide knows, skipped{remedy}"


def _unread(item: Unread) -> Finding:
    return Finding(file=item.name, message=item.message, hint=item.hint)


def _unreadable(source: Source, item: Unreadable) -> Finding:
    return Finding(file=source.name, line=item.line, column=item.column, message=item.message, hint=item.hint)


def _stray(source: Source, stray: Stray, problem: Problem) -> Finding:
    position = stray.place(problem)
    return Finding(
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


def _manifest(file: str, loaded: LoadedObject) -> Manifest:
    return Manifest(file, loaded, tuple(_located(file, loaded, problem) for problem in loaded.problems))


def _located(file: str, loaded: LoadedObject, problem: Problem) -> Finding:
    position = loaded.place(problem)
    return Finding(
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
