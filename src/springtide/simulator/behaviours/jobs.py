"""The Job controller: runs pods until enough have succeeded or too many have failed."""

from __future__ import annotations

from itertools import islice

from springtide.cluster.controller import Controller, Permission, Result, Watch
from springtide.cluster.errors import NotFound
from springtide.cluster.resources import PODS, Key, Object, key_of
from springtide.cluster.transport import Patch, Propagation
from springtide.simulator.behaviours.job_decisions import (
    FINALIZER,
    INDEX,
    JobPlan,
    decide,
    is_tracked,
    without_finalizer,
)
from springtide.simulator.behaviours.ownership import (
    children_of,
    create_once,
    delete_pod,
    free_names,
    pod_exists,
    pod_from,
    write_status,
)
from springtide.simulator.behaviours.resources import ALL_PODS, JOBS, UNCONTROLLED, controller_of, owned, to_controller


def make_pod(job: Object, name: str, index: int | None) -> Object:
    """Create a pod body of a Job, with the tracking finalizer."""
    pod = pod_from(job["spec"]["template"], job, JOBS, name)
    metadata = pod["metadata"]
    metadata["finalizers"].append(FINALIZER)
    metadata["labels"] |= {
        "batch.kubernetes.io/controller-uid": job["metadata"]["uid"],
        "batch.kubernetes.io/job-name": job["metadata"]["name"],
        "controller-uid": job["metadata"]["uid"],
        "job-name": job["metadata"]["name"],
    }
    if index is not None:
        metadata["labels"][INDEX] = metadata["annotations"][INDEX] = str(index)
    return pod


class Jobs(Controller):
    """The Job controller."""

    name = "job"
    watches = (Watch(owned(JOBS)), Watch(ALL_PODS, to_controller("Job")))
    permissions = (
        Permission(JOBS, ("get", "list", "watch", "delete")),
        Permission(JOBS, ("patch",), "status"),
        Permission(PODS, ("get", "list", "watch", "create", "patch", "delete")),
    )
    workers = 4

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Take one step: count, create and delete pods, and write the status."""
        job = self.context.store(self.watches[0].cached).get(key)
        pods = children_of(self.context, ALL_PODS, "Job", key)
        uid = job["metadata"]["uid"] if job is not None else ""
        orphans = self.context.store(ALL_PODS).by(UNCONTROLLED, key.namespace)
        for pod in [*orphans, *pods]:
            if is_tracked(pod) and (controller_of(pod) or {}).get("uid") != uid:
                await self._release(pod, "its Job is gone")
        if job is None:
            return None
        mine = [pod for pod in pods if (controller_of(pod) or {})["uid"] == uid]
        plan = decide(job, mine, now)
        if plan.forget_at is not None and plan.forget_at <= now:
            because = f"the Job finished {job['spec'].get('ttlSecondsAfterFinished')} s"
            await self.context.client.delete(JOBS, of=job, because=because, propagation=Propagation.BACKGROUND)
            return None
        await self._act(job, plan)
        await write_status(self.context, JOBS, job, plan.status, because="the pods of the Job have changed")
        # Finalizers are removed only after the uids are written to the status.
        for pod in plan.release:
            await self._release(pod, "it is counted")
        later = [at for at in (plan.again, plan.forget_at) if at is not None]
        return Result(requeue_at=min(later)) if later else None

    async def _act(self, job: Object, plan: JobPlan) -> None:
        name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
        names = free_names(job, lambda taken: pod_exists(self.context, namespace, taken))
        for index, pod_name in zip(plan.create, islice(names, len(plan.create)), strict=True):
            because = f"Job {name} has too few succeeded and active pods"
            await create_once(self.context, PODS, make_pod(job, pod_name, index), because=because)
        for pod in plan.delete:
            # Released first, so that the deletion does not count as a failure.
            await self._release(pod, f"Job {name} no longer needs it")
            await delete_pod(self.context, pod, because=f"Job {name} no longer needs it")

    async def _release(self, pod: Object, because: str) -> None:
        change = Patch.merge({"metadata": {"finalizers": without_finalizer(pod)}})
        try:
            await self.context.client.patch(PODS, change, of=pod, because=because)
        except NotFound:
            self.context.log.info("pod %s is gone", key_of(pod))
