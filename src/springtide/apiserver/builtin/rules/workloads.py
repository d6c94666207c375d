"""Validation of workloads: selectors, pod templates, update strategies, and the counters of the status."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from springtide.apiserver.builtin.rules.selectors import label_name, label_selector, labels
from springtide.apiserver.builtin.validation import AT_LEAST_ZERO, ObjectRule, field_of, without_fields
from springtide.apiserver.field_errors import GoStruct, forbidden, invalid, required, unsupported
from springtide.apiserver.names import label_problem
from springtide.apiserver.selectors import selector_of
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object

_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def validate_int_or_percent(value: Any, path: str) -> Iterator[StatusCause]:
    """Validate an int-or-string field: a count, or a percentage."""
    if isinstance(value, int):
        if value < 0:
            yield invalid(path, value, AT_LEAST_ZERO)
    elif value is not None and percent(value) is None:
        yield invalid(path, value, _PERCENT)


def validate_at_most_100_percent(value: Any, path: str) -> Iterator[StatusCause]:
    """Reject percentages above 100 %."""
    if (percent(value) or 0) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def percent(value: Any) -> int | None:
    """Parse a percentage; None if it is not one."""
    if isinstance(value, str) and value.endswith("%") and value[:-1].isascii() and value[:-1].isdecimal():
        # Python refuses to parse thousands of digits; ten are enough to be too many.
        return int(value[:-1].lstrip("0")[:10] or "0")
    return None


def is_zero(value: Any) -> bool:
    """Whether a count or percentage is zero. What cannot be parsed counts as zero."""
    return not (value if isinstance(value, int) else percent(value))


def non_negative_counts(*names: str) -> ObjectRule:
    """Return a rule: these counters of the status must not be negative."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
        status = item.get("status") or {}
        for name in names:
            number = status.get(name)
            if number is not None and number < 0:
                yield invalid(f"status.{name}", number, AT_LEAST_ZERO)

    return rule


def counts_within_replicas(*names: str, ready: str = "readyReplicas") -> ObjectRule:
    """Return a rule: these counters must not exceed `replicas`; messages call the ready counter `ready`."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
        status = item.get("status") or {}
        replicas, available = status.get("replicas") or 0, status.get("availableReplicas") or 0
        for name in names:
            number = status.get(name) or 0
            if number > replicas:
                yield invalid(f"status.{name}", number, "cannot be greater than status.replicas")
        if available > (status.get("readyReplicas") or 0):
            yield invalid("status.availableReplicas", available, f"cannot be greater than {ready}")

    return rule


def never_decreases(name: str) -> ObjectRule:
    """Return a rule: this counter of the status must not decrease."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:
        number = (item.get("status") or {}).get(name) or 0
        if old is not None and number < ((old.get("status") or {}).get(name) or 0):
            yield invalid(f"status.{name}", number, "cannot be decremented")

    return rule


def template_metadata(path: str) -> ObjectRule:
    """Return a rule: the labels and annotations of the pod template at a path must be valid."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
        metadata = field_of(item, f"{path}.metadata") or {}
        yield from labels(metadata.get("labels"), f"{path}.labels")
        for name in metadata.get("annotations") or {}:
            yield from label_name(name.lower(), f"{path}.annotations")

    return rule


_RESTARTS = "spec.template.spec.restartPolicy"


def selector_matches_template(kind: str) -> ObjectRule:
    """Return a rule: the selector must match the labels of the pod template and must not be empty."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
        selector = field_of(item, "spec.selector")
        labels = field_of(item, "spec.template.metadata.labels") or {}
        problems = tuple(label_selector(selector, "spec.selector"))
        yield from problems
        if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
        elif problems:
            yield invalid("spec.selector", selector, "invalid label selector")
        elif selector is None or not selector_of(selector).matches(labels):
            message = "`selector` does not match template `labels`"
            yield invalid("spec.template.metadata.labels", labels or None, message)

    return rule


def pods_always_restart(kind: str) -> ObjectRule:
    """Return a rule: pods must have the restart policy Always; `kind` is the kind that the message names."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
        policy = field_of(item, _RESTARTS)
        if policy is not None and policy != "Always":
            yield unsupported(_RESTARTS, policy, "Always")
        path = "spec.template.spec.activeDeadlineSeconds"
        if field_of(item, path) is not None:
            yield forbidden(path, f"activeDeadlineSeconds in {kind} is not Supported")

    return rule


def pods_run_to_completion(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate the restart policy of a Job: its pods must be able to end."""
    policy = field_of(item, _RESTARTS)
    if policy == "Always":
        yield required(_RESTARTS, 'valid values: "OnFailure", "Never"')
    elif policy is not None and policy not in ("OnFailure", "Never"):
        yield unsupported(_RESTARTS, policy, "OnFailure", "Never")


def map_selector_matches_template(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate the selector of a ReplicationController, which is a plain map."""
    selector = field_of(item, "spec.selector")
    labels = field_of(item, "spec.template.metadata.labels") or {}
    if not selector:
        yield required("spec.selector")
    elif not selector_of(selector).matches(labels):
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def deployment_strategy(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate the strategy of a Deployment."""
    strategy, path = field_of(item, "spec.strategy") or {}, "spec.strategy"
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in ("Recreate", "RollingUpdate"):
        yield unsupported(path, _struct(strategy), "Recreate", "RollingUpdate")
    elif kind == "Recreate" and rolling is not None:
        yield forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    elif rolling is not None:
        unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        yield from validate_int_or_percent(unavailable, f"{path}.rollingUpdate.maxUnavailable")
        yield from validate_int_or_percent(surge, f"{path}.rollingUpdate.maxSurge")
        if is_zero(surge) and is_zero(unavailable):
            message = "may not be 0 when `maxSurge` is 0"
            yield invalid(f"{path}.rollingUpdate.maxUnavailable", unavailable, message)
        yield from validate_at_most_100_percent(unavailable, f"{path}.rollingUpdate.maxUnavailable")
    deadline, wait = field_of(item, "spec.progressDeadlineSeconds"), field_of(item, "spec.minReadySeconds") or 0
    if deadline is not None and deadline <= wait:
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def daemon_set_strategy(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate the update strategy of a DaemonSet: either surge or unavailable pods, not both."""
    strategy, path = field_of(item, "spec.updateStrategy") or {}, "spec.updateStrategy"
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in ("RollingUpdate", "OnDelete"):
        yield unsupported(path, _struct(strategy), "RollingUpdate", "OnDelete")
    elif kind == "RollingUpdate" and rolling is not None:
        unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        for check in (validate_int_or_percent, validate_at_most_100_percent):
            yield from check(unavailable, f"{path}.rollingUpdate.maxUnavailable")
            yield from check(surge, f"{path}.rollingUpdate.maxSurge")
        if not is_zero(unavailable) and not is_zero(surge):
            message = "may not be set when maxUnavailable is non-zero"
            yield invalid(f"{path}.rollingUpdate.maxSurge", surge, message)
        elif is_zero(unavailable) and is_zero(surge):
            yield required(f"{path}.rollingUpdate.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _struct(strategy: Object) -> GoStruct:
    return GoStruct(strategy, type="", rollingUpdate=None)


def stateful_set_strategy(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate the fields of a StatefulSet."""
    spec = item["spec"]
    policy, strategy = spec.get("podManagementPolicy"), spec.get("updateStrategy") or {}
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in ("RollingUpdate", "OnDelete"):
        yield invalid("spec.updateStrategy", _struct(strategy), "must be 'RollingUpdate' or 'OnDelete'")
    elif kind == "OnDelete" and rolling is not None:
        path = "spec.updateStrategy.rollingUpdate"
        shown = GoStruct(rolling, partition=None, maxUnavailable=None)
        yield invalid(path, shown, "only allowed for updateStrategy 'RollingUpdate'")
    elif rolling is not None and (rolling.get("partition") or 0) < 0:
        yield invalid("spec.updateStrategy.rollingUpdate.partition", rolling["partition"], AT_LEAST_ZERO)
    start = field_of(spec, "ordinals.start") or 0
    if start < 0:
        yield invalid("spec.ordinals.start", start, AT_LEAST_ZERO)
    service = spec.get("serviceName")
    if service and (problem := label_problem(service)):
        yield invalid("spec.serviceName", service, problem)


_STATEFUL_SET_FREE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def stateful_set_immutable_fields(item: Object, old: Object | None) -> Iterator[StatusCause]:
    """Reject changes of a StatefulSet other than of the few mutable fields."""
    if old is None or without_fields(item["spec"], _STATEFUL_SET_FREE) == without_fields(
        old["spec"], _STATEFUL_SET_FREE
    ):
        return
    *first, last = (f"'{name}'" for name in _STATEFUL_SET_FREE)
    message = f"updates to statefulset spec for fields other than {', '.join(first)} and {last} are forbidden"
    yield forbidden("spec", message)
