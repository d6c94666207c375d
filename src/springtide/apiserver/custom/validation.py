"""Validation of a value by its schema, with the messages of kube-apiserver.

Almost every object is valid, and jsonschema-rs tells so in microseconds. It cannot give the messages of kube-apiserver,
nor does it know ratcheting, so a value that it rejects is validated again, by a walk that follows the one of
kube-apiserver step by step: a string that is too long is not matched with its pattern, a failed `anyOf` also reports
its best branch, and violations in unchanged values are dropped. The fast path must never accept what the walk rejects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import jsonschema_rs

from springtide.apiserver import field_errors
from springtide.apiserver.custom.correlation import CorrelatedValue
from springtide.apiserver.custom.formats import LINEAR, format_check, is_linear, matcher
from springtide.apiserver.custom.structural_schema import SchemaNode
from springtide.cluster.errors import StatusCause

INTEGER_BITS: Final = {"int32": 31, "int64": 63, "": 63}
_SIZES: Final = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "multipleOf")
_REJECT_ALL: Final[dict[str, Any]] = {"not": {}}
"""The schema that rejects everything, which sends values to the walk."""


def fast_validator(node: SchemaNode) -> Callable[[Any], bool]:
    """Return a function that accepts only valid values; what it rejects may be valid, too."""
    formats: dict[str, Callable[[str], bool]] = {}
    schema = _plain(node, formats)
    accepts: Callable[[Any], bool] = jsonschema_rs.Draft7Validator(
        schema, formats=formats, validate_formats=True, pattern_options=LINEAR
    ).is_valid
    return accepts


def _plain(node: SchemaNode, formats: dict[str, Callable[[str], bool]]) -> dict[str, Any]:
    checks = node.checks
    plain: dict[str, Any] = {keyword: checks[keyword] for keyword in _SIZES if checks.get(keyword) is not None}
    if any(size < 0 for size in plain.values()) or plain.get("multipleOf") == 0:
        return _REJECT_ALL
    if checks.get("required"):
        plain["required"] = [*dict.fromkeys(checks["required"])]
    if node.types:
        plain["type"] = [*node.types, "null"] if node.nullable else [*node.types]
    if checks.get("enum"):
        plain["enum"] = [choice for choice in checks["enum"] if choice is not None]
    plain |= _bounds(node)
    also = [_text(check, name, formats) for check, name in _text_checks(node)]
    if node.properties:
        plain["properties"] = {name: _plain(part, formats) for name, part in node.properties.items()}
    if node.values is not None:
        plain["additionalProperties"] = _plain(node.values, formats)
    elif node.untyped_values is False:
        plain["additionalProperties"] = False
    if node.items is not None:
        plain["items"] = _plain(node.items, formats)
    also += [_plain(part, formats) for part in node.all_of]
    if checks.get("pattern") and is_linear(checks["pattern"]):
        plain["pattern"] = checks["pattern"]
    if node.any_of:
        plain["anyOf"] = [_plain(part, formats) for part in node.any_of]
    inverted = [*node.one_of, *([node.none_of] if node.none_of is not None else [])]
    if not all(_is_exact(part) for part in inverted):
        # Here, rejecting too much would mean accepting too much.
        return _REJECT_ALL
    if node.one_of:
        plain["oneOf"] = [_plain(part, formats) for part in node.one_of]
    if node.none_of is not None:
        plain["not"] = _plain(node.none_of, formats)
    return plain | ({"allOf": also} if also else {})


def _is_exact(node: SchemaNode) -> bool:
    """Whether jsonschema-rs and kube-apiserver agree on a schema; they do not on numbers."""
    numbers = any(isinstance(choice, int | float) for choice in node.checks.get("enum") or ())
    if numbers or any(node.checks.get(keyword) is not None for keyword in ("minimum", "maximum", "multipleOf")):
        return False
    nested = (*node.children(), *node.all_of, *node.any_of, *node.one_of)
    return all(_is_exact(part) for part in nested) and (node.none_of is None or _is_exact(node.none_of))


def _bounds(node: SchemaNode) -> dict[str, Any]:
    """Return the bounds as newer drafts write them, and those that the format of an integer implies."""
    checks = node.checks
    bounds: dict[str, Any] = {}
    for keyword, exclusive, stricter in (
        ("minimum", "exclusiveMinimum", max),
        ("maximum", "exclusiveMaximum", min),
    ):
        bound = checks.get(keyword)
        if bound is not None and checks.get(exclusive) is True:
            # The server truncates bounds of integers.
            bounds[exclusive] = stricter(bound, int(bound))
        elif bound is not None:
            bounds[keyword] = bound
    if node.type == "integer":
        limit = 2 ** INTEGER_BITS.get(node.format, 63)
        bounds["minimum"] = max(bounds.get("minimum", -limit), -limit)
        bounds["maximum"] = min(bounds.get("maximum", limit - 1), limit - 1)
    return bounds


def _text_checks(node: SchemaNode) -> list[tuple[Callable[[str], bool], str]]:
    """Return the checks of strings that jsonschema-rs has to call back for."""
    found: list[tuple[Callable[[str], bool], str]] = []
    check = format_check(node.format) if node.type in ("", "string") else None
    if check is not None:
        found.append((check, f"kubernetes {node.format}"))
    pattern = node.checks.get("pattern")
    if pattern and not is_linear(pattern):
        found.append((matcher(pattern), f"pattern {pattern}"))
    return found


def _text(check: Callable[[str], bool], name: str, formats: dict[str, Callable[[str], bool]]) -> dict[str, str]:
    formats[name] = check
    return {"format": name}


_INT64: Final = range(-(2**63), 2**63)
_WEIGHTS: Final = {"string": 5, "integer": 6, "number": 6, "boolean": 4, "array": 6, "object": 5}


@dataclass(slots=True)
class ValidationResult:
    """The causes that a walk found, and the number of checks that passed, by which branches are compared."""

    causes: list[StatusCause] = field(default_factory=list)
    passed: int = 0

    def add(self, *causes: StatusCause) -> None:
        """Add causes, each only once."""
        self.causes.extend(cause for cause in dict.fromkeys(causes) if cause not in self.causes)

    def merge(self, other: ValidationResult) -> None:
        """Add the result of another walk."""
        self.add(*other.causes)
        self.passed += other.passed


def validate(node: SchemaNode, value: Any, old: Any = None) -> list[StatusCause]:
    """Validate a value; violations in values that have not changed are dropped."""
    pair = None if old is None else CorrelatedValue(value, old, node)
    return _validate_ratcheting(node, value, "", pair).causes


def _validate_ratcheting(node: SchemaNode, value: Any, path: str, pair: CorrelatedValue | None) -> ValidationResult:
    found = _check(node, value, path, pair)
    if found.causes and pair is not None and pair.unchanged:
        found.causes.clear()
    return found


def _check(node: SchemaNode, value: Any, path: str, pair: CorrelatedValue | None) -> ValidationResult:
    found = ValidationResult()
    _check_type(node, value, path, found)
    if value is None:
        _check_enum(node, value, path, found)
        return found
    kind = json_type(value)
    found.passed += _WEIGHTS[kind]
    _check_branches(node, value, path, found)
    if kind == "string":
        _check_text(node, value, path, found)
    elif kind in ("integer", "number"):
        _check_number(node, value, path, found)
    elif kind == "array":
        _check_list(node, value, path, pair, found)
    _check_enum(node, value, path, found)
    if kind == "object":
        _check_object(node, value, path, pair, found)
    return found


def json_type(value: Any) -> str:
    """Return the JSON type of a value."""
    match value:
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer" if value in _INT64 else "number"
        case float():
            return "number"
        case list():
            return "array"
        case None:
            return "null"
    return "object"


def _check_type(node: SchemaNode, value: Any, path: str, found: ValidationResult) -> None:
    types, known = node.types, _known_format(node)
    if not types and not known:
        return
    kind = json_type(value)
    matches = (
        kind in types
        or (kind == "integer" and "number" in types)
        or (kind == "number" and "integer" in types and float(value).is_integer())
    )
    expected = ",".join(types)
    if kind == "null":
        matches = node.nullable or not types
    elif known and kind == "string" and not {"integer", "number"} & {*types}:
        matches = True
    elif known and kind not in ("string", "array") and not matches:
        expected, kind = known, {"integer": "int64", "number": "float64"}.get(kind, "")
    if matches:
        found.passed += 1
    else:
        detail = f"{path} in body must be of type {expected}: {field_errors.quoted(kind)}"
        found.add(field_errors.wrong_type(path, kind, detail))


def _known_format(node: SchemaNode) -> str:
    match node.type:
        case "" | "string":
            return node.format if format_check(node.format) else ""
        case "integer":
            return node.format if node.format in ("int32", "int64") else ""
        case "number":
            return node.format if node.format in ("float", "double") else ""
    return ""


def _check_enum(node: SchemaNode, value: Any, path: str, found: ValidationResult) -> None:
    choices = node.checks.get("enum")
    if choices and not any(choice is not None and _equals(value, choice) for choice in choices):
        shown = (choice if isinstance(choice, str) else field_errors.format_value(choice) for choice in choices)
        found.add(field_errors.unsupported(path, value, *shown))


def _equals(value: Any, choice: Any) -> bool:
    if isinstance(value, bool) != isinstance(choice, bool):
        return False
    # The server converts the value to the type of the choice, which truncates fractions.
    return bool(value == choice) or (isinstance(value, float) and isinstance(choice, int) and int(value) == choice)


def _check_text(node: SchemaNode, value: str, path: str, found: ValidationResult) -> None:
    checks = node.checks
    longest, shortest, pattern = checks.get("maxLength"), checks.get("minLength"), checks.get("pattern")
    if longest is not None and len(value) > longest:
        found.add(field_errors.too_long(path, longest))
    elif shortest is not None and len(value) < shortest:
        detail = f"{path} in body should be at least {shortest} chars long"
        found.add(field_errors.invalid(path, value, detail))
    elif pattern and not matcher(pattern)(value):
        found.add(field_errors.invalid(path, value, f"{path} in body should match '{pattern}'"))
    check = format_check(node.format) if node.type in ("", "string") else None
    if check is not None and not check(value):
        detail = f"{path} in body must be of type {node.format}: {field_errors.quoted(value)}"
        found.add(field_errors.wrong_type(path, value, detail))


def _check_number(node: SchemaNode, value: int | float, path: str, found: ValidationResult) -> None:
    checks, known = node.checks, _known_format(node)
    if node.type == "integer" and not _is_within(value, INTEGER_BITS[known]):
        form = f"with format {known}" if known else "(default format)"
        found.add(field_errors.invalid("", "", f"Checked value must be of type integer {form} in {path}"))
    if node.type == "number" and known == "float" and abs(value) > 3.4028234663852886e38:
        found.add(field_errors.invalid("", "", f"Checked value must be of type number with format float in {path}"))
    # Bounds of integers are truncated.
    whole = isinstance(value, int) and value in _INT64
    given: Callable[[float], int | float] = int if whole else float
    if (factor := checks.get("multipleOf")) is not None and not _is_multiple(value, given(factor)):
        message = "should be a multiple of" if given(factor) > 0 else "factor MultipleOf must be positive:"
        found.add(
            field_errors.invalid(path, value, f"{path} in body {message} {field_errors.format_value(given(factor))}")
        )
    if (least := checks.get("minimum")) is not None:
        open_end = checks.get("exclusiveMinimum") is True
        if value < given(least) or (open_end and value == given(least)):
            message = "greater than" if open_end else "greater than or equal to"
            detail = f"{path} in body should be {message} {field_errors.format_value(given(least))}"
            found.add(field_errors.invalid(path, value, detail))
    if (most := checks.get("maximum")) is not None:
        open_end = checks.get("exclusiveMaximum") is True
        if value > given(most) or (open_end and value == given(most)):
            message = "less than" if open_end else "less than or equal to"
            detail = f"{path} in body should be {message} {field_errors.format_value(given(most))}"
            found.add(field_errors.invalid(path, value, detail))


def _is_within(value: int | float, bits: int) -> bool:
    return float(value).is_integer() and -(2**bits) <= value < 2**bits


def _is_multiple(value: int | float, factor: int | float) -> bool:
    if factor <= 0:
        return False
    if isinstance(factor, int):
        return value % factor == 0
    times = 1 / factor * value if factor < 1 else value / factor
    return math.isclose(times, round(times), rel_tol=1e-9, abs_tol=1e-9)


def _check_list(
    node: SchemaNode, value: Sequence[Any], path: str, pair: CorrelatedValue | None, found: ValidationResult
) -> None:
    if node.items is not None:
        for index, part in enumerate(value):
            before = pair.item(index) if pair is not None else None
            found.merge(_validate_ratcheting(node.items, part, f"{path}[{index}]", before))
    fewest, most = node.checks.get("minItems"), node.checks.get("maxItems")
    if fewest is not None and len(value) < fewest:
        found.add(field_errors.invalid(path, len(value), f"{path} in body should have at least {fewest} items"))
    if most is not None and len(value) > most:
        found.add(field_errors.too_many(path, len(value), most))


def _check_object(
    node: SchemaNode, value: dict[str, Any], path: str, pair: CorrelatedValue | None, found: ValidationResult
) -> None:
    fewest, most = node.checks.get("minProperties"), node.checks.get("maxProperties")
    if fewest is not None and len(value) < fewest:
        found.add(field_errors.invalid(path, len(value), f"{path} in body should have at least {fewest} properties"))
    if most is not None and len(value) > most:
        found.add(field_errors.too_many(path, len(value), most))
    for name, part in value.items():
        child = node.child(name)
        if child is None:
            if node.untyped_values is False:
                found.add(field_errors.invalid(path, "", f"{path}.{name} in body is a forbidden property"))
            continue
        # Objects are converted before validation, so their type is always new.
        always_new = not path and name in ("apiVersion", "kind")
        before = None if pair is None or always_new else pair.field(name)
        found.merge(_validate_ratcheting(child, part, f"{path}.{name}" if path else name, before))
    for name in node.checks.get("required") or ():
        if name not in value:
            found.add(field_errors.required(f"{path}.{name}" if path else name))


def _check_branches(node: SchemaNode, value: Any, path: str, found: ValidationResult) -> None:
    """Validate `anyOf`, `oneOf`, `allOf` and `not`. Their own causes have no path.

    Ratcheting does not apply inside of the branches, only to the value as a whole.
    """
    if node.any_of:
        branches = _branches(node.any_of, value, path)
        passing = next((branch for branch in branches if not branch.causes), None)
        if passing is None:
            _fail(path, "must validate at least one schema (anyOf)", found)
        found.merge(passing or _best(branches))
    if node.one_of:
        branches = _branches(node.one_of, value, path)
        passed = [branch for branch in branches if not branch.causes]
        if len(passed) == 1:
            found.merge(passed[0])
        else:
            count = f"Found {len(passed)} valid alternatives" if passed else "Found none valid"
            _fail(path, f"must validate one and only one schema (oneOf). {count}", found)
            if not passed:
                found.merge(_best(branches))
    if node.all_of:
        branches = _branches(node.all_of, value, path)
        for branch in branches:
            found.merge(branch)
        failed = sum(bool(branch.causes) for branch in branches)
        if failed:
            none = ". None validated" if failed == len(branches) else ""
            _fail(path, f"must validate all the schemas (allOf){none}", found)
    if node.none_of is not None and not _check(node.none_of, value, path, None).causes:
        _fail(path, "must not validate the schema (not)", found)


def _branches(parts: Iterable[SchemaNode], value: Any, path: str) -> list[ValidationResult]:
    return [_check(part, value, path, None) for part in parts]


def _best(branches: Sequence[ValidationResult]) -> ValidationResult:
    return max(branches, key=lambda branch: branch.passed)


def _fail(path: str, message: str, found: ValidationResult) -> None:
    found.add(field_errors.invalid("", "", f"{field_errors.quoted(path)} {message}"))
