"""Jobs: what of them may change once they exist.

The status of Jobs: a Job ends in steps, and what has been told of its end stays told.

First a Job says what it is going to be (SuccessCriteriaMet, FailureTarget); once no pod is left to be counted, it is
that (Complete, Failed). Others may rely on it: what is over never runs again, and its numbers are final. Each rule
looks only at what a write changes, so that a status that was wrong before can still be mended elsewhere.

Cron jobs: schedules and time zones, judged as the cron library of Kubernetes reads them.

Nothing runs by them here. The almanac's own grammar is stricter on purpose: it refuses what never fires.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import starmap
from typing import Any

from springtide.almanac.zones import known_zones
from springtide.apiserver.builtin.validation import (
    AT_LEAST_ZERO,
    IMMUTABLE,
    duplicate,
    field_of,
    invalid,
    invalid_without_value,
    required,
    without_fields,
)
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object


def immutable_job_template(item: Object, old: Object | None) -> Iterator[StatusCause]:
    """Judge a change of a job: its template stays, but for where pods may run while it has not begun."""
    if old is None:
        return
    template, before = field_of(item, "spec.template"), field_of(old, "spec.template")
    if template == before:
        return
    waiting = field_of(old, "spec.suspend") is True and field_of(old, "status.startTime") is None
    if not waiting or _without_placement(template) != _without_placement(before):
        yield invalid("spec.template", template, IMMUTABLE)


def _without_placement(template: Object) -> tuple[Object, Object]:
    free = ("affinity", "nodeSelector", "schedulingGates", "tolerations")
    metadata = without_fields(template.get("metadata") or {}, ("annotations", "labels"))
    return metadata, without_fields(template.get("spec") or {}, free)


def immutable_completions(item: Object, old: Object | None) -> Iterator[StatusCause]:
    """Judge a change of a job's completions: only an indexed job grows or shrinks, together with its parallelism."""
    if old is None:
        return
    wanted = field_of(item, "spec.completions")
    if wanted == field_of(old, "spec.completions"):
        return
    elastic = field_of(item, "spec.completionMode") == "Indexed" and wanted == field_of(item, "spec.parallelism")
    if not elastic or wanted is None:
        yield invalid("spec.completions", wanted, IMMUTABLE)


_ENDS = ("Complete", "Failed")
_CONDITIONS = "status.conditions"
_EXCLUSIVE = (
    ("Complete", "Failed", "cannot set Complete=True and Failed=true conditions"),
    ("Complete", "FailureTarget", "cannot set Complete=True and FailureTarget=true conditions"),
)
_PREREQUISITES = (
    ("Failed", "FailureTarget", "cannot set Failed=True condition without the FailureTarget=true condition"),
    (
        "Complete",
        "SuccessCriteriaMet",
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
    ),
)


def job_status(job: Object, old: Object | None) -> Iterator[StatusCause]:
    """Find what a new status may not say, given what the old one said."""
    new, before = job.get("status") or {}, (old or {}).get("status") or {}
    now, then = _true(new), _true(before)
    changed = tuple(name for name in {**new, **before} if new.get(name) != before.get(name))
    ended = [kind for kind in _ENDS if kind in now]
    turned = bool(ended) != any(kind in then for kind in _ENDS)
    yield from _numbers(new)
    yield from _uncounted(new.get("uncountedTerminatedPods") or {})
    yield from _together(now, then)
    yield from _completion_time(new, changed, "Complete" in now, ("Complete" in now) != ("Complete" in then))
    yield from _order(now, then)
    if ended:
        yield from _finished(job, new, lambda name: turned or name in changed)
    yield from _counts(job, new, changed)
    for kind, message in (("Failed", "Failed=true"), ("FailureTarget", "FailureTarget=true")):
        if "SuccessCriteriaMet" in now and kind in now:
            yield invalid_without_value(_CONDITIONS, f"cannot set SuccessCriteriaMet=True and {message} conditions")
    yield from _lasting(job, new, before, now, then)


def _true(status: Object) -> tuple[str, ...]:
    """List the conditions that hold."""
    return tuple(each.get("type", "") for each in _conditions(status) if each.get("status") == "True")


def _conditions(status: Object) -> Iterator[Object]:
    return (each for each in status.get("conditions") or () if each is not None)


def _numbers(status: Object) -> Iterator[StatusCause]:
    for name in ("active", "succeeded", "failed", "ready", "terminating"):
        number = status.get(name)
        if number is not None and number < 0:
            yield invalid(f"status.{name}", number, AT_LEAST_ZERO)


def _uncounted(uncounted: Object) -> Iterator[StatusCause]:
    seen: list[str] = []
    for name in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(name) or ()):
            path = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                yield invalid(path, uid, "must not be empty")
            elif uid in seen:
                yield duplicate(path, uid)
            seen.append(uid)


def _together(now: tuple[str, ...], then: tuple[str, ...]) -> Iterator[StatusCause]:
    for one, other, message in _EXCLUSIVE:
        changed = any((kind in now) != (kind in then) for kind in (one, other))
        if changed and one in now and other in now:
            yield invalid_without_value(_CONDITIONS, message)


def _order(now: tuple[str, ...], then: tuple[str, ...]) -> Iterator[StatusCause]:
    for end, first, message in _PREREQUISITES:
        changed = any((kind in now) != (kind in then) for kind in (end, first))
        if changed and end in now and first not in now:
            yield invalid_without_value(_CONDITIONS, message)


def _completion_time(status: Object, changed: tuple[str, ...], complete: bool, turned: bool) -> Iterator[StatusCause]:
    path, at, start = "status.completionTime", status.get("completionTime"), status.get("startTime")
    if turned or "completionTime" in changed:
        if at is not None and not complete:
            yield invalid(path, at, "cannot set completionTime when there is no Complete=True condition")
        if at is None and complete:
            yield required(path, "completionTime is required for Complete jobs")
    if ("completionTime" in changed or "startTime" in changed) and at is not None and start is not None and at < start:
        yield invalid(path, at, "must be equal to or after `startTime`")


def _finished(job: Object, status: Object, asked: Any) -> Iterator[StatusCause]:
    """Judge a Job that is over: nothing of it runs, nothing is left to be counted."""
    active, terminating = status.get("active") or 0, status.get("terminating") or 0
    if asked("active") and active > 0:
        yield invalid("status.active", active, "active>0 is invalid for finished job")
    nothing_to_do = field_of(job, "spec.suspend") is True and field_of(job, "spec.completions") == 0
    if asked("startTime") and status.get("startTime") is None and not nothing_to_do:
        yield required("status.startTime", "startTime is required for finished job")
    uncounted = status.get("uncountedTerminatedPods") or {}
    if asked("uncountedTerminatedPods") and (uncounted.get("succeeded") or uncounted.get("failed")):
        yield invalid("status.uncountedTerminatedPods", uncounted, "must be empty for finished job")
    if asked("terminating") and terminating > 0:
        yield invalid("status.terminating", terminating, "terminating>0 is invalid for finished job")


def _counts(job: Object, status: Object, changed: tuple[str, ...]) -> Iterator[StatusCause]:
    indexes = status.get("completedIndexes")
    if indexes and "completedIndexes" in changed and field_of(job, "spec.completionMode") != "Indexed":
        message = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield invalid("status.completedIndexes", indexes, message)
    failed = status.get("failedIndexes")
    if failed is not None and "failedIndexes" in changed and field_of(job, "spec.backoffLimitPerIndex") is None:
        message = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield invalid("status.failedIndexes", failed, message)
    ready = status.get("ready")
    if ("ready" in changed or "active" in changed) and ready is not None and ready > (status.get("active") or 0):
        yield invalid("status.ready", ready, "cannot set more ready pods than active")


def _lasting(
    job: Object, new: Object, before: Object, now: tuple[str, ...], then: tuple[str, ...]
) -> Iterator[StatusCause]:
    """Judge what must not be taken back."""
    for kind in ("Failed", "Complete", "FailureTarget"):
        if kind in then and kind not in now:
            yield invalid_without_value(_CONDITIONS, f"cannot disable the terminal {kind}=True condition")
    spec = job["spec"]
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for name in ("failed",) if elastic else ("failed", "succeeded"):
        if (new.get(name) or 0) < (before.get(name) or 0):
            yield invalid(f"status.{name}", new.get(name) or 0, f"cannot decrease the {name} counter")
    done, had_done = new.get("completionTime"), before.get("completionTime")
    if done is not None and had_done is not None and done != had_done:
        yield invalid("status.completionTime", done, IMMUTABLE)
    start, had_start = new.get("startTime"), before.get("startTime")
    resumed = "Suspended" in then and any(
        each.get("type") == "Suspended" and each.get("status") == "False" for each in _conditions(new)
    )
    if had_start is not None and start != had_start and not resumed and not spec.get("suspend"):
        yield invalid("status.startTime", start, "field is immutable for unsuspended job once set")
    if "SuccessCriteriaMet" in then and "SuccessCriteriaMet" not in now:
        yield invalid_without_value(_CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition")
    if "Complete" in then and "SuccessCriteriaMet" not in then and "SuccessCriteriaMet" in now:
        message = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield invalid_without_value(_CONDITIONS, message)


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_WEEKDAYS)}),
)
"""Minute, hour, day, month and weekday: the least, the most, and the words that stand for numbers."""
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = "@every "
_DURATION = re.compile(r"[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)")
_ZONE = re.compile(r"(CRON_)?TZ=(?P<zone>\S*)\s+(?P<rest>.*)", re.DOTALL)


def cron_job(item: Object, old: Object | None) -> Iterator[StatusCause]:
    """Judge when a cron job runs."""
    schedule, zone = field_of(item, "spec.schedule"), field_of(item, "spec.timeZone")
    if schedule:
        yield from _schedule(schedule, zone, "TZ" in (field_of(old, "spec.schedule") or ""))
    if zone is not None and zone != field_of(old, "spec.timeZone") and (problem := _zone_problem(zone)):
        yield invalid("spec.timeZone", zone, problem)


def _schedule(schedule: str, zone: str | None, had_zone: bool) -> Iterator[StatusCause]:
    path = "spec.schedule"
    if problem := schedule_problem(schedule):
        yield invalid(path, schedule, problem)
    if "TZ" in schedule and not had_zone:
        yield invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    elif "TZ" in schedule and zone is not None:
        yield invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def schedule_problem(text: str) -> str:
    """Tell what is wrong with a schedule; empty where nothing is."""
    if zoned := _ZONE.fullmatch(text):
        if not _is_zone(zoned["zone"]):
            return f"provided bad location {zoned['zone']}: unknown time zone {zoned['zone']}"
        text = zoned["rest"].strip()
    if text.startswith(_EVERY):
        length = text.removeprefix(_EVERY)
        problem = f'time: invalid duration "{length}"'
        return "" if _DURATION.fullmatch(length) else f"failed to parse duration {text}: {problem}"
    if text.startswith("@"):
        return "" if text in _DESCRIPTORS else f"unrecognized descriptor: {text}"
    parts = text.split()
    if len(parts) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{' '.join(parts)}]"
    try:
        for part, (low, high, words) in zip(parts, _FIELDS, strict=True):
            for span in filter(None, part.split(",")):
                _check(span, low, high, words)
    except ValueError as error:
        return str(error)
    return ""


def _check(text: str, low: int, high: int, words: dict[str, int]) -> None:
    """Refuse a span that no clock reaches: `*`, `5`, `mon-fri`, `*/15`, `10-50/20`."""
    span, *steps = text.split("/")
    ends = span.split("-")
    if ends[0] in ("*", "?"):
        first, last = low, high
    elif len(ends) > 2:
        raise ValueError(f"too many hyphens: {text}")
    else:
        first, *others = starmap(_number, ((end, words) for end in ends))
        last = others[0] if others else high if steps else first
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    if first < low:
        raise ValueError(f"beginning of range ({first}) below minimum ({low}): {text}")
    if last > high:
        raise ValueError(f"end of range ({last}) above maximum ({high}): {text}")
    if first > last:
        raise ValueError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if steps and _number(steps[0], {}) == 0:
        raise ValueError(f"step of range should be a positive number: {text}")


def _number(text: str, words: dict[str, int]) -> int:
    if text.lower() in words:
        return words[text.lower()]
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if int(text) < 0:
        raise ValueError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def _zone_problem(zone: str) -> str:
    if not zone:
        return "timeZone must be nil or non-empty string"
    if zone.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    return "" if _is_zone(zone) else f"unknown time zone {zone}"


def _is_zone(name: str) -> bool:
    return name in known_zones()
