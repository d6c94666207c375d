"""How objects are prepared for storage on create and update, like the strategies of a kube-apiserver.

Pure functions of the kind, the request body and the stored object; they raise the error of the response.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeAlias

from springtide.apiserver import metadata
from springtide.apiserver.builtin.derived_defaults import qos_class
from springtide.apiserver.errors import conflict, invalid
from springtide.apiserver.kinds import ServedKind
from springtide.apiserver.names import generated_name
from springtide.apiserver.values import deep_copy, deep_copy_unshared, share_unchanged, value_at, with_metadata
from springtide.cluster.errors import BadRequest, Invalid, StatusCause, StatusDetails
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Precondition

SERVER_MANAGER = "kube-apiserver"
"""The field manager of writes that the server makes while it handles a request."""
NAMESPACE_FINALIZER = "kubernetes"
"""Blocks the removal of a namespace until it is empty."""
DEFINITION_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""Blocks the removal of a CRD until the objects of its kind are deleted."""

_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_SET_BY_ADMISSION = ("priority", "preemptionPolicy")
_NO_DISRUPTIONS = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}

_REQUIRE_VERSION = {
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("coordination.k8s.io", "Lease"),
    ("node.k8s.io", "RuntimeClass"),
    ("policy", "PodDisruptionBudget"),
}
"""The built-in kinds whose updates must carry a resourceVersion; all custom kinds require it."""

_CREATED_BY_UPDATE = {
    ("", "Endpoints"),
    ("", "Event"),
    ("", "LimitRange"),
    ("", "Service"),
    ("coordination.k8s.io", "Lease"),
    ("node.k8s.io", "RuntimeClass"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
}
"""The built-in kinds of which an update without a stored object creates one."""

_OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"

ObjectCheck: TypeAlias = Callable[[ServedKind, Object, Object | None], None]
"""Refuses an invalid object, given the object before the write."""


def without_status(kind: ServedKind, item: Object) -> Object:
    """Drop the status of a new object, where status is a subresource."""
    # A kubelet registers its node with the capacity in one request.
    if "status" in kind.subresources and kind.resource.kind != "Node":
        item.pop("status", None)
    return item


def keep_server_fields(kind: ServedKind, item: Object, old: Object) -> Object:
    """Return an updated object with the fields that admission set on create, where the update leaves them out."""
    if (kind.resource.group, kind.resource.kind) == ("", "Pod") and isinstance(item.get("spec"), dict):
        spec, before = item["spec"], old["spec"]
        for name in _SET_BY_ADMISSION:
            if spec.get(name) is None and name in before:
                spec[name] = before[name]
    return item


def with_initial_status(kind: ServedKind, item: Object) -> Object:
    """Return a new object with its initial status; may modify the given object, which is valid."""
    match kind.resource.group, kind.resource.kind:
        case "", "Pod":
            item["status"] = _pod_status(item)
        case "", "Namespace":
            item["spec"] = _with_finalizer(item.get("spec") or {}, NAMESPACE_FINALIZER)
            item["status"] = {"phase": "Active"}
        case "", ("PersistentVolume" | "PersistentVolumeClaim"):
            item["status"] = {"phase": "Pending"}
        case "policy", "PodDisruptionBudget":
            item["status"] = dict(_NO_DISRUPTIONS)
        case _:
            if kind.strategic and "status" in kind.subresources:
                item.setdefault("status", {})
    return item


def _pod_status(pod: Object) -> Object:
    status: Object = {"phase": "Pending", "qosClass": qos_class(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        gated = _GATED | {"lastProbeTime": None, "lastTransitionTime": pod["metadata"]["creationTimestamp"]}
        status["conditions"] = [gated]
    return status


def _with_finalizer(holder: Object, finalizer: str) -> Object:
    present = holder.get("finalizers") or []
    return holder if finalizer in present else {**holder, "finalizers": [*present, finalizer]}


class WritePart(Enum):
    """The part of an object that a write may change."""

    MAIN = "main"
    """Everything but the status, where that is a subresource."""
    STATUS = "status"
    WHOLE = "whole"
    """The whole object, without a new generation: only the server itself writes so."""


@dataclass(frozen=True, slots=True)
class ServerMetadata:
    """The metadata that the server gives to a new object."""

    uid: str
    created: str
    suffix: Callable[[], str]
    """Returns the suffix for `generateName`."""


def check(kind: ServedKind, item: Object, old: Object | None) -> None:
    """Refuse an invalid object, with all its problems."""
    resource = kind.resource
    fields = metadata.metadata_problems(item["metadata"], old and old["metadata"], kind)
    causes = (*fields, *kind.validate(item, old))
    if causes:
        raise invalid(resource, item["metadata"]["name"], causes)


def prepare_create(
    kind: ServedKind, body: Any, namespace: str, server_metadata: ServerMetadata, check: ObjectCheck = check
) -> Object:
    """Return a new object with metadata and defaults, before admission; the caller owns it."""
    item = _of_kind(kind, deep_copy(body))
    resource = kind.resource
    normal = metadata.normalized(item.get("metadata"))
    if normal.get("resourceVersion"):
        raise BadRequest("resourceVersion should not be set on objects to be created")
    namespace = _namespace(kind, normal.pop("namespace", ""), namespace)
    name = normal.get("name") or (
        generated_name(normal["generateName"], server_metadata.suffix()) if "generateName" in normal else ""
    )
    if not name:
        missing = StatusCause("metadata.name", "Required value: name or generateName is required", "FieldValueRequired")
        raise invalid(resource, "", (missing,))
    item["metadata"] = metadata.created_metadata(
        normal,
        namespace=namespace,
        name=name,
        uid=server_metadata.uid,
        created=server_metadata.created,
        generation=1 if kind.generation else None,
    )
    item = kind.apply_defaults(without_status(kind, item))
    check(kind, item, None)
    return item


def without_server_metadata(item: Object, server_metadata: ServerMetadata) -> Object:
    """Return a new object without the metadata that the server gave it."""
    given = ("uid", "creationTimestamp", "generation") + (
        ("name",) if has_generated_name(item, server_metadata) else ()
    )
    return {**item, "metadata": {name: value for name, value in item["metadata"].items() if name not in given}}


def has_generated_name(item: Object, server_metadata: ServerMetadata) -> bool:
    """Return whether the server generated the name of a new object."""
    base = item["metadata"].get("generateName", "")
    return bool(base) and item["metadata"]["name"] == generated_name(base, server_metadata.suffix())


def prepare_update(kind: ServedKind, body: Any, old: Object, part: WritePart, check: ObjectCheck = check) -> Object:
    """Return an object after an update, before admission; the old one where nothing changes."""
    before = old["metadata"]
    item = _copy(_restore_other_parts(kind, _of_kind(kind, body), old, part), before)
    normal = metadata.normalized(item.get("metadata"))
    if not kind.resource.namespaced:
        normal.pop("namespace", None)
    version = normal.get("resourceVersion", "")
    if version and version != before["resourceVersion"]:
        raise conflict(kind.resource, before["name"])
    for field in ("name", "namespace"):
        present = before.get(field, "")
        wanted = normal.get(field, present)
        if wanted != present and field == "namespace":
            raise BadRequest(_OTHER_NAMESPACE)
        if wanted != present:
            raise BadRequest(f"the {field} of the object ({wanted}) does not match the {field} on the URL ({present})")
        if present:
            normal[field] = present
    item = keep_server_fields(kind, item, old)
    kept = metadata.fields_kept_by_status(kind) if part is WritePart.STATUS else ()
    item["metadata"] = metadata.updated_metadata(normal, before, kept)
    item = kind.apply_defaults(item)
    if part is WritePart.MAIN and _increments_generation(kind, item, old):
        item["metadata"]["generation"] = before.get("generation", 0) + 1
    check(kind, item, old)
    item["metadata"]["resourceVersion"] = before["resourceVersion"]
    unchanged: Object = share_unchanged(item, old)
    return unchanged


def without_new_generation(item: Object, old: Object) -> Object:
    """Return an updated object with the generation that it had before."""
    before = old["metadata"].get("generation")
    return item if item["metadata"].get("generation") == before else with_metadata(item, generation=before)


def check_precondition(kind: ServedKind, item: Object, precondition: Precondition) -> None:
    """Refuse a write whose preconditions do not match the object."""
    present = item["metadata"]
    if precondition.uid and precondition.uid != present["uid"]:
        why = f"Precondition failed: UID in precondition: {precondition.uid}, UID in object meta: {present['uid']}"
        raise conflict(kind.resource, present["name"], why)
    if precondition.version and precondition.version != present["resourceVersion"]:
        raise conflict(kind.resource, present["name"])


def check_name(key: Key, body: Any) -> None:
    """Refuse an update whose body has no name or another one."""
    if not isinstance(body, dict):
        return
    name = value_at(body, ("metadata", "name"))
    if not name:
        raise BadRequest(missing_name_message(key.name))
    if name != key.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({key.name})")


def allows_create_on_update(kind: ServedKind) -> bool:
    """Return whether an update without a stored object creates one."""
    return kind.strategic and (kind.resource.group, kind.resource.kind) in _CREATED_BY_UPDATE


def check_replacement(kind: ServedKind, key: Key, body: Any) -> None:
    """Refuse an update without a resourceVersion where the kind requires one."""
    resource = kind.resource
    required = not kind.strategic or (resource.group, resource.kind) in _REQUIRE_VERSION
    if required and not value_at(body, ("metadata", "resourceVersion")):
        cause = StatusCause("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")
        raise Invalid(
            f'{resource} "{key.name}" is invalid: {cause.field}: {cause.message}',
            causes=(cause,),
            about=StatusDetails(key.name, resource.group, resource.plural),
        )


def replacement_precondition(body: Any, precondition: Precondition) -> Precondition:
    """Return the precondition of an update: a uid in the body must match."""
    uid = value_at(body, ("metadata", "uid"))
    return replace(precondition, uid=uid) if isinstance(uid, str) and uid and not precondition.uid else precondition


def without_resource_version(body: Any) -> Any:
    """Return the body of a creating write without its resourceVersion."""
    return with_metadata(body, resourceVersion=None) if value_at(body, ("metadata", "resourceVersion")) else body


def missing_name_message(name: str) -> str:
    """Return the message for a body without a name."""
    return f"the name of the object ({name} based on URL) was undeterminable: name must be provided"


def _of_kind(kind: ServedKind, item: Any) -> Object:
    """Refuse an object of another kind; built-in kinds may leave out apiVersion and kind."""
    if not isinstance(item, dict):
        raise BadRequest(f"the body of the request is {type(item).__name__}, expected an object")
    resource = kind.resource
    version, name = item.get("apiVersion"), item.get("kind")
    if not kind.strategic and not name:
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {resource.kind}): "
            f"Object 'Kind' is missing in '{json.dumps(item)}'"
        )
    if version != resource.api_version and not (kind.strategic and version in (None, "")):
        raise BadRequest(
            f"the API version in the data ({version or ''}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if name not in (None, "", resource.kind):
        raise BadRequest(f"the kind in the data ({name}) does not match the expected kind ({resource.kind})")
    identity = {"apiVersion": resource.api_version, "kind": resource.kind}
    return identity | item | identity


def _namespace(kind: ServedKind, own: str, asked: str) -> str:
    """Return the namespace of a new object: its own, that of the request, or none."""
    if not kind.resource.namespaced:
        return ""
    if not own and not asked:
        raise BadRequest("an empty namespace may not be set during creation")
    if own and asked and own != asked:
        raise BadRequest(_OTHER_NAMESPACE)
    return own or asked


def _restore_other_parts(kind: ServedKind, item: Object, old: Object, part: WritePart) -> Object:
    """Restore from the old object what this write may not change; the result shares parts with both."""
    if part is WritePart.WHOLE:
        return item
    if part is WritePart.STATUS:
        whole = {name: value for name, value in old.items() if name not in ("metadata", "status")}
        return whole | {name: item[name] for name in ("status", "metadata") if name in item}
    if "status" in kind.subresources:
        item.pop("status", None)
        if "status" in old:
            item["status"] = old["status"]
    if "finalize" in kind.subresources:
        spec = item.get("spec")
        finalizers = (old.get("spec") or {}).get("finalizers")
        item["spec"] = (spec if isinstance(spec, dict) else {}) | ({"finalizers": finalizers} if finalizers else {})
    return item


def _copy(item: Object, before: Object) -> Object:
    """Copy an object, except metadata that are unchanged: managed fields are large, and not modified here."""
    return {
        name: deep_copy_unshared(value, before) if name == "metadata" else deep_copy(value)
        for name, value in item.items()
    }


def _increments_generation(kind: ServedKind, item: Object, old: Object) -> bool:
    """Return whether a change increments the generation."""
    name = kind.resource.kind if kind.strategic else ""
    if not kind.generation or name == "PriorityClass":
        return False
    if name == "Deployment" and item["metadata"].get("annotations") != old["metadata"].get("annotations"):
        return True
    ignored = ("metadata", "status") if "status" in kind.subresources else ("metadata",)
    return {name: value for name, value in item.items() if name not in ignored} != {
        name: value for name, value in old.items() if name not in ignored
    }
