"""Equality of JSON values.

Python holds `True` and `1` for equal, JSON does not; `1` and `1.0` are the same number in both.
"""

from __future__ import annotations

from typing import Any


def equal(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are the same."""
    if left is right:
        return True
    if left != right:
        return False
    if isinstance(left, dict):
        return all(equal(value, right[name]) for name, value in left.items())
    if isinstance(left, list):
        return all(map(equal, left, right))
    return isinstance(left, bool) is isinstance(right, bool)
