"""Validation of small kinds: Node, Lease, PriorityClass, Service, PodDisruptionBudget, ResourceQuota, ConfigMap, Secret
and PersistentVolumeClaim.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

from springtide.apiserver.builtin.rules.resources import quota_resource, validate_quantities, validate_quantity
from springtide.apiserver.builtin.rules.workloads import validate_at_most_100_percent, validate_int_or_percent
from springtide.apiserver.builtin.validation import AT_LEAST_ZERO, IMMUTABLE, ObjectRule, field_of, without_fields
from springtide.apiserver.field_errors import GoStruct, duplicate, forbidden, invalid, required, unsupported
from springtide.apiserver.names import label_value_problem, qualified_name_problems, subdomain_problem
from springtide.cluster.errors import BadRequest, StatusCause
from springtide.cluster.resources import Object

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def node_taints(node: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate taints. Messages use their old path in the metadata."""
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
            shown = GoStruct(taint, key="", value="", effect="", timeAdded=None)
            yield duplicate(path, shown, "taints must be unique by key and effect pair")
        seen.append((key, effect))


def node_networks(node: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate `podCIDRs`: at most one per IP family."""
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


def node_resources(node: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate capacity and allocatable resources."""
    for part in ("capacity", "allocatable"):
        listed = field_of(node, f"status.{part}") or {}
        for name in sorted(listed):
            yield from validate_quantity(listed[name], name, f"status.{part}.{name}")


def immutable_node_fields(node: Object, old: Object | None) -> Iterator[StatusCause]:
    """Reject changes of the provider ID and the pod networks once they are set."""
    if old is None:
        return
    for name, shown in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        before = field_of(old, f"spec.{name}")
        if before and field_of(node, f"spec.{name}") != before:
            yield forbidden(f"spec.{name}", f'node updates may not change {shown} except from "" to valid')


_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_PARTS = (
    ("2006", r"\d{4}"),
    ("-", "-"),
    ("01", r"\d\d"),
    ("-", "-"),
    ("02", r"\d\d"),
    ("T", "T"),
    ("15", r"\d\d"),
    (":", ":"),
    ("04", r"\d\d"),
    (":", ":"),
    ("05", r"\d\d"),
    (".000000", r"\.\d{6}"),
    ("Z07:00", r"Z|[-+]\d\d:\d\d"),
)
"""The parts of a time by their names in Go's layout, with their patterns."""

_RANGES = (("month", 1, 12, 5), ("day", 1, 31, 8), ("hour", 0, 23, 11), ("minute", 0, 59, 14), ("second", 0, 59, 17))
"""The parts of a time that have a range: name, lowest and highest value, position."""


def lease(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate a Lease. A time that cannot be parsed makes the whole body invalid, so it is a bad request."""
    spec = item.get("spec") or {}
    for name in ("acquireTime", "renewTime"):
        if problem := _time_problem(spec.get(name)):
            raise BadRequest(f'Lease in version "v1" cannot be handled as a Lease: {problem}')
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield invalid("spec.leaseTransitions", transitions, AT_LEAST_ZERO)


def _time_problem(text: Any) -> str:
    if text is None:
        return ""
    rest = text
    for part, form in _PARTS:
        found = re.match(form, rest)
        if found is None:
            return f'parsing time "{text}" as "{_LAYOUT}": cannot parse "{rest}" as "{part}"'
        rest = rest[found.end() :]
    if rest:
        return f'parsing time "{text}": extra text: "{rest}"'
    for name, low, high, at in _RANGES:
        if not low <= int(text[at : at + 2]) <= high:
            return f'parsing time "{text}": {name} out of range'
    return ""


_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_MAX_USER_PRIORITY = 1_000_000_000
"""The highest priority that users may define."""


def priority_class(item: Object, old: Object | None) -> Iterator[StatusCause]:
    """Validate a PriorityClass: its value cannot change, and names that start with `system-` are reserved."""
    value = item.get("value") or 0
    if old is not None:
        if value != (old.get("value") or 0):
            yield forbidden("value", "may not be changed in an update.")
        policy = item.get("preemptionPolicy")
        if policy != old.get("preemptionPolicy"):
            yield invalid("preemptionPolicy", policy, IMMUTABLE)
    elif item["metadata"].get("name", "").startswith("system-"):
        yield from _system_class(item["metadata"]["name"], value, item.get("globalDefault") or False)
    elif value > _MAX_USER_PRIORITY:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {_MAX_USER_PRIORITY}")


def _system_class(name: str, value: int, default: bool) -> Iterator[StatusCause]:
    if name not in _SYSTEM:
        error = f"{name} is not a known system priority class"
    elif value != _SYSTEM[name]:
        error = f"value of {name} PriorityClass must be {_SYSTEM[name]}"
    elif default:
        error = f"globalDefault of {name} PriorityClass must be false"
    else:
        return
    message = f"priority class names with 'system-' prefix are reserved for system use only. error: {error}"
    yield forbidden("metadata.name", message)


def external_name(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate the host of a Service of type ExternalName: webhooks are called through it."""
    spec = item.get("spec") or {}
    if spec.get("type") == "ExternalName":
        name = (spec.get("externalName") or "").removesuffix(".")
        if not name:
            yield required("spec.externalName")
        elif problem := subdomain_problem(name):
            yield invalid("spec.externalName", name, problem)


_KEY = re.compile("[-._a-zA-Z0-9]+")
_MAX_KEY_LENGTH = 253
_MAX_BYTES = 1024 * 1024


def disruption_budget(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate a PodDisruptionBudget: one bound, at most 100 %."""
    spec = item.get("spec") or {}
    bounds = ("minAvailable", "maxUnavailable")
    if all(spec.get(name) is not None for name in bounds):
        zero = dict.fromkeys(("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy"))
        yield invalid("spec", GoStruct(spec, **zero), "minAvailable and maxUnavailable cannot be both set")
    for name in bounds:
        yield from validate_int_or_percent(spec.get(name), f"spec.{name}")
        yield from validate_at_most_100_percent(spec.get(name), f"spec.{name}")


def resource_quota(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Validate the hard limits of a ResourceQuota."""
    yield from validate_quantities(field_of(item, "spec.hard"), "spec.hard", quota_resource)


def valid_keys(*maps: str) -> ObjectRule:
    """Return a rule: the keys of these maps must be valid file names."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
        for name in maps:
            for key in item.get(name) or {}:
                yield from (invalid(f"{name}[{key}]", key, problem) for problem in _key_problems(key))

    return rule


def _key_problems(key: str) -> Iterator[str]:
    if len(key) > _MAX_KEY_LENGTH:
        yield f"must be no more than {_MAX_KEY_LENGTH} characters"
    if not _KEY.fullmatch(key):
        yield (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            f"'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY.pattern}')"
        )
    if key in (".", ".."):
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def within_size_limit(field: str, *, plain: str = "", encoded: str = "") -> ObjectRule:
    """Return a rule: a map of strings and a map of base64 must not exceed the size limit together; `field` is the path
    of the cause."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
        size = sum(len((text or "").encode()) for text in (item.get(plain) or {}).values())
        size += sum(_decoded_length(text or "") for text in (item.get(encoded) or {}).values())
        if size > _MAX_BYTES:
            yield StatusCause(field, f"Too long: may not be more than {_MAX_BYTES} bytes", "FieldValueTooLong")

    return rule


def _decoded_length(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


def immutable_if_marked(*paths: str) -> ObjectRule:
    """Return a rule: these fields cannot change if the object is marked `immutable`."""

    def rule(item: Object, old: Object | None) -> Iterator[StatusCause]:
        if old is None or not old.get("immutable"):
            return
        for path in ("immutable", *paths):
            if item.get(path) != old.get(path):
                yield forbidden(path, "field is immutable when `immutable` is set")

    return rule


def immutable_claim(item: Object, old: Object | None) -> Iterator[StatusCause]:
    """Reject changes of a claim other than growth and, once, binding to a volume."""
    if old is None:
        return
    free = ("resources", "volumeAttributesClassName") + (() if field_of(old, "spec.volumeName") else ("volumeName",))
    if without_fields(item["spec"], free) != without_fields(old["spec"], free):
        message = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden("spec", message)
