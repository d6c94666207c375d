"""Defaults that depend on other fields, by type. Plain defaults are in `defaults.json`.

Each function changes a value of its type in place and leaves set fields alone. It must accept anything: values of a
wrong type are rejected by validation, which comes later.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from springtide.cluster.resources import Object
from springtide.quantity import AmountError, Quantity

_COMPUTE = ("cpu", "memory")
_NODE_CONDITION_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_SECONDS = 300
"""How long a pod stays on a node that is not ready or unreachable."""


def default_pod(value: Object) -> None:
    """Apply the defaults of pods that pod templates do not get."""
    spec = value.get("spec")
    if not isinstance(spec, dict):
        return
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    grace = spec.get("terminationGracePeriodSeconds")
    if type(grace) is int and grace < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for container in _containers(spec):
        _default_requests_to_limits(container)
        if spec.get("hostNetwork") is True:
            _default_host_ports(container)
    _add_default_tolerations(spec)
    status = value.get("status")
    if isinstance(status, dict) and not status.get("qosClass"):
        status["qosClass"] = qos_class(spec)


def _containers(spec: Object) -> Iterator[Object]:
    for name in ("containers", "initContainers"):
        containers = spec.get(name)
        if isinstance(containers, list):
            yield from (container for container in containers if isinstance(container, dict))


def _default_requests_to_limits(container: Object) -> None:
    resources = container.get("resources")
    limits = resources.get("limits") if isinstance(resources, dict) else None
    if not isinstance(resources, dict) or not isinstance(limits, dict):
        return
    requests = resources.get("requests") or {}
    if isinstance(requests, dict) and any(name not in requests for name in limits):
        resources["requests"] = requests | {name: limits[name] for name in limits if name not in requests}


def _default_host_ports(container: Object) -> None:
    ports = container.get("ports")
    for port in ports if isinstance(ports, list) else ():
        if isinstance(port, dict) and not port.get("hostPort") and "containerPort" in port:
            port["hostPort"] = port["containerPort"]


def _add_default_tolerations(spec: Object) -> None:
    tolerations = spec.get("tolerations") or []
    if not isinstance(tolerations, list):
        return
    missing = [taint for taint in _NODE_CONDITION_TAINTS if not any(_tolerates(each, taint) for each in tolerations)]
    if missing:
        spec["tolerations"] = tolerations + [
            {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}
            for taint in missing
        ]


def _tolerates(toleration: Any, taint: str) -> bool:
    return (
        isinstance(toleration, dict)
        and toleration.get("key", "") in ("", taint)
        and toleration.get("effect", "") in ("", "NoExecute")
    )


def qos_class(spec: Object) -> str:
    """Return the QoS class of a pod: Guaranteed, Burstable or BestEffort."""
    own = spec.get("resources")
    all_resources = [own] if isinstance(own, dict) else [container.get("resources") for container in _containers(spec)]
    requests = dict.fromkeys(_COMPUTE, 0)
    limits = dict.fromkeys(_COMPUTE, 0)
    all_limited = True
    for resources in all_resources:
        requested, limited = _amounts(resources, "requests"), _amounts(resources, "limits")
        all_limited = all_limited and all(limited[name] for name in _COMPUTE)
        for name in _COMPUTE:
            requests[name] += requested[name]
            limits[name] += limited[name]
    if not any(requests.values()) and not any(limits.values()):
        return "BestEffort"
    return "Guaranteed" if all_limited and requests == limits else "Burstable"


def _amounts(resources: Any, name: str) -> dict[str, int]:
    """Return the amounts of CPU and memory in billionths. What is no quantity counts as zero."""
    listed = resources.get(name) if isinstance(resources, dict) else None
    found = dict.fromkeys(_COMPUTE, 0)
    for resource in _COMPUTE:
        try:
            found[resource] = max(0, Quantity.parse(listed[resource]).nano)  # type: ignore[index]
        except (AmountError, KeyError, TypeError):
            continue
    return found


_Derive: TypeAlias = Callable[[Object], None]

_VOLUME_SOURCE_FREE = ("name",)


def _container(value: Object) -> None:
    if not value.get("imagePullPolicy"):
        value["imagePullPolicy"] = "Always" if _is_latest(value.get("image")) else "IfNotPresent"


def _is_latest(image: Any) -> bool:
    """Whether an image has the tag `latest`, or neither tag nor digest, which means the same."""
    name = image.rpartition("/")[2] if isinstance(image, str) else ""
    if "@" in name:
        return False
    _, tagged, tag = name.partition(":")
    return not tagged or tag == "latest"


def _pod_spec(value: Object) -> None:
    """Keep `serviceAccount`, the old name of the field, equal to `serviceAccountName`."""
    account = value.get("serviceAccountName") or value.get("serviceAccount")
    if account and value.get("serviceAccountName") != account:
        value["serviceAccountName"] = account
    if account and value.get("serviceAccount") != account:
        value["serviceAccount"] = account


def _volume(value: Object) -> None:
    if all(value[name] is None or name in _VOLUME_SOURCE_FREE for name in value):
        value["emptyDir"] = {}


def _service_port(value: Object) -> None:
    if value.get("targetPort") in (None, 0, "") and "port" in value:
        value["targetPort"] = value["port"]


def _namespace(value: Object) -> None:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return
    name = metadata.get("name")
    labels = metadata.get("labels") or {}
    if name and isinstance(labels, dict) and labels.get("kubernetes.io/metadata.name") != name:
        metadata["labels"] = labels | {"kubernetes.io/metadata.name": name}


def _node_status(value: Object) -> None:
    if value.get("allocatable") is None and isinstance(value.get("capacity"), dict):
        value["allocatable"] = dict(value["capacity"])


def _address(entry: Any) -> Any:
    return entry.get("ip") if isinstance(entry, dict) else None


def _mirror_first_entry(one: str, all_: str, made: Callable[[Any], Any], read: Callable[[Any], Any]) -> _Derive:
    """Return a default: a single field and the first entry of the list that replaced it are equal; the single field
    wins."""

    def derive(value: Object) -> None:
        first, entries = value.get(one), value.get(all_)
        if isinstance(entries, list) and entries:
            known = read(entries[0])
            if first and known != first:
                value[all_] = [made(first)]
            elif known and not first:
                value[one] = known
        elif first and not entries:
            value[all_] = [made(first)]

    return derive


def _limit_range_item(value: Object) -> None:
    if value.get("type") != "Container":
        return
    parts = {name: value.get(name) or {} for name in ("max", "min", "default", "defaultRequest")}
    if not all(isinstance(part, dict) for part in parts.values()):
        return
    limits = parts["max"] | parts["default"]
    requests = parts["min"] | limits | parts["defaultRequest"]
    for name, amounts in (("default", limits), ("defaultRequest", requests)):
        if amounts and value.get(name) != amounts:
            value[name] = amounts


def _replication_controller(value: Object) -> None:
    labels = _template_labels(value)
    if not labels:
        return
    if not value["spec"].get("selector"):
        value["spec"]["selector"] = dict(labels)
    _default_labels(value, labels)


def _job(value: Object) -> None:
    spec = value.get("spec")
    if not isinstance(spec, dict):
        return
    if spec.get("parallelism") is None:
        if spec.get("completions") is None:
            spec["completions"] = 1
        spec["parallelism"] = 1
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1
    if spec.get("podReplacementPolicy") is None:
        failed_only = spec.get("podFailurePolicy") is not None
        spec["podReplacementPolicy"] = "Failed" if failed_only else "TerminatingOrFailed"
    for name, default in (("completionMode", "NonIndexed"), ("suspend", False), ("manualSelector", False)):
        if spec.get(name) is None:
            spec[name] = default
    if not spec["manualSelector"]:
        _select_by_uid(value)
    labels = _template_labels(value)
    if labels:
        _default_labels(value, labels)


def _select_by_uid(job: Object) -> None:
    """Generate the selector of a Job from its uid."""
    metadata = job.get("metadata")
    template = job["spec"].get("template")
    if not isinstance(metadata, dict) or not isinstance(template, dict) or job["spec"].get("selector") is not None:
        return
    uid = metadata.get("uid")
    if not uid:
        return
    job["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    described = template.get("metadata") or {}
    if isinstance(described, dict) and isinstance(described.get("labels") or {}, dict):
        given = {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": metadata["name"],
            "controller-uid": uid,
            "job-name": metadata["name"],
        }
        template["metadata"] = described | {"labels": given | (described.get("labels") or {})}


def _template_labels(workload: Object) -> dict[str, Any]:
    found: Any = workload
    for name in ("spec", "template", "metadata", "labels"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _default_labels(value: Object, labels: dict[str, Any]) -> None:
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and not metadata.get("labels"):
        metadata["labels"] = dict(labels)


_SCALE_UP: Object = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Object = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


def _autoscaler_behavior(value: Object) -> None:
    """Fill in both directions if either is set. The scale-down window is a setting of the controller and has no
    default."""
    for direction, defaults in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
        rules = value.get(direction)
        if rules is None:
            rules = value[direction] = {}
        if isinstance(rules, dict):
            for name, default in _missing(rules, defaults):
                rules[name] = [dict(policy) for policy in default] if isinstance(default, list) else default


def _missing(value: Object, defaults: Object) -> Iterator[tuple[str, Any]]:
    return ((name, default) for name, default in defaults.items() if value.get(name) is None)


def _secret(value: Object) -> None:
    """Move `stringData` into `data`, encoded as base64."""
    plain = value.get("stringData")
    data = value.get("data") or {}
    if isinstance(plain, dict) and isinstance(data, dict) and all(isinstance(text, str) for text in plain.values()):
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in plain.items()}
        value["data"] = data | encoded
        del value["stringData"]


def _custom_resource_definition(value: Object) -> None:
    spec = value.get("spec")
    if not isinstance(spec, dict):
        return
    names = spec.get("names")
    kind = names.get("kind") if isinstance(names, dict) else None
    if isinstance(names, dict) and isinstance(kind, str) and kind:
        for name, default in (("singular", kind.lower()), ("listKind", f"{kind}List")):
            if not names.get(name):
                names[name] = default
    status, versions = value.get("status"), spec.get("versions")
    if isinstance(status, dict) and isinstance(versions, list) and not status.get("storedVersions"):
        stored = [each.get("name") for each in versions if isinstance(each, dict) and each.get("storage") is True]
        if stored:
            status["storedVersions"] = stored[:1]


_RBAC = "rbac.authorization.k8s.io"


def _role_binding(value: Object) -> None:
    role = value.get("roleRef")
    if isinstance(role, dict) and not role.get("apiGroup"):
        role["apiGroup"] = _RBAC


def _subject(value: Object) -> None:
    if not value.get("apiGroup") and value.get("kind") in ("User", "Group"):
        value["apiGroup"] = _RBAC


def _network_policy(value: Object) -> None:
    spec = value.get("spec")
    if isinstance(spec, dict) and not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


DERIVED_DEFAULTS: dict[str, _Derive] = {
    "apiextensions.v1.CustomResourceDefinition": _custom_resource_definition,
    "autoscaling.v2.HorizontalPodAutoscalerBehavior": _autoscaler_behavior,
    "batch.v1.Job": _job,
    "core.v1.Container": _container,
    "core.v1.EphemeralContainer": _container,
    "core.v1.LimitRangeItem": _limit_range_item,
    "core.v1.Namespace": _namespace,
    "core.v1.NodeSpec": _mirror_first_entry("podCIDR", "podCIDRs", lambda text: text, lambda text: text),
    "core.v1.NodeStatus": _node_status,
    "core.v1.Pod": default_pod,
    "core.v1.PodSpec": _pod_spec,
    "core.v1.PodStatus": _mirror_first_entry("podIP", "podIPs", lambda text: {"ip": text}, _address),
    "core.v1.ReplicationController": _replication_controller,
    "core.v1.Secret": _secret,
    "core.v1.ServicePort": _service_port,
    "core.v1.Volume": _volume,
    "networking.v1.NetworkPolicy": _network_policy,
    "rbac.v1.ClusterRoleBinding": _role_binding,
    "rbac.v1.RoleBinding": _role_binding,
    "rbac.v1.Subject": _subject,
}
