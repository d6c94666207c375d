"""The importer of kubernetes-cronhpa-controller: its jobs become cron rules.

A job fires at instants, as a rule does. Seconds have no equivalent; intervals that count from the start of the
controller become times of the clock; jobs that run once become rules with `at`. Excluded dates become a Calendar;
excluded weekdays, which a Calendar cannot have, are taken out of the schedules.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from springtide.almanac import Cron, CronError, Dialect, Zone, load_zone
from springtide.almanac.civil import ALL_DAYS, ALL_WEEKDAYS, DayRule, date_of, members, month_length, weekday_of
from springtide.almanac.cron_grammar import MACROS, parse_schedule
from springtide.apis.forecast import format_instant
from springtide.apis.importers.conversion import (
    Conversion,
    ConversionNotes,
    ConversionOptions,
    Tree,
    cron_object,
    free_name,
    group_kind,
    mapping_at,
    metadata_of,
    required_name,
    to_int32,
)
from springtide.apis.problems import Path
from springtide.quantity import DurationError, parse_duration

CRON_HPA = ("autoscaling.alibabacloud.com", "CronHorizontalPodAutoscaler")
CHART_ZONE = "Asia/Shanghai"
"""The zone that the controller's chart sets."""

_DATE = re.compile(r"@date\s+(?P<day>\d{4}-\d{1,2}-\d{1,2})\s+(?P<time>\d{1,2}:\d{1,2}:\d{1,2})", re.ASCII)
_EVERY = re.compile(r"@every\s+(?P<span>\S+)", re.ASCII)
_NANOSECONDS = 1_000_000_000
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_LEAP_YEAR = 2000
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class _ExcludedWeekdays:
    """Weekdays, in certain months, on which no job runs."""

    text: str
    months: int
    weekdays: int


@dataclass(frozen=True, slots=True)
class _ObjectContext:
    """What the conversion of all jobs of an object shares."""

    options: ConversionOptions
    zone: Zone
    notes: ConversionNotes
    weekdays: tuple[_ExcludedWeekdays, ...] = ()


def convert_cronhpa(value: Tree, options: ConversionOptions) -> Conversion | None:
    """Convert a CronHorizontalPodAutoscaler."""
    if group_kind(value) != CRON_HPA:
        return None
    notes = ConversionNotes()
    name = required_name(value, notes)
    zone = options.zone or CHART_ZONE
    if options.zone is None:
        notes.warn(
            ("spec", "jobs"),
            f"the zone is that of the controller: assumed to be {CHART_ZONE}, which its chart sets",
            "name another one with `--timezone`",
        )
    context = _ObjectContext(options, load_zone(zone), notes)
    target = mapping_at(value, "spec", "scaleTargetRef")
    for field in ("kind", "name"):
        if not isinstance(target.get(field), str) or not target[field]:
            notes.error(("spec", "scaleTargetRef"), f"the target has no {field}", f"add `{field}`")
    jobs = mapping_at(value, "spec").get("jobs")
    if not isinstance(jobs, list) or not jobs:
        notes.error(("spec",), "there are no jobs to convert", "add `jobs`, or remove the object")
        return notes.refused(value)
    calendar, weekdays = _exclusions(value, name, context)
    context = replace(context, weekdays=weekdays)
    rules: list[Tree] = []
    for position, job in enumerate(jobs):
        rule = _rule(mapping_at(job), ("spec", "jobs", position), target, [made["name"] for made in rules], context)
        if rule is not None:
            rules.append(rule)
    if notes.failed:
        return notes.refused(value)
    if target.get("kind") == "HorizontalPodAutoscaler":
        notes.warn(
            ("spec", "scaleTargetRef"),
            "cronhpa moves the bound of a HorizontalPodAutoscaler that excludes targetSize, and never lowers the"
            " maximum again: here targetSize becomes the minimum, and the maximum stays",
            "set `targetMaxReplicas` on rules that need a higher maximum",
        )
    if calendar is None:
        return notes.done(None, cron_object(metadata_of(value, name), target, rules))
    excluded = [{"name": calendar["metadata"]["name"], "mode": "Exclude"}]
    rules = [{**rule, "calendars": excluded} for rule in rules]
    return notes.done(None, cron_object(metadata_of(value, name), target, rules), calendar)


def _rule(job: Tree, path: Path, target: Tree, taken: Sequence[str], context: _ObjectContext) -> Tree | None:
    notes = context.notes
    given = job.get("name")
    name = free_name(given if isinstance(given, str) and given else f"job-{path[-1]}", taken)
    if name != given:
        notes.warn((*path, "name"), f"the rule is called `{name}`: names have at most 32 letters and are unique")
    if job.get("targetSize") is None:
        notes.error(path, "the job has no `targetSize`", "say how many replicas it sets")
        return None
    size = to_int32(job["targetSize"])
    if size is None or size < 0:
        notes.error((*path, "targetSize"), f"{job['targetSize']!r} is not a number of replicas")
        return None
    timing = _timing(job, path, context)
    if timing is None:
        return None
    return {"name": name, **timing, **_action(size, target, path, notes)}


def _action(size: int, target: Tree, path: Path, notes: ConversionNotes) -> Tree:
    if target.get("kind") != "HorizontalPodAutoscaler":
        return {"targetReplicas": size}
    if size == 0:
        notes.warn((*path, "targetSize"), "a HorizontalPodAutoscaler has a minimum of at least 1: the rule sets 1")
    return {"targetMinReplicas": max(size, 1)}


# When a job runs


def _timing(job: Tree, path: Path, context: _ObjectContext) -> Tree | None:
    text = job.get("schedule")
    path = (*path, "schedule")
    if not isinstance(text, str) or not text.strip():
        context.notes.error(path, "the job has no schedule", 'write one, such as "0 30 8 * * *"')
        return None
    text = text.strip()
    if text.startswith("@date"):
        moment = _date(text, path, context.notes)
        if moment is None:
            return None
        at = context.zone.instant(moment)
        if at <= context.options.now:
            context.notes.warn(path, f"`{text}` is in the past: the rule never fires", "remove the job")
        elif any(_is_on(excluded, moment // _DAY) for excluded in context.weekdays):
            context.notes.error(path, f"`{text}` is an excluded weekday: the job never runs", "remove the job")
        return {"at": format_instant(at)}
    schedule = _interval(text, path, context.notes) if text.startswith("@every") else _five_fields(text, path, context)
    if schedule is None:
        return None
    try:
        schedule = _without_weekdays(schedule, text, path, context)
        cron = Cron.parse(schedule, Dialect.RULE)
    except CronError as failure:
        context.notes.error(path, failure.message, failure.hint)
        return None
    if job.get("runOnce") is not True:
        return {"schedule": schedule, "timeZone": context.zone.name}
    upcoming = cron.after(context.options.now, context.zone)
    if upcoming is None:
        context.notes.error(path, f"`{text}` does not fire again", "remove the job")
        return None
    context.notes.warn((*path[:-1], "runOnce"), f"the job runs once: the rule has the next time of `{text}`")
    return {"at": format_instant(upcoming)}


def _five_fields(text: str, path: Path, context: _ObjectContext) -> str | None:
    """Remove the field of seconds, which rules do not have."""
    if text.startswith("@"):
        if text in MACROS:
            return text
        context.notes.error(path, f"`{text}` is unknown, expected one of {', '.join(MACROS)}, @every or @date")
        return None
    fields = text.split()
    if len(fields) != 6:
        context.notes.error(
            path,
            f"schedule `{text}` has {_fields(len(fields))}, expected 6: second, minute, hour, day of month, month, day"
            " of week",
        )
        return None
    try:
        parse_schedule(f"{fields[0]} * * * *", Dialect.RULE)  # seconds have the values that minutes have
    except CronError:
        context.notes.error(path, f"second {fields[0]!r} is not understood, expected 0-59", "write 0")
        return None
    if fields[0].strip("0"):
        context.notes.warn(path, f"rules have no seconds: instead of second `{fields[0]}` the rule fires at second 0")
    return " ".join(fields[1:])


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _interval(text: str, path: Path, notes: ConversionNotes) -> str | None:
    """Convert an interval that divides the hour or the day to a cron expression."""
    every = _EVERY.fullmatch(text)
    try:
        seconds, rest = divmod(0 if every is None else parse_duration(every["span"]), _NANOSECONDS)
    except DurationError:
        seconds, rest = 0, 0
    schedule = None if rest else _steps(seconds)
    if schedule is None:
        notes.error(
            path,
            f"`{text}` counts from the start of the controller and does not divide the hour or the day",
            "write the times as a cron expression",
        )
        return None
    notes.warn(path, f"`{text}` counts from the start of the controller: the rule has `{schedule}`")
    return schedule


def _steps(seconds: int) -> str | None:
    if seconds > 0 and seconds % _MINUTE == 0 and _HOUR % seconds == 0:
        minutes = seconds // _MINUTE
        return "0 * * * *" if minutes == 60 else f"*/{minutes} * * * *"
    if seconds > 0 and seconds % _HOUR == 0 and _DAY % seconds == 0:
        hours = seconds // _HOUR
        return "0 0 * * *" if hours == 24 else f"0 */{hours} * * *"
    return None


def _date(text: str, path: Path, notes: ConversionNotes) -> int | None:
    """Read a moment of the wall clock, in seconds since 1970 of that clock."""
    found = _DATE.fullmatch(text)
    try:
        if found is None:
            raise ValueError(text)
        day = [int(number) for number in found["day"].split("-")]
        time = [int(number) for number in found["time"].split(":")]
        moment = datetime.datetime(*day, *time, tzinfo=datetime.UTC)  # type: ignore[misc,arg-type]
    except ValueError:
        notes.error(path, f"`{text}` is not a date", "write it as @date 2026-11-27 06:00:00")
        return None
    return int(moment.timestamp())


# Days on which no job runs


def _exclusions(value: Tree, name: str, context: _ObjectContext) -> tuple[Tree | None, tuple[_ExcludedWeekdays, ...]]:
    """Return the Calendar of the excluded dates, if there are any, and the excluded weekdays."""
    excluded = mapping_at(value, "spec").get("excludeDates")
    yearly: set[str] = set()
    dates: set[str] = set()
    weekdays: list[_ExcludedWeekdays] = []
    for position, text in enumerate(excluded if isinstance(excluded, list) else ()):
        path: Path = ("spec", "excludeDates", position)
        if isinstance(text, str) and text.strip().startswith("@date"):
            moment = _date(text.strip(), path, context.notes)
            if moment is not None:
                dates.add(format_instant(moment)[:10])
        else:
            for days in _excluded_days(str(text), path, context.notes):
                if days.weekdays == ALL_WEEKDAYS:
                    yearly.update(_dates_of(days))
                else:
                    weekdays.append(_ExcludedWeekdays(str(text), days.months, days.weekdays))
    if not dates and not yearly:
        return None, tuple(weekdays)
    # A Calendar is cluster-scoped, so its name contains the namespace.
    owner = mapping_at(value, "metadata").get("namespace")
    called = f"{owner}-{name}-excluded" if isinstance(owner, str) and owner else f"{name}-excluded"
    spec: dict[str, Any] = {"timeZone": context.zone.name}
    if dates:
        spec["dates"] = sorted(dates)
    if yearly:
        spec["yearly"] = sorted(yearly)
    calendar = {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Calendar",
        "metadata": {"name": called},
        "spec": spec,
    }
    return calendar, tuple(weekdays)


def _excluded_days(text: str, path: Path, notes: ConversionNotes) -> list[DayRule]:
    """Split a pattern of days into dates and weekdays: each is excluded by other means."""
    fields = text.split()
    if len(fields) != 6:
        notes.error(path, f"`{text}` has {_fields(len(fields))}, expected 6, such as * * * 25 12 *")
        return []
    try:
        days = parse_schedule(f"0 0 {' '.join(fields[3:])}", Dialect.RULE).days
    except CronError as failure:
        notes.error(path, failure.message, failure.hint)
        return []
    if days.daily:
        notes.error(path, f"`{text}` excludes every day: no job ever runs", "remove it, or name a day")
        return []
    if days.either:
        halves = (DayRule(days.days, days.months, ALL_WEEKDAYS), DayRule(ALL_DAYS, days.months, days.weekdays))
        return [half for half in halves if not half.empty]
    return [days]


def _is_on(excluded: _ExcludedWeekdays, day: int) -> bool:
    date = date_of(day)
    return bool(excluded.months >> date.month & 1 and excluded.weekdays >> weekday_of(day) & 1)


def _without_weekdays(schedule: str, text: str, path: Path, context: _ObjectContext) -> str:
    """Take the excluded weekdays out of a schedule; an error where that is not the same.

    It is the same where every day of the month matches and the exclusion is for all months of the schedule.
    """
    expanded = MACROS.get(schedule, schedule)
    days = parse_schedule(expanded, Dialect.RULE).days
    left = days.weekdays
    for excluded in context.weekdays:
        if not excluded.months & days.months:
            continue
        if days.days != ALL_DAYS or days.months & ~excluded.months:
            reason = "days of the month" if days.days != ALL_DAYS else "months beyond those"
            context.notes.error(
                path,
                f"`{text}` names {reason}, so the weekdays of `{excluded.text}` cannot be taken out of it",
                "write jobs for the days that remain",
            )
            return schedule
        left &= ~excluded.weekdays
    if left == days.weekdays:
        return schedule
    if not left:
        context.notes.error(path, f"`{text}` only runs on excluded weekdays: the job never runs", "remove the job")
        return schedule
    return " ".join((*expanded.split()[:4], _weekdays(left)))


def _weekdays(mask: int) -> str:
    """Write weekdays as a field of a cron expression, from Monday on: `mon-thu,sat,sun`."""
    runs: list[list[int]] = []
    # Sunday is 0, so that no range ends with it.
    for weekday in sorted(members(mask), key=lambda weekday: (weekday - 1) % 7):
        if weekday and runs and runs[-1][-1] == weekday - 1:
            runs[-1].append(weekday)
        else:
            runs.append([weekday])
    return ",".join(
        f"{_WEEKDAYS[run[0]]}-{_WEEKDAYS[run[-1]]}" if len(run) > 2 else ",".join(_WEEKDAYS[each] for each in run)
        for run in runs
    )


def _dates_of(days: DayRule) -> list[str]:
    return [
        f"{month:02}-{day:02}"
        for month in members(days.months)
        for day in members(days.days)
        if day <= month_length(_LEAP_YEAR, month)
    ]
