"""Validation of pods and pod templates, and of updates of pods: few fields of a pod can be changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from springtide.apiserver import pods
from springtide.apiserver.builtin.rules.containers import container, host_ports, report, user_and_group
from springtide.apiserver.builtin.rules.resources import (
    container_resource,
    pod_resource,
    validate_quantities,
    validate_requirements,
)
from springtide.apiserver.builtin.rules.selectors import label_name, label_selector, labels, requirement_values
from springtide.apiserver.builtin.rules.volumes import volumes
from springtide.apiserver.builtin.validation import ObjectRule, entries, field_of, without_fields
from springtide.apiserver.field_errors import duplicate, forbidden, invalid, required, unsupported
from springtide.apiserver.names import label_problem, label_value_problem, qualified_name_problem, subdomain_problem
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object

_MAX_SECONDS = 2**31 - 1
_REQUIRED_DURING = "requiredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = f"affinity.nodeAffinity.{_REQUIRED_DURING}"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def valid_pod_spec(path: str) -> ObjectRule:
    """Return a rule: the pod spec at a path must be valid."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:
        spec = field_of(item, path)
        if spec is not None and spec != field_of(old, path):
            claims = field_of(item, "spec.volumeClaimTemplates") or ()
            yield from _pod(spec, path, [field_of(claim, "metadata.name") for claim in claims])

    return rule


def _pod(spec: Object, path: str, claims: list[str]) -> Iterator[StatusCause]:
    """Validate a pod spec; `claims` are the names of volume claim templates, which replace volumes of the same name."""
    causes, names = volumes(spec, path)
    yield from causes
    mountable, taken = {*names, *claims}, set()
    for group in ("containers", "initContainers"):
        listed = list(entries(spec, group))
        for index, holder in listed:
            here = f"{path}.{group}[{index}]"
            yield from container(holder, mountable, here)
            name = holder.get("name")
            if name and name in taken:
                yield duplicate(f"{here}.name", name)
            taken.add(name)
        yield from host_ports(listed, f"{path}.{group}")
    yield from _host_network(spec, path)
    yield from _names(spec, path)
    yield from validate_requirements(spec.get("resources"), f"{path}.resources", pod_resource)
    yield from labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from user_and_group(spec.get("securityContext"), f"{path}.securityContext")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MAX_SECONDS:
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, f"must be between 1 and {_MAX_SECONDS}, inclusive")
    for index, toleration in entries(spec, "tolerations"):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")
    for index, constraint in entries(spec, "topologySpreadConstraints"):
        if (skew := constraint.get("maxSkew")) is not None and skew <= 0:
            here = f"{path}.topologySpreadConstraints[{index}].maxSkew"
            yield invalid(here, skew, "must be greater than zero")
        if not constraint.get("topologyKey"):
            yield required(f"{path}.topologySpreadConstraints[{index}].topologyKey", "can not be empty")
    yield from _node_affinity(spec, path)
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity(field_of(spec, f"affinity.{kind}") or {}, f"{path}.affinity.{kind}")
    # The server validates overhead with the messages for limits.
    yield from validate_quantities(spec.get("overhead"), f"{path}.overhead.limits", container_resource)


def _host_network(spec: Object, path: str) -> Iterator[StatusCause]:
    """Validate that ports of the node are those of the container; a template may leave them out."""
    for index, holder in entries(spec, "containers") if spec.get("hostNetwork") else ():
        for number, port in entries(holder, "ports"):
            given = port.get("hostPort")
            if given and given != port.get("containerPort"):
                here = f"{path}.containers[{index}].ports[{number}].hostPort"
                yield invalid(here, given, "must match `containerPort` when `hostNetwork` is true")


def _names(spec: Object, path: str) -> Iterator[StatusCause]:
    for field in ("hostname", "subdomain"):
        yield from report(label_problem, spec.get(field) or "", f"{path}.{field}")
    yield from report(subdomain_problem, spec.get("serviceAccountName") or "", f"{path}.serviceAccountName")
    if spec.get("dnsPolicy") == "None":
        if (config := spec.get("dnsConfig")) is None:
            yield required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
        elif not config.get("nameservers"):
            message = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{path}.dnsConfig.nameservers", message)


def _pod_affinity(affinity: Object, path: str) -> Iterator[StatusCause]:
    for index, term in entries(affinity, _REQUIRED_DURING):
        yield from _affinity_term(term, f"{path}.{_REQUIRED_DURING}[{index}]")
    for index, preferred in entries(affinity, _PREFERRED):
        here, weight = f"{path}.{_PREFERRED}[{index}]", preferred.get("weight") or 0
        if not 1 <= weight <= 100:
            yield invalid(f"{here}.weight", weight, "must be in the range 1-100")
        yield from _affinity_term(preferred.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm")


def _affinity_term(term: Object, path: str) -> Iterator[StatusCause]:
    yield from label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    key = term.get("topologyKey") or ""
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from label_name(key, f"{path}.topologyKey")


def _node_affinity(spec: Object, path: str) -> Iterator[StatusCause]:
    for index, term in entries(field_of(spec, _REQUIRED) or {}, "nodeSelectorTerms"):
        for number, requirement in entries(term, "matchExpressions"):
            here = f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}].matchExpressions[{number}]"
            yield from _requirement(requirement, here)
    for index, preferred in entries(field_of(spec, "affinity.nodeAffinity") or {}, _PREFERRED):
        here = f"{path}.affinity.nodeAffinity.{_PREFERRED}[{index}]"
        weight = preferred.get("weight") or 0
        if not 1 <= weight <= 100:
            yield invalid(f"{here}.weight", weight, "must be in the range 1-100")
        for number, requirement in entries(preferred.get("preference") or {}, "matchExpressions"):
            yield from _requirement(requirement, f"{here}.preference.matchExpressions[{number}]")


def _requirement(requirement: Object, path: str) -> Iterator[StatusCause]:
    yield from requirement_values(requirement, path, compared=True)
    yield from report(qualified_name_problem, requirement.get("key") or "", f"{path}.key")


def _toleration(toleration: Object, path: str) -> Iterator[StatusCause]:
    key, value = toleration.get("key") or "", toleration.get("value") or ""
    operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
    if key:
        yield from report(qualified_name_problem, key, f"{path}.key")
    elif operator != "Exists":
        message = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, message)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("", "Equal"):
        yield from report(label_value_problem, value, f"{path}.operator")
    elif operator == "Exists":
        if value:
            yield invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        supported = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
        yield unsupported(f"{path}.operator", operator, *supported)


_CONTAINERS = ("containers", "initContainers")
_MUTABLE = ("activeDeadlineSeconds", "ephemeralContainers", "schedulingGates", "tolerations")
_MUTABLE_PATHS = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
_REQUIRED_TERMS = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def immutable_pod_spec(pod: Object, old: Object | None) -> Iterator[StatusCause]:
    """Reject changes of a pod other than of images, deadline, tolerations and scheduling gates."""
    if old is None:
        return
    spec, before = pod["spec"], old["spec"]
    for name in _CONTAINERS:
        if len(spec.get(name) or ()) != len(before.get(name) or ()):
            yield forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
    yield from _deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    yield from _tolerations(spec.get("tolerations") or [], before.get("tolerations") or [])
    yield from _gates(spec.get("schedulingGates") or [], before.get("schedulingGates") or [])
    if before.get("schedulingGates"):
        yield from _narrowed_placement(spec, before)
    if _immutable_part(pod, before) != _immutable_part(old, before):
        yield forbidden("spec", f"pod updates may not change fields other than {','.join(_MUTABLE_PATHS)}")


def _deadline(new: int | None, old: int | None) -> Iterator[StatusCause]:
    path = "spec.activeDeadlineSeconds"
    if new is None and old is not None:
        yield invalid(path, None, "must not update from a positive integer to nil value")
    elif new is not None and old is not None and new > old:
        yield invalid(path, new, "must be less than or equal to previous value")


def _tolerations(new: list[Any], old: list[Any]) -> Iterator[StatusCause]:
    """Validate tolerations: an update may add some and change `tolerationSeconds`."""
    tolerated = [without_fields(toleration, ("tolerationSeconds",)) for toleration in new]
    if any(without_fields(toleration, ("tolerationSeconds",)) not in tolerated for toleration in old):
        yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _gates(new: list[Any], old: list[Any]) -> Iterator[StatusCause]:
    known = [gate["name"] for gate in old]
    for index, gate in enumerate(new):
        if gate["name"] not in known:
            path = f"spec.schedulingGates[{index}].name"
            yield forbidden(path, f"only deletion is allowed, but found new scheduling gate '{gate['name']}'")


def _narrowed_placement(spec: Object, before: Object) -> Iterator[StatusCause]:
    """Validate node selector and affinity of a gated pod: an update may narrow them but not widen them."""
    selector, had = spec.get("nodeSelector") or None, before.get("nodeSelector") or {}
    if any((selector or {}).get(name) != value for name, value in had.items()):
        message = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid("spec.nodeSelector", selector, message)
    terms, known = field_of(spec, _REQUIRED_TERMS), field_of(before, _REQUIRED_TERMS)
    if not known or terms == known:
        return
    path = f"spec.{_REQUIRED_TERMS}"
    if len(terms or ()) != len(known):
        yield invalid(path, terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (term, was) in enumerate(zip(terms, known, strict=True)):
        if not _only_grows(term, was):
            yield invalid(f"{path}[{index}]", term, "only additions are allowed (no mutations or deletions)")


def _only_grows(term: Object, was: Object) -> bool:
    """Whether a term keeps all its requirements, in order. A term without requirements cannot change."""
    parts = [(term.get(name) or [], was.get(name) or []) for name in ("matchExpressions", "matchFields")]
    if not any(had for _, had in parts):
        return not any(now for now, _ in parts)
    return all(now[: len(had)] == had for now, had in parts)


def _immutable_part(pod: Object, before: Object) -> Object:
    """Return a spec without the fields that an update may change."""
    spec = pod["spec"]
    fixed = without_fields(spec, (*_MUTABLE, *_CONTAINERS, *_set_by_binding(pod, before)))
    for name in _CONTAINERS:
        fixed[name] = [{**container, "image": ""} for container in spec.get(name) or ()]
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and fixed.get("terminationGracePeriodSeconds") == 1:
        fixed["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    if before.get("schedulingGates"):
        fixed.pop("nodeSelector", None)
        fixed["affinity"] = without_fields(spec.get("affinity") or {}, ("nodeAffinity",))
    return fixed


def _set_by_binding(pod: Object, before: Object) -> tuple[str, ...]:
    """Return the fields that a binding sets: the node name, in the same write as the condition PodScheduled.

    No other write of a spec changes the status, so this combination is always a binding.
    """
    if before.get("nodeName"):
        return ()
    scheduled = pods.condition(pod, "PodScheduled") or {}
    return ("nodeName",) if scheduled.get("status") == "True" else ()
