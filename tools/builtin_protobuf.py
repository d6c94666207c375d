"""Extracts the protobuf layout of the built-in kinds from the Go sources of k8s.io/api, and writes it as data.

Run it with the folder that holds the Go modules and their version, for example
`python tools/builtin_protobuf.py "$(go env GOMODCACHE)/k8s.io" v0.36.0`. Client libraries send built-in kinds in
protobuf, so the embedded API server must know which field has which number. Nothing else is taken from the sources.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_PACKAGES = {
    "admissionregistration.v1": "api/admissionregistration/v1",
    "apps.v1": "api/apps/v1",
    "authentication.v1": "api/authentication/v1",
    "authorization.v1": "api/authorization/v1",
    "autoscaling.v1": "api/autoscaling/v1",
    "autoscaling.v2": "api/autoscaling/v2",
    "batch.v1": "api/batch/v1",
    "coordination.v1": "api/coordination/v1",
    "core.v1": "api/core/v1",
    "meta.v1": "apimachinery/pkg/apis/meta/v1",
    "networking.v1": "api/networking/v1",
    "policy.v1": "api/policy/v1",
    "rbac.v1": "api/rbac/v1",
    "scheduling.v1": "api/scheduling/v1",
    "storage.v1": "api/storage/v1",
}
_ROOTS = (
    *(f"admissionregistration.v1.{kind}WebhookConfiguration" for kind in ("Mutating", "Validating")),
    *(f"apps.v1.{kind}" for kind in ("ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")),
    *(f"authentication.v1.{kind}" for kind in ("SelfSubjectReview", "TokenRequest", "TokenReview")),
    *(f"authorization.v1.{scope}SubjectAccessReview" for scope in ("", "Local")),
    *(f"authorization.v1.SelfSubject{what}Review" for what in ("Access", "Rules")),
    *(f"autoscaling.v1.{kind}" for kind in ("HorizontalPodAutoscaler", "Scale")),
    "autoscaling.v2.HorizontalPodAutoscaler",
    *(f"batch.v1.{kind}" for kind in ("CronJob", "Job")),
    "coordination.v1.Lease",
    *(f"core.v1.{kind}" for kind in ("Binding", "ConfigMap", "Event", "LimitRange", "Namespace", "Node", "Pod")),
    *(f"core.v1.{kind}" for kind in ("PersistentVolume", "PersistentVolumeClaim", "PodTemplate", "Secret", "Service")),
    *(f"core.v1.{kind}" for kind in ("ReplicationController", "ResourceQuota", "ServiceAccount")),
    "meta.v1.DeleteOptions",
    "networking.v1.NetworkPolicy",
    *(f"policy.v1.{kind}" for kind in ("Eviction", "PodDisruptionBudget")),
    *(f"rbac.v1.{kind}" for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
    "scheduling.v1.PriorityClass",
    *(f"storage.v1.{kind}" for kind in ("CSINode", "StorageClass", "VolumeAttachment")),
)
_SPECIAL = {
    "meta.v1.Duration": "duration",
    "meta.v1.FieldsV1": "json",
    "meta.v1.MicroTime": "time",
    "meta.v1.Time": "time",
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "int-or-string",
    "runtime.RawExtension": "json",
    "types.UID": "string",
    "types.NodeName": "string",
}
_BASIC = {
    "string": "string",
    "bool": "boolean",
    "int32": "integer",
    "int64": "integer",
    "int": "integer",
    "uint16": "integer",
    "uint32": "integer",
    "byte": "integer",
    "float64": "double",
    "[]byte": "bytes",
}
_ALIASES = {
    "v1": "core.v1",
    "metav1": "meta.v1",
    "apiv1": "core.v1",
    "corev1": "core.v1",
    "authnv1": "authentication.v1",
}
_STRUCT = re.compile(r"^type (\w+) struct \{$(.*?)^\}$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^type (\w+) (?!struct|interface)([\w\[\]\.\*]+)", re.MULTILINE)
_FIELD = re.compile(r"^\t(?:(\w+)\s+)?([\w\[\]\.\*]+)\s+`(.*)`", re.MULTILINE)
_TAG = re.compile(r'(\w+):"([^"]*)"')


class Sources:
    """The types of all packages."""

    def __init__(self, folder: Path, version: str) -> None:
        self._structs: dict[str, str] = {}
        self._named: dict[str, str] = {}
        for package, path in _PACKAGES.items():
            module, _, rest = path.partition("/")
            for file in sorted((folder / f"{module}@{version}" / rest).glob("*.go")):
                if file.name.startswith(("generated", "zz_")) or file.name.endswith("_test.go"):
                    continue
                text = file.read_text()
                self._structs |= {f"{package}.{name}": body for name, body in _STRUCT.findall(text)}
                self._named |= {f"{package}.{name}": base for name, base in _NAMED.findall(text)}

    def fields(self, name: str) -> Iterator[tuple[int, str, str]]:
        """Return the number, the name and the type of every field; `?` marks those whose zero value is left out."""
        package = name.rpartition(".")[0]
        for _, written, tags in _FIELD.findall(self._structs[name]):
            tag = dict(_TAG.findall(tags))
            if "protobuf" not in tag:
                continue
            label, *options = tag["json"].split(",")
            mark = "" if written.startswith("*") or "omitempty" not in options else "?"
            yield int(tag["protobuf"].split(",")[1]), label, self.type(written, package) + mark

    def type(self, written: str, package: str) -> str:
        """Return a Go type as the data file names it."""
        if written in _BASIC:
            return _BASIC[written]
        if written.startswith("*"):
            return self.type(written[1:], package)
        if written.startswith("[]"):
            return "list " + self.type(written[2:], package)
        if written.startswith("map["):
            return "map " + self.type(written.partition("]")[2], package)
        owner, _, base = written.rpartition(".")
        name = f"{_ALIASES.get(owner, owner) or package}.{base}"
        if name in _SPECIAL:
            return _SPECIAL[name]
        if name in self._named:
            inner = self.type(self._named[name], name.rpartition(".")[0])
            # A named list type is a message.
            return f"items {inner}" if inner.startswith("list ") else inner
        if name in self._structs:
            return f"@{name}"
        raise SystemExit(f"{written} in {package}: not found")


def layout(sources: Sources) -> dict[str, list[tuple[int, str, str]]]:
    """Return the fields of all types that the roots refer to."""
    found: dict[str, list[tuple[int, str, str]]] = {}
    waiting = list(_ROOTS)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = sorted(sources.fields(name))
            waiting += [type_[type_.index("@") + 1 :].rstrip("?") for _, _, type_ in found[name] if "@" in type_]
    return dict(sorted(found.items()))


def main() -> None:
    """Write the file."""
    sources = Sources(Path(sys.argv[1]), sys.argv[2])
    target = Path(__file__).parent.parent / "src/springtide/apiserver/http/protobuf.json"
    entries = layout(sources).items()
    lines = [f"{json.dumps(name)}:{json.dumps(fields, separators=(',', ':'))}" for name, fields in entries]
    target.write_text("{" + ",\n".join(lines) + "}\n")
    print(f"{target.name}: {len(lines)} types")


if __name__ == "__main__":
    main()
