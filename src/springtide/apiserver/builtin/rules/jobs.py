"""Validation of Jobs: what may change in the spec, and the conditions and counters of the status.

A Job ends in two steps: SuccessCriteriaMet or FailureTarget first, and Complete or Failed once all pods are counted.
Finished Jobs never run again. Each rule only checks what a write changes, so that a status that was invalid before can
still be updated elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from springtide.apiserver.builtin.validation import AT_LEAST_ZERO, IMMUTABLE, field_of, without_fields
from springtide.apiserver.field_errors import OMITTED, duplicate, invalid, required
from springtide.apiserver.selectors import selector_of
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object


def immutable_job_template(item: Object, old: Object | None) -> Iterator[StatusCause]:
    """Reject changes of the pod template, except of scheduling fields of a suspended Job that has not started."""
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
    """Reject changes of `completions`, except for Indexed Jobs that change `parallelism` to the same number."""
    if old is None:
        return
    completions = field_of(item, "spec.completions")
    if completions == field_of(old, "spec.completions"):
        return
    is_elastic = field_of(item, "spec.completionMode") == "Indexed" and completions == field_of(
        item, "spec.parallelism"
    )
    if not is_elastic or completions is None:
        yield invalid("spec.completions", completions, IMMUTABLE)


def generated_selector(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Reject a selector of the user: the API server generates it, unless `manualSelector` is set."""
    selector: Object = field_of(item, "spec.selector") or {}
    own = [name for name in selector.get("matchLabels") or {} if name not in _GENERATED_LABELS]
    if not field_of(item, "spec.manualSelector") and (own or selector.get("matchExpressions")):
        yield invalid("spec.selector", selector, "`selector` not auto-generated")
        labels = field_of(item, "spec.template.metadata.labels") or {}
        if not selector_of(selector).matches(labels):
            yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def indexes(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate what only Indexed Jobs may have."""
    spec: Object = item.get("spec") or {}
    for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
        number = spec.get(field)
        if number is not None and number < 0:
            yield invalid(f"spec.{field}", number, AT_LEAST_ZERO)
        if number is not None and spec.get("completionMode") != "Indexed":
            yield invalid(f"spec.{field}", number, "requires indexed completion mode")
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield required("spec.completions", "when completion mode is Indexed")


_GENERATED_LABELS = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)
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
    """Validate the status, given the stored one."""
    new, before = job.get("status") or {}, (old or {}).get("status") or {}
    now, then = _true_conditions(new), _true_conditions(before)
    changed = tuple(name for name in {**new, **before} if new.get(name) != before.get(name))
    ended = [kind for kind in _ENDS if kind in now]
    has_turned = bool(ended) != any(kind in then for kind in _ENDS)
    yield from _numbers(new)
    yield from _uncounted(new.get("uncountedTerminatedPods") or {})
    yield from _exclusive_conditions(now, then)
    yield from _completion_time(new, changed, "Complete" in now, ("Complete" in now) != ("Complete" in then))
    yield from _prerequisites(now, then)
    if ended:
        yield from _finished_job(job, new, lambda name: has_turned or name in changed)
    yield from _counts(job, new, changed)
    for kind, message in (("Failed", "Failed=true"), ("FailureTarget", "FailureTarget=true")):
        if "SuccessCriteriaMet" in now and kind in now:
            yield invalid(_CONDITIONS, OMITTED, f"cannot set SuccessCriteriaMet=True and {message} conditions")
    yield from _irreversible_fields(job, new, before, now, then)


def _true_conditions(status: Object) -> tuple[str, ...]:
    """Return the types of the conditions that are true."""
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


def _exclusive_conditions(now: tuple[str, ...], then: tuple[str, ...]) -> Iterator[StatusCause]:
    for one, other, message in _EXCLUSIVE:
        changed = any((kind in now) != (kind in then) for kind in (one, other))
        if changed and one in now and other in now:
            yield invalid(_CONDITIONS, OMITTED, message)


def _prerequisites(now: tuple[str, ...], then: tuple[str, ...]) -> Iterator[StatusCause]:
    for end, first, message in _PREREQUISITES:
        changed = any((kind in now) != (kind in then) for kind in (end, first))
        if changed and end in now and first not in now:
            yield invalid(_CONDITIONS, OMITTED, message)


def _completion_time(
    status: Object, changed: tuple[str, ...], complete: bool, has_turned: bool
) -> Iterator[StatusCause]:
    path, at, start = "status.completionTime", status.get("completionTime"), status.get("startTime")
    if has_turned or "completionTime" in changed:
        if at is not None and not complete:
            yield invalid(path, at, "cannot set completionTime when there is no Complete=True condition")
        if at is None and complete:
            yield required(path, "completionTime is required for Complete jobs")
    if ("completionTime" in changed or "startTime" in changed) and at is not None and start is not None and at < start:
        yield invalid(path, at, "must be equal to or after `startTime`")


def _finished_job(job: Object, status: Object, is_checked: Any) -> Iterator[StatusCause]:
    """Validate the counters of a finished Job: no pod runs or is left to be counted."""
    active, terminating = status.get("active") or 0, status.get("terminating") or 0
    if is_checked("active") and active > 0:
        yield invalid("status.active", active, "active>0 is invalid for finished job")
    has_no_work = field_of(job, "spec.suspend") is True and field_of(job, "spec.completions") == 0
    if is_checked("startTime") and status.get("startTime") is None and not has_no_work:
        yield required("status.startTime", "startTime is required for finished job")
    uncounted = status.get("uncountedTerminatedPods") or {}
    if is_checked("uncountedTerminatedPods") and (uncounted.get("succeeded") or uncounted.get("failed")):
        yield invalid("status.uncountedTerminatedPods", uncounted, "must be empty for finished job")
    if is_checked("terminating") and terminating > 0:
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


def _irreversible_fields(
    job: Object, new: Object, before: Object, now: tuple[str, ...], then: tuple[str, ...]
) -> Iterator[StatusCause]:
    """Reject the removal of terminal conditions and the decrease of counters."""
    for kind in ("Failed", "Complete", "FailureTarget"):
        if kind in then and kind not in now:
            yield invalid(_CONDITIONS, OMITTED, f"cannot disable the terminal {kind}=True condition")
    spec = job["spec"]
    is_elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for name in ("failed",) if is_elastic else ("failed", "succeeded"):
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
        yield invalid(_CONDITIONS, OMITTED, "cannot disable the SuccessCriteriaMet=True condition")
    if "Complete" in then and "SuccessCriteriaMet" not in then and "SuccessCriteriaMet" in now:
        message = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield invalid(_CONDITIONS, OMITTED, message)
