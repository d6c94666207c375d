"""The names under which documents list types."""

from __future__ import annotations

_META = "io.k8s.apimachinery.pkg.apis.meta."
_ELSEWHERE = {
    "apiextensions.": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.",
    "apiregistration.": "io.k8s.kube-aggregator.pkg.apis.apiregistration.",
    "meta.": _META,
}
OBJECT_META = "meta.v1.ObjectMeta"


def builtin_name(type_: str) -> str:
    """Name a built-in type, such as `core.v1.Pod`, as the documents of Kubernetes do."""
    for prefix, full in _ELSEWHERE.items():
        if type_.startswith(prefix):
            return full + type_.removeprefix(prefix)
    return f"io.k8s.api.{type_}"


def custom_name(group: str, version: str, kind: str) -> str:
    """Name a custom kind: its group backwards, as package names are."""
    return ".".join((*reversed(group.split(".")), version, kind))


def reference(name: str) -> dict[str, str]:
    """Refer to a type of the same document."""
    return {"$ref": f"#/components/schemas/{name}"}
