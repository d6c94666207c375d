"""The decisions of the Job controller: counting ended pods, indexes, pods to create and delete, and the end of a Job.

Each pod is counted exactly once. A finalizer keeps it until it is counted: when it has ended, its uid is written to
`uncountedTerminatedPods`, then the finalizer is removed, then the uid moves into the count. A Job ends in steps too:
first a condition says how it will end, then its pods terminate and are counted, then the final condition is set. Each
step depends only on the stored state, so a crash between two steps changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import parse_instant
from springtide.cluster.resources import Object
from springtide.quantity import whole_number
from springtide.simulator.behaviours import pod_status as state
from springtide.simulator.behaviours.ownership import surplus_pods
from springtide.simulator.behaviours.pod_status import condition, is_true, with_conditions

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True, slots=True)
class PodCount:
    """The ended pods of a Job, counted and not yet counted."""

    succeeded: int
    failed: int
    uncounted_succeeded: tuple[str, ...]
    uncounted_failed: tuple[str, ...]
    release: tuple[Object, ...]
    """Pods whose uids are in the status, and whose finalizer can be removed."""

    @property
    def uncounted(self) -> int:
        """All ended pods that are not counted yet."""
        return len(self.uncounted_succeeded) + len(self.uncounted_failed)

    @property
    def successes(self) -> int:
        """Succeeded pods, counted or not."""
        return self.succeeded + len(self.uncounted_succeeded)

    @property
    def failures(self) -> int:
        """Failed pods, counted or not."""
        return self.failed + len(self.uncounted_failed)


def is_tracked(pod: Object) -> bool:
    """Whether a pod has the tracking finalizer."""
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


def without_finalizer(pod: Object) -> list[str] | None:
    """Return the finalizers without the tracking one."""
    return [one for one in pod["metadata"].get("finalizers") or () if one != FINALIZER] or None


def has_failed(pod: Object) -> bool:
    """Whether a pod counts as failed, including pods that were deleted before they ended."""
    return state.phase(pod) == "Failed" or (state.is_terminating(pod) and state.phase(pod) != "Succeeded")


def count(job: Object, pods: Sequence[Object], indexes: Sequence[int] = ()) -> PodCount:
    """Return the next step of counting; completed `indexes` are not counted again."""
    status = job.get("status") or {}
    written = status.get("uncountedTerminatedPods") or {}
    held = {pod["metadata"]["uid"] for pod in pods if is_tracked(pod)}
    succeeded, failed = list(written.get("succeeded") or ()), list(written.get("failed") or ())
    known = {*succeeded, *failed}
    moved_succeeded = [uid for uid in succeeded if uid not in held]
    moved_failed = [uid for uid in failed if uid not in held]
    release: list[Object] = []
    done: set[int | None] = set(indexes)
    for pod in pods:
        uid = pod["metadata"]["uid"]
        if not is_tracked(pod):
            continue
        if uid in known:
            release.append(pod)
        elif state.phase(pod) == "Succeeded" and (completion_index(pod) is None or completion_index(pod) not in done):
            succeeded.append(uid)
            done.add(completion_index(pod))
        elif has_failed(pod):
            failed.append(uid)
    return PodCount(
        succeeded=int(status.get("succeeded") or 0) + len(moved_succeeded),
        failed=int(status.get("failed") or 0) + len(moved_failed),
        uncounted_succeeded=tuple(uid for uid in succeeded if uid not in moved_succeeded),
        uncounted_failed=tuple(uid for uid in failed if uid not in moved_failed),
        release=tuple(release),
    )


def completion_index(pod: Object) -> int | None:
    """Read the completion index of a pod of an indexed Job."""
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return whole_number(text)


def completed_indexes(text: str) -> list[int]:
    """Parse a list of indexes such as `1,3-5`."""
    indexes: list[int] = []
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        indexes += range(int(first), int(last or first) + 1)
    return indexes


def written_indexes(indexes: Sequence[int]) -> str:
    """Format a list of indexes, with runs of three or more as ranges."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][-1] == index - 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    runs = [(str(run[0]) if len(run) == 1 else f"{run[0]}{',' if len(run) == 2 else '-'}{run[-1]}") for run in parts]
    return ",".join(runs)


def newly_done(pods: Sequence[Object], counted: PodCount, done: list[int]) -> list[int]:
    """Return the indexes whose pods have newly succeeded."""
    fresh = [
        index
        for pod in pods
        if pod["metadata"]["uid"] in counted.uncounted_succeeded and (index := completion_index(pod)) is not None
    ]
    return sorted({*done, *fresh})


def free_indexes(completions: int, done: list[int], active: Sequence[Object]) -> list[int]:
    """List the indexes that are neither complete nor active, in order."""
    taken = {*done, *(completion_index(pod) for pod in active)}
    return [index for index in range(completions) if index not in taken]


_FIRST_WAIT = 10
_LONGEST_WAIT = 600


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The pods to create, delete and release, and the status."""

    create: tuple[int | None, ...]
    """One entry for each pod: its completion index, None for a Job without indexes."""
    delete: tuple[Object, ...]
    release: tuple[Object, ...]
    """Counted pods whose finalizer can be removed."""
    status: dict[str, Any]
    again: int | None
    forget_at: int | None
    """When the finished Job is deleted; None: it stays, or is not finished."""


_TARGETS = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}
"""The interim condition of each final condition."""


@dataclass(frozen=True, slots=True)
class _JobEnd:
    """How a Job ends."""

    type: str
    reason: str
    message: str

    def condition(self, kind: str, at: str) -> Object:
        """Return a condition for this end."""
        return {"type": kind, "status": "True", "reason": self.reason, "message": self.message, "lastProbeTime": at}


def decide(job: Object, pods: Sequence[Object], now: int) -> JobPlan:
    """Return the next step of a Job."""
    spec, status = job["spec"], job.get("status") or {}
    indexed = spec.get("completionMode") == "Indexed"
    done = completed_indexes(str(status.get("completedIndexes") or "")) if indexed else []
    counted = count(job, pods, done)
    if indexed:
        done = newly_done(pods, counted, done)
    active = [pod for pod in pods if state.is_active(pod)]
    end = _recorded_end(job) or _ending(job, counted, active, now)
    suspended = bool(spec.get("suspend"))
    stopping = end is not None or suspended or state.is_terminating(job)
    wanted = 0 if stopping else _wanted(spec, counted, len(active))
    later = [] if stopping else _due_times(job, pods, now)
    missing = 0 if _backs_off_until(pods, now) is not None else max(0, wanted - len(active))
    settled = not active and not counted.uncounted and not any(map(state.is_terminating, pods))
    status_now = _status(job, counted, active, end, _news(job, end, settled, now), now)
    if indexed:
        status_now["completedIndexes"] = written_indexes(done) or None
    return JobPlan(
        create=tuple(free_indexes(int(spec["completions"]), done, active)[:missing]) if indexed else (None,) * missing,
        delete=() if state.is_terminating(job) else tuple(surplus_pods(active, wanted, now)),
        release=counted.release,
        status=status_now,
        again=min(later, default=None),
        forget_at=_ttl_expires_at(job, status_now) if end is not None else None,
    )


def _wanted(spec: Object, counted: PodCount, active: int) -> int:
    """Return how many pods should be active: at most as many as completions are missing.

    Without completions the first success is enough: active pods may finish, and no new ones are created.
    """
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    if completions is None:
        return active if counted.successes else parallelism
    return max(0, min(parallelism, int(completions) - counted.successes))


def _recorded_end(job: Object) -> _JobEnd | None:
    """Return the end that a condition of the Job records, interim or final."""
    for kind, target in _TARGETS.items():
        for told in (kind, target):
            found = condition(job, told)
            if found is not None and found["status"] == "True":
                return _JobEnd(kind, found.get("reason", ""), found.get("message", ""))
    return None


def _ending(job: Object, counted: PodCount, active: Sequence[Object], now: int) -> _JobEnd | None:
    """Return how a Job ends, None while it continues."""
    spec = job["spec"]
    retries = counted.failures + sum(map(state.restarts, active))
    started = (job.get("status") or {}).get("startTime")
    deadline = spec.get("activeDeadlineSeconds")
    if retries > int(spec.get("backoffLimit", 6)):
        return _JobEnd("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    if deadline is not None and started and not spec.get("suspend") and parse_instant(started) + int(deadline) <= now:
        return _JobEnd("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    completions = spec.get("completions")
    reached = counted.successes >= int(completions) if completions is not None else counted.successes and not active
    if reached:
        return _JobEnd("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return None


def _due_times(job: Object, pods: Sequence[Object], now: int) -> list[int]:
    started, deadline = (job.get("status") or {}).get("startTime"), job["spec"].get("activeDeadlineSeconds")
    times = [parse_instant(started) + int(deadline)] if started and deadline is not None else []
    until = _backs_off_until(pods, now)
    return [at for at in [*times, *([until] if until is not None else [])] if at > now]


def _backs_off_until(pods: Sequence[Object], now: int) -> int | None:
    """Return until when pod creation is delayed after failures; each consecutive failure doubles the delay."""
    ends = sorted(at for pod in pods if state.phase(pod) == "Failed" and (at := _ended_at(pod)) is not None)
    if not ends:
        return None
    until = ends[-1] + min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(len(ends) - 1, 10))
    return until if until > now else None


def _ended_at(pod: Object) -> int | None:
    states = [entry.get("state", {}).get("terminated") for entry in pod["status"].get("containerStatuses") or ()]
    return max((parse_instant(ended["finishedAt"]) for ended in states if ended), default=None)


def _news(job: Object, end: _JobEnd | None, settled: bool, now: int) -> Object | None:
    """Return the next condition; `settled`: no pod is active, terminating or uncounted."""
    at = format_instant(now)
    suspended = bool(job["spec"].get("suspend"))
    if end is not None:
        target = _TARGETS[end.type]
        if is_true(job, end.type):
            return None
        if not is_true(job, target):
            return end.condition(target, at)
        return end.condition(end.type, at) if settled else None
    if suspended == is_true(job, "Suspended"):
        return None
    reason, message = ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
    told = {"type": "Suspended", "status": str(suspended), "reason": reason, "message": message}
    return told | {"lastProbeTime": at}


def _status(
    job: Object, counted: PodCount, active: Sequence[Object], end: _JobEnd | None, news: Object | None, now: int
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


def _ttl_expires_at(job: Object, status: dict[str, Any]) -> int | None:
    """Return when the TTL of a finished Job expires."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    over = next((entry for entry in status["conditions"] or () if entry["type"] in ("Complete", "Failed")), None)
    return None if seconds is None or over is None else parse_instant(over["lastTransitionTime"]) + int(seconds)
