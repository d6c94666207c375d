"""JSON merge patch (RFC 7386): maps are merged, null deletes, everything else replaces."""

from __future__ import annotations

from typing import Any

_ABSENT: Any = object()


def merge_patch(target: Any, patch: Any) -> Any:
    """Give the target as the patch wants it; the target itself where that changes nothing."""
    if not isinstance(patch, dict):
        return target if type(target) is type(patch) and target == patch and not isinstance(patch, list) else patch
    if not isinstance(target, dict):
        return {name: merge_patch(_ABSENT, value) for name, value in patch.items() if value is not None}
    merged = target
    for name, value in patch.items():
        before = target.get(name, _ABSENT)
        if value is None:
            if before is _ABSENT:
                continue
            merged = _own(merged, target)
            del merged[name]
            continue
        after = merge_patch(before, value)
        if after is not before:
            merged = _own(merged, target)
            merged[name] = after
    return merged


def _own(merged: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    """Copy the target at the first change, so that a patch that changes nothing copies nothing."""
    return dict(target) if merged is target else merged
