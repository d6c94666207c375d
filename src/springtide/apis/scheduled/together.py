"""Objects judged together: schedules with their calendars, and two objects for one node group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from springtide.apis.fields import Context
from springtide.apis.meta.windows import KnownCalendars
from springtide.apis.objects import LoadedObject
from springtide.apis.problems import Problem, warning
from springtide.apis.scheduled.conflicts import surprises
from springtide.apis.scheduled.node_group import ScalableNodeGroup
from springtide.apis.scheduled.node_group_ids import GroupId, may_be_same, read_group_id
from springtide.apis.scheduled.producer import MetricsProducer


def schedule_meetings(
    objects: Sequence[LoadedObject], context: Context, calendars: KnownCalendars
) -> Iterator[tuple[int, Problem]]:
    """Find where behaviours with calendars meet others or never take effect, which no schedule tells by itself."""
    for position, loaded in enumerate(objects):
        view = loaded.view
        schedule = view.spec.schedule if isinstance(view, MetricsProducer) and loaded.sound else None
        if schedule is None or not any(behavior.calendars for behavior in schedule.behaviors):
            continue
        told = {problem.message for problem in loaded.problems}
        for found in surprises(schedule, context, calendars):
            if found.dated not in told:
                yield position, warning(("spec", "schedule", *found.path), found.dated, found.hint)


def node_group_problems(objects: Sequence[LoadedObject]) -> Iterator[tuple[int, Problem]]:
    """Find objects for one node group; each problem with the position of its object."""
    by_place: dict[tuple[str, str], list[tuple[int, GroupId]]] = {}
    for position, loaded in enumerate(objects):
        if not isinstance(loaded.view, ScalableNodeGroup) or not loaded.sound:
            continue
        group = read_group_id(loaded.view.spec.type, loaded.view.spec.id)
        if group is not None:
            by_place.setdefault((type(group).__name__, group.place), []).append((position, group))
    for claims in by_place.values():
        for position, group in claims:
            others = [objects[other] for other, its in claims if other != position and may_be_same(group, its)]
            if others:
                rivals = ", ".join(f"`{other.name}`{_where(other, objects[position])}" for other in others)
                message = (
                    f"this node group is also that of ScalableNodeGroup {rivals}:"
                    " only the object that was created first scales it"
                )
                yield position, warning(("spec", "id"), message, "keep one object for each node group")


def _where(other: LoadedObject, one: LoadedObject) -> str:
    return "" if other.namespace == one.namespace else f" in namespace {other.namespace}"
