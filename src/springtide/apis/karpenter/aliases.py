"""Aliases of budget fields, and repairs by `springtide convert`.

Budgets by reason had several drafts before one shipped: reasons under `reason`, as a single string or with other names,
counts as integers, budgets under a key for each method. Manifests in all of these forms exist.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from springtide.apis.karpenter.budgets import DELAYED_REASONS, DisruptionReason, parse_reason
from springtide.apis.kinds import INT32_MAX, NormalizedTree
from springtide.apis.problems import Path, Problem, warning

MOST_REASONS = 50
_DISRUPTION: Path = ("spec", "disruption")
_DEFAULT_METHODS = ("default", "defaults")
_SETTINGS: dict[str, tuple[DisruptionReason, ...]] = {
    "consolidationPolicy": (DisruptionReason.UNDERUTILIZED, DisruptionReason.EMPTY),
    "consolidateAfter": (DisruptionReason.UNDERUTILIZED, DisruptionReason.EMPTY),
    "expireAfter": (DisruptionReason.EXPIRED,),
}
"""Settings of the whole pool, and the methods under whose keys they mean the same."""


class _TreeNormalizer:
    """Rewrites a tree, and collects warnings and moved paths."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = copy.deepcopy(value)
        self.problems: list[Problem] = []
        self.origins: dict[Path, Path] = {}

    def warn(self, path: Path, message: str, hint: str) -> None:
        self.problems.append(warning(path, message, hint))

    def moved(self, path: Path, origin: Path) -> None:
        if path != origin:
            self.origins[path] = origin

    def result(self) -> NormalizedTree:
        return NormalizedTree(self.value, tuple(self.problems), self.origins)


def read_v1(value: dict[str, Any]) -> NormalizedTree:
    """Read a v1 NodePool; names of v1beta1 are accepted with a warning."""
    reader = _TreeNormalizer(value)
    disruption = _disruption(reader)
    if disruption is not None:
        _rename_policy(reader, disruption, "WhenUnderutilized", "WhenEmptyOrUnderutilized", "v1")
        _move_expiry(reader, disruption)
    return reader.result()


def read_v1beta1(value: dict[str, Any]) -> NormalizedTree:
    """Read a v1beta1 NodePool; names of v1 are accepted with a warning."""
    reader = _TreeNormalizer(value)
    disruption = _disruption(reader)
    if disruption is not None:
        _rename_policy(reader, disruption, "WhenEmptyOrUnderutilized", "WhenUnderutilized", "v1beta1")
    return reader.result()


def fixes(value: dict[str, Any]) -> NormalizedTree:
    """Repair mistakes with only one possible meaning: all aliases, and references in the form of the other version."""
    api_version, kind = value.get("apiVersion"), value.get("kind")
    readers: dict[str, Callable[[dict[str, Any]], NormalizedTree]] = {
        "karpenter.sh/v1": read_v1,
        "karpenter.sh/v1beta1": read_v1beta1,
    }
    read = readers.get(api_version) if kind == "NodePool" and isinstance(api_version, str) else None
    normalized = read(value) if read is not None else NormalizedTree(copy.deepcopy(value))
    if api_version != "karpenter.sh/v1":
        return normalized
    path: Path = ("spec", "template", "spec", "nodeClassRef") if kind == "NodePool" else ("spec", "nodeClassRef")
    found = _group_for_version(normalized.value, path)
    return NormalizedTree(normalized.value, (*normalized.problems, *found), normalized.origins)


def _group_for_version(value: dict[str, Any], path: Path) -> list[Problem]:
    reference: Any = value
    for step in path:
        reference = reference.get(step) if isinstance(reference, dict) else None
    if not isinstance(reference, dict) or "group" in reference:
        return []
    version = reference.get("apiVersion")
    group, slash, _ = version.rpartition("/") if isinstance(version, str) else ("", "", "")
    if not slash or not group:
        return []
    named = {"group" if key == "apiVersion" else key: part for key, part in reference.items()}
    reference.clear()
    reference.update(named, group=group)
    return [
        warning(
            (*path, "apiVersion"), f"`apiVersion: {version}` was changed to `group: {group}`", "v1 has no version here"
        )
    ]


def _disruption(reader: _TreeNormalizer) -> dict[str, Any] | None:
    spec = reader.value.get("spec")
    disruption = spec.get("disruption") if isinstance(spec, dict) else None
    if not isinstance(disruption, dict):
        return None
    budgets = disruption.get("budgets")
    for position, budget in enumerate(budgets if isinstance(budgets, list) else ()):
        if isinstance(budget, dict):
            _read_budget(reader, budget, (*_DISRUPTION, "budgets", position))
    _expand_methods(reader, disruption)
    return disruption


# One budget


def _read_budget(reader: _TreeNormalizer, budget: dict[str, Any], path: Path) -> None:
    nodes = budget.get("nodes")
    if isinstance(nodes, int) and not isinstance(nodes, bool) and 0 <= nodes <= INT32_MAX:
        budget["nodes"] = str(nodes)
        reader.warn((*path, "nodes"), f"`nodes: {nodes}` is read as a string", f'write `nodes: "{nodes}"`')
    written = [key for key in ("reasons", "reason") if budget.get(key) is not None]
    entries = [entry for key in written for entry in _entries(budget[key], (*path, key))]
    if not written or not all(isinstance(name, str) for name, _ in entries) or len(entries) > MOST_REASONS:
        return
    if (message := _duplicate_reasons_warning(budget, written)) is not None:
        reader.warn((*path, written[-1]), message, f"write `reasons: {_quoted_entries(entries)}`")
    _put_reasons(budget, _canonical(reader, entries, (*path, "reasons")), written)


def _duplicate_reasons_warning(budget: dict[str, Any], written: list[str]) -> str | None:
    """Say how the fields that hold reasons are read, unless they are as they should be."""
    if len(written) == 2:
        return "`reason` and `reasons` are read as one list"
    if written == ["reason"]:
        return "`reason` is read as `reasons`"
    if not isinstance(budget["reasons"], list):
        return f"`reasons: {budget['reasons']}` is read as a list"
    return None


def _entries(given: Any, path: Path) -> list[tuple[Any, Path]]:
    """List the names of one field, each with its place."""
    if isinstance(given, list):
        return [(name, (*path, position)) for position, name in enumerate(given)]
    return [(given, path)]


def _canonical(reader: _TreeNormalizer, entries: list[tuple[Any, Path]], path: Path) -> list[str]:
    """Return the reasons that are meant, each once; what means none is kept for the check of the structure."""
    kept: list[str] = []
    for name, written in entries:
        meant = parse_reason(name)
        canonical = name if meant is None else meant.value
        if meant is not None and canonical in kept:
            reader.warn(written, f"`{name}` is {canonical} once more", "remove it")
            continue
        if canonical != name:
            reader.warn(written, f"`{name}` is read as {canonical}", f"write {canonical}")
        reader.moved((*path, len(kept)), written)
        kept.append(canonical)
    return kept


def _quoted_entries(entries: list[tuple[Any, Path]]) -> str:
    return f"[{', '.join(dict.fromkeys(str(parse_reason(name) or name) for name, _ in entries))}]"


def _put_reasons(budget: dict[str, Any], reasons: list[str], written: list[str]) -> None:
    """Put the reasons under their proper name, where they stood."""
    kept = [("reasons" if key == written[0] else key, part) for key, part in budget.items() if key not in written[1:]]
    budget.clear()
    budget.update(kept)
    budget["reasons"] = reasons


# Budgets and settings under a key for each method


def _expand_methods(reader: _TreeNormalizer, disruption: dict[str, Any]) -> None:
    methods = [key for key in disruption if _is_method(key) and isinstance(disruption[key], dict)]
    # The delay of the defaults is for the reasons that have none of their own, so it comes last.
    for key in sorted(methods, key=lambda key: parse_reason(key) is None):
        if "disruptAfter" in disruption[key] and _move_delay(reader, disruption, key):
            del disruption[key]["disruptAfter"]
    for key in methods:
        method = disruption[key]
        reason = parse_reason(key)
        left = {name: part for name, part in method.items() if not _move_setting(reader, disruption, key, name, part)}
        budgets = left.get("budgets")
        if isinstance(budgets, list) and isinstance(disruption.setdefault("budgets", []), list):
            del left["budgets"]
            _move_budgets(reader, disruption, key, budgets, reason)
        if left:
            disruption[key] = left
        else:
            del disruption[key]


def _is_method(key: str) -> bool:
    # `repair` is a setting.
    return key.lower() in _DEFAULT_METHODS or (parse_reason(key) is not None and key != "repair")


def _move_setting(reader: _TreeNormalizer, disruption: dict[str, Any], key: str, name: str, part: Any) -> bool:
    reason = parse_reason(key)
    if name not in _SETTINGS or (reason is not None and reason not in _SETTINGS[name]) or name in disruption:
        return False
    if name == "expireAfter" and name in _template_spec(reader):
        return False
    disruption[name] = part
    here = (*_DISRUPTION, key, name)
    reader.origins[(*_DISRUPTION, name)] = here
    reader.warn(here, f"`{key}.{name}` is read as `{name}`", f"write `{name}` under `disruption`")
    return True


def _move_delay(reader: _TreeNormalizer, disruption: dict[str, Any], key: str) -> bool:
    """Move the delay of a method to that of its reason, and one of the defaults to all reasons without one."""
    reason, delay = parse_reason(key), disruption[key]["disruptAfter"]
    delays = disruption.get("disruptAfter", {})
    if not isinstance(delays, dict):
        return False
    meant = [one for one in DELAYED_REASONS if reason in (None, one) and one.value not in delays]
    if not meant:
        return False
    here = (*_DISRUPTION, key, "disruptAfter")
    disruption["disruptAfter"] = delays | {one.value: delay for one in meant}
    for one in meant:
        reader.origins[(*_DISRUPTION, "disruptAfter", one.value)] = here
    named = ", ".join(meant)
    written = ", ".join(f"{one}: {delay}" for one in meant)
    message = f"`{key}.disruptAfter` is read as the `disruptAfter` of {named}"
    reader.warn(here, message, f"write `disruptAfter: {{{written}}}` under `disruption`")
    return True


def _move_budgets(
    reader: _TreeNormalizer, disruption: dict[str, Any], key: str, budgets: list[Any], reason: DisruptionReason | None
) -> None:
    for position, budget in enumerate(budgets):
        here = (*_DISRUPTION, key, "budgets", position)
        there = (*_DISRUPTION, "budgets", len(disruption["budgets"]))
        reader.origins[there] = here
        if isinstance(budget, dict):
            _read_budget(reader, budget, here)
            for path in [path for path in reader.origins if path[: len(here)] == here]:
                reader.origins[(*there, *path[len(here) :])] = reader.origins.pop(path)
            named = budget.get("reasons") or []
            if reason is not None and isinstance(named, list) and reason.value not in named:
                budget["reasons"] = [*named, reason.value]
        disruption["budgets"].append(budget)
    what = f"budgets of {reason}" if reason is not None else "budgets without reasons"
    hint = f"list them under `budgets`{f' with `reasons: [{reason}]`' if reason is not None else ''}"
    reader.warn((*_DISRUPTION, key), f"`{key}.budgets` is read as {what}", hint)


# Names of the other version


def _rename_policy(reader: _TreeNormalizer, disruption: dict[str, Any], old: str, new: str, version: str) -> None:
    if disruption.get("consolidationPolicy") == old:
        disruption["consolidationPolicy"] = new
        path = reader.origins.get((*_DISRUPTION, "consolidationPolicy"), (*_DISRUPTION, "consolidationPolicy"))
        reader.warn(path, f"{old} is called {new} in {version}", f"write {new}")


def _move_expiry(reader: _TreeNormalizer, disruption: dict[str, Any]) -> None:
    """Move `expireAfter` to the template, where v1 has it; one that stands there already is left alone."""
    inner = _template_spec(reader)
    if "expireAfter" not in disruption or not inner or "expireAfter" in inner:
        return
    inner["expireAfter"] = disruption.pop("expireAfter")
    path = (*_DISRUPTION, "expireAfter")
    here = reader.origins.pop(path, path)
    reader.origins[("spec", "template", "spec", "expireAfter")] = here
    reader.warn(here, "`expireAfter` stands under `spec.template.spec` in v1", "move it there")


def _template_spec(reader: _TreeNormalizer) -> dict[str, Any]:
    """Return what the pool says about its nodes; empty where it says nothing that can be read."""
    inner: Any = reader.value.get("spec")
    for step in ("template", "spec"):
        inner = inner.get(step) if isinstance(inner, dict) else None
    return inner if isinstance(inner, dict) else {}
