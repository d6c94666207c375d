"""What becomes of fields that nobody knows and of fields that stand twice: a refusal, a warning, or nothing.

`fieldValidation` decides. Whatever it says, built-in kinds lose what they do not know.
"""

from __future__ import annotations

import json
from typing import Any

from springtide.cluster.errors import About, BadRequest, Cause, Invalid
from springtide.cluster.port import Patch, PatchType
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import mistyped
from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.api.metadata import distinct_owners
from springtide.simulator.api.patching import patched
from springtide.simulator.api.values import found as found_at
from springtide.simulator.http.bodies import JSON_TYPES, Body
from springtide.simulator.http.repeated import Path
from springtide.simulator.http.unknown import (
    shown,
    shown_with_keys,
    unknown_fields,
    unknown_in_operations,
    without,
)

_REPEATED_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)

Checked = tuple[Any, tuple[str, ...]]
"""A body as it is to be used, and the warnings that it earns."""


def checked_object(kind: ServedKind, body: Body, validation: str) -> Checked:
    """Check the body of a create or an update."""
    unknown = unknown_fields(kind, body.value)
    found = _told(body, unknown, interleaved=kind.strategic)
    if found and validation == "Strict":
        resource = kind.resource
        text = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        lines = ["yaml: unmarshal errors:\n  " + "\n  ".join(body.lines)] if body.lines else []
        raise BadRequest(f"{text}: strict decoding error: {', '.join((*lines, *found[len(body.lines) :]))}")
    _check_types(kind, body.value)
    value = without(body.value, unknown) if kind.strategic else body.value
    return value, (*_warnings(found, validation), *_of_owners(body.value))


def _check_types(kind: ServedKind, value: Any) -> None:
    """Refuse values that a server cannot read into the structures of a built-in kind."""
    wrong = mistyped(value, kind.structure) if kind.strategic and isinstance(value, dict) else None
    if wrong is not None:
        text = f'{kind.resource.kind} in version "{kind.resource.version}" cannot be handled as a {kind.resource.kind}'
        raise BadRequest(f"{text}: {wrong.field}: {wrong.message}")


def _of_owners(value: Any) -> tuple[str, ...]:
    """Warn of owners that are named more than once."""
    owners = found_at(value, ("metadata", "ownerReferences"))
    repeated = distinct_owners(owners)[1] if isinstance(owners, list) else []
    uids = ", ".join(str(owner.get("uid", "")) for owner in repeated if isinstance(owner, dict))
    return (_REPEATED_OWNERS + uids,) if uids else ()


def checked_patch(kind: ServedKind, type_: PatchType, body: Body, validation: str, live: Object | None) -> Checked:
    """Check the body of a patch other than an apply; `live` is what it is about, if that exists."""
    value = body.value
    if type_ is PatchType.MERGE and not isinstance(value, dict):
        raise BadRequest(_not_merged(value))
    if type_ is PatchType.JSON:
        placed = unknown_in_operations(kind, value)
        unknown = [path for _, path in placed]
        found = [f'json patch duplicate field "{shown(path)}"' for path in body.repeated]
        found += [f'unknown field "{shown(path)}"' for path in unknown]
        useless = {index for index, _ in placed} if kind.strategic else ()
        used = [each for index, each in enumerate(value) if index not in useless] if useless else value
    else:
        unknown = unknown_fields(kind, value, patch=True)
        found = _told(body, unknown, interleaved=False)
        used = without(value, unknown) if kind.strategic else value
    if found and validation == "Strict" and live is not None:
        raise _strict_patch(kind, live, Patch(type_, value), found)
    return used, _warnings(found, validation)


def _not_merged(value: Any) -> str:
    if value is None:
        return "Invalid JSON Patch"
    told = f"json: cannot unmarshal {JSON_TYPES[type(value)]} into Go value of type map[string]interface {{}}"
    return f"error decoding patch: {told}"


def checked_apply(kind: ServedKind, name: str, body: Body) -> None:
    """Refuse an apply of fields that the kind does not have: nobody could own them."""
    # A real server answers with a code that blames itself; it is the request that is at fault.
    if unknown := unknown_fields(kind, body.value):
        version = kind.resource.api_version
        told = [f"{shown_with_keys(kind, body.value, path)}: field not declared in schema" for path in unknown]
        text = told[0] if len(told) == 1 else "errors:\n  " + "\n  ".join(told)
        where = f"/{name}; {version if kind.resource.group else '/' + version}, Kind={kind.resource.kind}"
        raise BadRequest(f"failed to create typed patch object ({where}): {text}")


def _told(body: Body, unknown: list[Path], *, interleaved: bool) -> list[str]:
    strange = set(unknown)
    repeated = [path for path in body.repeated if not interleaved or path not in strange]
    marked = [(path, f'duplicate field "{shown(path)}"') for path in dict.fromkeys(repeated)]
    marked += [(path, f'unknown field "{shown(path)}"') for path in unknown]
    if interleaved and repeated:
        places = _places(body.value)
        marked.sort(key=lambda each: places.get(each[0], 0))
    return [*body.lines, *(text for _, text in marked)]


def _places(value: Any) -> dict[Path, int]:
    """Number all places of a value in the order in which they stand."""
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
    result = json.dumps(patched(kind, live, patch, kind.structure), separators=(",", ":"), sort_keys=True)
    message = f"Invalid value: {json.dumps(result)}: strict decoding error: {', '.join(found)}"
    cause = Cause("patch", message)
    return Invalid(f' "" is invalid: patch: {message}', causes=(cause,), about=About())
