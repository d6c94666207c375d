"""The HorizontalPodAutoscaler controller: every 15 seconds it reads metrics and sets the scale."""

from __future__ import annotations

from typing import Any, ClassVar

from springtide.apis.forecast import format_instant
from springtide.apiserver.selectors import LabelSelector, parse_labels
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Cached, Controller, Permission, Result, Watch, cache_only
from springtide.cluster.errors import ApiError, Conflict
from springtide.cluster.events import normal, warning
from springtide.cluster.kinds import DEFINITIONS
from springtide.cluster.resources import PODS, Key, Object, Resource, Selection
from springtide.simulator.behaviours.autoscaling.decision import (
    RecommendationHistory,
    condition_message,
    decide,
    longest_period,
)
from springtide.simulator.behaviours.autoscaling.metrics import Metrics, NoPodMetrics
from springtide.simulator.behaviours.autoscaling.proposals import ScaledWorkload
from springtide.simulator.behaviours.ownership import write_status
from springtide.simulator.behaviours.pod_status import with_conditions
from springtide.simulator.behaviours.resources import IN_NAMESPACE, grouped, resource_of

AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
PERIOD = 15
"""Seconds between two evaluations."""

_ALL_AUTOSCALERS = Cached(Selection(AUTOSCALERS))
_PODS_BY_NAMESPACE = grouped(PODS)
_REACHED = condition_message(
    "AbleToScale", True, "SucceededGetScale", "the HPA controller was able to get the target's current scale"
)


class _Unscalable(Exception):
    """The target cannot be scaled; `condition` says why."""

    def __init__(self, message: str, condition: Object) -> None:
        super().__init__(message)
        self.condition = condition

    @classmethod
    def unreachable(cls, message: str) -> _Unscalable:
        """Return the error of a scale that cannot be read."""
        words = f"the HPA controller was unable to get the target's current scale: {message}"
        return cls(message, condition_message("AbleToScale", False, "FailedGetScale", words))


class HorizontalPodAutoscalers(Controller):
    """The HPA controller; a subclass sets `metrics`."""

    name = "horizontal-pod-autoscaler"
    watches = (
        Watch(_ALL_AUTOSCALERS),
        Watch(_PODS_BY_NAMESPACE, cache_only),
        Watch(DEFINITIONS, cache_only),
    )
    permissions = (
        Permission(AUTOSCALERS, ("get", "list", "watch")),
        Permission(AUTOSCALERS, ("patch",), "status"),
        Permission(PODS, ("get", "list", "watch")),
        Permission(DEFINITIONS.selection.resource, ("get", "list", "watch")),
    )
    metrics: ClassVar[Metrics] = NoPodMetrics()

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._due: dict[Key, int] = {}
        self._histories: dict[Key, RecommendationHistory] = {}
        self._selectors: dict[Key, LabelSelector] = {}

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Evaluate the metrics when due; changes of the object in between do not trigger an evaluation."""
        autoscaler = self.context.store(_ALL_AUTOSCALERS).get(key)
        if autoscaler is None:
            self._due.pop(key, None)
            self._histories.pop(key, None)
            self._selectors.pop(key, None)
            return None
        due = self._due.setdefault(key, now + PERIOD)
        if now < due:
            return Result(requeue_at=due)
        await self._evaluate(key, autoscaler, now)
        self._due[key] = now + PERIOD
        return Result(requeue_at=now + PERIOD)

    async def _evaluate(self, key: Key, autoscaler: Object, now: int) -> None:
        try:
            resource, scale, workload = await self._target(key, autoscaler["spec"]["scaleTargetRef"])
        except _Unscalable as problem:
            notice = warning(problem.condition["reason"], str(problem))
            self.context.events.record(AUTOSCALERS, autoscaler, notice)
            await self._write(autoscaler, {}, (problem.condition,), now)
            return
        history = self._histories.setdefault(key, RecommendationHistory())
        decision = decide(autoscaler["spec"], workload, self.metrics, history, now)
        if decision.failure:
            notice = warning("FailedComputeMetricsReplicas", decision.failure)
            self.context.events.record(AUTOSCALERS, autoscaler, notice)
        conditions = {condition["type"]: condition for condition in (_REACHED, *decision.conditions)}
        current = workload.replicas
        status: dict[str, Any] = {"currentReplicas": current, "currentMetrics": list(decision.metrics) or None}
        if decision.replicas == current:
            status["desiredReplicas"] = current
        elif decision.replicas is not None:
            failure = await self._rescale(resource, scale, decision.replicas, decision.because)
            conditions["AbleToScale"] = self._tell(autoscaler, decision.replicas, decision.because, failure)
            if failure is None:
                keep = longest_period(autoscaler["spec"], up=decision.replicas > current)
                history.rescale(now, current, decision.replicas, keep=keep)
                status |= {"desiredReplicas": decision.replicas, "lastScaleTime": format_instant(now)}
        await self._write(autoscaler, status, tuple(conditions.values()), now)

    async def _target(self, key: Key, reference: Object) -> tuple[Resource, Object, ScaledWorkload]:
        """Return the resource, scale and pods of the target."""
        resource = resource_of(self.context, reference)
        if resource is None:
            kind, version = reference["kind"], reference.get("apiVersion", "")
            raise _Unscalable.unreachable(f'no matches for kind "{kind}" in version "{version}"')
        try:
            scale = await self.context.client.get(resource, Key(key.namespace, reference["name"]), subresource="scale")
        except ApiError as failure:
            raise _Unscalable.unreachable(failure.message) from failure
        status = scale.get("status") or {}
        text = status.get("selector")
        if not text:
            words = "the HPA target's scale is missing a selector"
            raise _Unscalable(
                "selector is required", condition_message("ScalingActive", False, "InvalidSelector", words)
            )
        selector = self._selectors[key] = parse_labels(text)
        everybody = self.context.store(_PODS_BY_NAMESPACE).by(IN_NAMESPACE, key.namespace)
        pods = tuple(pod for pod in everybody if selector.matches(pod["metadata"].get("labels")))
        conflicting = self._conflicting_autoscalers(key.namespace, pods)
        if len(conflicting) > 1:
            named = " ".join(str(rival) for rival in conflicting)
            words = f"pods by selector {text} are controlled by multiple HPAs: [{named}]"
            raise _Unscalable(words, condition_message("ScalingActive", False, "AmbiguousSelector", words))
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        return resource, scale, ScaledWorkload(key.namespace, int(replicas), int(status.get("replicas", 0)), pods)

    def _conflicting_autoscalers(self, namespace: str, pods: tuple[Object, ...]) -> list[Key]:
        """Return all autoscalers whose selectors match some of these pods."""
        return [
            key
            for key, selector in sorted(self._selectors.items(), key=lambda entry: entry[0])
            if key.namespace == namespace and any(selector.matches(pod["metadata"].get("labels")) for pod in pods)
        ]

    async def _rescale(self, resource: Resource, scale: Object, replicas: int, because: str) -> ApiError | None:
        """Set the scale; return the error if that failed."""
        try:
            await self.context.client.scale(resource, replicas, of=scale, because=because)
        except Conflict:
            # A conflict: another client has written the scale. Evaluate again soon.
            raise
        except ApiError as failure:
            return failure
        return None

    def _tell(self, autoscaler: Object, replicas: int, because: str, failure: ApiError | None) -> Object:
        """Record an event about a new size, and return the condition."""
        size = f"New size: {replicas}; reason: {because}"
        if failure is not None:
            notice = warning("FailedRescale", f"{size}; error: {failure.message}")
            self.context.events.record(AUTOSCALERS, autoscaler, notice)
            message = f"the HPA controller was unable to update the target scale: {failure.message}"
            return condition_message("AbleToScale", False, "FailedUpdateScale", message)
        self.context.events.record(AUTOSCALERS, autoscaler, normal("SuccessfulRescale", size))
        message = f"the HPA controller was able to update the target scale to {replicas}"
        return condition_message("AbleToScale", True, "SucceededRescale", message)

    async def _write(self, autoscaler: Object, status: dict[str, Any], wanted: tuple[Object, ...], now: int) -> None:
        present = (autoscaler.get("status") or {}).get("conditions")
        conditions = with_conditions(present, wanted, format_instant(now))
        status = {**status, "conditions": conditions}
        await write_status(self.context, AUTOSCALERS, autoscaler, status, because="the metrics were evaluated")
