"""Workloads: they find the pods that they make, and can replace them."""

from __future__ import annotations

from collections.abc import Iterator

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import GoStruct, forbidden, invalid, required, unsupported
from springtide.simulator.api.builtin.rules.making import AT_LEAST_ZERO, Rule, field_of, without
from springtide.simulator.api.builtin.rules.shares import count_or_share, is_none, not_more_than_all
from springtide.simulator.api.names import label_problem
from springtide.simulator.api.selectors import selector_of

_RESTARTS = "spec.template.spec.restartPolicy"


def selects_its_template(kind: str) -> Rule:
    """Make a rule: a workload finds the pods that it makes, and not all others as well."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
        selector = field_of(item, "spec.selector")
        labels = field_of(item, "spec.template.metadata.labels") or {}
        if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
        elif selector is None or not selector_of(selector).matches(labels):
            message = "`selector` does not match template `labels`"
            yield invalid("spec.template.metadata.labels", labels or None, message)

    return rule


def runs_on(kind: str) -> Rule:
    """Make a rule: the pods of a workload run until they are told to go; `kind` is who says so."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
        policy = field_of(item, _RESTARTS)
        if policy is not None and policy != "Always":
            yield unsupported(_RESTARTS, policy, "Always")
        path = "spec.template.spec.activeDeadlineSeconds"
        if field_of(item, path) is not None:
            yield forbidden(path, f"activeDeadlineSeconds in {kind} is not Supported")

    return rule


def runs_to_an_end(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    """Judge the pods of a job: they end, so they are not started again whatever happens."""
    policy = field_of(item, _RESTARTS)
    if policy == "Always":
        yield required(_RESTARTS, 'valid values: "OnFailure", "Never"')
    elif policy is not None and policy not in ("OnFailure", "Never"):
        yield unsupported(_RESTARTS, policy, "OnFailure", "Never")


def controller_selects_its_template(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    """Judge a replication controller, whose selector is a plain map."""
    selector = field_of(item, "spec.selector")
    labels = field_of(item, "spec.template.metadata.labels") or {}
    if not selector:
        yield required("spec.selector")
    elif not selector_of(selector).matches(labels):
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def rolls_out(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    """Judge how a deployment replaces its pods: it must be able to."""
    strategy, path = field_of(item, "spec.strategy") or {}, "spec.strategy"
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in ("Recreate", "RollingUpdate"):
        yield unsupported(path, _strategy(strategy), "Recreate", "RollingUpdate")
    elif kind == "Recreate" and rolling is not None:
        yield forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    elif rolling is not None:
        unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        yield from count_or_share(unavailable, f"{path}.rollingUpdate.maxUnavailable")
        yield from count_or_share(surge, f"{path}.rollingUpdate.maxSurge")
        if is_none(surge) and is_none(unavailable):
            message = "may not be 0 when `maxSurge` is 0"
            yield invalid(f"{path}.rollingUpdate.maxUnavailable", unavailable, message)
        yield from not_more_than_all(unavailable, f"{path}.rollingUpdate.maxUnavailable")
    deadline, wait = field_of(item, "spec.progressDeadlineSeconds"), field_of(item, "spec.minReadySeconds") or 0
    if deadline is not None and deadline <= wait:
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def daemon_set_rolls_out(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    """Judge how a daemon set replaces its pods: either new ones come first, or old ones go first."""
    strategy, path = field_of(item, "spec.updateStrategy") or {}, "spec.updateStrategy"
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in ("RollingUpdate", "OnDelete"):
        yield unsupported(path, _strategy(strategy), "RollingUpdate", "OnDelete")
    elif kind == "RollingUpdate" and rolling is not None:
        unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        for judged in (count_or_share, not_more_than_all):
            yield from judged(unavailable, f"{path}.rollingUpdate.maxUnavailable")
            yield from judged(surge, f"{path}.rollingUpdate.maxSurge")
        if not is_none(unavailable) and not is_none(surge):
            message = "may not be set when maxUnavailable is non-zero"
            yield invalid(f"{path}.rollingUpdate.maxSurge", surge, message)
        elif is_none(unavailable) and is_none(surge):
            yield required(f"{path}.rollingUpdate.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _strategy(strategy: Object) -> GoStruct:
    return GoStruct(strategy, type="", rollingUpdate=None)


def stateful_set_rolls_out(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    """Judge how a stateful set makes and replaces its pods."""
    spec = item["spec"]
    policy, strategy = spec.get("podManagementPolicy"), spec.get("updateStrategy") or {}
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in ("RollingUpdate", "OnDelete"):
        yield invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'")
    elif kind == "OnDelete" and rolling is not None:
        path = "spec.updateStrategy.rollingUpdate"
        yield invalid(path, rolling, "only allowed for updateStrategy 'RollingUpdate'")
    elif rolling is not None and (rolling.get("partition") or 0) < 0:
        yield invalid("spec.updateStrategy.rollingUpdate.partition", rolling["partition"], AT_LEAST_ZERO)
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


def stateful_set_keeps_the_rest(item: Object, old: Object | None) -> Iterator[Cause]:
    """Judge a change of a stateful set: most of it is settled when it is made."""
    if old is None or without(item["spec"], _STATEFUL_SET_FREE) == without(old["spec"], _STATEFUL_SET_FREE):
        return
    *first, last = (f"'{name}'" for name in _STATEFUL_SET_FREE)
    message = f"updates to statefulset spec for fields other than {', '.join(first)} and {last} are forbidden"
    yield forbidden("spec", message)
