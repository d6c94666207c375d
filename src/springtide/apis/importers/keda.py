"""The importer of KEDA: cron triggers become schedules or cron rules.

A ScaledObject with cron triggers only becomes a MetricsProducer for each zone, and a HorizontalAutoscaler that uses the
highest value, as KEDA does. A ScaledObject with other triggers remains, because two autoscalers must not scale one
target; cron rules then raise its minimum during the windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from springtide.almanac import (
    CronError,
    Dialect,
    MatchPolicy,
    TimelineLayer,
    UnknownZone,
    load_zone,
    overlaps,
    recurring,
)
from springtide.almanac.cron_grammar import Schedule, parse_schedule
from springtide.apis.importers.conversion import (
    Conversion,
    ConversionNotes,
    ConversionOptions,
    InexpressibleError,
    Tree,
    autoscaler_object,
    cron_object,
    free_name,
    group_kind,
    mapping_at,
    metadata_of,
    producer_object,
    required_name,
    to_int32,
    window_patterns,
    zone_suffix,
)
from springtide.apis.meta.times import PatternSpec
from springtide.apis.problems import Path

_KINDS_OF_POLICY = {"Pods": "Count", "Percent": "Percent"}


def scaling_behavior(behavior: Tree, path: Path, notes: ConversionNotes, *, metrics: int) -> Tree:
    """Convert the scaling rules of a HorizontalPodAutoscaler to those of a HorizontalAutoscaler.

    `selectPolicy` selects among policies there, and here also among metrics, so with several metrics only the default,
    the highest, is equivalent.
    """
    made: Tree = {}
    for direction in ("scaleUp", "scaleDown"):
        rules = mapping_at(behavior, direction)
        if not rules:
            continue
        if metrics > 1 and rules.get("selectPolicy") == "Min":
            notes.warn(
                (*path, direction, "selectPolicy"),
                f"has no equivalent beside {metrics} metrics, of which the highest counts: the fastest policy counts",
            )
            rules = {key: rule for key, rule in rules.items() if key != "selectPolicy"}
        made[direction] = _rules(rules)
    return made


def _rules(rules: Tree) -> Tree:
    made: dict[str, Any] = {
        key: rules[key]
        for key in ("stabilizationWindowSeconds", "selectPolicy", "tolerance")
        if rules.get(key) is not None
    }
    policies = rules.get("policies")
    if isinstance(policies, list) and policies:
        made["policies"] = [
            {
                **mapping_at(policy),
                "type": _KINDS_OF_POLICY.get(str(mapping_at(policy).get("type")), mapping_at(policy).get("type")),
            }
            for policy in policies
        ]
    return made


_DEFAULT_MAXIMUM = 100
_TRIGGERS = ("spec", "triggers")
_WITHOUT_EQUIVALENT: tuple[tuple[Path, str], ...] = (
    (("spec", "cooldownPeriod"), "after a window replicas go down as `behavior.scaleDown` allows, with no other wait"),
    (("spec", "initialCooldownPeriod"), "a new object is scaled at once"),
    (("spec", "pollingInterval"), "a schedule is followed to the second, not polled"),
    (("spec", "fallback"), "while a metric is missing, replicas are never lowered"),
    (("spec", "advanced", "restoreToOriginalReplicaCount"), "a target keeps its replicas when the object is deleted"),
)
_PAUSES = (
    "autoscaling.keda.sh/paused-replicas",
    "autoscaling.keda.sh/paused",
    "autoscaling.keda.sh/paused-scale-in",
    "autoscaling.keda.sh/paused-scale-out",
)


@dataclass(frozen=True, slots=True)
class _Trigger:
    """A parsed cron trigger: a number of replicas between two cron expressions."""

    position: int
    name: str
    zone: str
    start: str
    end: str
    opens: Schedule
    closes: Schedule
    replicas: int

    @property
    def path(self) -> Path:
        """The path of the settings."""
        return (*_TRIGGERS, self.position, "metadata")


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The bounds of the target's replicas, and its replicas while no trigger is active."""

    least: int
    most: int
    idle: int | None

    @property
    def outside(self) -> int:
        """The replicas outside all windows."""
        return self.least if self.idle is None else self.idle

    def within(self, replicas: int) -> int:
        """Limit a number of replicas to the bounds."""
        return min(max(replicas, self.least), self.most)


def convert_keda(value: Tree, options: ConversionOptions) -> Conversion | None:
    """Convert a ScaledObject that has cron triggers; a ScaledJob that has any stays as it is."""
    if group_kind(value) not in (("keda.sh", "ScaledObject"), ("keda.sh", "ScaledJob")):
        return None
    triggers = mapping_at(value, "spec").get("triggers")
    listed = triggers if isinstance(triggers, list) else []
    crons = [position for position, trigger in enumerate(listed) if mapping_at(trigger).get("type") == "cron"]
    if not crons:
        return None
    notes = ConversionNotes()
    if group_kind(value)[1] == "ScaledJob":
        for position in crons:
            notes.warn(
                (*_TRIGGERS, position),
                "stays as it is: a ScaledJob starts Jobs while the window is open, and has no replicas",
                "a CronJob starts Jobs at times",
            )
        return notes.refused(value)
    name = required_name(value, notes)
    read = [trigger for position in crons if (trigger := _trigger(listed[position], position, notes)) is not None]
    bounds = _bounds(mapping_at(value, "spec"), notes)
    target = _target(mapping_at(value, "spec"), notes)
    if mapping_at(value, "spec", "advanced", "scalingModifiers"):
        notes.error(
            ("spec", "advanced", "scalingModifiers"),
            "a formula over triggers has no equivalent",
            "write the formula as the `query` of a HorizontalAutoscaler",
        )
    if notes.failed:
        return notes.refused(value)
    _warn_of_differences(value, notes)
    if len(crons) < len(listed):
        return _with_other_triggers(value, name, read, bounds, options, notes)
    return _cron_only(value, name, read, bounds, target, notes)


# A ScaledObject with nothing but cron triggers


def _cron_only(
    value: Tree, name: str, triggers: Sequence[_Trigger], bounds: _Bounds, target: Tree, notes: ConversionNotes
) -> Conversion:
    producers: list[Tree] = []
    zones = list(dict.fromkeys(trigger.zone for trigger in triggers))
    for zone in zones:
        called = name if len(zones) == 1 else f"{name}-{zone_suffix(zone)}"
        behaviors = _behaviors([trigger for trigger in triggers if trigger.zone == zone], bounds, notes)
        producers.append(producer_object(metadata_of(value, called), zone, bounds.outside, behaviors))
    if notes.failed:
        return notes.refused(value)
    names = [made["metadata"]["name"] for made in producers]
    least = min(bounds.outside, bounds.least)
    follower = autoscaler_object(metadata_of(value, name), target, (least, bounds.most), names)
    path = ("spec", "advanced", "horizontalPodAutoscalerConfig", "behavior")
    behavior = scaling_behavior(mapping_at(value, *path), path, notes, metrics=len(names))
    if behavior:
        follower["spec"]["behavior"] = behavior
    return notes.done(None, *producers, follower)


def _behaviors(triggers: Sequence[_Trigger], bounds: _Bounds, notes: ConversionNotes) -> list[Tree]:
    """Make a behaviour for each window; as in KEDA, the one with the most replicas wins."""
    sizes = sorted({bounds.within(trigger.replicas) for trigger in triggers})
    behaviors: list[Tree] = []
    for trigger in triggers:
        replicas = _within(trigger, bounds, notes)
        for start, end in _windows(trigger, notes):
            behavior: dict[str, Any] = {
                "name": free_name(trigger.name, [made["name"] for made in behaviors], longest=63),
                "replicas": replicas,
            }
            if rank := sizes.index(replicas):
                behavior["priority"] = rank
            behaviors.append({**behavior, "start": start, "end": end})
    return behaviors


def _within(trigger: _Trigger, bounds: _Bounds, notes: ConversionNotes) -> int:
    """Return the replicas of a window within the bounds, with a warning if the bounds change them."""
    replicas = bounds.within(trigger.replicas)
    if replicas != trigger.replicas:
        notes.warn(
            (*trigger.path, "desiredReplicas"),
            f"{trigger.replicas} replicas are outside the bounds {bounds.least} to {bounds.most}: the window has"
            f" {replicas}",
        )
    return replicas


def _windows(trigger: _Trigger, notes: ConversionNotes) -> list[tuple[Tree, Tree]]:
    try:
        return window_patterns(trigger.opens, trigger.closes)
    except InexpressibleError:
        notes.error(
            trigger.path,
            f'cron joins day of month and day of week by "or", which a schedule cannot express for the window from'
            f" `{trigger.start}` to `{trigger.end}`",
            f"write a CronFederatedHPA with a rule at `{trigger.start}` (targetReplicas: {trigger.replicas}) and one at"
            f" `{trigger.end}`",
        )
        return []


# A ScaledObject that has other triggers as well


def _with_other_triggers(
    value: Tree,
    name: str,
    triggers: Sequence[_Trigger],
    bounds: _Bounds,
    options: ConversionOptions,
    notes: ConversionNotes,
) -> Conversion:
    """Make cron rules that raise the minimum during each window; the other triggers stay with KEDA."""
    if bounds.idle is not None:
        notes.error(
            ("spec", "idleReplicaCount"),
            "beside other triggers a window becomes a minimum, which KEDA ignores while the object is idle",
            "remove `idleReplicaCount`, or move the cron triggers to a ScaledObject of their own",
        )
    if len(triggers) > 1:
        _refuse_overlaps(triggers, options, notes)
    if notes.failed:
        return notes.refused(value)
    others = [trigger for trigger in value["spec"]["triggers"] if mapping_at(trigger).get("type") != "cron"]
    kinds = ", ".join(f"`{mapping_at(trigger).get('type')}`" for trigger in others)
    notes.warn(
        _TRIGGERS,
        f"the triggers {kinds} stay with KEDA: cron rules raise `minReplicaCount` when a window begins and lower it"
        " when it ends; a window that is open already raises nothing until it begins again",
    )
    raised = {trigger.position: _within(trigger, bounds, notes) for trigger in triggers}
    kept = {**value, "spec": {**value["spec"], "triggers": others}}
    target = {"apiVersion": value["apiVersion"], "kind": "ScaledObject", "name": name}
    # Of two rules at one instant the one listed later wins, so rules that begin windows come last.
    lowered = dict.fromkeys(raised, bounds.least)
    rules = [*_keda_rules(triggers, "end", lowered), *_keda_rules(triggers, "start", raised)]
    return notes.done(kept, cron_object(metadata_of(value, name), target, rules))


def _keda_rules(triggers: Sequence[_Trigger], edge: str, minima: Mapping[int, int]) -> Iterator[Tree]:
    names: list[str] = []
    for trigger in triggers:
        names.append(free_name(f"{trigger.name[:25]}-{edge}", names))
        yield {
            "name": names[-1],
            "schedule": trigger.start if edge == "start" else trigger.end,
            "timeZone": trigger.zone,
            "targetMinReplicas": minima[trigger.position],
        }


def _refuse_overlaps(triggers: Sequence[_Trigger], options: ConversionOptions, notes: ConversionNotes) -> None:
    layers: list[TimelineLayer[int]] = []
    for trigger in triggers:
        for start, end in _windows(trigger, notes):
            opens, closes = (_parsed(pattern) for pattern in (start, end))
            timeline = recurring(opens, closes, load_zone(trigger.zone), MatchPolicy.LITERAL)
            layers.append(TimelineLayer(str(trigger.position), timeline, len(layers)))
    by_position = {str(trigger.position): trigger for trigger in triggers}
    for overlap in overlaps(layers, options.now, first=1):
        if overlap.winner != overlap.loser:
            first, second = by_position[overlap.winner], by_position[overlap.loser]
            notes.error(
                second.path,
                f"the window overlaps that of triggers[{first.position}], and a rule that ends one would end both",
                "let the windows meet instead, or move the cron triggers to a ScaledObject of their own",
            )


def _parsed(pattern: Tree) -> Any:
    return PatternSpec(**pattern).parse()


# Reading


def _trigger(trigger: Tree, position: int, notes: ConversionNotes) -> _Trigger | None:
    path: Path = (*_TRIGGERS, position)
    settings = trigger.get("metadata")
    if not isinstance(settings, dict) or not settings:
        notes.error(path, "the trigger has no `metadata`", "add timezone, start, end and desiredReplicas")
        return None
    path = (*path, "metadata")
    if trigger.get("metricType") not in (None, "AverageValue"):
        notes.error(
            (*_TRIGGERS, position, "metricType"),
            f"{trigger['metricType']} makes the replicas depend on the current ones, which a schedule cannot express",
            "remove `metricType`",
        )
    zone = _zone(settings, path, notes)
    replicas = _desired(settings, path, notes)
    opens, closes = (_schedule(settings, edge, path, notes) for edge in ("start", "end"))
    if opens is not None and closes is not None and settings["start"] == settings["end"]:
        notes.error((*path, "end"), f"start and end are the same: `{settings['end']}`", "let the window end later")
        return None
    if zone is None or replicas is None or opens is None or closes is None:
        return None
    name = trigger.get("name")
    return _Trigger(
        position,
        name if isinstance(name, str) and name else f"cron-{position + 1}",
        zone,
        settings["start"],
        settings["end"],
        opens,
        closes,
        replicas,
    )


def _zone(settings: Tree, path: Path, notes: ConversionNotes) -> str | None:
    zone = settings.get("timezone")
    if not isinstance(zone, str) or not zone:
        notes.error(path, "the trigger has no `timezone`", "name one, such as Europe/Berlin")
        return None
    try:
        load_zone(zone)
    except UnknownZone as failure:
        notes.error((*path, "timezone"), failure.message, failure.hint)
        return None
    return zone


def _desired(settings: Tree, path: Path, notes: ConversionNotes) -> int | None:
    if settings.get("desiredReplicas") is None:
        notes.error(path, "the trigger has no `desiredReplicas`", "say how many replicas the window has")
        return None
    replicas = to_int32(settings["desiredReplicas"])
    if replicas is None or replicas < 1:
        notes.error(
            (*path, "desiredReplicas"), f"{settings['desiredReplicas']!r} is not a number of replicas from 1 on"
        )
        return None
    return replicas


def _schedule(settings: Tree, edge: str, path: Path, notes: ConversionNotes) -> Schedule | None:
    text = settings.get(edge)
    if not isinstance(text, str) or not text.strip():
        notes.error(path, f"the trigger has no `{edge}`", 'write a cron expression, such as "0 8 * * *"')
        return None
    if text.strip().startswith("@"):
        notes.error((*path, edge), f"KEDA does not read {text!r}, expected five fields")
        return None
    try:
        return parse_schedule(text, Dialect.BUDGET)
    except CronError as failure:
        notes.error((*path, edge), failure.message, failure.hint)
        return None


def _bounds(spec: Tree, notes: ConversionNotes) -> _Bounds:
    read: dict[str, int | None] = {}
    for field in ("minReplicaCount", "maxReplicaCount", "idleReplicaCount"):
        given = spec.get(field)
        read[field] = None if given is None else to_int32(given)
        if given is not None and (read[field] is None or (read[field] or 0) < 0):
            notes.error(("spec", field), f"{given!r} is not a number of replicas")
    most = read["maxReplicaCount"]
    bounds = _Bounds(read["minReplicaCount"] or 0, _DEFAULT_MAXIMUM if most is None else most, read["idleReplicaCount"])
    if bounds.most < bounds.least:
        message = f"maxReplicaCount {bounds.most} is smaller than minReplicaCount {bounds.least}"
        notes.error(
            ("spec", "maxReplicaCount"), message, f"raise it to {bounds.least} or more, or lower `minReplicaCount`"
        )
    return bounds


def _target(spec: Tree, notes: ConversionNotes) -> Tree:
    given = mapping_at(spec, "scaleTargetRef")
    if not isinstance(given.get("name"), str) or not given["name"]:
        notes.error(("spec", "scaleTargetRef"), "the target has no name", "add `name`")
    return {
        "apiVersion": given.get("apiVersion") or "apps/v1",
        "kind": given.get("kind") or "Deployment",
        "name": given.get("name"),
    }


def _warn_of_differences(value: Tree, notes: ConversionNotes) -> None:
    for path, instead in _WITHOUT_EQUIVALENT:
        if mapping_at(value, *(str(step) for step in path[:-1])).get(str(path[-1])) is not None:
            notes.warn(path, f"has no equivalent: {instead}")
    annotations = mapping_at(value, "metadata", "annotations")
    for name in _PAUSES:
        if name in annotations:
            notes.warn(
                ("metadata", "annotations", name),
                "is not converted: the new objects are not paused",
                'write the annotation `springtide.dev/paused: "true"` on the HorizontalAutoscaler',
            )
