"""Replaces the objects of other projects in files of manifests; every other document keeps its text.

`SiblingObjects` knows all objects of the files that are converted together, so that new names are free, and a second
autoscaler of a target and its `replicas`, which applying the files again would restore, are reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from springtide.apis import scheme as registry
from springtide.apis.canonical import ManifestChange, canonical, format_json, json_indentation, lost_comments
from springtide.apis.importers.conversion import (
    Conversion,
    ConversionOptions,
    Converter,
    Tree,
    free_name,
    group_kind,
    mapping_at,
    renamed,
)
from springtide.apis.importers.cronhpa import CRON_HPA, convert_cronhpa
from springtide.apis.importers.downscaler import convert_downscaler
from springtide.apis.importers.keda import convert_keda
from springtide.apis.karmada.cron import CronFederatedHPA
from springtide.apis.karmada.cross_object_checks import never_firing_problems
from springtide.apis.kinds import ValidationContext, View
from springtide.apis.meta.times import KnownCalendars
from springtide.apis.objects import members_of
from springtide.apis.problems import Path, Problem, error, format_path, warning
from springtide.apis.springtide.calendars import Calendar, compile_calendar
from springtide.apis.validation import validate_object
from springtide.apis.yaml import Document, Position, dump, read, repair, rewrite

IMPORTERS: tuple[Converter, ...] = (convert_keda, convert_cronhpa, convert_downscaler)
_LEADING_COMMENTS = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*")
_LONGEST_NAME = 63
_CLUSTER_WIDE = ("Calendar",)
_WORKLOAD_GROUPS = ("apps", "argoproj.io")
_AUTOSCALERS = (
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("autoscaling.karmada.io", "FederatedHPA"),
    ("autoscaling.karpenter.sh", "HorizontalAutoscaler"),
    ("keda.sh", "ScaledObject"),
)


class SiblingObjects:
    """The objects of the files that are converted together, and the new ones, by name and by scale target.

    Of workloads, it keeps the replicas that are written in the files.
    """

    def __init__(self) -> None:
        self._taken: set[tuple[str, str, str]] = set()
        self._autoscalers: dict[tuple[str, str, str], list[Tree]] = {}
        self._replicas: dict[tuple[str, str, str], Any] = {}

    def read(self, text: str) -> None:
        """Add the objects of a text."""
        for document in read(text):
            for _, value in members_of(document.value) if isinstance(document, Document) else ():
                if isinstance(value, dict):
                    self._add(value)

    def resolve_conflicts(self, value: Tree, conversion: Conversion) -> Conversion:
        """Rename new objects whose names are taken; warn of other autoscalers of their target, and of its replicas."""
        if conversion.failed or not conversion.made:
            return conversion
        problems: list[Problem] = [
            *conversion.problems,
            *self._conflicts(value, conversion),
            *self._fixed_replicas(value, conversion),
        ]
        made = conversion.made
        for position, item in enumerate(made):
            name = self._free_name(item, str(value["kind"]).lower())
            if name != item["metadata"]["name"]:
                message = f"there is a {item['kind']} `{item['metadata']['name']}` already: the new one is `{name}`"
                problems.append(warning(("metadata", "name"), message))
                made = renamed(made, position, name)
            self._taken.add(_identity(made[position]))
        return replace(conversion, made=made, problems=tuple(problems))

    def _add(self, value: Tree) -> None:
        self._taken.add(_identity(value))
        replicas = mapping_at(value, "spec").get("replicas")
        if replicas is not None and group_kind(value)[0] in _WORKLOAD_GROUPS:
            self._replicas[_identity(value)] = replicas
        if group_kind(value) in _AUTOSCALERS and (target := _target(value)) is not None:
            self._autoscalers.setdefault(target, []).append(value)

    def _free_name(self, item: Tree, suffix: str) -> str:
        kind, namespace, name = _identity(item)
        if (kind, namespace, name) not in self._taken:
            return name
        same = {called for its, where, called in self._taken if (its, where) == (kind, namespace)}
        return free_name(f"{name}-{suffix}", same, longest=_LONGEST_NAME)

    def _conflicts(self, value: Tree, conversion: Conversion) -> Iterator[Problem]:
        for item in conversion.made:
            target = _target(item)
            autoscalers = self._autoscalers.get(target, []) if target is not None else []
            others = [autoscaler for autoscaler in autoscalers if _identity(autoscaler) != _identity(value)]
            if not others:
                continue
            names = " and ".join(f"{one['kind']} `{mapping_at(one, 'metadata').get('name')}`" for one in others)
            reference = mapping_at(item, "spec", "scaleTargetRef")
            yield warning(
                ("metadata", "name"),
                f"{reference.get('kind')} `{reference.get('name')}` is also scaled by {names}, which conflicts with the"
                f" new {item['kind']}",
                "keep one of them",
            )

    def _fixed_replicas(self, value: Tree, conversion: Conversion) -> Iterator[Problem]:
        targets = dict.fromkeys(target for item in conversion.made if (target := _target(item)) is not None)
        for kind, namespace, name in targets:
            replicas = self._replicas.get((kind, namespace, name))
            if replicas is None:
                continue
            own = _identity(value) == (kind, namespace, name)
            yield warning(
                ("spec", "replicas") if own else ("metadata", "name"),
                f"applying {kind} `{name}` again sets its `replicas: {replicas}`, whatever the schedule says",
                f"remove `replicas` from it; to keep that from setting 1 once, first remove it by"
                f" `kubectl apply edit-last-applied -n {namespace} {kind.lower()}/{name}`",
            )


def _identity(value: Tree) -> tuple[str, str, str]:
    metadata = mapping_at(value, "metadata")
    kind = group_kind(value)[1]
    return (
        kind,
        "" if kind in _CLUSTER_WIDE else _text(metadata.get("namespace")) or "default",
        _text(metadata.get("name")),
    )


def _target(value: Tree) -> tuple[str, str, str] | None:
    reference = mapping_at(value, "spec", "scaleTargetRef")
    if not isinstance(reference.get("name"), str):
        return None
    namespace = _text(mapping_at(value, "metadata").get("namespace")) or "default"
    return _text(reference.get("kind")) or "Deployment", namespace, reference["name"]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def is_importable(api_version: str, kind: str) -> bool:
    """Return whether all objects of a kind of another project are converted."""
    return group_kind({"apiVersion": api_version, "kind": kind}) == CRON_HPA


@dataclass(frozen=True, slots=True)
class ConversionNotice:
    """A problem of the conversion of an object, and its position in the text."""

    position: Position
    api_version: str
    kind: str
    name: str
    problem: Problem


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The text with the converted objects, the problems, and the changes."""

    text: str
    notices: tuple[ConversionNotice, ...] = ()
    changes: tuple[ManifestChange, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether an object could not be converted."""
        return any(notice.problem.severity == "error" for notice in self.notices)


def import_objects(text: str, options: ConversionOptions, siblings: SiblingObjects | None = None) -> ImportResult:
    """Replace all objects of a text that can be converted.

    `siblings` are the objects of all files that are converted together, including this one; by default only this one.
    """
    repaired, _ = repair(text)
    if siblings is None:
        siblings = SiblingObjects()
        siblings.read(repaired)
    replaced = repaired
    notices: list[ConversionNotice] = []
    changes: list[ManifestChange] = []
    documents = [document for document in read(repaired) if isinstance(document, Document)]
    converted = [(document, list(_conversions(document, options, siblings))) for document in documents]
    # From the last to the first, so that the positions of the earlier documents stay valid.
    for document, found in reversed(converted):
        for root, value, conversion in found:
            notices += _notices(document, root, value, conversion)
        effective = [
            (root, value, conversion) for root, value, conversion in found if conversion.made and not conversion.failed
        ]
        if not effective:
            continue
        edited = _edited(document, {root: conversion for root, _, conversion in effective})
        changes += (_change(document, root, value, conversion) for root, value, conversion in effective)
        changes += lost_comments(document, edited)
        replaced = replaced[: document.offset] + edited + replaced[document.offset + len(document.text) :]
    return ImportResult(
        replaced if changes else text,
        tuple(sorted(notices, key=lambda item: item.position)),
        tuple(sorted(changes, key=lambda change: change.line)),
    )


def _conversions(
    document: Document, options: ConversionOptions, siblings: SiblingObjects
) -> Iterator[tuple[Path, Tree, Conversion]]:
    for root, value in members_of(document.value):
        if not isinstance(value, dict):
            continue
        for convert in IMPORTERS:
            conversion = convert(value, options)
            if conversion is not None:
                yield root, value, siblings.resolve_conflicts(value, _checked(value, conversion, options))
                break


def _checked(value: Tree, conversion: Conversion, options: ConversionOptions) -> Conversion:
    """Fail a conversion whose new objects have errors, which come from parts that are copied unchanged."""
    made = tuple(canonical(item).value for item in conversion.made)
    context = ValidationContext(now=options.now, deep_search=False)
    refused: list[Problem] = []
    views: list[tuple[str, View | None]] = []
    for item in made:
        found = registry.find_kind(item["apiVersion"], item["kind"])
        validated = validate_object(item, *found, context) if found is not None else None
        views.append((item["metadata"]["name"], validated.view if validated is not None else None))
        for problem in validated.problems if validated is not None else ():
            if problem.severity == "error":
                place = f"{item['kind']}.{format_path(problem.path)}"
                refused.append(error((), f"the new object is not valid: {place}: {problem.message}", problem.hint))
    if refused:
        return Conversion(value, (), (*conversion.problems, *refused))
    return replace(conversion, made=made, problems=(*conversion.problems, *_excluded(views, context)))


def _excluded(views: Sequence[tuple[str, View | None]], context: ValidationContext) -> Iterator[Problem]:
    """Find rules that never fire because of the calendar that is made with them."""
    calendars = {name: compile_calendar(view.spec) for name, view in views if isinstance(view, Calendar)}
    for _, view in views:
        if calendars and isinstance(view, CronFederatedHPA):
            for problem in never_firing_problems(view, context, KnownCalendars(calendars)):
                yield warning((), problem.message, "remove its job, or the date")


def _edited(document: Document, conversions: Mapping[Path, Conversion]) -> str:
    """Write a document with its conversions: as several documents or, in a List and in JSON, as one."""
    indentation = json_indentation(document.text)
    whole = conversions.get(())
    if whole is not None and indentation is None:
        return _documents(document, whole)
    meant = _with_members(document.value, conversions) if whole is None else _as_one(whole)
    if indentation is not None:
        return format_json(meant, indentation, document.text)
    return rewrite(document.text, document.value, meant)[0]


def _documents(document: Document, conversion: Conversion) -> str:
    """Write the objects of a conversion as separate documents."""
    newline = "\r\n" if "\r\n" in document.text else "\n"
    written = [dump(made).replace("\n", newline) for made in conversion.made]
    if conversion.kept is None:
        leading = _LEADING_COMMENTS.match(document.text)
        own_line = newline if document.segment.first_column > 1 else ""
        return own_line + (leading[0] if leading else "") + f"---{newline}".join(written)
    kept = rewrite(document.text, document.value, conversion.kept)[0]
    return f"---{newline}".join([kept if kept.endswith("\n") else kept + newline, *written])


def _with_members(value: Tree, conversions: Mapping[Path, Conversion]) -> Tree:
    items: list[Any] = []
    for root, member in members_of(value):
        conversion = conversions.get(root)
        items += [member] if conversion is None else _all_of(conversion)
    return {**value, "items": items}


def _all_of(conversion: Conversion) -> list[Tree]:
    return [*([] if conversion.kept is None else [conversion.kept]), *conversion.made]


def _as_one(conversion: Conversion) -> Tree:
    """Return one object, for a text that can hold only one."""
    objects = _all_of(conversion)
    return objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects}


def _notices(document: Document, root: Path, value: Tree, conversion: Conversion) -> Iterator[ConversionNotice]:
    name = mapping_at(value, "metadata").get("name")
    for problem in conversion.problems:
        yield ConversionNotice(
            document.position((*root, *problem.path)),
            str(value.get("apiVersion")),
            str(value.get("kind")),
            name if isinstance(name, str) else "",
            problem,
        )


def _change(document: Document, root: Path, value: Tree, conversion: Conversion) -> ManifestChange:
    """Describe what an object became."""
    made = " and ".join(f"{item['kind']} `{item['metadata']['name']}`" for item in conversion.made)
    done = f"became {made}" if conversion.kept is None else f"stays beside the new {made}"
    return ManifestChange(
        document.position(root).line, f"{value['kind']} `{mapping_at(value, 'metadata').get('name')}` {done}"
    )
