"""Kinds with few rules: budgets, quotas, maps of texts and claims."""

from __future__ import annotations

import re
from collections.abc import Iterator

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import GoStruct, forbidden, invalid
from springtide.simulator.api.builtin.rules.amounts import amounts, quota_resource
from springtide.simulator.api.builtin.rules.making import Rule, field_of, without
from springtide.simulator.api.builtin.rules.shares import count_or_share, not_more_than_all

_KEY = re.compile("[-._a-zA-Z0-9]+")
_LONGEST_KEY = 253
_MOST_BYTES = 1024 * 1024


def budget_has_one_bound(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    """Judge the bound of a budget: one, and not more than everything."""
    spec = item.get("spec") or {}
    bounds = ("minAvailable", "maxUnavailable")
    if all(spec.get(name) is not None for name in bounds):
        zero = dict.fromkeys(("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy"))
        yield invalid("spec", GoStruct(spec, **zero), "minAvailable and maxUnavailable cannot be both set")
    for name in bounds:
        yield from count_or_share(spec.get(name), f"spec.{name}")
        yield from not_more_than_all(spec.get(name), f"spec.{name}")


def quota_amounts(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    """Judge what a quota bounds, and how much it allows."""
    yield from amounts(field_of(item, "spec.hard"), "spec.hard", quota_resource)


def keys(*maps: str) -> Rule:
    """Make a rule: the keys of these maps can be the names of files."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
        for name in maps:
            for key in item.get(name) or {}:
                yield from (invalid(f"{name}[{key}]", key, problem) for problem in _key_problems(key))

    return rule


def _key_problems(key: str) -> Iterator[str]:
    if len(key) > _LONGEST_KEY:
        yield f"must be no more than {_LONGEST_KEY} characters"
    if not _KEY.fullmatch(key):
        yield (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            f"'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY.pattern}')"
        )
    if key in (".", ".."):
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def not_too_large(field: str, *, plain: str = "", encoded: str = "") -> Rule:
    """Make a rule: a map of texts and one of base64 do not hold too much; `field` is what a refusal names."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
        size = sum(len((text or "").encode()) for text in (item.get(plain) or {}).values())
        size += sum(_decoded_length(text or "") for text in (item.get(encoded) or {}).values())
        if size > _MOST_BYTES:
            yield Cause(field, f"Too long: may not be more than {_MOST_BYTES} bytes", "FieldValueTooLong")

    return rule


def _decoded_length(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


def sealed(*paths: str) -> Rule:
    """Make a rule: an object that says `immutable` keeps these fields."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:
        if old is None or not old.get("immutable"):
            return
        for path in ("immutable", *paths):
            if item.get(path) != old.get(path):
                yield forbidden(path, "field is immutable when `immutable` is set")

    return rule


def claim_stays(item: Object, old: Object | None) -> Iterator[Cause]:
    """Judge a change of a claim: it is bound to a volume, it may grow, and that is all."""
    if old is None:
        return
    free = ("resources", "volumeAttributesClassName") + (() if field_of(old, "spec.volumeName") else ("volumeName",))
    if without(item["spec"], free) != without(old["spec"], free):
        message = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden("spec", message)
