"""Write the data file of built-in kinds from the OpenAPI v3 documents that a kube-apiserver publishes.

    python tools/builtin_kinds.py FOLDER [--kubernetes VERSION] [--output FILE]

FOLDER holds one document per group and version, named as in the sources of Kubernetes (`apis__apps__v1_openapi.json`,
`api__v1_openapi.json`). Only what merging, defaulting and validation need is kept, without descriptions. The
output depends on the documents only.

A type is `{"fields": {NAME: FIELD}, "required": [...], "atomic": true}`. A field is the name of a scalar (`string`,
`integer`, `number`, `boolean`, `any`, `int-or-string`, `quantity`), `@TYPE`, or an object with details:

    type      a scalar, `@TYPE`, `list` or `map`
    of        the type of the entries of a list or of the values of a map
    present   true: the field is a Go struct without a pointer, which is there even if unset
    list      `map` or `set`; atomic if not given           keys      the fields that identify the entries of such a map
    merge     true: strategic patches merge the list        key       the field that identifies entries
    retain    true: strategic patches of it may say `$retainKeys`
    replace   true: strategic patches replace it as a whole
    atomic    whether an object is owned and replaced as a whole, where that differs from its type
    default   the value if there is none                    nullable  true: null is a value
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).parent.parent / "src" / "springtide" / "apiserver" / "builtin" / "kinds.json"


@dataclass(frozen=True)
class IncludedKind:
    """A kind to include, with its short names, which OpenAPI documents lack."""

    kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


_ALL = ("all",)

INCLUDED: dict[str, tuple[IncludedKind, ...]] = {
    "v1": (
        IncludedKind("ConfigMap", ("cm",)),
        IncludedKind("Event", ("ev",)),
        IncludedKind("LimitRange", ("limits",)),
        IncludedKind("Namespace", ("ns",)),
        IncludedKind("Node", ("no",)),
        IncludedKind("PersistentVolume", ("pv",)),
        IncludedKind("PersistentVolumeClaim", ("pvc",)),
        IncludedKind("Pod", ("po",), _ALL),
        IncludedKind("PodTemplate"),
        IncludedKind("ReplicationController", ("rc",), _ALL),
        IncludedKind("ResourceQuota", ("quota",)),
        IncludedKind("Secret"),
        IncludedKind("Service", ("svc",), _ALL),
        IncludedKind("ServiceAccount", ("sa",)),
    ),
    "admissionregistration.k8s.io/v1": (
        IncludedKind("MutatingWebhookConfiguration", (), ("api-extensions",)),
        IncludedKind("ValidatingWebhookConfiguration", (), ("api-extensions",)),
    ),
    "apiextensions.k8s.io/v1": (IncludedKind("CustomResourceDefinition", ("crd", "crds"), ("api-extensions",)),),
    "apiregistration.k8s.io/v1": (IncludedKind("APIService", (), ("api-extensions",)),),
    "apps/v1": (
        IncludedKind("ControllerRevision"),
        IncludedKind("DaemonSet", ("ds",), _ALL),
        IncludedKind("Deployment", ("deploy",), _ALL),
        IncludedKind("ReplicaSet", ("rs",), _ALL),
        IncludedKind("StatefulSet", ("sts",), _ALL),
    ),
    "autoscaling/v1": (IncludedKind("HorizontalPodAutoscaler", ("hpa",), _ALL),),
    "autoscaling/v2": (IncludedKind("HorizontalPodAutoscaler", ("hpa",), _ALL),),
    "batch/v1": (
        IncludedKind("CronJob", ("cj",), _ALL),
        IncludedKind("Job", (), _ALL),
    ),
    "coordination.k8s.io/v1": (IncludedKind("Lease"),),
    "networking.k8s.io/v1": (IncludedKind("NetworkPolicy", ("netpol",)),),
    "policy/v1": (IncludedKind("PodDisruptionBudget", ("pdb",)),),
    "rbac.authorization.k8s.io/v1": (
        IncludedKind("ClusterRole"),
        IncludedKind("ClusterRoleBinding"),
        IncludedKind("Role"),
        IncludedKind("RoleBinding"),
    ),
    "scheduling.k8s.io/v1": (IncludedKind("PriorityClass", ("pc",)),),
    "storage.k8s.io/v1": (
        IncludedKind("CSINode"),
        IncludedKind("StorageClass", ("sc",)),
        IncludedKind("VolumeAttachment"),
    ),
}

_SUBRESOURCES = ("binding", "eviction", "finalize", "scale", "status")
_VERBS = {
    "delete": "delete",
    "deletecollection": "deletecollection",
    "get": "get",
    "list": "list",
    "patch": "patch",
    "post": "create",
    "put": "update",
    "watch": "watch",
    "watchlist": "watch",
}
_METHODS = ("delete", "get", "patch", "post", "put")
_SCALARS = ("boolean", "integer", "number", "string")
_NO_DEFAULT: tuple[Any, ...] = ("", {}, 0, False, [])
"""Defaults in the documents that are Go's zero values, which the server does not fill in."""


def generate(
    folder: Path, kubernetes: str = "", included: dict[str, tuple[IncludedKind, ...]] = INCLUDED
) -> dict[str, Any]:
    """Return the content of the data file."""
    kinds: list[dict[str, Any]] = []
    types: dict[str, Any] = {}
    version = kubernetes
    for api_version, names in sorted(included.items()):
        path = f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"
        document = json.loads((folder / f"{path.replace('/', '__')}_openapi.json").read_text("utf-8"))
        version = version or document["info"]["version"]
        schemas = document["components"]["schemas"]
        for name in names:
            kinds.append(_kind(document, f"/{path}/", api_version, name))
            _collect(_schema_of(schemas, api_version, name.kind), schemas, types)
    kinds.sort(key=lambda kind: (kind["group"], kind["plural"], kind["version"]))
    return {"kubernetes": version, "kinds": kinds, "types": dict(sorted(types.items()))}


def render(data: dict[str, Any]) -> str:
    """Format the content: one kind or type per line, for readable diffs between versions."""
    kinds = ",\n".join(_compact(kind) for kind in data["kinds"])
    types = ",\n".join(f"{_compact(name)}:{_compact(type_)}" for name, type_ in data["types"].items())
    return f'{{"kubernetes":{_compact(data["kubernetes"])},\n"kinds":[\n{kinds}\n],\n"types":{{\n{types}\n}}}}\n'


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


def _kind(document: dict[str, Any], prefix: str, api_version: str, included: IncludedKind) -> dict[str, Any]:
    """Return a kind with the verbs that the paths have."""
    group, _, version = api_version.rpartition("/")
    meant = {"group": group, "version": version, "kind": included.kind}
    plural = ""
    verbs: set[str] = set()
    for path, action, kind in _operations(document):
        if kind == meant and path.endswith("/{name}"):
            verbs.add(_VERBS[action])
            plural = path.split("/")[-2]
    if not plural:
        raise SystemExit(f"the document of {api_version} has no paths of {included.kind}")

    namespaced = False
    subresources: set[str] = set()
    for path, action, kind in _operations(document):
        rest = path.removeprefix(prefix).removeprefix("watch/")
        scoped = rest.removeprefix("namespaces/{namespace}/")
        parts = scoped.split("/")
        if parts[0] != plural:
            continue
        namespaced |= scoped != rest
        if len(parts) == 3 and parts[2] in _SUBRESOURCES:
            subresources.add(parts[2])
        elif kind == meant and len(parts) < 3:
            verbs.add(_VERBS[action])
    return {
        "group": group,
        "version": version,
        "kind": included.kind,
        "plural": plural,
        "singular": included.kind.lower(),
        "namespaced": namespaced,
        "verbs": sorted(verbs),
        "subresources": sorted(subresources),
        "shortNames": list(included.short_names),
        "categories": list(included.categories),
        "type": _type_name(_schema_of(document["components"]["schemas"], api_version, included.kind)),
    }


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, str] | None]]:
    for path, methods in document["paths"].items():
        for method in _METHODS:
            operation = methods.get(method)
            if operation and operation.get("x-kubernetes-action") in _VERBS:
                yield path, operation["x-kubernetes-action"], operation.get("x-kubernetes-group-version-kind")


def _schema_of(schemas: dict[str, Any], api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    meant = {"group": group, "version": version, "kind": kind}
    return next(name for name, schema in schemas.items() if schema.get("x-kubernetes-group-version-kind") == [meant])


def _type_name(schema: str) -> str:
    """Shorten `io.k8s.api.core.v1.Pod` to `core.v1.Pod`: group, version and name identify all types."""
    return ".".join(schema.split(".")[-3:])


def _collect(start: str, schemas: dict[str, Any], types: dict[str, Any]) -> None:
    """Add a type and all types that its fields refer to."""
    waiting = [start]
    while waiting:
        schema = waiting.pop()
        name = _type_name(schema)
        if name in types:
            continue
        described = schemas[schema]
        made: dict[str, Any] = {"fields": {}}
        types[name] = made
        for field, content in described.get("properties", {}).items():
            made["fields"][field] = _field(content, schemas, waiting)
        if described.get("required"):
            made["required"] = described["required"]
        if described.get("x-kubernetes-map-type") == "atomic":
            made["atomic"] = True


def _field(content: dict[str, Any], schemas: dict[str, Any], waiting: list[str]) -> Any:
    """Return the type of a field, entry or value."""
    place: dict[str, Any] = {}
    reference = content.get("$ref") or next((part["$ref"] for part in content.get("allOf", ())), "")
    if reference:
        schema = reference.rpartition("/")[2]
        place["type"] = _reference(schema, schemas[schema])
        if place["type"].startswith("@"):
            waiting.append(schema)
            if content.get("default") == {}:
                place["present"] = True
    elif content.get("type") == "array":
        place |= {"type": "list", "of": _entry(content["items"], schemas, waiting)}
    elif content.get("type") == "object" and "additionalProperties" in content:
        place |= {"type": "map", "of": _entry(content["additionalProperties"], schemas, waiting)}
    else:
        place["type"] = content["type"] if content.get("type") in _SCALARS else "any"

    if content.get("x-kubernetes-list-type", "atomic") != "atomic":
        place["list"] = content["x-kubernetes-list-type"]
    if keys := content.get("x-kubernetes-list-map-keys"):
        place["keys"] = keys
    strategies = content.get("x-kubernetes-patch-strategy", "").split(",")
    if "merge" in strategies:
        place["merge"] = True
    if "retainKeys" in strategies:
        place["retain"] = True
    if "replace" in strategies:
        place["replace"] = True
    if key := content.get("x-kubernetes-patch-merge-key"):
        place["key"] = key
    if map_type := content.get("x-kubernetes-map-type"):
        place["atomic"] = map_type == "atomic"
    if content.get("default") is not None and content["default"] not in _NO_DEFAULT:
        place["default"] = content["default"]
    if content.get("nullable"):
        place["nullable"] = True
    return place["type"] if len(place) == 1 else place


def _entry(content: dict[str, Any], schemas: dict[str, Any], waiting: list[str]) -> Any:
    """Return the type of the entries of a list or map. Entries have no defaults."""
    return _field({name: value for name, value in content.items() if name != "default"}, schemas, waiting)


def _reference(schema: str, described: dict[str, Any]) -> str:
    """Return the target of a reference: a type with fields, or a scalar."""
    if schema.endswith(".Quantity"):
        return "quantity"
    if described.get("format") == "int-or-string":
        return "int-or-string"
    if described.get("properties"):
        return f"@{_type_name(schema)}"
    return described["type"] if described.get("type") in _SCALARS else "any"


def main() -> None:
    """Read the documents and write the file."""
    parser = argparse.ArgumentParser(description="Write the data file of built-in kinds from OpenAPI v3 documents.")
    parser.add_argument("folder", type=Path, help="where the documents are")
    parser.add_argument("--kubernetes", default="", help="the version, where the documents do not name it")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the file to write")
    given = parser.parse_args()
    given.output.write_text(render(generate(given.folder, given.kubernetes)), "utf-8")


if __name__ == "__main__":
    main()
