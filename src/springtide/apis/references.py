"""References between objects, and the checks that need several objects.

Which fields refer to what is a table; a rule about references works on that table, so a new kind needs a line in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from springtide.apis import scheme
from springtide.apis.core.pods import CONSUME_ANNOTATION
from springtide.apis.karmada.cross_object_checks import cron_problems
from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import KnownCalendars
from springtide.apis.objects import LoadedObject, calendars_in
from springtide.apis.problems import Path, Problem, format_path, warning
from springtide.apis.scheduled.cross_object_checks import (
    node_group_problems,
    producers_named_in,
    schedule_problems_with_calendars,
)
from springtide.apis.scheduled.followers import external_schedule_name, follower_problems
from springtide.apis.xk8s.cross_object_checks import buffer_problems


class ReferenceRole(StrEnum):
    """What a reference is for."""

    SCALES = "scales"  # sets the replicas of the target continuously
    CRON = "cron"  # sets the replicas or the bounds of the target at certain times
    SHAPE = "shape"  # takes the pod template of the target
    CALENDAR = "calendar"  # its times depend on the days of the target
    CLASS = "class"  # the target has its settings
    READS = "reads"  # reads a metric that the target produces
    CONSUMES = "consumes"  # its pods use the capacity that the target requested


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """The object that a reference names."""

    group: str
    kind: str
    namespace: str | None
    name: str

    def __str__(self) -> str:
        """Return kind and name, for messages."""
        return f"{self.kind} `{self.name}`"


@dataclass(frozen=True, slots=True)
class FieldReference:
    """A field that names another object."""

    path: Path
    role: ReferenceRole
    target: ObjectKey


@dataclass(frozen=True, slots=True)
class LookupScope:
    """Where objects were looked up, with texts for messages."""

    name: str
    missing_hint: str
    """The hint for an object that was not found."""
    missing_calendar_hint: str
    """The hint for a Calendar that was not found."""
    unseen: frozenset[ObjectKey] = frozenset()
    """Objects that could not be looked up, and are not reported as missing."""
    complete: bool = False
    """Whether an object that was not found does not exist."""


IN_FILES = LookupScope(
    "in these files",
    "it must exist in the cluster, or be added to the files",
    "its days are not taken into account here; add the Calendar to the files",
)

_SCALE_TARGET = ("spec", "scaleTargetRef")
_CONSUMED = ("metadata", "annotations", CONSUME_ANNOTATION)
_FIELDS: dict[tuple[str, str], tuple[tuple[Path, ReferenceRole], ...]] = {
    ("autoscaling.karpenter.sh", "HorizontalAutoscaler"): (
        (_SCALE_TARGET, ReferenceRole.SCALES),
        (("spec", "metrics", "*", "prometheus", "query"), ReferenceRole.READS),
    ),
    ("autoscaling.karpenter.sh", "MetricsProducer"): (
        (("spec", "schedule", "behaviors", "*", "calendars", "*"), ReferenceRole.CALENDAR),
    ),
    ("autoscaling.karmada.io", "CronFederatedHPA"): (
        (_SCALE_TARGET, ReferenceRole.CRON),
        (("spec", "rules", "*", "calendars", "*"), ReferenceRole.CALENDAR),
    ),
    ("autoscaling.karmada.io", "FederatedHPA"): ((_SCALE_TARGET, ReferenceRole.SCALES),),
    ("autoscaling", "HorizontalPodAutoscaler"): (
        (_SCALE_TARGET, ReferenceRole.SCALES),
        (("spec", "metrics", "*", "external", "metric"), ReferenceRole.READS),
    ),
    ("keda.sh", "ScaledObject"): (
        (_SCALE_TARGET, ReferenceRole.SCALES),
        (("spec", "triggers", "*", "metadata", "query"), ReferenceRole.READS),
    ),
    ("autoscaling.x-k8s.io", "CapacityBuffer"): (
        (("spec", "podTemplateRef"), ReferenceRole.SHAPE),
        (("spec", "scalableRef"), ReferenceRole.SHAPE),
        (("spec", "schedule", "calendars", "*"), ReferenceRole.CALENDAR),
    ),
    ("autoscaling.x-k8s.io", "ProvisioningRequest"): (
        (("spec", "podSets", "*", "podTemplateRef"), ReferenceRole.SHAPE),
    ),
    ("", "Pod"): ((_CONSUMED, ReferenceRole.CONSUMES),),
    ("", "PodTemplate"): ((("template", *_CONSUMED), ReferenceRole.CONSUMES),),
    ("karpenter.sh", "NodePool"): (
        (("spec", "template", "spec", "nodeClassRef"), ReferenceRole.CLASS),
        (("spec", "disruption", "budgets", "*", "calendars", "*"), ReferenceRole.CALENDAR),
    ),
}

SCALING_KINDS = tuple(
    head
    for head, fields in _FIELDS.items()
    if any(role in (ReferenceRole.SCALES, ReferenceRole.CRON) for _, role in fields)
)
"""Group and kind of all objects that set the replicas or the bounds of another object."""

_BOUNDED = ("FederatedHPA", "HorizontalPodAutoscaler", "ScaledObject")
_WORKLOADS = {
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("", "ReplicationController"),
    ("batch", "Job"),
}


def references_of(loaded: LoadedObject) -> Iterator[FieldReference]:
    """Yield all references of an object."""
    fields = _FIELDS.get((loaded.kind.group, loaded.kind.kind), ())
    if (loaded.kind.group, loaded.kind.kind) in _WORKLOADS:
        fields = (*fields, (("spec", "template", *_CONSUMED), ReferenceRole.CONSUMES))
    for pattern, role in fields:
        for path, value in _matches(loaded.value, pattern, ()):
            if role is ReferenceRole.READS:
                yield from (FieldReference(path, role, target) for target in _producers_read(value, loaded))
                continue
            target = _target(value, path, role, loaded)
            if target is not None:
                yield FieldReference(path if role is ReferenceRole.CONSUMES else (*path, "name"), role, target)


def _producers_read(source: Any, loaded: LoadedObject) -> Iterator[ObjectKey]:
    """Yield the producers that a query, or the identifier of an external metric, selects by name."""
    if isinstance(source, str):
        named = dict.fromkeys(producers_named_in(source, loaded.namespace))
    else:
        name = external_schedule_name(source)
        named = {} if name is None else {(loaded.namespace, name): None}
    return (ObjectKey("autoscaling.karpenter.sh", "MetricsProducer", namespace, name) for namespace, name in named)


def _matches(value: Any, pattern: Path, path: Path) -> Iterator[tuple[Path, Any]]:
    if not pattern:
        yield path, value
        return
    step, rest = pattern[0], pattern[1:]
    if step == "*":
        for position, item in enumerate(value if isinstance(value, list) else []):
            yield from _matches(item, rest, (*path, position))
    elif isinstance(value, dict) and step in value:
        yield from _matches(value[step], rest, (*path, step))


def _target(value: Any, path: Path, role: ReferenceRole, loaded: LoadedObject) -> ObjectKey | None:
    if role is ReferenceRole.CONSUMES:
        found = isinstance(value, str) and value
        return ObjectKey("autoscaling.x-k8s.io", "ProvisioningRequest", loaded.namespace, value) if found else None
    if not isinstance(value, dict):
        return None
    name = value.get("name")
    if not isinstance(name, str) or not name:
        return None
    if role is ReferenceRole.CALENDAR:
        return ObjectKey("springtide.dev", "Calendar", None, name)
    if path[-1] == "podTemplateRef":
        return ObjectKey("", "PodTemplate", loaded.namespace, name)
    kind = value.get("kind", "Deployment" if loaded.kind.kind == "ScaledObject" else None)
    if not isinstance(kind, str):
        return None
    group = next((value[key] for key in ("apiGroup", "group") if isinstance(value.get(key), str)), None)
    if group is None:
        api_version = value.get("apiVersion")
        group = api_version.rpartition("/")[0] if isinstance(api_version, str) else _usual_group(kind)
    return ObjectKey(
        "" if group == "core" else group, kind, loaded.namespace if role is not ReferenceRole.CLASS else None, name
    )


def _usual_group(kind: str) -> str:
    """Return the group of the only known kind of this name, for references without a group."""
    return next((known.group for known in scheme.KINDS if known.kind == kind), "")


def check_cross_object(
    objects: Sequence[LoadedObject], context: ValidationContext, scope: LookupScope = IN_FILES
) -> list[list[Problem]]:
    """Find problems that need several objects; returns a list for each object, in their order."""
    found: list[list[Problem]] = [[] for _ in objects]
    references = [list(references_of(loaded)) for loaded in objects]
    sees_calendars = not any(target.kind == "Calendar" for target in scope.unseen)
    calendars = KnownCalendars(calendars_in(objects), scope.complete and sees_calendars)
    for position, problem in (
        *_duplicates(objects),
        *_missing(objects, references, scope),
        *_conflicting_autoscalers(objects, references),
        *cron_problems(objects, context, calendars),
        *buffer_problems(objects),
        *node_group_problems(objects),
        *schedule_problems_with_calendars(objects, context, calendars),
        *follower_problems(objects, context, calendars),
    ):
        found[position].append(problem)
    return found


def object_key(loaded: LoadedObject) -> ObjectKey:
    """Return the key by which references name this object."""
    return ObjectKey(loaded.kind.group, loaded.kind.kind, loaded.namespace, loaded.name)


def _duplicates(objects: Sequence[LoadedObject]) -> Iterator[tuple[int, Problem]]:
    first: dict[ObjectKey, int] = {}
    for position, loaded in enumerate(objects):
        if not loaded.name:
            continue
        before = first.setdefault(object_key(loaded), position)
        if before != position:
            message = f"{object_key(loaded)} is defined twice in these files: the last one applied wins"
            yield position, warning(("metadata", "name"), message, "give one of them another name")


def is_readable(target: ObjectKey) -> bool:
    """Return whether a target is of a known kind."""
    return any((kind.group, kind.kind) == (target.group, target.kind) for kind in scheme.KINDS)


def _missing(
    objects: Sequence[LoadedObject], references: Sequence[Sequence[FieldReference]], scope: LookupScope
) -> Iterator[tuple[int, Problem]]:
    """Find referenced objects that are missing; references to unknown kinds are not checked."""
    present = {object_key(loaded) for loaded in objects} | scope.unseen
    usable = calendars_in(objects)
    for position, listed in enumerate(references):
        for reference in listed:
            target = reference.target
            known = target in present and target not in scope.unseen
            if reference.role is ReferenceRole.CALENDAR and known and target.name not in usable:
                hint = "its days are not taken into account here; see the problems of the Calendar"
                yield position, warning(reference.path, f"{target} cannot be evaluated", hint)
            if target in present or not is_readable(target):
                continue
            is_calendar = reference.role is ReferenceRole.CALENDAR
            hint = scope.missing_calendar_hint if is_calendar else scope.missing_hint
            yield position, warning(reference.path, f"{target} is not {scope.name}", hint)


def _conflicting_autoscalers(
    objects: Sequence[LoadedObject], references: Sequence[Sequence[FieldReference]]
) -> Iterator[tuple[int, Problem]]:
    """Find targets that two autoscalers scale."""
    scalers: dict[ObjectKey, list[tuple[int, FieldReference]]] = {}
    for position, listed in enumerate(references):
        for reference in listed:
            if reference.role in (ReferenceRole.SCALES, ReferenceRole.CRON):
                scalers.setdefault(reference.target, []).append((position, reference))
    for target, claims in scalers.items():
        scaling = [claim for claim in claims if claim[1].role is ReferenceRole.SCALES]
        for position, reference in claims:
            others = [other for other, _ in scaling if other != position]
            if not others:
                continue
            conflicting = ", ".join(f"{objects[other].kind.kind} `{objects[other].name}`" for other in others)
            if reference.role is ReferenceRole.CRON:
                message = f"{target} is also scaled by {conflicting}, which will undo what the rules set"
                hint = "keep one of them"
                if objects[others[0]].kind.kind in _BOUNDED:
                    place = format_path(reference.path[:-1])
                    hint = f"point {place} at the {objects[others[0]].kind.kind} and set its bounds"
            else:
                message = f"{target} is also scaled by {conflicting}: they will undo each other's work"
                hint = "keep one of them for each target"
            yield position, warning(reference.path, message, hint)
