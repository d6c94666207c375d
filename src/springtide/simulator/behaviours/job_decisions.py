"""What is to be done about a Job: pods to make, pods to delete, and whether it is over.

A Job ends in steps. First its status says what it is going to be, then its pods go and are counted, and only when none
is left does the status say that the Job is over. Each step follows from the state alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.meta.instants import parse_instant
from springtide.cluster.resources import Object
from springtide.simulator.behaviours import pods as state
from springtide.simulator.behaviours.conditions import condition, is_true, with_conditions
from springtide.simulator.behaviours.job_indexes import completed_indexes, free_indexes, newly_done, written_indexes
from springtide.simulator.behaviours.job_tracking import Count, count
from springtide.simulator.behaviours.victims import surplus

_FIRST_WAIT = 10
_LONGEST_WAIT = 600


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done about the pods of a Job."""

    create: tuple[int | None, ...]
    """One entry for each pod: the index that it is for, if completions have one."""
    delete: tuple[Object, ...]
    release: tuple[Object, ...]
    """Pods that are counted, and that nothing of ours holds any more."""
    status: dict[str, Any]
    again: int | None
    forget_at: int | None
    """When the Job, which is over, is to be deleted; None: it stays, or is not over."""


_TARGETS = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}
"""What a Job says of itself before it is over, by what it says then."""


@dataclass(frozen=True, slots=True)
class _End:
    """How a Job ends."""

    type: str
    reason: str
    message: str

    def told(self, kind: str, at: str) -> Object:
        """Give the condition that tells of the end."""
        return {"type": kind, "status": "True", "reason": self.reason, "message": self.message, "lastProbeTime": at}


def decide(job: Object, pods: Sequence[Object], now: int) -> Plan:
    """Take the next step of a Job."""
    spec, status = job["spec"], job.get("status") or {}
    indexed = spec.get("completionMode") == "Indexed"
    done = completed_indexes(str(status.get("completedIndexes") or "")) if indexed else []
    counted = count(job, pods, done)
    if indexed:
        done = newly_done(pods, counted, done)
    active = [pod for pod in pods if state.is_active(pod)]
    end = _told_end(job) or _ending(job, counted, active, now)
    suspended = bool(spec.get("suspend"))
    stopping = end is not None or suspended or state.is_terminating(job)
    wanted = 0 if stopping else _wanted(spec, counted, len(active))
    later = [] if stopping else _due_times(job, pods, now)
    missing = 0 if _backs_off_until(pods, now) is not None else max(0, wanted - len(active))
    settled = not active and not counted.uncounted and not any(map(state.is_terminating, pods))
    status_now = _status(job, counted, active, end, _news(job, end, settled, now), now)
    if indexed:
        status_now["completedIndexes"] = written_indexes(done) or None
    return Plan(
        create=tuple(free_indexes(int(spec["completions"]), done, active)[:missing]) if indexed else (None,) * missing,
        delete=() if state.is_terminating(job) else tuple(surplus(active, wanted, now)),
        release=counted.release,
        status=status_now,
        again=min(later, default=None),
        forget_at=_forgotten_at(job, status_now) if end is not None else None,
    )


def _wanted(spec: Object, counted: Count, active: int) -> int:
    """Tell how many pods should run at a time: never more than completions are missing.

    Without completions the first success is enough: those that run may end, and no others are made.
    """
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    if completions is None:
        return active if counted.successes else parallelism
    return max(0, min(parallelism, int(completions) - counted.successes))


def _told_end(job: Object) -> _End | None:
    """Give the end that the status of a Job tells of, whether it is there already or only certain."""
    for kind, target in _TARGETS.items():
        for told in (kind, target):
            found = condition(job, told)
            if found is not None and found["status"] == "True":
                return _End(kind, found.get("reason", ""), found.get("message", ""))
    return None


def _ending(job: Object, counted: Count, active: Sequence[Object], now: int) -> _End | None:
    """Tell whether a Job is over, and why."""
    spec = job["spec"]
    retries = counted.failures + sum(map(state.restarts, active))
    started = (job.get("status") or {}).get("startTime")
    deadline = spec.get("activeDeadlineSeconds")
    if retries > int(spec.get("backoffLimit", 6)):
        return _End("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    if deadline is not None and started and not spec.get("suspend") and parse_instant(started) + int(deadline) <= now:
        return _End("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    completions = spec.get("completions")
    reached = counted.successes >= int(completions) if completions is not None else counted.successes and not active
    if reached:
        return _End("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return None


def _due_times(job: Object, pods: Sequence[Object], now: int) -> list[int]:
    started, deadline = (job.get("status") or {}).get("startTime"), job["spec"].get("activeDeadlineSeconds")
    times = [parse_instant(started) + int(deadline)] if started and deadline is not None else []
    until = _backs_off_until(pods, now)
    return [at for at in [*times, *([until] if until is not None else [])] if at > now]


def _backs_off_until(pods: Sequence[Object], now: int) -> int | None:
    """Tell until when no pod is made after failures: each one in a row doubles the wait."""
    ends = sorted(at for pod in pods if state.phase(pod) == "Failed" and (at := _ended_at(pod)) is not None)
    if not ends:
        return None
    until = ends[-1] + min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(len(ends) - 1, 10))
    return until if until > now else None


def _ended_at(pod: Object) -> int | None:
    states = [entry.get("state", {}).get("terminated") for entry in pod["status"].get("containerStatuses") or ()]
    return max((parse_instant(ended["finishedAt"]) for ended in states if ended), default=None)


def _news(job: Object, end: _End | None, settled: bool, now: int) -> Object | None:
    """Give the one condition that is to be told next; `settled`: no pod runs, goes, or is yet to be counted."""
    at = format_instant(now)
    suspended = bool(job["spec"].get("suspend"))
    if end is not None:
        target = _TARGETS[end.type]
        if is_true(job, end.type):
            return None
        if not is_true(job, target):
            return end.told(target, at)
        return end.told(end.type, at) if settled else None
    if suspended == is_true(job, "Suspended"):
        return None
    reason, message = ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
    told = {"type": "Suspended", "status": str(suspended), "reason": reason, "message": message}
    return told | {"lastProbeTime": at}


def _status(
    job: Object, counted: Count, active: Sequence[Object], end: _End | None, news: Object | None, now: int
) -> dict[str, Any]:
    status, at = job.get("status") or {}, format_instant(now)
    conditions = with_conditions(status.get("conditions"), [news] if news is not None else [], at)
    completed = at if news is not None and news["type"] == "Complete" else None
    uncounted = {"succeeded": list(counted.uncounted_succeeded), "failed": list(counted.uncounted_failed)}
    return {
        "startTime": None if job["spec"].get("suspend") and end is None else status.get("startTime") or at,
        "completionTime": status.get("completionTime") or completed,
        "active": (len(active) if end is None else 0) or None,
        "ready": sum(map(state.is_ready, active)) if end is None else 0,
        "succeeded": counted.succeeded or None,
        "failed": counted.failed or None,
        "uncountedTerminatedPods": {name: uids for name, uids in uncounted.items() if uids},
        "conditions": conditions or None,
    }


def _forgotten_at(job: Object, status: dict[str, Any]) -> int | None:
    """Tell when a Job that is over is to be deleted."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    over = next((entry for entry in status["conditions"] or () if entry["type"] in ("Complete", "Failed")), None)
    return None if seconds is None or over is None else parse_instant(over["lastTransitionTime"]) + int(seconds)
