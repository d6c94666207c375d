"""Tables of nodes, services, storage and the other built-in kinds."""

from __future__ import annotations

from typing import Any

from springtide.apiserver.http.tables.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    AgeFormatter,
    TableLayout,
    access_modes,
    age,
    at,
    columns,
    containers,
    labels,
    name,
    selector,
)
from springtide.cluster.resources import Object

_ROLE = "node-role.kubernetes.io/"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def _node(item: Object, ages: AgeFormatter) -> list[Any]:
    ready = [each.get("status") for each in at(item, "status.conditions", []) if each.get("type") == "Ready"]
    state = "Unknown" if not ready else "Ready" if ready[-1] == "True" else "NotReady"
    given = item["metadata"].get("labels") or {}
    roles = {label.removeprefix(_ROLE) for label in given if label.startswith(_ROLE)} - {""}
    roles |= {given["kubernetes.io/role"]} if given.get("kubernetes.io/role") else set()
    addresses = {each.get("type"): each.get("address") for each in reversed(at(item, "status.addresses", []))}
    return [
        name(item),
        state + (",SchedulingDisabled" if at(item, "spec.unschedulable", False) else ""),
        ",".join(sorted(roles)) or NONE,
        age(item, ages),
        at(item, "status.nodeInfo.kubeletVersion"),
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        *(
            at(item, f"status.nodeInfo.{field}") or UNKNOWN
            for field in ("osImage", "kernelVersion", "containerRuntimeVersion")
        ),
    ]


def _service(item: Object, ages: AgeFormatter) -> list[Any]:
    return [
        name(item),
        at(item, "spec.type"),
        next(iter(at(item, "spec.clusterIPs", [])), at(item, "spec.clusterIP") or NONE),
        _external(item),
        ",".join(map(_port, at(item, "spec.ports", []))) or NONE,
        age(item, ages),
        labels(at(item, "spec.selector", {})),
    ]


def _port(port: Object) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}"


def _external(item: Object) -> str:
    kind, addresses = at(item, "spec.type"), at(item, "spec.externalIPs", [])
    if kind == "ExternalName":
        return str(at(item, "spec.externalName"))
    if kind == "LoadBalancer":
        balancers = at(item, "status.loadBalancer.ingress", [])
        found = [each.get("ip") or each.get("hostname") or "" for each in balancers]
        return ",".join([*filter(None, found), *addresses]) or "<pending>"
    return ",".join(addresses) or NONE if kind in ("ClusterIP", "NodePort") else UNKNOWN


def _event(item: Object, ages: AgeFormatter) -> list[Any]:
    first = item.get("firstTimestamp") or item.get("eventTime")
    last, count = item.get("lastTimestamp") or first, item.get("count") or 1
    if series := item.get("series"):
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    about = item.get("involvedObject") or {}
    source = item.get("source") or {}
    component = source.get("component") or item.get("reportingComponent") or ""
    host = source.get("host") or item.get("reportingInstance") or ""
    return [
        ages.since(last),
        item.get("type", ""),
        item.get("reason", ""),
        "/".join(filter(None, (about.get("kind", "").lower(), about.get("name")))),
        about.get("fieldPath", ""),
        f"{component}, {host}" if host else component,
        item.get("message", "").strip(),
        ages.since(first),
        count,
        name(item),
    ]


def _quota(item: Object, ages: AgeFormatter) -> list[Any]:
    hard, used = at(item, "status.hard", {}), at(item, "status.used", {})
    texts = {resource: f"{resource}: {used.get(resource, '0')}/{hard[resource]}" for resource in sorted(hard)}
    limits = [text for resource, text in texts.items() if resource.startswith("limits.")]
    requests = [text for resource, text in texts.items() if not resource.startswith("limits.")]
    return [name(item), ", ".join(requests), ", ".join(limits), age(item, ages)]


def _budget(item: Object, ages: AgeFormatter) -> list[Any]:
    bounds = [str(at(item, f"spec.{field}", "N/A")) for field in ("minAvailable", "maxUnavailable")]
    return [name(item), *bounds, at(item, "status.disruptionsAllowed", 0), age(item, ages)]


def _volume(item: Object, ages: AgeFormatter) -> list[Any]:
    claim = at(item, "spec.claimRef", {})
    return [
        name(item),
        at(item, "spec.capacity.storage", "0"),
        access_modes(at(item, "spec.accessModes", [])),
        at(item, "spec.persistentVolumeReclaimPolicy"),
        _volume_phase(item),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        at(item, "spec.storageClassName"),
        at(item, "spec.volumeAttributesClassName", UNSET),
        at(item, "status.reason"),
        age(item, ages),
        at(item, "spec.volumeMode", UNSET),
    ]


def _claim(item: Object, ages: AgeFormatter) -> list[Any]:
    bound = bool(at(item, "spec.volumeName"))
    return [
        name(item),
        _volume_phase(item),
        at(item, "spec.volumeName"),
        at(item, "status.capacity.storage", "0") if bound else "",
        access_modes(at(item, "status.accessModes", [])) if bound else "",
        at(item, "spec.storageClassName"),
        at(item, "spec.volumeAttributesClassName", UNSET),
        age(item, ages),
        at(item, "spec.volumeMode", UNSET),
    ]


def _volume_phase(item: Object) -> str:
    return "Terminating" if "deletionTimestamp" in item["metadata"] else at(item, "status.phase")


def _storage_class(item: Object, ages: AgeFormatter) -> list[Any]:
    default = (item["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    return [
        name(item) + (" (default)" if default else ""),
        item.get("provisioner", ""),
        item.get("reclaimPolicy", "Delete"),
        item.get("volumeBindingMode", "Immediate"),
        item.get("allowVolumeExpansion", False),
        age(item, ages),
    ]


def _attachment(item: Object, ages: AgeFormatter) -> list[Any]:
    fields = ("spec.attacher", "spec.source.persistentVolumeName", "spec.nodeName")
    return [name(item), *(at(item, field) for field in fields), at(item, "status.attached", False), age(item, ages)]


def _revision(item: Object, ages: AgeFormatter) -> list[Any]:
    owner: Object = next((each for each in item["metadata"].get("ownerReferences") or () if each.get("controller")), {})
    group = owner.get("apiVersion", "").rpartition("/")[0]
    kind = ".".join(filter(None, (owner.get("kind", "").lower(), group)))
    return [name(item), f"{kind}/{owner['name']}" if owner else NONE, item.get("revision", 0), age(item, ages)]


def _template(item: Object, ages: AgeFormatter) -> list[Any]:  # noqa: ARG001 - the table has no age
    return [name(item), *containers(item.get("template")), labels(at(item, "template.metadata.labels", {}))]


def _priority(item: Object, ages: AgeFormatter) -> list[Any]:
    default, policy = item.get("globalDefault", False), item.get("preemptionPolicy", "")
    return [name(item), item.get("value", 0), default, age(item, ages), policy]


def _api_service(item: Object, ages: AgeFormatter) -> list[Any]:
    service = at(item, "spec.service", {})
    listed = at(item, "status.conditions", [])
    state = next((each for each in listed if each.get("type") == "Available"), None)
    available = "Unknown" if state is None else state.get("status", "")
    if state is not None and available != "True" and state.get("reason"):
        available += f" ({state['reason']})"
    local = f"{service.get('namespace')}/{service.get('name')}" if service else "Local"
    return [name(item), local, available, age(item, ages)]


def _lengths(field: str) -> Any:
    def cells(item: Object, ages: AgeFormatter) -> list[Any]:
        return [name(item), len(at(item, field, ())), age(item, ages)]

    return cells


def _config_map(item: Object, ages: AgeFormatter) -> list[Any]:
    return [name(item), len(item.get("data") or ()) + len(item.get("binaryData") or ()), age(item, ages)]


def _secret(item: Object, ages: AgeFormatter) -> list[Any]:
    return [name(item), item.get("type", ""), len(item.get("data") or ()), age(item, ages)]


def _field(path: str) -> Any:
    def cells(item: Object, ages: AgeFormatter) -> list[Any]:
        return [name(item), at(item, path), age(item, ages)]

    return cells


def _binding(item: Object, ages: AgeFormatter) -> list[Any]:
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in at(item, "subjects", []):
        account = f"{subject.get('namespace', '')}/" if subject.get("kind") == "ServiceAccount" else ""
        named.get(subject.get("kind"), []).append(f"{account}{subject.get('name', '')}")
    role = f"{at(item, 'roleRef.kind')}/{at(item, 'roleRef.name')}"
    return [name(item), role, age(item, ages), *(", ".join(names) for names in named.values())]


def _network_policy(item: Object, ages: AgeFormatter) -> list[Any]:
    return [name(item), selector(at(item, "spec.podSelector", {})), age(item, ages)]


def _plain(item: Object, ages: AgeFormatter) -> list[Any]:
    return [name(item), age(item, ages)]


_BINDINGS = TableLayout(columns("Name", "Role", "Age", wide=("Users", "Groups", "ServiceAccounts")), _binding)
_WEBHOOKS = TableLayout(columns("Name", "Webhooks:integer", "Age"), _lengths("webhooks"))

RESOURCES = {
    "APIService": TableLayout(columns("Name", "Service", "Available", "Age"), _api_service),
    "CSINode": TableLayout(columns("Name", "Drivers:integer", "Age"), _lengths("spec.drivers")),
    "ClusterRoleBinding": _BINDINGS,
    "ConfigMap": TableLayout(columns("Name", "Data", "Age"), _config_map),
    "ControllerRevision": TableLayout(columns("Name", "Controller", "Revision", "Age"), _revision),
    "Event": TableLayout(
        (
            *columns("Last Seen", "Type", "Reason", "Object", wide=("Subobject", "Source")),
            *columns("Message", wide=("First Seen", "Count", "Name")),
        ),
        _event,
    ),
    "Lease": TableLayout(columns("Name", "Holder", "Age"), _field("spec.holderIdentity")),
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "Namespace": TableLayout(columns("Name", "Status", "Age"), _field("status.phase")),
    "NetworkPolicy": TableLayout(columns("Name", "Pod-Selector", "Age"), _network_policy),
    "Node": TableLayout(
        columns(
            "Name",
            "Status",
            "Roles",
            "Age",
            "Version",
            wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
        ),
        _node,
    ),
    "PersistentVolume": TableLayout(
        columns(
            "Name",
            "Capacity",
            "Access Modes",
            "Reclaim Policy",
            "Status",
            "Claim",
            "StorageClass",
            "VolumeAttributesClass",
            "Reason",
            "Age",
            wide=("VolumeMode",),
        ),
        _volume,
    ),
    "PersistentVolumeClaim": TableLayout(
        columns(
            "Name",
            "Status",
            "Volume",
            "Capacity",
            "Access Modes",
            "StorageClass",
            "VolumeAttributesClass",
            "Age",
            wide=("VolumeMode",),
        ),
        _claim,
    ),
    "PodDisruptionBudget": TableLayout(
        columns("Name", "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"), _budget
    ),
    "PodTemplate": TableLayout(columns("Name", "Containers", "Images", "Pod Labels"), _template),
    "PriorityClass": TableLayout(
        columns("Name", "Value:integer", "Global-Default:boolean", "Age", "PreemptionPolicy"), _priority
    ),
    "ResourceQuota": TableLayout(columns("Name", "Request", "Limit", "Age"), _quota),
    "RoleBinding": _BINDINGS,
    "Secret": TableLayout(columns("Name", "Type", "Data", "Age"), _secret),
    "Service": TableLayout(
        columns("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", wide=("Selector",)), _service
    ),
    "ServiceAccount": TableLayout(columns("Name", "Age"), _plain),
    "StorageClass": TableLayout(
        columns("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"),
        _storage_class,
    ),
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "VolumeAttachment": TableLayout(columns("Name", "Attacher", "PV", "Node", "Attached:boolean", "Age"), _attachment),
}
