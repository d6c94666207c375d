"""Discovery documents: the groups, versions and resources that are served.

There are two forms: one document per group version, and an aggregated document with an ETag. Both are generated from
the catalogue on request, so a kind is discoverable with the write that creates its CRD.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from springtide.apiserver.http.auth import REVIEW_KINDS, ReviewKind
from springtide.apiserver.http.requests import HttpApiRequest
from springtide.apiserver.http.responses import Response, clauses, encode
from springtide.apiserver.kinds import Catalogue, ServedKind

_SHAPE = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY = {"alpha": 0, "beta": 1, None: 2}

_GROUP = "apidiscovery.k8s.io"
_AGGREGATED = "APIGroupDiscoveryList"
_SUBRESOURCE_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
    "binding": ("", "v1", "Binding"),
}
_SUBRESOURCE_VERBS = {"eviction": ("create",), "binding": ("create",), "finalize": ("update",)}
_CHANGE_VERBS = ("get", "patch", "update")
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")

Document = dict[str, Any]


def newest_first(versions: set[str]) -> list[str]:
    """Order versions by preference: stable, beta, alpha, newer ones first; other names last, alphabetically."""
    known = [version for version in versions if _SHAPE.fullmatch(version)]
    return sorted(known, key=_rank, reverse=True) + sorted(versions - set(known))


def _rank(version: str) -> tuple[int, int, int]:
    shape = _SHAPE.fullmatch(version)
    assert shape is not None  # noqa: S101 - only versions of this shape are ranked
    major, stability, minor = shape.groups()
    return _STABILITY[stability], int(major), int(minor or 0)


class Discovery:
    """Serves discovery documents."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def answer(self, request: HttpApiRequest, parts: list[str]) -> Response | None:
        """Return a discovery document; None for other paths."""
        match parts:
            case []:
                return _answer({"paths": self._paths()})
            case ["api" | "apis" as root]:
                if version := _aggregated(request.header("accept")):
                    return self._whole(request, root, version)
                return _answer(self._versions() if root == "api" else self._groups())
            case ["api", version]:
                return self._resources("", version)
            case ["apis", group]:
                return self._group(group)
            case ["apis", group, version]:
                return self._resources(group, version)
            case _:
                return None

    def versions(self, group: str) -> list[str]:
        """Return the versions of a group; none for an unknown group."""
        return self.groups().get(group, [])

    def is_builtin(self, group: str) -> bool:
        """Return whether a group is built in."""
        return any(kind.strategic for kind in self._catalogue.all() if kind.resource.group == group)

    def groups(self) -> dict[str, list[str]]:
        """Return all groups with their versions, by preference."""
        served: dict[str, set[str]] = {}
        for kind in self._catalogue.all():
            served.setdefault(kind.resource.group, set()).add(kind.resource.version)
        for virtual in REVIEW_KINDS:
            served.setdefault(virtual.group, set()).add(virtual.version)
        return {group: newest_first(served[group]) for group in sorted(served)}

    def _paths(self) -> list[str]:
        paths = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]
        for group, versions in self.groups().items():
            if group:
                paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return sorted(paths)

    def _versions(self) -> Document:
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}

    def _groups(self) -> Document:
        groups = [_group(group, versions) for group, versions in self.groups().items() if group]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _group(self, group: str) -> Response | None:
        versions = self.groups().get(group)
        if not versions or not group:
            return None
        return _answer({"kind": "APIGroup", "apiVersion": "v1"} | _group(group, versions))

    def _resources(self, group: str, version: str) -> Response | None:
        if version not in self.groups().get(group, ()):
            return None
        resources = [each for kind in self._kinds(group, version) for each in _described(kind)]
        resources += [_virtual(each) for each in _virtuals(group, version)]
        return _answer(
            {
                "kind": "APIResourceList",
                # The core group's list is older than the convention that each object has an apiVersion.
                **({"apiVersion": "v1"} if group else {}),
                "groupVersion": f"{group}/{version}" if group else version,
                "resources": sorted(resources, key=lambda each: str(each["name"])),
            }
        )

    def _whole(self, request: HttpApiRequest, root: str, form: str) -> Response:
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [self._version(group, version) for version in versions],
            }
            for group, versions in self.groups().items()
            if (root == "api") == (not group)
        ]
        body = encode({"kind": _AGGREGATED, "apiVersion": f"{_GROUP}/{form}", "metadata": {}, "items": items}) + b"\n"
        tag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
        headers = ("etag", tag), ("vary", "Accept")
        media = f"application/json;g={_GROUP};v={form};as={_AGGREGATED}"
        if request.header("if-none-match") == tag:
            return Response(b"", 304, media, headers)
        return Response(body, 200, media, headers)

    def _version(self, group: str, version: str) -> Document:
        resources = [_nested(kind) for kind in self._kinds(group, version)]
        resources += [_virtual_nested(each) for each in _virtuals(group, version)]
        resources.sort(key=lambda each: str(each["resource"]))
        return {"version": version, "resources": resources, "freshness": "Current"}

    def _kinds(self, group: str, version: str) -> list[ServedKind]:
        return [
            kind for kind in self._catalogue.all() if kind.resource.group == group and kind.resource.version == version
        ]


def _answer(document: Document) -> Response:
    return Response(encode(document) + b"\n", headers=(("vary", "Accept"),))


def _aggregated(accept: str) -> str:
    """Return the preferred version of the aggregated form; empty for the other form."""
    for clause in clauses(accept):
        asked = clause.parameters
        if clause.media == "application/json" and not asked:
            return ""
        if (asked.get("g"), asked.get("as")) == (_GROUP, _AGGREGATED) and asked.get("v") in ("v2", "v2beta1"):
            return asked["v"]
    return ""


def _group(group: str, versions: Iterable[str]) -> Document:
    named = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": named, "preferredVersion": named[0]}


def _described(kind: ServedKind) -> Iterable[Document]:
    resource = kind.resource
    whole = {
        "name": resource.plural,
        "singularName": kind.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        whole["shortNames"] = list(kind.short_names)
    if kind.categories:
        whole["categories"] = list(kind.categories)
    yield whole
    for name in kind.subresources:
        group, version, named = _subresource_kind(kind, name)
        part = {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": named,
            "verbs": list(_SUBRESOURCE_VERBS.get(name, _CHANGE_VERBS)),
        }
        yield part if (group, version) == (resource.group, resource.version) else part | _gv(group, version)


def _nested(kind: ServedKind) -> Document:
    resource = kind.resource
    whole: Document = {
        "resource": resource.plural,
        "responseKind": _response_kind(kind, resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        whole["shortNames"] = list(kind.short_names)
    if kind.categories:
        whole["categories"] = list(kind.categories)
    parts = []
    for name in kind.subresources:
        group, version, named = _subresource_kind(kind, name)
        parts.append(
            {
                "subresource": name,
                "responseKind": _response_kind(kind, group, version, named),
                "verbs": list(_SUBRESOURCE_VERBS.get(name, _CHANGE_VERBS)),
            }
        )
    return whole | ({"subresources": parts} if parts else {})


def _response_kind(kind: ServedKind, group: str, version: str, named: str) -> Document:
    """Return the response kind; built-in kinds omit the group and version of the document."""
    if kind.strategic and (group, version) == (kind.resource.group, kind.resource.version):
        group = version = ""
    return {"group": group, "version": version, "kind": named}


def _verbs(kind: ServedKind) -> list[str]:
    """Return verbs in the usual order, which differs for custom kinds."""
    return list(kind.verbs) if kind.strategic else sorted(kind.verbs, key=_CUSTOM_VERBS.index)


def _subresource_kind(kind: ServedKind, name: str) -> tuple[str, str, str]:
    resource = kind.resource
    return _SUBRESOURCE_KINDS.get(name, (resource.group, resource.version, resource.kind))


def _gv(group: str, version: str) -> Document:
    return ({"group": group} if group else {}) | {"version": version}


def _virtuals(group: str, version: str) -> list[ReviewKind]:
    return [each for each in REVIEW_KINDS if (each.group, each.version) == (group, version)]


def _virtual(each: ReviewKind) -> Document:
    return {
        "name": each.plural,
        "singularName": each.kind.lower(),
        "namespaced": each.namespaced,
        "kind": each.kind,
        "verbs": ["create"],
    }


def _virtual_nested(each: ReviewKind) -> Document:
    return {
        "resource": each.plural,
        "responseKind": {"group": each.group, "version": each.version, "kind": each.kind},
        "scope": "Namespaced" if each.namespaced else "Cluster",
        "singularResource": each.kind.lower(),
        "verbs": ["create"],
    }
