"""Validation of roles, their bindings and NetworkPolicies, which the embedded cluster stores and does not enforce."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from springtide.apiserver.builtin.rules.containers import port_name, port_number
from springtide.apiserver.builtin.validation import ObjectRule, field_of
from springtide.apiserver.field_errors import GoStruct, forbidden, invalid, required, unsupported
from springtide.apiserver.names import path_segment_problems
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object

RBAC = "rbac.authorization.k8s.io"


def role_rules(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate the rules of a Role or ClusterRole."""
    for index, rule in enumerate(item.get("rules") or ()):
        yield from _role_rule(rule, f"rules[{index}]", namespaced=item["kind"] == "Role")
    aggregation = item.get("aggregationRule")
    if aggregation is not None and not aggregation.get("clusterRoleSelectors"):
        message = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield required("aggregationRule.clusterRoleSelectors", message)


def _role_rule(rule: Object, path: str, *, namespaced: bool) -> Iterator[StatusCause]:
    if not rule.get("verbs"):
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        if namespaced:
            yield invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            message = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", urls, message)
        return
    for name, one in (("apiGroups", "api group"), ("resources", "resource")):
        if not rule.get(name):
            yield required(f"{path}.{name}", f"resource rules must supply at least one {one}")


def role_binding(*roles: str) -> ObjectRule:
    """Return a rule for bindings that may refer to these kinds of roles."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:
        role = item.get("roleRef") or {}
        if role.get("apiGroup") != RBAC:
            yield unsupported("roleRef.apiGroup", role.get("apiGroup") or "", RBAC)
        if role.get("kind") not in roles:
            yield unsupported("roleRef.kind", role.get("kind") or "", *roles)
        if not role.get("name"):
            yield required("roleRef.name")
        else:
            yield from (invalid("roleRef.name", role["name"], why) for why in path_segment_problems(role["name"]))
        for index, subject in enumerate(item.get("subjects") or ()):
            yield from _subject(subject, f"subjects[{index}]", namespaced=item["kind"] == "RoleBinding")
        if old is not None and role != old.get("roleRef"):
            yield invalid("roleRef", GoStruct(role, apiGroup="", kind="", name=""), "cannot change roleRef")

    return rule


def _subject(subject: Object, path: str, *, namespaced: bool) -> Iterator[StatusCause]:
    kind = subject.get("kind") or ""
    group = subject.get("apiGroup") or ""
    if not subject.get("name"):
        yield required(f"{path}.name")
    match kind:
        case "ServiceAccount":
            if group:
                yield unsupported(f"{path}.apiGroup", group, "")
            if not namespaced and not subject.get("namespace"):
                yield required(f"{path}.namespace")
        case "User" | "Group":
            if group != RBAC:
                yield unsupported(f"{path}.apiGroup", group, RBAC)
        case _:
            yield unsupported(f"{path}.kind", kind, "ServiceAccount", "User", "Group")


_PROTOCOLS = ("TCP", "UDP", "SCTP")
_DIRECTIONS = (("ingress", "from"), ("egress", "to"))
_POLICY_TYPES = ("Ingress", "Egress")


def network_policy(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate the ports and peers of a NetworkPolicy."""
    for direction, peers in _DIRECTIONS:
        for index, rule in enumerate(field_of(item, f"spec.{direction}") or ()):
            path = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                yield from _policy_port(port, f"{path}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                yield from _peer(peer, f"{path}.{peers}[{number}]")
    types = field_of(item, "spec.policyTypes") or ()
    if len(types) > len(_POLICY_TYPES):
        yield invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for index, type_ in enumerate(types):
        if type_ not in _POLICY_TYPES:
            yield unsupported(f"spec.policyTypes[{index}]", type_, *_POLICY_TYPES)


def _policy_port(port: Object, path: str) -> Iterator[StatusCause]:
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None and protocol not in _PROTOCOLS:
        yield unsupported(f"{path}.protocol", protocol, *_PROTOCOLS)
    if number is None:
        if end is not None:
            yield invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified")
    elif isinstance(number, str):
        if end is not None:
            yield invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
        yield from port_name(number, f"{path}.port")
    else:
        yield from port_number(number, f"{path}.port")
        if end is not None:
            if end < number:
                yield invalid(f"{path}.endPort", number, "must be greater than or equal to `port`")
            yield from port_number(end, f"{path}.endPort")


def _peer(peer: Any, path: str) -> Iterator[StatusCause]:
    named = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(name) is not None]
    if not named:
        yield required(path, "must specify a peer")
    elif len(named) > 1 and "ipBlock" in named:
        yield forbidden(path, "may not specify both ipBlock and another peer")
