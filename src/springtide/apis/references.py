"""Objects judged together: what they refer to, and whether two of them want the same thing.

Which fields refer to what is a table; a rule about references works on that table, so a new kind needs a line in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from springtide.apis import registry
from springtide.apis.core.consumers import CONSUME_ANNOTATION
from springtide.apis.fields import Context
from springtide.apis.karmada.together import cron_problems
from springtide.apis.meta.windows import KnownCalendars
from springtide.apis.objects import LoadedObject
from springtide.apis.outlook import calendars_among
from springtide.apis.problems import Path, Problem, format_path, warning
from springtide.apis.scheduled.readers import named_producers
from springtide.apis.scheduled.together import node_group_problems, schedule_meetings
from springtide.apis.xk8s.together import buffer_problems


class Role(StrEnum):
    """Why an object refers to another one."""

    SCALES = "scales"  # it sets the other's replicas, again and again
    CRON = "cron"  # it sets the other's replicas, or its bounds, at instants
    SHAPE = "shape"  # it takes the shape of its pods from the other
    CALENDAR = "calendar"  # its times depend on the other's days
    CLASS = "class"  # the other holds settings for it
    READS = "reads"  # it goes by a metric that the other makes
    CONSUMES = "consumes"  # its pods run on the capacity that the other asked for


@dataclass(frozen=True, slots=True)
class Target:
    """The object that a reference names."""

    group: str
    kind: str
    namespace: str | None
    name: str

    def __str__(self) -> str:
        """The words that a message uses."""
        return f"{self.kind} `{self.name}`"


@dataclass(frozen=True, slots=True)
class Reference:
    """A field that names another object, and the place of that name."""

    path: Path
    role: Role
    target: Target


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where objects were looked for, in the words of messages."""

    name: str
    remedy: str
    """What to do about an object that is not there."""
    calendar_remedy: str
    """What to do about a Calendar that is not there."""
    unseen: frozenset[Target] = frozenset()
    """Objects that could not be looked for, and of which nothing is said."""
    everything: bool = False
    """Whether what was not found there does not exist."""


FILES = Surroundings(
    "in these files",
    "it must exist in the cluster, or be added to the files",
    "its days are not taken into account here; add the Calendar to the files",
)

_SCALE_TARGET = ("spec", "scaleTargetRef")
_CONSUMED = ("metadata", "annotations", CONSUME_ANNOTATION)
_FIELDS: dict[tuple[str, str], tuple[tuple[Path, Role], ...]] = {
    ("autoscaling.karpenter.sh", "HorizontalAutoscaler"): (
        (_SCALE_TARGET, Role.SCALES),
        (("spec", "metrics", "*", "prometheus", "query"), Role.READS),
    ),
    ("autoscaling.karpenter.sh", "MetricsProducer"): (
        (("spec", "schedule", "behaviors", "*", "calendars", "*"), Role.CALENDAR),
    ),
    ("autoscaling.karmada.io", "CronFederatedHPA"): (
        (_SCALE_TARGET, Role.CRON),
        (("spec", "rules", "*", "calendars", "*"), Role.CALENDAR),
    ),
    ("autoscaling.karmada.io", "FederatedHPA"): ((_SCALE_TARGET, Role.SCALES),),
    ("autoscaling", "HorizontalPodAutoscaler"): ((_SCALE_TARGET, Role.SCALES),),
    ("keda.sh", "ScaledObject"): ((_SCALE_TARGET, Role.SCALES),),
    ("autoscaling.x-k8s.io", "CapacityBuffer"): (
        (("spec", "podTemplateRef"), Role.SHAPE),
        (("spec", "scalableRef"), Role.SHAPE),
        (("spec", "schedule", "calendars", "*"), Role.CALENDAR),
    ),
    ("autoscaling.x-k8s.io", "ProvisioningRequest"): ((("spec", "podSets", "*", "podTemplateRef"), Role.SHAPE),),
    ("", "Pod"): ((_CONSUMED, Role.CONSUMES),),
    ("", "PodTemplate"): ((("template", *_CONSUMED), Role.CONSUMES),),
    ("karpenter.sh", "NodePool"): (
        (("spec", "template", "spec", "nodeClassRef"), Role.CLASS),
        (("spec", "disruption", "budgets", "*", "calendars", "*"), Role.CALENDAR),
    ),
}

SCALING_KINDS = tuple(
    head for head, fields in _FIELDS.items() if any(role in (Role.SCALES, Role.CRON) for _, role in fields)
)
"""Group and kind of everything that sets the replicas, or the bounds, of something else."""

_BOUNDED = ("FederatedHPA", "HorizontalPodAutoscaler", "ScaledObject")
_WORKLOADS = {
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("", "ReplicationController"),
    ("batch", "Job"),
}


def references_of(loaded: LoadedObject) -> Iterator[Reference]:
    """Find everything that an object refers to."""
    fields = _FIELDS.get((loaded.kind.group, loaded.kind.kind), ())
    if (loaded.kind.group, loaded.kind.kind) in _WORKLOADS:
        fields = (*fields, (("spec", "template", *_CONSUMED), Role.CONSUMES))
    for pattern, role in fields:
        for path, value in _matches(loaded.value, pattern, ()):
            if role is Role.READS:
                yield from (Reference(path, role, target) for target in _read_by(value, loaded))
                continue
            target = _target(value, path, role, loaded)
            if target is not None:
                yield Reference(path if role is Role.CONSUMES else (*path, "name"), role, target)


def _read_by(query: Any, loaded: LoadedObject) -> Iterator[Target]:
    named = dict.fromkeys(named_producers(query, loaded.namespace)) if isinstance(query, str) else ()
    return (Target("autoscaling.karpenter.sh", "MetricsProducer", namespace, name) for namespace, name in named)


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


def _target(value: Any, path: Path, role: Role, loaded: LoadedObject) -> Target | None:
    if role is Role.CONSUMES:
        found = isinstance(value, str) and value
        return Target("autoscaling.x-k8s.io", "ProvisioningRequest", loaded.namespace, value) if found else None
    if not isinstance(value, dict):
        return None
    name = value.get("name")
    if not isinstance(name, str) or not name:
        return None
    if role is Role.CALENDAR:
        return Target("springtide.dev", "Calendar", None, name)
    if path[-1] == "podTemplateRef":
        return Target("", "PodTemplate", loaded.namespace, name)
    kind = value.get("kind", "Deployment" if loaded.kind.kind == "ScaledObject" else None)
    if not isinstance(kind, str):
        return None
    group = next((value[key] for key in ("apiGroup", "group") if isinstance(value.get(key), str)), None)
    if group is None:
        api_version = value.get("apiVersion")
        group = api_version.rpartition("/")[0] if isinstance(api_version, str) else _usual_group(kind)
    return Target("" if group == "core" else group, kind, loaded.namespace if role is not Role.CLASS else None, name)


def _usual_group(kind: str) -> str:
    """The group that a reference without one means: the only one that has such a kind."""
    return next((known.group for known in registry.KINDS if known.kind == kind), "")


def check_together(
    objects: Sequence[LoadedObject], context: Context, surroundings: Surroundings = FILES
) -> list[list[Problem]]:
    """Find the problems that no object has by itself; a list for each object, in their order."""
    found: list[list[Problem]] = [[] for _ in objects]
    references = [list(references_of(loaded)) for loaded in objects]
    sees_calendars = not any(target.kind == "Calendar" for target in surroundings.unseen)
    calendars = KnownCalendars(calendars_among(objects), surroundings.everything and sees_calendars)
    for position, problem in (
        *_repeated(objects),
        *_missing(objects, references, surroundings),
        *_contested(objects, references),
        *cron_problems(objects, context, calendars),
        *buffer_problems(objects),
        *node_group_problems(objects),
        *schedule_meetings(objects, context, calendars),
    ):
        found[position].append(problem)
    return found


def identity(loaded: LoadedObject) -> Target:
    """How references name this object."""
    return Target(loaded.kind.group, loaded.kind.kind, loaded.namespace, loaded.name)


def _repeated(objects: Sequence[LoadedObject]) -> Iterator[tuple[int, Problem]]:
    first: dict[Target, int] = {}
    for position, loaded in enumerate(objects):
        if not loaded.name:
            continue
        before = first.setdefault(identity(loaded), position)
        if before != position:
            message = f"{identity(loaded)} stands twice in these files: the one applied last wins"
            yield position, warning(("metadata", "name"), message, "give one of them another name")


def is_readable(target: Target) -> bool:
    """Tell whether a target is of a kind that we know, and would find where it is."""
    return any((kind.group, kind.kind) == (target.group, target.kind) for kind in registry.KINDS)


def _missing(
    objects: Sequence[LoadedObject], references: Sequence[Sequence[Reference]], surroundings: Surroundings
) -> Iterator[tuple[int, Problem]]:
    """Tell which referenced objects are not there; kinds that we cannot read are not expected there."""
    present = {identity(loaded) for loaded in objects} | surroundings.unseen
    usable = calendars_among(objects)
    for position, listed in enumerate(references):
        for reference in listed:
            target = reference.target
            known = target in present and target not in surroundings.unseen
            if reference.role is Role.CALENDAR and known and target.name not in usable:
                hint = "its days are not taken into account here; see what is said of the Calendar"
                yield position, warning(reference.path, f"{target} cannot be evaluated", hint)
            if target in present or not is_readable(target):
                continue
            is_calendar = reference.role is Role.CALENDAR
            hint = surroundings.calendar_remedy if is_calendar else surroundings.remedy
            yield position, warning(reference.path, f"{target} is not {surroundings.name}", hint)


def _contested(
    objects: Sequence[LoadedObject], references: Sequence[Sequence[Reference]]
) -> Iterator[tuple[int, Problem]]:
    """Find targets that two autoscalers set, which would undo each other's work."""
    owners: dict[Target, list[tuple[int, Reference]]] = {}
    for position, listed in enumerate(references):
        for reference in listed:
            if reference.role in (Role.SCALES, Role.CRON):
                owners.setdefault(reference.target, []).append((position, reference))
    for target, claims in owners.items():
        scaling = [claim for claim in claims if claim[1].role is Role.SCALES]
        for position, reference in claims:
            others = [other for other, _ in scaling if other != position]
            if not others:
                continue
            rivals = ", ".join(f"{objects[other].kind.kind} `{objects[other].name}`" for other in others)
            if reference.role is Role.CRON:
                message = f"{target} is also scaled by {rivals}, which will undo what the rules set"
                hint = "keep one of them"
                if objects[others[0]].kind.kind in _BOUNDED:
                    place = format_path(reference.path[:-1])
                    hint = f"point {place} at the {objects[others[0]].kind.kind} and set its bounds"
            else:
                message = f"{target} is also scaled by {rivals}: they will undo each other's work"
                hint = "keep one of them for each target"
            yield position, warning(reference.path, message, hint)
