"""Cron objects judged together: rules of different objects that set one target at the same instant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from springtide.almanac import Rule, load_zone, same_minute
from springtide.apis.fields import Context
from springtide.apis.karmada.actions import action_of
from springtide.apis.karmada.rules import firings_of
from springtide.apis.karmada.types import CronFederatedHPA
from springtide.apis.meta.clock_times import date_and_time
from springtide.apis.objects import LoadedObject
from springtide.apis.problems import Path, Problem, warning

_HORIZON = 60 * 86400


def cron_collisions(objects: Sequence[LoadedObject], context: Context) -> Iterator[tuple[int, Problem]]:
    """Find rules of different objects that contradict each other; each problem with the position of its object."""
    by_target: dict[tuple[str | None, str, str, str], list[int]] = {}
    for position, loaded in enumerate(objects):
        if isinstance(loaded.view, CronFederatedHPA) and loaded.sound:
            target = loaded.view.spec.scale_target_ref
            group = (target.api_version or "").rpartition("/")[0]
            by_target.setdefault((loaded.namespace, group, target.kind, target.name), []).append(position)
    for positions in by_target.values():
        if len(positions) > 1:
            yield from _contradictions(objects, positions, context)


def _contradictions(
    objects: Sequence[LoadedObject], positions: Sequence[int], context: Context
) -> Iterator[tuple[int, Problem]]:
    rules: list[Rule[int]] = []
    owners: dict[str, tuple[int, Path]] = {}
    for position in positions:
        view = objects[position].view
        assert isinstance(view, CronFederatedHPA)  # noqa: S101 - chosen by the caller
        for number, rule in enumerate(view.spec.rules):
            if rule.suspend or rule.calendars:
                continue
            name = f"{objects[position].name}/{rule.name}"
            action = action_of(rule, view.spec.scale_target_ref.target_kind)
            rules.append(Rule(name, firings_of(rule, context.default_zone, {}), action))
            owners[name] = (position, ("spec", "rules", number))
    for found in same_minute(rules, context.now, context.now + _HORIZON):
        if owners[found.winner][0] == owners[found.loser][0]:
            continue  # within one object: its own check tells
        at = date_and_time(found.instants[0], load_zone(context.default_zone))
        position, path = owners[found.winner]
        message = (
            f"rules `{found.loser}` and `{found.winner}` set {found.field} of one target to different values at {at}"
        )
        yield position, warning(path, message, "which of them wins is not certain; move one by a minute")
