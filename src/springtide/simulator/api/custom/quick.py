"""A fast yes: almost every object that is written is a good one, and jsonschema-rs tells so in microseconds.

It cannot tell how the server would word a no, which branch of an `anyOf` it would blame, or what it lets pass because
it was there before. So this accepts no more than the server does, and whatever it does not accept is judged by the
slow and exact walk of `springtide.simulator.api.custom.validation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jsonschema_rs

from springtide.simulator.api.custom.formats import format_check
from springtide.simulator.api.custom.patterns import LINEAR, is_linear, matcher
from springtide.simulator.api.custom.places import Place

INTEGER_BITS: Final = {"int32": 31, "int64": 63, "": 63}
_SIZES: Final = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "multipleOf")
_NEVER: Final[dict[str, Any]] = {"not": {}}
"""The schema that nothing passes: what stands there must always be looked at slowly."""


def quick_check(place: Place) -> Callable[[Any], bool]:
    """Give a function that says yes only to what the schema allows."""
    formats: dict[str, Callable[[str], bool]] = {}
    schema = _plain(place, formats)
    accepts: Callable[[Any], bool] = jsonschema_rs.Draft7Validator(
        schema, formats=formats, validate_formats=True, pattern_options=LINEAR
    ).is_valid
    return accepts


def _plain(place: Place, formats: dict[str, Callable[[str], bool]]) -> dict[str, Any]:
    checks = place.checks
    plain: dict[str, Any] = {keyword: checks[keyword] for keyword in _SIZES if checks.get(keyword) is not None}
    if any(size < 0 for size in plain.values()) or plain.get("multipleOf") == 0:
        return _NEVER
    if checks.get("required"):
        plain["required"] = [*dict.fromkeys(checks["required"])]
    if place.types:
        plain["type"] = [*place.types, "null"] if place.nullable else [*place.types]
    if checks.get("enum"):
        plain["enum"] = [choice for choice in checks["enum"] if choice is not None]
    plain |= _bounds(place)
    also = [_text(check, name, formats) for check, name in _text_checks(place)]
    if place.properties:
        plain["properties"] = {name: _plain(part, formats) for name, part in place.properties.items()}
    if place.values is not None:
        plain["additionalProperties"] = _plain(place.values, formats)
    elif place.untyped_values is False:
        plain["additionalProperties"] = False
    if place.items is not None:
        plain["items"] = _plain(place.items, formats)
    also += [_plain(part, formats) for part in place.all_of]
    if checks.get("pattern") and is_linear(checks["pattern"]):
        plain["pattern"] = checks["pattern"]
    if place.any_of:
        plain["anyOf"] = [_plain(part, formats) for part in place.any_of]
    inverted = [*place.one_of, *([place.none_of] if place.none_of is not None else [])]
    if not all(_is_exact(part) for part in inverted):
        # A check that says no too often would say yes too often here.
        return _NEVER
    if place.one_of:
        plain["oneOf"] = [_plain(part, formats) for part in place.one_of]
    if place.none_of is not None:
        plain["not"] = _plain(place.none_of, formats)
    return plain | ({"allOf": also} if also else {})


def _is_exact(place: Place) -> bool:
    """Tell whether a schema is read here just as the server reads it, which calculates with numbers in its own way."""
    numbers = any(isinstance(choice, int | float) for choice in place.checks.get("enum") or ())
    if numbers or any(place.checks.get(keyword) is not None for keyword in ("minimum", "maximum", "multipleOf")):
        return False
    nested = (*place.children(), *place.all_of, *place.any_of, *place.one_of)
    return all(_is_exact(part) for part in nested) and (place.none_of is None or _is_exact(place.none_of))


def _bounds(place: Place) -> dict[str, Any]:
    """Write the bounds in the newer way, and those that the format of an integer brings."""
    checks = place.checks
    bounds: dict[str, Any] = {}
    for keyword, exclusive, stricter in (
        ("minimum", "exclusiveMinimum", max),
        ("maximum", "exclusiveMaximum", min),
    ):
        bound = checks.get(keyword)
        if bound is not None and checks.get(exclusive) is True:
            # The server cuts the bound of a whole number down to a whole number.
            bounds[exclusive] = stricter(bound, int(bound))
        elif bound is not None:
            bounds[keyword] = bound
    if place.type == "integer":
        limit = 2 ** INTEGER_BITS.get(place.format, 63)
        bounds["minimum"] = max(bounds.get("minimum", -limit), -limit)
        bounds["maximum"] = min(bounds.get("maximum", limit - 1), limit - 1)
    return bounds


def _text_checks(place: Place) -> list[tuple[Callable[[str], bool], str]]:
    """List the checks of strings that jsonschema-rs has to call back for."""
    found: list[tuple[Callable[[str], bool], str]] = []
    check = format_check(place.format) if place.type in ("", "string") else None
    if check is not None:
        found.append((check, f"kubernetes {place.format}"))
    pattern = place.checks.get("pattern")
    if pattern and not is_linear(pattern):
        found.append((matcher(pattern), f"pattern {pattern}"))
    return found


def _text(check: Callable[[str], bool], name: str, formats: dict[str, Callable[[str], bool]]) -> dict[str, str]:
    formats[name] = check
    return {"format": name}
