"""What an API server does with a CRD, for tests: defaults, then the OpenAPI schema, then the CEL rules.

It uses third-party engines (a JSON Schema validator and a CEL runtime), so that it is independent of ours.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema_rs
from cel_expr_python import cel

from springtide.apis.crds import Flavour, all_crds

_DYN = cel.Type.DYN


@cache
def _environment() -> Any:
    return cel.NewEnv(variables={"self": _DYN, "oldSelf": _DYN})


@cache
def _program(rule: str) -> Any:
    return _environment().compile(rule, disable_check=True)


@cache
def schemas(flavour: Flavour) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the schema of every version of every kind."""
    return {
        (f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"]): version["schema"][
            "openAPIV3Schema"
        ]
        for crd in all_crds(flavour)
        for version in crd["spec"]["versions"]
    }


def admit(value: dict[str, Any], flavour: Flavour = Flavour.EXTENDED, old: dict[str, Any] | None = None) -> list[str]:
    """Return why the API server would reject the object; empty if it stores it."""
    schema = schemas(flavour)[value["apiVersion"], value["kind"]]
    value = defaulted(value, schema)
    found = [
        f"{'.'.join(str(step) for step in failure.instance_path)}: {failure.message}"
        for failure in jsonschema_rs.Draft4Validator(plain_schema(schema)).iter_errors(value)
    ]
    return [*found, *_unknown(value, schema, ""), *_rules(value, old, schema, "")]


def defaulted(value: Any, schema: dict[str, Any]) -> Any:
    """Fill in the defaults of the schema."""
    if isinstance(value, dict):
        filled = dict(value)
        for name, part in schema.get("properties", {}).items():
            if name not in filled and "default" in part:
                filled[name] = part["default"]
            if name in filled:
                filled[name] = defaulted(filled[name], part)
        return filled
    if isinstance(value, list) and "items" in schema:
        return [defaulted(item, schema["items"]) for item in value]
    return value


def plain_schema(schema: Any) -> Any:
    """Leave out the keywords that plain JSON Schema does not know, or knows with another meaning."""
    if isinstance(schema, list):
        return [plain_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: plain_schema(each) for name, each in part.items()} if key == "properties" else plain_schema(part)
        for key, part in schema.items()
        if not key.startswith("x-kubernetes") and key not in ("format", "default")
    }


def _unknown(value: Any, schema: dict[str, Any], path: str) -> list[str]:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    if isinstance(value, dict) and "properties" in schema:
        listed: list[str] = []
        for name, part in value.items():
            if name in schema["properties"]:
                listed += _unknown(part, schema["properties"][name], f"{path}.{name}")
            elif path != ".metadata":
                listed.append(f"{path}.{name}: unknown field")
        return listed
    if isinstance(value, list) and "items" in schema:
        return [text for i, item in enumerate(value) for text in _unknown(item, schema["items"], f"{path}[{i}]")]
    return []


def _rules(value: Any, old: Any, schema: dict[str, Any], path: str) -> list[str]:
    found: list[str] = []
    for rule in schema.get("x-kubernetes-validations", []):
        if "oldSelf" in rule["rule"] and old is None:
            continue
        outcome = _program(rule["rule"]).eval(data={"self": value, "oldSelf": old})
        if outcome.type() != cel.Type.BOOL or not outcome.value():
            found.append(f"{path}: {rule['message']} ({outcome.value()})")
    if isinstance(value, dict):
        for name, part in schema.get("properties", {}).items():
            if name in value:
                before = old.get(name) if isinstance(old, dict) else None
                found += _rules(value[name], before, part, f"{path}.{name}")
        if isinstance(schema.get("additionalProperties"), dict):
            for name, part in value.items():
                found += _rules(part, None, schema["additionalProperties"], f"{path}.{name}")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            found += _rules(item, None, schema["items"], f"{path}[{i}]")
    return found
