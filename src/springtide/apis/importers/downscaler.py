"""The importer of kube-downscaler: its annotations become schedules or cron rules.

The uptime and downtime of a workload become a schedule: it is up during an uptime that is not in a downtime, so
downtimes have the higher priority. On a HorizontalPodAutoscaler they become cron rules that move its minimum. Periods,
outside of which kube-downscaler does nothing, become cron rules too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from springtide.almanac import (
    MatchPolicy,
    Timeline,
    TimelineLayer,
    always,
    either,
    load_zone,
    never,
    overlaps,
    recurring,
    span,
)
from springtide.apis.forecast import format_instant
from springtide.apis.importers.conversion import (
    Conversion,
    ConversionNotes,
    ConversionOptions,
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
)
from springtide.apis.importers.downscaler_times import (
    ALWAYS,
    NEVER,
    AbsoluteTime,
    TimeSpec,
    TimeSpecError,
    begin_rules,
    change_rules,
    parse_time_spec,
)
from springtide.apis.meta.times import PatternSpec
from springtide.apis.problems import Path
from springtide.apis.schema import nearest

_PREFIX = "downscaler/"
_AUTOSCALER = ("autoscaling", "HorizontalPodAutoscaler")
_CONVERTED = (("apps", "Deployment"), ("apps", "StatefulSet"), ("argoproj.io", "Rollout"), _AUTOSCALER)
_INSTEAD = {
    ("", "Namespace"): "applies to every workload of the namespace: write it on each of these workloads",
    ("batch", "CronJob"): "suspends the CronJob, which has no replicas",
    ("batch", "Job"): "suspends the Job, which has no replicas",
    ("apps", "DaemonSet"): "removes the DaemonSet, which has no replicas, from all nodes",
    ("policy", "PodDisruptionBudget"): "changes a PodDisruptionBudget, which has no replicas",
    ("keda.sh", "ScaledObject"): "pauses the ScaledObject: move its bounds with a CronFederatedHPA instead",
}
_TIMESTAMPS = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d")
_KNOWN = (
    "uptime", "downtime", "upscale-period", "downscale-period", "force-uptime", "force-downtime",
    "exclude", "exclude-until", "downtime-replicas", "grace-period", "original-replicas",
)  # fmt: skip


def annotation(name: str) -> Path:
    """Return the path of an annotation of kube-downscaler."""
    return ("metadata", "annotations", f"{_PREFIX}{name}")


@dataclass(frozen=True, slots=True)
class _DownscalerSettings:
    """The parsed annotations of an object."""

    uptime: TimeSpec
    downtime: TimeSpec
    forced_up: TimeSpec
    forced_down: TimeSpec
    excluded: TimeSpec
    upscale: TimeSpec
    downscale: TimeSpec
    up: int
    down: int

    @property
    def has_periods(self) -> bool:
        """Whether there are periods; kube-downscaler then ignores uptime and downtime."""
        return not (self.upscale.never and self.downscale.never)

    @property
    def specs(self) -> tuple[TimeSpec, ...]:
        """All times that the replicas depend on, the one with the highest precedence first."""
        return (self.excluded, self.forced_up, self.forced_down, self.downtime, self.uptime)


def convert_downscaler(value: Tree, options: ConversionOptions) -> Conversion | None:
    """Convert the annotations of an object; the object itself remains without them."""
    annotations = mapping_at(value, "metadata", "annotations")
    given = {name.removeprefix(_PREFIX): str(text) for name, text in annotations.items() if name.startswith(_PREFIX)}
    if not given:
        return None
    notes = ConversionNotes()
    if group_kind(value) not in _CONVERTED:
        instead = _INSTEAD.get(group_kind(value), f"on a {value.get('kind')} has no equivalent")
        for name in given:
            notes.warn(annotation(name), f"stays as it is: it {instead}" if group_kind(value) in _INSTEAD else instead)
        return notes.refused(value)
    if given.get("exclude", "false").lower() != "false":
        notes.warn(annotation("exclude"), "the object is excluded: there is nothing to convert")
        return notes.refused(value)
    name = required_name(value, notes)
    settings = _read(given, value, options, notes)
    if notes.failed or settings is None:
        return notes.refused(value)
    make = _cron if settings.has_periods or group_kind(value) == _AUTOSCALER else _schedule
    made = make(value, name, settings, options, notes)
    if notes.failed:
        return notes.refused(value)
    return notes.done(_without_annotations(value), *made)


# A schedule: for workloads with uptime and downtime


def _schedule(
    value: Tree, name: str, settings: _DownscalerSettings, options: ConversionOptions, notes: ConversionNotes
) -> list[Tree]:
    zone = _only_zone(settings.specs, options, notes)
    default, behaviors = _behaviors(settings)
    sizes = [default, *(behavior["replicas"] for behavior in behaviors)]
    bounds = (min(sizes), max(sizes))
    return [
        producer_object(metadata_of(value, name), zone, default, behaviors),
        autoscaler_object(metadata_of(value, name), _target(value, name), bounds, [name]),
    ]


def _behaviors(settings: _DownscalerSettings) -> tuple[int, list[Tree]]:
    """Return the default replicas, and a behaviour for each time that has an effect."""
    layers = [
        ("excluded", settings.excluded, settings.up),
        ("forced-up", settings.forced_up, settings.up),
        ("forced-down", settings.forced_down, settings.down),
        ("downtime", settings.downtime, settings.down),
        ("uptime", settings.uptime, settings.up),
    ]
    default = settings.down
    for position, (_, spec, replicas) in enumerate(layers):
        if spec.always:
            # A time that is always active hides all below it.
            layers, default = layers[:position], replicas
            break
    seen = [layer for layer in layers if not layer[1].never]
    behaviors: list[Tree] = []
    for rank, (label, spec, replicas) in zip(range(len(seen) - 1, -1, -1), seen, strict=True):
        for times in _times(spec):
            behavior: dict[str, Any] = {
                "name": free_name(label, [made["name"] for made in behaviors]),
                "replicas": replicas,
            }
            if rank:
                behavior["priority"] = rank
            behaviors.append({**behavior, **times})
    return default, behaviors


def _times(spec: TimeSpec) -> Iterable[Tree]:
    for recurs in spec.recurring:
        start, end = recurs.patterns()
        yield {"start": start, "end": end}
    for once in spec.absolute:
        yield once.instants


def _only_zone(specs: Iterable[TimeSpec], options: ConversionOptions, notes: ConversionNotes) -> str:
    """Return the zone of all times, because a schedule has only one."""
    zones = list(dict.fromkeys(recurs.zone for spec in specs for recurs in spec.recurring))
    if len(zones) > 1:
        notes.error(
            ("metadata", "annotations"),
            f"times in several zones ({', '.join(zones)}) have no equivalent: all times of a schedule are in one",
            "write all times in one zone",
        )
    return zones[0] if zones else options.zone or "UTC"


# Cron rules: for the minimum of an autoscaler, and for periods


def _cron(
    value: Tree, name: str, settings: _DownscalerSettings, options: ConversionOptions, notes: ConversionNotes
) -> list[Tree]:
    action = _minimum(settings, notes) if group_kind(value) == _AUTOSCALER else _replicas(settings)
    rules = (
        _period_rules(settings, action, options, notes)
        if settings.has_periods
        else _level_rules(settings, action, notes)
    )
    return [cron_object(metadata_of(value, name), _target(value, name), rules)]


def _replicas(settings: _DownscalerSettings) -> Callable[[bool], Tree]:
    return lambda is_up: {"targetReplicas": settings.up if is_up else settings.down}


def _minimum(settings: _DownscalerSettings, notes: ConversionNotes) -> Callable[[bool], Tree]:
    if settings.down == 0:
        notes.warn(
            ("metadata", "annotations"),
            "a HorizontalPodAutoscaler has a minimum of at least 1: during downtime it is 1, not 0",
        )
    return lambda is_up: {"targetMinReplicas": max(1, settings.up if is_up else settings.down)}


def _level_rules(settings: _DownscalerSettings, action: Callable[[bool], Tree], notes: ConversionNotes) -> list[Tree]:
    zones = list(dict.fromkeys(recurs.zone for spec in settings.specs for recurs in spec.recurring))
    others = (settings.excluded, settings.forced_up, settings.forced_down)
    if len(zones) > 1 or any(spec.absolute for spec in settings.specs) or not all(spec.never for spec in others):
        notes.error(
            ("metadata", "annotations"),
            "the minimum of an autoscaler is moved by cron rules, which cannot express times in several zones, between"
            " dates, forced or excluded",
            "keep to recurring times in one zone, or put the annotations on the workload",
        )
        return []
    rules = change_rules(settings.uptime, settings.downtime, zones[0] if zones else "UTC", action)
    if not rules:
        notes.error(("metadata", "annotations"), "the times never change anything", "remove them")
    return rules


def _period_rules(
    settings: _DownscalerSettings, action: Callable[[bool], Tree], options: ConversionOptions, notes: ConversionNotes
) -> list[Tree]:
    for name, spec in (("upscale-period", settings.upscale), ("downscale-period", settings.downscale)):
        if spec.always:
            notes.error(annotation(name), "a period that is always active never begins", "write uptime and downtime")
    for name, spec in (("force-uptime", settings.forced_up), ("force-downtime", settings.forced_down)):
        if not spec.never:
            notes.error(annotation(name), "has no equivalent beside periods", "write uptime and downtime")
    periods = (
        TimelineLayer("up", _timeline(settings.upscale), 1),
        TimelineLayer("down", _timeline(settings.downscale), 0),
    )
    if overlaps(periods, options.now, first=1):
        notes.error(
            annotation("downscale-period"),
            "the periods overlap: kube-downscaler does nothing while both are active, which rules cannot express",
            "end one where the other begins",
        )
    notes.warn(
        annotation("upscale-period" if not settings.upscale.never else "downscale-period"),
        "kube-downscaler acts throughout a period: a rule acts once, when the period begins",
    )
    if notes.failed:
        return []
    rules = begin_rules(settings.upscale, action, is_up=True, rules=[])
    return rules + begin_rules(settings.downscale, action, is_up=False, rules=rules)


def _timeline(spec: TimeSpec) -> Timeline[bool]:
    if spec.always:
        return always()
    windows = [never()]
    for recurs in spec.recurring:
        start, end = (PatternSpec(**pattern).parse() for pattern in recurs.patterns())
        windows.append(recurring(start, end, load_zone(recurs.zone), MatchPolicy.LITERAL))
    return either(*windows, *(span(once.begins, once.ends) for once in spec.absolute))


# Reading


def _read(
    given: dict[str, str], value: Tree, options: ConversionOptions, notes: ConversionNotes
) -> _DownscalerSettings | None:
    def times(name: str, default: TimeSpec) -> TimeSpec:
        return _times_of(given.get(name), name, default, options, notes)

    for name in given:
        if name not in _KNOWN:
            close = nearest(name, _KNOWN)
            hint = f"did you mean `{_PREFIX}{close}`?" if close else ""
            notes.warn(annotation(name), "is not an annotation of kube-downscaler: it has no effect", hint)
    settings = _DownscalerSettings(
        uptime=times("uptime", ALWAYS),
        downtime=times("downtime", NEVER),
        forced_up=_forced("force-uptime", times, given, notes),
        forced_down=_forced("force-downtime", times, given, notes),
        excluded=_excluded(given.get("exclude-until"), options, notes),
        upscale=times("upscale-period", NEVER),
        downscale=times("downscale-period", NEVER),
        up=_up(given, value, notes),
        down=_down(given, notes),
    )
    if settings.has_periods and ("uptime" in given or "downtime" in given):
        ignored = "uptime" if "uptime" in given else "downtime"
        notes.warn(annotation(ignored), "is ignored beside periods")
    nothing = settings.uptime.always and all(
        spec.never
        for spec in (settings.downtime, settings.forced_up, settings.forced_down, settings.upscale, settings.downscale)
    )
    if nothing and not notes.failed and not {"uptime", "downtime"} & given.keys():
        notes.warn(("metadata", "annotations"), "no annotation says when to scale: there is nothing to convert")
        return None
    if "grace-period" in given:
        notes.warn(annotation("grace-period"), "has no equivalent: a new workload follows the schedule at once")
    return settings


def _times_of(
    text: str | None, name: str, default: TimeSpec, options: ConversionOptions, notes: ConversionNotes
) -> TimeSpec:
    if text is None:
        return default
    try:
        spec = parse_time_spec(text, options.zone)
    except TimeSpecError as failure:
        notes.error(annotation(name), failure.message, failure.hint)
        return default
    for idle in spec.idle:
        notes.warn(
            annotation(name),
            f'"{idle.text}" is never active: its end is not after its beginning',
            "times do not cross midnight; write two, the first one up to 24:00",
        )
    return spec.effective()


def _forced(
    name: str, times: Callable[[str, TimeSpec], TimeSpec], given: dict[str, str], notes: ConversionNotes
) -> TimeSpec:
    text = given.get(name, "false").lower()
    if text in ("", "false"):
        return NEVER
    notes.warn(annotation(name), "kube-downscaler reads this on namespaces only: here it applies to this object")
    return ALWAYS if text == "true" else times(name, NEVER)


def _excluded(text: str | None, options: ConversionOptions, notes: ConversionNotes) -> TimeSpec:
    if text is None:
        return NEVER
    until = _timestamp(text)
    if until is None:
        notes.error(annotation("exclude-until"), f'"{text}" is not a time', "write 2026-11-27T06:00:00Z or 2026-11-27")
        return NEVER
    if until <= options.now:
        notes.warn(annotation("exclude-until"), f"{format_instant(until)} is in the past: the annotation is removed")
        return NEVER
    return TimeSpec(absolute=(AbsoluteTime(text, options.now, until),))


def _timestamp(text: str) -> int | None:
    for layout in _TIMESTAMPS:
        try:
            return int(datetime.strptime(text, layout).replace(tzinfo=UTC).timestamp())
        except ValueError:
            continue
    return None


def _up(given: dict[str, str], value: Tree, notes: ConversionNotes) -> int:
    """Return the replicas that the object has while it is up."""
    field = "minReplicas" if group_kind(value) == _AUTOSCALER else "replicas"
    if "original-replicas" in given:
        written: Any = given["original-replicas"]
        path = annotation("original-replicas")
    else:
        written, path = mapping_at(value, "spec").get(field), ("spec", field)
    if written is None:
        notes.warn(
            ("spec",),
            f"kube-downscaler restores the {field} of before the downtime: here it is 1, because `{field}` is not set",
            f"set `{field}`",
        )
        return 1
    replicas = to_int32(written)
    if replicas is None or replicas < 0:
        notes.error(path, f"{written!r} is not a number of replicas")
        return 1
    return replicas


def _down(given: dict[str, str], notes: ConversionNotes) -> int:
    text = given.get("downtime-replicas", "0")
    replicas = to_int32(text)
    if replicas is None or replicas < 0:
        hint = "write a number; percentages are for PodDisruptionBudgets" if text.endswith("%") else "write a number"
        notes.error(annotation("downtime-replicas"), f'"{text}" is not a number of replicas', hint)
        return 0
    return replicas


def _target(value: Tree, name: str) -> Tree:
    return {"apiVersion": value["apiVersion"], "kind": value["kind"], "name": name}


def _without_annotations(value: Tree) -> Tree:
    metadata = mapping_at(value, "metadata")
    left = {name: text for name, text in mapping_at(metadata, "annotations").items() if not name.startswith(_PREFIX)}
    kept = {key: held for key, held in metadata.items() if key != "annotations" or left}
    return {**value, "metadata": {**kept, "annotations": left} if left else kept}
