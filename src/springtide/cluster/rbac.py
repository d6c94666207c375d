"""RBAC rules, generated from the permissions that the code declares.

Controllers declare `permissions`, modules of the runtime `PERMISSIONS`. Roles grant nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from springtide.cluster import events, leader_election, pausing
from springtide.cluster.controller import Permission

PolicyRule: TypeAlias = dict[str, list[str]]
"""A `PolicyRule` as roles write it."""

MANAGER_PERMISSIONS: tuple[Permission, ...] = (*leader_election.PERMISSIONS, *events.PERMISSIONS, *pausing.PERMISSIONS)
"""The permissions of the manager itself."""

_VERBS = ("get", "list", "watch", "create", "patch", "delete")
"""All verbs of the transport, in the order in which roles name them."""


@dataclass(frozen=True, slots=True)
class RbacRules:
    """The rules of one role: for the whole cluster, and for the namespace of the process itself."""

    cluster: tuple[PolicyRule, ...]
    namespace: tuple[PolicyRule, ...]

    def as_data(self) -> dict[str, Any]:
        """Return them as data for templates."""
        return {"cluster": list(self.cluster), "namespace": list(self.namespace)}


def rules_of(permissions: Iterable[Permission]) -> RbacRules:
    """Generate rules: one for each resource and set of names, always in the same order."""
    wanted: dict[tuple[bool, str, str, tuple[str, ...]], set[str]] = {}
    for permission in permissions:
        _check(permission)
        resource = permission.resource
        target = f"{resource.plural}/{permission.subresource}" if permission.subresource else resource.plural
        place = (permission.own_namespace, resource.group, target, tuple(sorted(permission.names)))
        wanted.setdefault(place, set()).update(permission.verbs)
    rules = [(own, _rule(group, target, names, verbs)) for (own, group, target, names), verbs in sorted(wanted.items())]
    return RbacRules(
        cluster=tuple(rule for own, rule in rules if not own),
        namespace=tuple(rule for own, rule in rules if own),
    )


def _rule(group: str, target: str, names: tuple[str, ...], verbs: set[str]) -> PolicyRule:
    rule = {"apiGroups": [group], "resources": [target]}
    if names:
        rule["resourceNames"] = list(names)
    return {**rule, "verbs": [verb for verb in _VERBS if verb in verbs]}


def _check(permission: Permission) -> None:
    """Refuse a permission that RBAC would ignore."""
    unknown = [verb for verb in permission.verbs if verb not in _VERBS]
    if unknown:
        msg = f"{permission.resource}: there is no verb {unknown[0]!r}, expected some of {', '.join(_VERBS)}"
        raise ValueError(msg)
    if permission.names and "create" in permission.verbs:
        msg = f"{permission.resource}: create cannot be limited to names, expected a permission of its own for it"
        raise ValueError(msg)
    if permission.own_namespace and not permission.resource.namespaced:
        msg = f"{permission.resource}: it is in no namespace, so none can be its own"
        raise ValueError(msg)
