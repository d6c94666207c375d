"""Cross-object checks of this group: rules that conflict with others, or with the bounds of their target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from heapq import merge
from itertools import combinations, groupby, islice, repeat
from operator import itemgetter

from springtide.almanac import FiringRule, load_zone, same_minute
from springtide.apis.core.workloads import HorizontalPodAutoscaler, HorizontalPodAutoscalerV1, ScaledObject
from springtide.apis.karmada.cron import CronFederatedHPA, CronFederatedHPARule
from springtide.apis.karmada.federated import FederatedHPA
from springtide.apis.karmada.rules import collision_problems, fires, firings_of, zone_of
from springtide.apis.karmada.targets import CronTarget, action_of
from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import KnownCalendars, date_and_time
from springtide.apis.objects import LoadedObject
from springtide.apis.problems import Path, Problem, warning

_HORIZON = 60 * 86400
_MOST_COMPARISONS = 400
_MOST_FIRINGS = 500
"""How many firings are applied in turn, to find those that are refused."""


def cron_problems(
    objects: Sequence[LoadedObject], context: ValidationContext, calendars: KnownCalendars
) -> Iterator[tuple[int, Problem]]:
    """Find rules that conflict with others or with the bounds of their target, or never fire; each with its object."""
    by_target: dict[tuple[str | None, str, str, str], list[int]] = {}
    for position, loaded in enumerate(objects):
        if isinstance(loaded.view, CronFederatedHPA) and loaded.sound:
            target = loaded.view.spec.scale_target_ref
            group = (target.api_version or "").rpartition("/")[0]
            by_target.setdefault((loaded.namespace, group, target.kind, target.name), []).append(position)
            if any(rule.calendars for rule in loaded.view.spec.rules):
                for problem in _calendar_problems(loaded.view, context, calendars):
                    yield position, problem.under("spec")
    for positions in by_target.values():
        yield from _problems_with_bounds(objects, positions, context, calendars)
        yield from _conflicts_between_objects(objects, positions, context, calendars)


def _calendar_problems(
    view: CronFederatedHPA, context: ValidationContext, calendars: KnownCalendars
) -> Iterator[Problem]:
    """Find rules that never fire because of their calendars, or conflict with another rule."""
    yield from never_firing_problems(view, context, calendars)
    yield from collision_problems(view.spec.rules, view.spec.scale_target_ref.target_kind, context, calendars)


def never_firing_problems(
    view: CronFederatedHPA, context: ValidationContext, calendars: KnownCalendars
) -> Iterator[Problem]:
    """Find rules of which calendars exclude every firing; paths are relative to the spec."""
    for number, rule in enumerate(view.spec.rules):
        if not fires(rule) or not rule.calendars:
            continue
        left = firings_of(rule, context.default_zone, calendars.by_name).after(context.now)
        if left is None and firings_of(rule, context.default_zone, {}).after(context.now) is not None:
            when = rule.at or "every time of its schedule"
            message = f"rule `{rule.name}` never fires: its calendars exclude {when}"
            yield warning(("rules", number, "calendars"), message, "remove the rule, or one of its calendars")


def _conflicts_between_objects(
    objects: Sequence[LoadedObject], positions: Sequence[int], context: ValidationContext, calendars: KnownCalendars
) -> Iterator[tuple[int, Problem]]:
    """Compare the rules of different objects; the check of each object compares its own.

    Of two rules that fire together, the one of the object with the last name wins.
    """
    positions = sorted(positions, key=lambda position: objects[position].name)
    named = {position: list(_named_rules(objects[position], context, calendars)) for position in positions}
    pairs = [
        (one, other, position)
        for earlier, position in combinations(positions, 2)
        for one in named[earlier]
        for other in named[position]
    ]
    for (first, _), (second, path), position in pairs[:_MOST_COMPARISONS]:
        for found in same_minute([first, second], context.now, context.now + _HORIZON, first=1):
            at = date_and_time(found.instants[0], load_zone(context.default_zone))
            message = (
                f"rules `{found.loser}` and `{found.winner}` set {found.field} of one target to different values"
                f" at {at}: `{found.winner}` wins, as the name of its object comes last"
            )
            yield position, warning(path, message, "move one of them by a minute, or remove it")


def _named_rules(
    loaded: LoadedObject, context: ValidationContext, calendars: KnownCalendars
) -> Iterator[tuple[FiringRule[int], Path]]:
    view = loaded.view
    assert isinstance(view, CronFederatedHPA)  # noqa: S101 - chosen by the caller
    for number, rule in enumerate(view.spec.rules):
        if not rule.suspend and calendars.resolves(rule.calendars):
            action = action_of(rule, view.spec.scale_target_ref.target_kind)
            firings = firings_of(rule, context.default_zone, calendars.by_name)
            yield FiringRule(f"{loaded.name}/{rule.name}", firings, action), ("spec", "rules", number)


def _bounds_of(
    target: CronTarget, namespace: str | None, objects: Sequence[LoadedObject]
) -> tuple[int | None, int | None]:
    """Return the bounds of the target, if it is an autoscaler among the objects."""
    for loaded in objects:
        if (loaded.kind.kind, loaded.name, loaded.namespace) != (target.kind, target.name, namespace):
            continue
        match loaded.view:
            case FederatedHPA() as view:
                return view.spec.min_replicas, view.spec.max_replicas
            case HorizontalPodAutoscaler() | HorizontalPodAutoscalerV1() as view:
                return view.spec.min_replicas, view.spec.max_replicas
            case ScaledObject() as view:
                return view.spec.min_replica_count, view.spec.max_replica_count
    return None, None


def _problems_with_bounds(
    objects: Sequence[LoadedObject], positions: Sequence[int], context: ValidationContext, calendars: KnownCalendars
) -> Iterator[tuple[int, Problem]]:
    """Find rules of one target that the bounds refuse: those of the target, or those that other rules have set."""
    for position in positions:
        loaded = objects[position]
        view = loaded.view
        assert isinstance(view, CronFederatedHPA)  # noqa: S101 - chosen by the caller
        bounds = _bounds_of(view.spec.scale_target_ref, loaded.namespace, objects)
        found = list(_bound_problems(view, bounds))
        yield from ((position, problem) for problem in found)
        if not found and len(positions) == 1 and bounds != (None, None):
            yield from ((position, problem) for problem in _refused_in_turn(view, bounds, context, calendars))


def _refused_in_turn(
    view: CronFederatedHPA, bounds: tuple[int | None, int | None], context: ValidationContext, calendars: KnownCalendars
) -> Iterator[Problem]:
    """Apply the rules in the order of their firings, and find those that put the minimum above the maximum.

    As the controller does: what fires together is applied together if that is valid, else one after the other.
    """
    rules = view.spec.rules
    if not all(calendars.resolves(rule.calendars) for rule in rules if fires(rule)):
        return
    end = context.now + _HORIZON
    firings = [
        zip(firings_of(rule, context.default_zone, calendars.by_name).between(context.now, end), repeat(number))
        for number, rule in enumerate(rules)
        if fires(rule)
    ]
    low, high = bounds
    setters: dict[str, str] = {}
    reported: set[int] = set()
    turns = groupby(islice(merge(*firings), _MOST_FIRINGS), key=itemgetter(0))
    for at, turn in turns:
        due = [rules[number] for _, number in turn]
        together = reduce(_moved, due, (low, high))
        steps = [due] if _in_order(together) else [[rule] for rule in due]
        for step in steps:
            wanted = reduce(_moved, step, (low, high))
            if _in_order(wanted):
                low, high = wanted
                for rule in step:
                    setters |= {"minimum": rule.name} if rule.target_min_replicas is not None else {}
                    setters |= {"maximum": rule.name} if rule.target_max_replicas is not None else {}
            elif (number := rules.index(step[0])) not in reported:
                reported.add(number)
                zone = zone_of(step[0], context.default_zone)
                yield _refused_rule(number, step[0], (low, high), setters, date_and_time(at, zone))


def _moved(bounds: tuple[int | None, int | None], rule: CronFederatedHPARule) -> tuple[int | None, int | None]:
    least, most = rule.target_min_replicas, rule.target_max_replicas
    return (bounds[0] if least is None else least, bounds[1] if most is None else most)


def _in_order(bounds: tuple[int | None, int | None]) -> bool:
    return bounds[0] is None or bounds[1] is None or bounds[0] <= bounds[1]


def _refused_rule(
    number: int,
    rule: CronFederatedHPARule,
    bounds: tuple[int | None, int | None],
    setters: Mapping[str, str],
    when: str,
) -> Problem:
    raises = rule.target_max_replicas is None
    own, other = ("targetMinReplicas", "targetMaxReplicas") if raises else ("targetMaxReplicas", "targetMinReplicas")
    bound, limit = ("maximum", bounds[1]) if raises else ("minimum", bounds[0])
    value = rule.target_min_replicas if raises else rule.target_max_replicas
    origin = f" that rule `{setters[bound]}` has set" if bound in setters else " of the target"
    relation = "greater" if raises else "smaller"
    message = (
        f"rule `{rule.name}` is refused, first at {when}: {own} {value} is {relation} than the {bound} {limit}{origin}"
    )
    return warning(("spec", "rules", number, own), message, f"set `{other}` as well")


def _bound_problems(view: CronFederatedHPA, bounds: tuple[int | None, int | None]) -> Iterator[Problem]:
    """Find rules that set one bound beyond the other, which the API server rejects when they fire."""
    low, high = bounds
    name = f"{view.spec.scale_target_ref.kind} `{view.spec.scale_target_ref.name}`"
    for number, rule in enumerate(view.spec.rules):
        path: Path = ("spec", "rules", number)
        least, most = rule.target_min_replicas, rule.target_max_replicas
        if least is not None and most is None and high is not None and least > high:
            message = f"targetMinReplicas {least} is greater than the maximum of {name}, {high}"
            yield warning(
                (*path, "targetMinReplicas"), message, "set `targetMaxReplicas` as well, or raise the maximum"
            )
        elif most is not None and least is None and low is not None and most < low:
            message = f"targetMaxReplicas {most} is smaller than the minimum of {name}, {low}"
            yield warning(
                (*path, "targetMaxReplicas"), message, "set `targetMinReplicas` as well, or lower the minimum"
            )
