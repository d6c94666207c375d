"""Nodes: their taints, what they can hold, and what is settled once for all."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import GoStruct, duplicate, forbidden, invalid, required, unsupported
from springtide.simulator.api.builtin.rules.amounts import amount
from springtide.simulator.api.builtin.rules.making import field_of
from springtide.simulator.api.names import label_value_problem, qualified_name_problems

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def node_taints(node: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    """Judge taints; messages place them in the metadata, where they once were."""
    seen: list[tuple[str, str]] = []
    for index, taint in enumerate(field_of(node, "spec.taints") or ()):
        path, key, effect = f"metadata.taints[{index}]", taint.get("key") or "", taint.get("effect") or ""
        yield from (invalid(f"{path}.key", key, problem) for problem in qualified_name_problems(key))
        value = taint.get("value") or ""
        if problem := label_value_problem(value):
            yield invalid(f"{path}.value", value, problem)
        if not effect:
            yield required(f"{path}.effect")
        elif effect not in _EFFECTS:
            yield unsupported(f"{path}.effect", effect, *_EFFECTS)
        if (key, effect) in seen:
            told = GoStruct(taint, key="", value="", effect="", timeAdded=None)
            yield duplicate(path, told, "taints must be unique by key and effect pair")
        seen.append((key, effect))


def node_networks(node: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    """Judge the networks of a node's pods: at most one of each family."""
    networks: list[str] = field_of(node, "spec.podCIDRs") or []
    versions = []
    for index, text in enumerate(networks):
        try:
            if "/" not in text:
                raise ValueError(text)
            versions.append(ip_network(text, strict=False).version)
        except ValueError:
            message = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            yield invalid(f"spec.podCIDRs[{index}]", text, message)
    if len(set(versions)) < len(versions):
        yield invalid("spec.podCIDRs", networks, "may specify no more than one CIDR for each IP family")


def node_amounts(node: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    """Judge what a node can hold."""
    for part in ("capacity", "allocatable"):
        listed = field_of(node, f"status.{part}") or {}
        for name in sorted(listed):
            yield from amount(listed[name], name, f"status.{part}.{name}")


def node_stays(node: Object, old: Object | None) -> Iterator[Cause]:
    """Judge a change of a node: what it is called elsewhere, and its addresses, are settled once."""
    if old is None:
        return
    for name, told in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        before = field_of(old, f"spec.{name}")
        if before and field_of(node, f"spec.{name}") != before:
            yield forbidden(f"spec.{name}", f'node updates may not change {told} except from "" to valid')
