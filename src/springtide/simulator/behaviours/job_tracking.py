"""Counting the pods of a Job exactly once, whatever becomes of them and of whoever counts.

A pod of a Job cannot vanish before it is counted: a finalizer holds it. When it has ended, its uid is first written
into the Job's status as not yet counted; then the finalizer goes; then, the finalizer being gone, the uid moves into
the count. Each step follows from the state alone, so that a crash between any two of them changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from springtide.cluster.resources import Object
from springtide.simulator.behaviours import pods as state

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True, slots=True)
class Count:
    """How many pods of a Job have ended, and how far their counting is."""

    succeeded: int
    failed: int
    uncounted_succeeded: tuple[str, ...]
    uncounted_failed: tuple[str, ...]
    release: tuple[Object, ...]
    """Pods that are written down, and whose finalizer may go."""

    @property
    def uncounted(self) -> int:
        """All that have ended and are not counted yet."""
        return len(self.uncounted_succeeded) + len(self.uncounted_failed)

    @property
    def successes(self) -> int:
        """All that succeeded, counted or not."""
        return self.succeeded + len(self.uncounted_succeeded)

    @property
    def failures(self) -> int:
        """All that failed, counted or not."""
        return self.failed + len(self.uncounted_failed)


def is_tracked(pod: Object) -> bool:
    """Tell whether a pod is held until it is counted."""
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


def without_finalizer(pod: Object) -> list[str] | None:
    """Give the finalizers of a pod that is not held any more."""
    return [one for one in pod["metadata"].get("finalizers") or () if one != FINALIZER] or None


def has_failed(pod: Object) -> bool:
    """Tell whether a pod counts as failed: also one that was deleted before it ended."""
    return state.phase(pod) == "Failed" or (state.is_terminating(pod) and state.phase(pod) != "Succeeded")


def count(job: Object, pods: Sequence[Object], indexes: Sequence[int] = ()) -> Count:
    """Take the next step of counting; `indexes` that are complete already are not counted again."""
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
    return Count(
        succeeded=int(status.get("succeeded") or 0) + len(moved_succeeded),
        failed=int(status.get("failed") or 0) + len(moved_failed),
        uncounted_succeeded=tuple(uid for uid in succeeded if uid not in moved_succeeded),
        uncounted_failed=tuple(uid for uid in failed if uid not in moved_failed),
        release=tuple(release),
    )


def completion_index(pod: Object) -> int | None:
    """Read the index of a pod of a Job whose completions have one each."""
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(text) if text.isdecimal() else None
