"""Field validation: unknown and duplicate fields are refused, warned of or ignored (`fieldValidation`).

Custom kinds drop unknown fields on writes. Built-in kinds have them dropped here in any case, as a kube-apiserver drops
them when it decodes a body.
"""

from __future__ import annotations

import json
from typing import Any

from springtide.apiserver.builtin.validation import first_type_error
from springtide.apiserver.http.bodies import JSON_TYPES, Path, RequestBody
from springtide.apiserver.kinds import ListType, ServedKind, StructureNode, undeclared_fields
from springtide.apiserver.metadata import distinct_owners
from springtide.apiserver.patching import apply_patch
from springtide.apiserver.values import value_at
from springtide.cluster.errors import BadRequest, Invalid, StatusCause, StatusDetails
from springtide.cluster.resources import Object
from springtide.cluster.transport import Patch, PatchType

_MAX_REPORTED = 100
"""The maximum number of reported fields."""

_REPEATED_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)

Checked = tuple[Any, tuple[str, ...]]
"""The body to use, and warnings."""


def unknown_fields(kind: ServedKind, value: Any, *, patch: bool = False) -> list[Path]:
    """Return the paths of unknown fields; nulls and directives of patches are not fields."""
    found = []
    for path in undeclared_fields(value, kind.structure, (), closed=kind.strategic, patch=patch):
        found.append(path)
        if len(found) == _MAX_REPORTED:
            break
    return found if kind.strategic else sorted(found, key=format_path)


def unknown_in_operations(kind: ServedKind, operations: Any) -> list[tuple[int, Path]]:
    """Return the unknown fields that a JSON patch adds, each with the index of its operation."""
    found: list[tuple[int, Path]] = []
    for index, operation in enumerate(operations if isinstance(operations, list) else ()):
        if not isinstance(operation, dict) or operation.get("op") not in ("add", "replace"):
            continue
        pointer = operation.get("path")
        if isinstance(pointer, str) and pointer.startswith("/"):
            steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]
            value = _nested(steps, operation.get("value"))
            found += [
                (index, path)
                for path in undeclared_fields(value, kind.structure, (), closed=kind.strategic, patch=True)
            ]
    return found[:_MAX_REPORTED]


def drop_fields(value: Any, paths: list[Path]) -> Any:
    """Return a value without some fields; unaffected parts are shared."""
    for path in sorted(paths, key=len, reverse=True):
        value = _dropped(value, path)
    return value


def format_path(path: Path) -> str:
    """Format a path for messages of strict decoding."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def format_path_with_keys(kind: ServedKind, value: Any, path: Path) -> str:
    """Format a path for messages of apply, with list entries named by their keys."""
    node, text = kind.structure, ""
    for step in path:
        if isinstance(step, int):
            text += f"[{_entry_name(value[step], node, step)}]"
            node = node.items or StructureNode()
        else:
            text += f".{step}"
            node = node.child(step)
        value = value[step]
    return text


def _nested(steps: list[str], value: Any) -> Any:
    for step in reversed(steps):
        value = [value] if step == "-" or step.isdigit() else {step: value}
    return value


def _dropped(value: Any, path: Path) -> Any:
    step, rest = path[0], path[1:]
    if isinstance(value, list) and isinstance(step, int):
        return [*value[:step], _dropped(value[step], rest), *value[step + 1 :]]
    if not rest:
        return {name: part for name, part in value.items() if name != step}
    return {**value, step: _dropped(value[step], rest)}


def _entry_name(entry: Any, node: StructureNode, index: int) -> str:
    if node.list_kind is not ListType.MAP or not isinstance(entry, dict):
        return str(index)
    keys = {key: entry.get(key, node.key_defaults.get(key)) for key in sorted(node.keys)}
    return ",".join(f"{key}={json.dumps(value)}" for key, value in keys.items() if value is not None)


def check_object(kind: ServedKind, body: RequestBody, validation: str) -> Checked:
    """Validate the body of a create or an update."""
    unknown = unknown_fields(kind, body.value)
    found = _messages(body, unknown, interleaved=kind.strategic)
    if found and validation == "Strict":
        resource = kind.resource
        text = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        lines = ["yaml: unmarshal errors:\n  " + "\n  ".join(body.lines)] if body.lines else []
        raise BadRequest(f"{text}: strict decoding error: {', '.join((*lines, *found[len(body.lines) :]))}")
    _check_types(kind, body.value)
    value = drop_fields(body.value, unknown) if kind.strategic else body.value
    return value, (*_warnings(found, validation), *_owner_warnings(body.value))


def _check_types(kind: ServedKind, value: Any) -> None:
    """Refuse values of wrong types in a built-in kind."""
    wrong = first_type_error(value, kind.structure) if kind.strategic and isinstance(value, dict) else None
    if wrong is not None:
        text = f'{kind.resource.kind} in version "{kind.resource.version}" cannot be handled as a {kind.resource.kind}'
        raise BadRequest(f"{text}: {wrong.field}: {wrong.message}")


def _owner_warnings(value: Any) -> tuple[str, ...]:
    """Warn of duplicate owner references."""
    owners = value_at(value, ("metadata", "ownerReferences"))
    duplicates = distinct_owners(owners)[1] if isinstance(owners, list) else []
    uids = ", ".join(str(owner.get("uid", "")) for owner in duplicates if isinstance(owner, dict))
    return (_REPEATED_OWNERS + uids,) if uids else ()


def check_patch(kind: ServedKind, type_: PatchType, body: RequestBody, validation: str, live: Object | None) -> Checked:
    """Validate the body of a patch other than an apply; `live` is the stored object, if there is one."""
    value = body.value
    if type_ is PatchType.MERGE and not isinstance(value, dict):
        raise BadRequest(_merge_error(value))
    if type_ is PatchType.JSON:
        placed = unknown_in_operations(kind, value)
        unknown = [path for _, path in placed]
        found = [f'json patch duplicate field "{format_path(path)}"' for path in body.duplicates]
        found += [f'unknown field "{format_path(path)}"' for path in unknown]
        dropped = {index for index, _ in placed} if kind.strategic else ()
        used = [each for index, each in enumerate(value) if index not in dropped] if dropped else value
    else:
        unknown = unknown_fields(kind, value, patch=True)
        found = _messages(body, unknown, interleaved=False)
        used = drop_fields(value, unknown) if kind.strategic else value
    if found and validation == "Strict" and live is not None:
        raise _strict_patch(kind, live, Patch(type_, value), found)
    return used, _warnings(found, validation)


def _merge_error(value: Any) -> str:
    if value is None:
        return "Invalid JSON Patch"
    messages = f"json: cannot unmarshal {JSON_TYPES[type(value)]} into Go value of type map[string]interface {{}}"
    return f"error decoding patch: {messages}"


def check_apply(kind: ServedKind, name: str, body: RequestBody) -> None:
    """Refuse an apply with unknown fields: they cannot be owned."""
    # A kube-apiserver answers with 500, although the request is at fault.
    if unknown := unknown_fields(kind, body.value):
        version = kind.resource.api_version
        messages = [
            f"{format_path_with_keys(kind, body.value, path)}: field not declared in schema" for path in unknown
        ]
        text = messages[0] if len(messages) == 1 else "errors:\n  " + "\n  ".join(messages)
        where = f"/{name}; {version if kind.resource.group else '/' + version}, Kind={kind.resource.kind}"
        raise BadRequest(f"failed to create typed patch object ({where}): {text}")


def _messages(body: RequestBody, unknown: list[Path], *, interleaved: bool) -> list[str]:
    unknown_paths = set(unknown)
    duplicates = [path for path in body.duplicates if not interleaved or path not in unknown_paths]
    marked = [(path, f'duplicate field "{format_path(path)}"') for path in dict.fromkeys(duplicates)]
    marked += [(path, f'unknown field "{format_path(path)}"') for path in unknown]
    if interleaved and duplicates:
        places = _positions(body.value)
        marked.sort(key=lambda each: places.get(each[0], 0))
    return [*body.lines, *(text for _, text in marked)]


def _positions(value: Any) -> dict[Path, int]:
    """Number the paths of a value in document order."""
    places: dict[Path, int] = {}

    def walk(part: Any, path: Path) -> None:
        places[path] = len(places)
        if isinstance(part, dict):
            for name, inner in part.items():
                walk(inner, (*path, name))
        elif isinstance(part, list):
            for index, inner in enumerate(part):
                walk(inner, (*path, index))

    walk(value, ())
    return places


def _warnings(found: list[str], validation: str) -> tuple[str, ...]:
    return tuple(found) if validation == "Warn" else ()


def _strict_patch(kind: ServedKind, live: Object, patch: Patch, found: list[str]) -> Invalid:
    result = json.dumps(apply_patch(kind, live, patch, kind.structure), separators=(",", ":"), sort_keys=True)
    message = f"Invalid value: {json.dumps(result)}: strict decoding error: {', '.join(found)}"
    cause = StatusCause("patch", message)
    return Invalid(f' "" is invalid: patch: {message}', causes=(cause,), about=StatusDetails())
