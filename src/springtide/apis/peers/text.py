"""Peers' objects in a text of manifests, replaced where they stand; every other document stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from springtide.apis import registry
from springtide.apis.canonical import canonical
from springtide.apis.edits import Change, as_json, json_indentation, lost_comments
from springtide.apis.fields import Context, View
from springtide.apis.judging import judge
from springtide.apis.karmada.together import excluded_rules
from springtide.apis.karmada.types import CronFederatedHPA
from springtide.apis.meta.windows import KnownCalendars
from springtide.apis.objects import members_of
from springtide.apis.peers.conversion import Conversion, Converter, Setting, Tree, head, part
from springtide.apis.peers.cronhpa import CRON_HPA, convert_cronhpa
from springtide.apis.peers.downscaler import convert_downscaler
from springtide.apis.peers.keda import convert_keda
from springtide.apis.peers.surroundings import Surroundings
from springtide.apis.problems import Path, Problem, error, format_path, warning
from springtide.apis.springtide.calendars import compile_calendar
from springtide.apis.springtide.types import Calendar
from springtide.apis.yaml import Document, Position, dump, read, repair, rewrite

PEERS: tuple[Converter, ...] = (convert_keda, convert_cronhpa, convert_downscaler)
_LEADING_COMMENTS = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*")


def is_converted(api_version: str, kind: str) -> bool:
    """Tell whether objects of a kind that is not ours are converted, all of them."""
    return head({"apiVersion": api_version, "kind": kind}) == CRON_HPA


@dataclass(frozen=True, slots=True)
class Told:
    """Something that is said about an object of a peer, and where that stands in the text."""

    position: Position
    api_version: str
    kind: str
    name: str
    problem: Problem


@dataclass(frozen=True, slots=True)
class Replaced:
    """A text without peers' objects, except for those that could not be converted, and what is said about them."""

    text: str
    told: tuple[Told, ...] = ()
    changes: tuple[Change, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether an object could not be converted."""
        return any(told.problem.severity == "error" for told in self.told)


def replace_peers(text: str, setting: Setting, surroundings: Surroundings | None = None) -> Replaced:
    """Put the objects that they become in the place of all peers' objects of a text.

    `surroundings` are the files that are converted together, this one among them; without any it stands alone.
    """
    repaired, _ = repair(text)
    if surroundings is None:
        surroundings = Surroundings()
        surroundings.read(repaired)
    replaced = repaired
    told: list[Told] = []
    changes: list[Change] = []
    documents = [document for document in read(repaired) if isinstance(document, Document)]
    converted = [(document, list(_conversions(document, setting, surroundings))) for document in documents]
    # From the last to the first, so that the places of the earlier ones stay true.
    for document, found in reversed(converted):
        for root, value, conversion in found:
            told += _told(document, root, value, conversion)
        effective = [
            (root, value, conversion) for root, value, conversion in found if conversion.made and not conversion.failed
        ]
        if not effective:
            continue
        edited = _edited(document, {root: conversion for root, _, conversion in effective})
        changes += (_change(document, root, value, conversion) for root, value, conversion in effective)
        changes += lost_comments(document, edited)
        replaced = replaced[: document.offset] + edited + replaced[document.offset + len(document.text) :]
    return Replaced(
        replaced if changes else text,
        tuple(sorted(told, key=lambda item: item.position)),
        tuple(sorted(changes, key=lambda change: change.line)),
    )


def _conversions(
    document: Document, setting: Setting, surroundings: Surroundings
) -> Iterator[tuple[Path, Tree, Conversion]]:
    for root, value in members_of(document.value):
        if not isinstance(value, dict):
            continue
        for convert in PEERS:
            conversion = convert(value, setting)
            if conversion is not None:
                yield root, value, surroundings.fit(value, _checked(value, conversion, setting))
                break


def _checked(value: Tree, conversion: Conversion, setting: Setting) -> Conversion:
    """Refuse a conversion whose results have errors, which come from parts that are taken over as they are."""
    made = tuple(canonical(item).value for item in conversion.made)
    context = Context(now=setting.now, thorough=False)
    refused: list[Problem] = []
    views: list[tuple[str, View | None]] = []
    for item in made:
        found = registry.find(item["apiVersion"], item["kind"])
        judged = judge(item, *found, context) if found is not None else None
        views.append((item["metadata"]["name"], judged.view if judged is not None else None))
        for problem in judged.problems if judged is not None else ():
            if problem.severity == "error":
                place = f"{item['kind']}.{format_path(problem.path)}"
                refused.append(error((), f"what it becomes is not valid: {place} {problem.message}", problem.hint))
    if refused:
        return Conversion(value, (), (*conversion.problems, *refused))
    return replace(conversion, made=made, problems=(*conversion.problems, *_excluded(views, context)))


def _excluded(views: Sequence[tuple[str, View | None]], context: Context) -> Iterator[Problem]:
    """Find rules that the calendar that is made with them keeps from ever firing."""
    calendars = {name: compile_calendar(view.spec) for name, view in views if isinstance(view, Calendar)}
    for _, view in views:
        if calendars and isinstance(view, CronFederatedHPA):
            for problem in excluded_rules(view, context, KnownCalendars(calendars)):
                yield warning((), problem.message, "remove its job, or the date")


def _edited(document: Document, conversions: Mapping[Path, Conversion]) -> str:
    """Write a document anew: as several, or, in a list and in JSON, as one."""
    indentation = json_indentation(document.text)
    whole = conversions.get(())
    if whole is not None and indentation is None:
        return _documents(document, whole)
    meant = _with_members(document.value, conversions) if whole is None else _as_one(whole)
    if indentation is not None:
        return as_json(meant, indentation, document.text)
    return rewrite(document.text, document.value, meant)[0]


def _documents(document: Document, conversion: Conversion) -> str:
    """Write what an object becomes as documents of their own."""
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
    """Give one object for a text that can hold no more than one."""
    objects = _all_of(conversion)
    return objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects}


def _told(document: Document, root: Path, value: Tree, conversion: Conversion) -> Iterator[Told]:
    name = part(value, "metadata").get("name")
    for problem in conversion.problems:
        yield Told(
            document.position((*root, *problem.path)),
            str(value.get("apiVersion")),
            str(value.get("kind")),
            name if isinstance(name, str) else "",
            problem,
        )


def _change(document: Document, root: Path, value: Tree, conversion: Conversion) -> Change:
    """Say what an object becomes."""
    made = " and ".join(f"{item['kind']} `{item['metadata']['name']}`" for item in conversion.made)
    done = f"became {made}" if conversion.kept is None else f"stays beside the new {made}"
    return Change(document.position(root).line, f"{value['kind']} `{part(value, 'metadata').get('name')}` {done}")
