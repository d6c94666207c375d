"""From a CustomResourceDefinition to the kinds that it serves.

Definitions are compiled once per content, not once per server: a thousand simulated worlds in one process share what a
schema compiles to. That is safe, because nothing in it depends on a world.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from springtide.cluster.errors import About, Cause, Invalid
from springtide.cluster.resources import Object, Resource
from springtide.simulator.api.custom.checks import judge_definition
from springtide.simulator.api.custom.scale import judge_scale
from springtide.simulator.api.custom.schema import Schema, compile_schema
from springtide.simulator.api.kinds import ScalePaths, ServedKind

_GROUP = "apiextensions.k8s.io"


def serve(crd: Object) -> tuple[ServedKind, ...]:
    """Give the kinds that a definition serves, one per served version; `Invalid` for a definition that is refused."""
    return _serve(msgspec.json.encode({"name": crd["metadata"]["name"], "spec": crd.get("spec")}))


def accepted(crd: Object) -> Object:
    """Give the definition as the server stores it, with its names filled in and its status."""
    spec = _completed(crd["spec"])
    before = crd.get("status") or {}
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    versions = list(before.get("storedVersions") or ())
    since = crd.get("metadata", {}).get("creationTimestamp")
    status = {
        "acceptedNames": spec["names"],
        "conditions": before.get("conditions")
        or [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", since),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", since),
        ],
        "storedVersions": versions if stored in versions else [*versions, stored],
    }
    return crd | {"spec": spec, "status": status}


@lru_cache(maxsize=1024)
def _serve(content: bytes) -> tuple[ServedKind, ...]:
    crd = msgspec.json.decode(content)
    causes = judge_definition(crd["name"], crd["spec"])
    if causes:
        about = About(crd["name"], _GROUP, "CustomResourceDefinition")
        raise Invalid(_refusal(crd["name"], causes), causes=causes, about=about)
    spec = _completed(crd["spec"])
    return tuple(_served(spec, version) for version in spec["versions"] if version.get("served"))


def _refusal(name: str, causes: tuple[Cause, ...]) -> str:
    listed = [f"{cause.field}: {cause.message}" for cause in causes]
    problems = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    return f'CustomResourceDefinition.{_GROUP} "{name}" is invalid: {problems}'


def _completed(spec: Object) -> Object:
    names = spec["names"]
    defaults = {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List"}
    return spec | {
        "conversion": spec.get("conversion") or {"strategy": "None"},
        "names": names | {name: text for name, text in defaults.items() if not names.get(name)},
    }


def _condition(kind: str, reason: str, message: str, since: str | None) -> Object:
    moment = {"lastTransitionTime": since} if since else {}
    return {**moment, "message": message, "reason": reason, "status": "True", "type": kind}


def _served(spec: Object, version: Object) -> ServedKind:
    names = spec["names"]
    schema = compile_schema(version["schema"]["openAPIV3Schema"])
    subresources = version.get("subresources") or {}
    scale = _scale_paths(subresources.get("scale"))
    return ServedKind(
        resource=Resource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec["scope"] == "Namespaced",
        ),
        structure=schema.structure,
        singular=names["singular"],
        list_kind=names["listKind"],
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(name for name in ("status", "scale") if subresources.get(name) is not None),
        scale=scale,
        strategic=False,
        complete=_completing(schema),
        prune=schema.prune,
        judge=schema.judge if scale is None else _judging(schema, scale),
        stored_version=next(each["name"] for each in spec["versions"] if each.get("storage")),
    )


def _scale_paths(written: Any) -> ScalePaths | None:
    if written is None:
        return None
    return ScalePaths(
        spec=written["specReplicasPath"],
        status=written["statusReplicasPath"],
        selector=written.get("labelSelectorPath") or "",
    )


def _completing(schema: Schema) -> Callable[[Object], Object]:
    def complete(value: Object) -> Object:
        return schema.default(schema.prune(value))

    return complete


def _judging(schema: Schema, scale: ScalePaths) -> Callable[[Object, Object | None], tuple[Cause, ...]]:
    def judge(new: Object, old: Object | None) -> tuple[Cause, ...]:
        return (*schema.judge(new, old), *judge_scale(new, scale))

    return judge
