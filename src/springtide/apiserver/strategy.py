"""What new objects of some kinds start with, whatever their author wrote.

From what a request asks to what will be stored: new objects, and changes of objects.

Pure functions of the kind and of what was before. They refuse with the errors that the request is answered with.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeAlias

from springtide.apiserver import metadata
from springtide.apiserver import metadata as metadata_rules
from springtide.apiserver.builtin.derived_defaults import qos_class
from springtide.apiserver.errors import conflict, invalid
from springtide.apiserver.kinds import ServedKind
from springtide.apiserver.names import generated_name
from springtide.apiserver.values import deep_copy, deep_copy_unshared, share_unchanged, value_at, with_metadata
from springtide.cluster.errors import BadRequest, Invalid, StatusCause, StatusDetails
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Precondition

SERVER_MANAGER = "kube-apiserver"
"""The manager of what the server writes of its own accord, while it does what somebody asked for."""
NAMESPACE_FINALIZER = "kubernetes"
"""Holds a namespace until its contents are gone."""
DEFINITION_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""Holds a CRD until the objects of its kind are gone."""

_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_GIVEN_TO_PODS = ("priority", "preemptionPolicy")
_NO_DISRUPTIONS = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


def without_status(kind: ServedKind, item: Object) -> Object:
    """Take from a new object the status that its author is not asked for."""
    # A kubelet registers its node with its capacity in one request.
    if "status" in kind.subresources and kind.resource.kind != "Node":
        item.pop("status", None)
    return item


def keep_server_fields(kind: ServedKind, item: Object, old: Object) -> Object:
    """Give a changed object what the cluster added to it when it was new, where its writer leaves that out."""
    if (kind.resource.group, kind.resource.kind) == ("", "Pod") and isinstance(item.get("spec"), dict):
        spec, before = item["spec"], old["spec"]
        for name in _GIVEN_TO_PODS:
            if spec.get(name) is None and name in before:
                spec[name] = before[name]
    return item


def with_initial_status(kind: ServedKind, item: Object) -> Object:
    """Give a new object its beginnings; may change what it is given, which is well formed."""
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


_NEVER_BLIND = {
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("coordination.k8s.io", "Lease"),
    ("node.k8s.io", "RuntimeClass"),
    ("policy", "PodDisruptionBudget"),
}
"""The built-in kinds that are replaced only by who says which version is replaced; custom kinds are all so."""

_BORN_OF_UPDATES = {
    ("", "Endpoints"),
    ("", "Event"),
    ("", "LimitRange"),
    ("", "Service"),
    ("coordination.k8s.io", "Lease"),
    ("node.k8s.io", "RuntimeClass"),
}
"""The built-in kinds of which a replacement that finds nothing to replace is a new object."""


_OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


class WritePart(Enum):
    """Which part of an object a write is about; the others stay as they were."""

    MAIN = "main"
    """All but the status, where the kind has a subresource for that."""
    STATUS = "status"
    WHOLE = "whole"
    """Everything: only the server itself writes so, and `generation` does not count it."""


@dataclass(frozen=True, slots=True)
class ServerMetadata:
    """What the server gives to a new object."""

    uid: str
    created: str
    suffix: Callable[[], str]
    """What makes a name of `generateName`."""


def check(kind: ServedKind, item: Object, old: Object | None) -> None:
    """Refuse an object that breaks the rules; all its problems are told at once."""
    resource = kind.resource
    fields = metadata_rules.metadata_problems(item["metadata"], old and old["metadata"], kind)
    causes = (*fields, *kind.validate(item, old))
    if causes:
        raise invalid(resource, item["metadata"]["name"], causes)


ObjectCheck: TypeAlias = Callable[[ServedKind, Object, Object | None], None]
"""Refuses an object, given what it was before."""


def prepare_create(
    kind: ServedKind, body: Any, namespace: str, birth: ServerMetadata, check: ObjectCheck = check
) -> Object:
    """Give a new object as far as its author and its kind determine it; it belongs to the caller alone."""
    item = _of_kind(kind, deep_copy(body))
    resource = kind.resource
    tidy = metadata.normalized(item.get("metadata"))
    if tidy.get("resourceVersion"):
        raise BadRequest("resourceVersion should not be set on objects to be created")
    namespace = _namespace(kind, tidy.pop("namespace", ""), namespace)
    name = tidy.get("name") or (generated_name(tidy["generateName"], birth.suffix()) if "generateName" in tidy else "")
    if not name:
        missing = StatusCause("metadata.name", "Required value: name or generateName is required", "FieldValueRequired")
        raise invalid(resource, "", (missing,))
    item["metadata"] = metadata.created_metadata(
        tidy,
        namespace=namespace,
        name=name,
        uid=birth.uid,
        created=birth.created,
        generation=1 if kind.generation else None,
    )
    item = kind.apply_defaults(without_status(kind, item))
    check(kind, item, None)
    return item


def without_server_metadata(item: Object, birth: ServerMetadata) -> Object:
    """Give a new object without what the server has given it."""
    given = ("uid", "creationTimestamp", "generation") + (("name",) if has_generated_name(item, birth) else ())
    return {**item, "metadata": {name: value for name, value in item["metadata"].items() if name not in given}}


def has_generated_name(item: Object, birth: ServerMetadata) -> bool:
    """Tell whether the server has made the name of a new object."""
    base = item["metadata"].get("generateName", "")
    return bool(base) and item["metadata"]["name"] == generated_name(base, birth.suffix())


def prepare_update(kind: ServedKind, body: Any, old: Object, part: WritePart, check: ObjectCheck = check) -> Object:
    """Give an object after a write, as far as writer and kind determine it; the old one where nothing changes."""
    before = old["metadata"]
    item = _own(_divided(kind, _of_kind(kind, body), old, part), before)
    tidy = metadata.normalized(item.get("metadata"))
    if not kind.resource.namespaced:
        tidy.pop("namespace", None)
    version = tidy.get("resourceVersion", "")
    if version and version != before["resourceVersion"]:
        raise conflict(kind.resource, before["name"])
    for field in ("name", "namespace"):
        present = before.get(field, "")
        wanted = tidy.get(field, present)
        if wanted != present and field == "namespace":
            raise BadRequest(_OTHER_NAMESPACE)
        if wanted != present:
            raise BadRequest(f"the {field} of the object ({wanted}) does not match the {field} on the URL ({present})")
        if present:
            tidy[field] = present
    item = keep_server_fields(kind, item, old)
    kept = metadata.fields_kept_by_status(kind) if part is WritePart.STATUS else ()
    item["metadata"] = metadata.updated_metadata(tidy, before, kept)
    item = kind.apply_defaults(item)
    if part is WritePart.MAIN and _counts(kind, item, old):
        item["metadata"]["generation"] = before.get("generation", 0) + 1
    check(kind, item, old)
    item["metadata"]["resourceVersion"] = before["resourceVersion"]
    unchanged: Object = share_unchanged(item, old)
    return unchanged


def without_new_generation(item: Object, old: Object) -> Object:
    """Give an object after a write, as it is before the server has counted the change."""
    before = old["metadata"].get("generation")
    return item if item["metadata"].get("generation") == before else with_metadata(item, generation=before)


def check_precondition(kind: ServedKind, item: Object, precondition: Precondition) -> None:
    """Refuse to change an object that is not the one that was meant."""
    present = item["metadata"]
    if precondition.uid and precondition.uid != present["uid"]:
        why = f"Precondition failed: UID in precondition: {precondition.uid}, UID in object meta: {present['uid']}"
        raise conflict(kind.resource, present["name"], why)
    if precondition.version and precondition.version != present["resourceVersion"]:
        raise conflict(kind.resource, present["name"])


def check_name(key: Key, body: Any) -> None:
    """Refuse to replace an object by one without a name, or with another."""
    if not isinstance(body, dict):
        return
    name = value_at(body, ("metadata", "name"))
    if not name:
        raise BadRequest(missing_name_message(key.name))
    if name != key.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({key.name})")


def allows_create_on_update(kind: ServedKind) -> bool:
    """Tell whether to replace an object that is not there is to create it."""
    return kind.strategic and (kind.resource.group, kind.resource.kind) in _BORN_OF_UPDATES


def check_replacement(kind: ServedKind, key: Key, body: Any) -> None:
    """Refuse to replace an object by one without a version where the kind insists on one."""
    resource = kind.resource
    insists = not kind.strategic or (resource.group, resource.kind) in _NEVER_BLIND
    if insists and not value_at(body, ("metadata", "resourceVersion")):
        cause = StatusCause("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")
        raise Invalid(
            f'{resource} "{key.name}" is invalid: {cause.field}: {cause.message}',
            causes=(cause,),
            about=StatusDetails(key.name, resource.group, resource.plural),
        )


def replacement_precondition(body: Any, precondition: Precondition) -> Precondition:
    """Give the precondition of a replacement: an object that says who it is replaces no other."""
    uid = value_at(body, ("metadata", "uid"))
    return replace(precondition, uid=uid) if isinstance(uid, str) and uid and not precondition.uid else precondition


def without_resource_version(body: Any) -> Any:
    """Give the body of a write that creates without the version that it expected to find."""
    return with_metadata(body, resourceVersion=None) if value_at(body, ("metadata", "resourceVersion")) else body


def missing_name_message(name: str) -> str:
    """Tell that a body does not say which object it is."""
    return f"the name of the object ({name} based on URL) was undeterminable: name must be provided"


def _of_kind(kind: ServedKind, item: Any) -> Object:
    """Refuse what is not an object of the kind; what one of a built-in kind does not say of itself is filled in."""
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
    """Tell in which namespace a new object is: the one that it says, the one that the request says, or none."""
    if not kind.resource.namespaced:
        return ""
    if not own and not asked:
        raise BadRequest("an empty namespace may not be set during creation")
    if own and asked and own != asked:
        raise BadRequest(_OTHER_NAMESPACE)
    return own or asked


def _divided(kind: ServedKind, item: Object, old: Object, part: WritePart) -> Object:
    """Keep from the old object what this write may not touch; the result shares its parts with both."""
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


def _own(item: Object, before: Object) -> Object:
    """Copy an object, but for metadata that are as before: who owns what is large, and nothing here changes it."""
    return {
        name: deep_copy_unshared(value, before) if name == "metadata" else deep_copy(value)
        for name, value in item.items()
    }


def _counts(kind: ServedKind, item: Object, old: Object) -> bool:
    """Tell whether a change is one of those that `generation` counts."""
    name = kind.resource.kind if kind.strategic else ""
    if not kind.generation or name == "PriorityClass":
        return False
    if name == "Deployment" and item["metadata"].get("annotations") != old["metadata"].get("annotations"):
        return True
    apart = ("metadata", "status") if "status" in kind.subresources else ("metadata",)
    return {name: value for name, value in item.items() if name not in apart} != {
        name: value for name, value in old.items() if name not in apart
    }
