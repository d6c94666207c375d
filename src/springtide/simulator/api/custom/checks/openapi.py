"""One schema of a definition, judged in stages: each of them needs what the one before has made sure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from springtide.cluster.errors import Cause
from springtide.simulator.api.custom import wording
from springtide.simulator.api.custom.checks.defaults import judge_defaults
from springtide.simulator.api.custom.checks.expressions import judge_expressions
from springtide.simulator.api.custom.checks.keywords import judge_keywords
from springtide.simulator.api.custom.checks.structural import judge_structure
from springtide.simulator.api.custom.places import read

_ALLOWED_WITH_STATUS: Final = (
    "description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength",
    "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items", "properties",
    "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
)  # fmt: skip


def judge_schema(written: Mapping[str, Any], path: str, *, status: bool) -> Iterator[Cause]:
    """Find what is wrong with a schema; with `status`, the status is a subresource and has its part of the schema."""
    if status:
        yield from _judge_root(written, path)
    if written.get("nullable") is True:
        yield wording.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    structure = judge_structure(written, path)
    yield from structure
    keywords = [*judge_keywords(written, path)]
    yield from keywords
    if structure or keywords:
        return
    place = read(written)
    defaults = [*judge_defaults(place, path)]
    yield from defaults
    if not defaults:
        yield from judge_expressions(place, path, resource=True)


def _judge_root(written: Mapping[str, Any], path: str) -> Iterator[Cause]:
    if written.get("type") not in (None, "", "object"):
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield wording.invalid(f"{path}.type", written["type"], detail)
    elif foreign := [name for name in written if name not in _ALLOWED_WITH_STATUS and written[name]]:
        detail = (
            f"only {' '.join(_ALLOWED_WITH_STATUS)} fields are allowed at the root of the schema if the status "
            f"subresource is enabled, not {', '.join(foreign)}"
        )
        yield wording.invalid(path, wording.OMITTED, detail)
