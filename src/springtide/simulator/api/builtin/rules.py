"""Rules between fields, and between an object and what it was before: those that users run into.

They are asked only about objects whose fields have the declared types. Wordings are those of kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import forbidden, invalid, required, unsupported
from springtide.simulator.api.builtin.pod_rules import pod_keeps_its_spec
from springtide.simulator.api.selectors import selector_of

Rule: TypeAlias = Callable[[Object, Object | None], Iterable[Cause]]

_AT_LEAST_ZERO = "must be greater than or equal to 0"
_IMMUTABLE = "field is immutable"


def _field(item: Object | None, path: str) -> Any:
    found: Any = item
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def not_negative(*paths: str) -> Rule:
    """Make a rule: these numbers are never negative."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
        for path in paths:
            number = _field(item, path)
            if isinstance(number, int) and number < 0:
                yield invalid(path, number, _AT_LEAST_ZERO)

    return rule


def fixed(*paths: str) -> Rule:
    """Make a rule: these fields never change."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:
        if old is None:
            return
        for path in paths:
            value = _field(item, path)
            if value != _field(old, path):
                yield invalid(path, value, _IMMUTABLE)

    return rule


def _selects_its_template(kind: str) -> Rule:
    """Make a rule: a workload finds the pods that it makes, and not all others as well."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
        selector = _field(item, "spec.selector")
        if selector is None:
            return
        labels = _field(item, "spec.template.metadata.labels") or {}
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
        elif not selector_of(selector).matches(labels):
            message = "`selector` does not match template `labels`"
            yield invalid("spec.template.metadata.labels", labels, message)

    return rule


def _restarts(*supported: str) -> Rule:
    """Make a rule: the pods of a workload are restarted in one of these ways."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
        path = "spec.template.spec.restartPolicy"
        policy = _field(item, path)
        if policy is not None and policy not in supported:
            yield unsupported(path, policy, *supported)

    return rule


def _controller_selects_its_template(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    """Judge a replication controller, whose selector is a plain map."""
    selector = _field(item, "spec.selector")
    labels = _field(item, "spec.template.metadata.labels") or {}
    if not selector:
        yield required("spec.selector")
    elif not selector_of(selector).matches(labels):
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def _rolls_out(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    """Judge how a deployment replaces its pods: it must be able to."""
    strategy = _field(item, "spec.strategy") or {}
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in ("Recreate", "RollingUpdate"):
        yield unsupported("spec.strategy.type", kind, "Recreate", "RollingUpdate")
    elif kind == "Recreate" and rolling is not None:
        path = "spec.strategy.rollingUpdate"
        yield forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
    elif rolling is not None and _is_none(rolling.get("maxSurge")) and _is_none(rolling.get("maxUnavailable")):
        path = "spec.strategy.rollingUpdate.maxUnavailable"
        yield invalid(path, rolling.get("maxUnavailable"), "may not be 0 when `maxSurge` is 0")
    deadline, wait = _field(item, "spec.progressDeadlineSeconds"), _field(item, "spec.minReadySeconds") or 0
    if deadline is not None and deadline <= wait:
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _is_none(amount: Any) -> bool:
    return amount in (0, "0%", None)


_STATEFUL_SET_FREE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def _stateful_set_keeps_the_rest(item: Object, old: Object | None) -> Iterator[Cause]:
    if old is None or _rest(item["spec"], _STATEFUL_SET_FREE) == _rest(old["spec"], _STATEFUL_SET_FREE):
        return
    *first, last = (f"'{name}'" for name in _STATEFUL_SET_FREE)
    message = f"updates to statefulset spec for fields other than {', '.join(first)} and {last} are forbidden"
    yield forbidden("spec", message)


def _rest(spec: Object, free: tuple[str, ...]) -> Object:
    return {name: value for name, value in spec.items() if name not in free}


def _job_keeps_its_pods(item: Object, old: Object | None) -> Iterator[Cause]:
    """Judge a change of a job: its template stays, but for where pods may run while it has not begun."""
    if old is None:
        return
    template, before = _field(item, "spec.template"), _field(old, "spec.template")
    if template == before:
        return
    waiting = _field(old, "spec.suspend") is True and _field(old, "status.startTime") is None
    if not waiting or _without_placement(template) != _without_placement(before):
        yield invalid("spec.template", template, _IMMUTABLE)


def _without_placement(template: Object) -> tuple[Object, Object]:
    free = ("affinity", "nodeSelector", "schedulingGates", "tolerations")
    metadata = _rest(template.get("metadata") or {}, ("annotations", "labels"))
    return metadata, _rest(template.get("spec") or {}, free)


def _completions_fixed(item: Object, old: Object | None) -> Iterator[Cause]:
    """Judge a change of a job's completions: only an indexed job grows or shrinks, together with its parallelism."""
    if old is None:
        return
    wanted = _field(item, "spec.completions")
    if wanted == _field(old, "spec.completions"):
        return
    elastic = _field(item, "spec.completionMode") == "Indexed" and wanted == _field(item, "spec.parallelism")
    if not elastic or wanted is None:
        yield invalid("spec.completions", wanted, _IMMUTABLE)


def _autoscaler_bounds(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    least, most = _field(item, "spec.minReplicas"), _field(item, "spec.maxReplicas")
    if least is not None and least < 1:
        yield invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if most is None:
        return
    if most == 0:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
    if least is not None and most < least:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")


def _budget_has_one_bound(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    spec = item.get("spec") or {}
    bounds = ("minAvailable", "maxUnavailable")
    if all(spec.get(name) is not None for name in bounds):
        yield invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for name in bounds:
        bound = spec.get(name)
        if isinstance(bound, int):
            if bound < 0:
                yield invalid(f"spec.{name}", bound, _AT_LEAST_ZERO)
        elif bound is not None and not (bound.endswith("%") and bound[:-1].isdecimal()):
            expected = "a valid percent string must be a numeric string followed by an ending '%'"
            yield invalid(
                f"spec.{name}", bound, f"{expected} (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            )
        elif bound is not None and int(bound[:-1]) > 100:
            yield invalid(f"spec.{name}", bound, "must not be greater than 100%")


def _sealed(*paths: str) -> Rule:
    """Make a rule: an object that says `immutable` keeps these fields."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:
        if old is None or not old.get("immutable"):
            return
        for path in ("immutable", *paths):
            if item.get(path) != old.get(path):
                yield forbidden(path, "field is immutable when `immutable` is set")

    return rule


def _priority_stays(item: Object, old: Object | None) -> Iterator[Cause]:
    if old is not None and item.get("value", 0) != old.get("value", 0):
        yield forbidden("value", "may not be changed in an update.")


def _claim_stays(item: Object, old: Object | None) -> Iterator[Cause]:
    """Judge a change of a claim: it is bound to a volume, it may grow, and that is all."""
    if old is None:
        return
    free = ("resources", "volumeAttributesClassName") + (() if _field(old, "spec.volumeName") else ("volumeName",))
    if _rest(item["spec"], free) != _rest(old["spec"], free):
        message = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden("spec", message)


RULES: dict[str, tuple[Rule, ...]] = {
    "ConfigMap": (_sealed("data", "binaryData"),),
    "ControllerRevision": (fixed("data"), not_negative("revision")),
    "DaemonSet": (
        _selects_its_template("daemonset"),
        _restarts("Always"),
        fixed("spec.selector"),
        not_negative("spec.minReadySeconds", "spec.revisionHistoryLimit"),
    ),
    "Deployment": (
        not_negative("spec.replicas", "spec.minReadySeconds", "spec.revisionHistoryLimit"),
        _selects_its_template("deployment"),
        _restarts("Always"),
        _rolls_out,
        fixed("spec.selector"),
    ),
    "HorizontalPodAutoscaler": (_autoscaler_bounds,),
    "Job": (
        not_negative("spec.parallelism", "spec.completions", "spec.backoffLimit", "spec.ttlSecondsAfterFinished"),
        _restarts("OnFailure", "Never"),
        fixed("spec.selector", "spec.completionMode", "spec.podFailurePolicy", "spec.managedBy", "spec.successPolicy"),
        _completions_fixed,
        _job_keeps_its_pods,
    ),
    "PersistentVolumeClaim": (_claim_stays,),
    "Pod": (pod_keeps_its_spec,),
    "PodDisruptionBudget": (_budget_has_one_bound,),
    "PriorityClass": (_priority_stays,),
    "ReplicaSet": (
        not_negative("spec.replicas", "spec.minReadySeconds"),
        # The server's own words: they name the kind that replica sets are made by.
        _selects_its_template("deployment"),
        _restarts("Always"),
        fixed("spec.selector"),
    ),
    "ReplicationController": (
        not_negative("spec.replicas", "spec.minReadySeconds"),
        _controller_selects_its_template,
        _restarts("Always"),
    ),
    "Secret": (_sealed("data"), fixed("type")),
    "StatefulSet": (
        not_negative("spec.replicas", "spec.minReadySeconds"),
        _selects_its_template("statefulset"),
        _restarts("Always"),
        _stateful_set_keeps_the_rest,
    ),
    "StorageClass": (fixed("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),),
}
"""The rules of each kind, in the order in which their causes are listed."""
