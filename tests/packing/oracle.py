"""The filters of kube-scheduler 1.36, written plainly: one pod, one node, raw Kubernetes objects, no caches.

The packer is compared to this module, and so it shares no code with it and is as slow as it is simple. Objects are
dicts as `kubectl get -o json` prints them; manifests that no API server has seen yet are read with the API server's
defaults (requests from limits, ports of the host network, merged `matchLabelKeys`).
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = dict[str, Any]
Amounts: TypeAlias = dict[str, Fraction]

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
HOSTNAME = "kubernetes.io/hostname"
POOL = "karpenter.sh/nodepool"

# Objects


def name_of(thing: Json) -> str:
    """The name of an object."""
    return str(thing["metadata"]["name"])


def namespace_of(thing: Json) -> str:
    """The namespace of an object, `default` if it has none."""
    return str(thing["metadata"].get("namespace") or "default")


def labels_of(thing: Json) -> dict[str, str]:
    """The labels of an object."""
    return thing["metadata"].get("labels") or {}


def annotations_of(thing: Json) -> dict[str, str]:
    """The annotations of an object."""
    return thing["metadata"].get("annotations") or {}


def spec_of(thing: Json) -> Json:
    """The spec of an object."""
    return thing.get("spec") or {}


def is_same(one: Json, other: Json) -> bool:
    """Whether two dicts are of one object."""
    return namespace_of(one) == namespace_of(other) and name_of(one) == name_of(other)


def is_finished(pod: Json) -> bool:
    """Whether the pod has ended: such pods take nothing, and the scheduler does not see them."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_terminating(thing: Json) -> bool:
    """Whether the object is being deleted."""
    return bool(thing["metadata"].get("deletionTimestamp"))


def priority_of(pod: Json) -> int:
    """The priority of a pod."""
    return int(spec_of(pod).get("priority") or 0)


class Cluster:
    """Everything that decides where a pod may go; binding a pod changes this copy only, never the given objects."""

    def __init__(
        self,
        nodes: Iterable[Json] = (),
        pods: Iterable[Json] = (),
        namespaces: Iterable[Json] = (),
        pvcs: Iterable[Json] = (),
        pvs: Iterable[Json] = (),
        storage_classes: Iterable[Json] = (),
        csi_nodes: Iterable[Json] = (),
    ) -> None:
        self.nodes = copy.deepcopy(list(nodes))
        self.pods = copy.deepcopy(list(pods))
        self.namespaces = copy.deepcopy(list(namespaces))
        self.pvcs = copy.deepcopy(list(pvcs))
        self.pvs = copy.deepcopy(list(pvs))
        self.storage_classes = copy.deepcopy(list(storage_classes))
        self.csi_nodes = copy.deepcopy(list(csi_nodes))

    @classmethod
    def from_json(cls, given: Json) -> Cluster:
        """The cluster of a dict as `clusters.random_cluster` makes it; pending pods are among its pods."""
        return cls(
            given.get("nodes") or (),
            [*(given.get("pods") or ()), *(given.get("pending") or ())],
            given.get("namespaces") or (),
            given.get("persistentVolumeClaims") or (),
            given.get("persistentVolumes") or (),
            given.get("storageClasses") or (),
            given.get("csiNodes") or (),
        )

    def copy(self) -> Cluster:
        """An independent copy."""
        return Cluster(
            self.nodes, self.pods, self.namespaces, self.pvcs, self.pvs, self.storage_classes, self.csi_nodes
        )

    def node(self, name: str) -> Json:
        """The node with the name; KeyError if there is none."""
        for node in self.nodes:
            if name_of(node) == name:
                return node
        raise KeyError(name)

    def pods_on(self, node: Json, but: Json | None = None) -> list[Json]:
        """The pods that are bound to the node and have not ended, without the given one."""
        return [
            pod
            for pod in self.pods
            if spec_of(pod).get("nodeName") == name_of(node)
            and not is_finished(pod)
            and (but is None or not is_same(pod, but))
        ]

    def nominated_to(self, node: Json, pod: Json) -> list[Json]:
        """Pending pods that preemption has promised the node, and to which the given pod must yield."""
        return [
            other
            for other in self.pods
            if not spec_of(other).get("nodeName")
            and (other.get("status") or {}).get("nominatedNodeName") == name_of(node)
            and not is_finished(other)
            and not is_same(other, pod)
            and priority_of(other) >= priority_of(pod)
        ]

    def pending(self) -> list[Json]:
        """The pods that have no node and have not ended, in their order."""
        return [pod for pod in self.pods if not spec_of(pod).get("nodeName") and not is_finished(pod)]

    def namespace_labels(self, name: str) -> dict[str, str]:
        """The labels of a namespace; none if the namespace is unknown."""
        return next((labels_of(space) for space in self.namespaces if name_of(space) == name), {})

    def pvc(self, namespace: str, name: str) -> Json | None:
        """A claim by name."""
        return next((one for one in self.pvcs if namespace_of(one) == namespace and name_of(one) == name), None)

    def pv(self, name: str) -> Json | None:
        """A volume by name."""
        return next((one for one in self.pvs if name_of(one) == name), None)

    def storage_class(self, name: str) -> Json | None:
        """A storage class by name."""
        return next((one for one in self.storage_classes if name_of(one) == name), None)

    def csi_node(self, name: str) -> Json | None:
        """The CSINode of a node."""
        return next((one for one in self.csi_nodes if name_of(one) == name), None)

    def bind(self, pod: Json, node_name: str) -> None:
        """Put a pod on a node, with its claims: bound to the volumes chosen there, or waiting for that node's."""
        node = self.node(node_name)
        chosen = _unbound_claims(self, pod, node)
        for pvc, pv in chosen or ():
            if pv is None:
                pvc["metadata"].setdefault("annotations", {})[SELECTED_NODE] = node_name
                continue
            pvc["metadata"].setdefault("annotations", {})[BIND_COMPLETED] = "yes"
            pvc["spec"]["volumeName"] = name_of(pv)
            pv["spec"]["claimRef"] = {"namespace": namespace_of(pvc), "name": name_of(pvc)}
            pv["status"] = {**(pv.get("status") or {}), "phase": "Bound"}
        bound = copy.deepcopy(pod)
        bound["spec"]["nodeName"] = node_name
        for index, other in enumerate(self.pods):
            if is_same(other, pod):
                self.pods[index] = bound
                return
        self.pods.append(bound)


# Quantities and requests

_SUFFIXES = {
    "": Fraction(1),
    **{
        suffix: Fraction(1000) ** power
        for suffix, power in zip("numkMGTPE", (-3, -2, -1, 1, 2, 3, 4, 5, 6), strict=True)
    },
    **{f"{prefix}i": Fraction(1024) ** power for power, prefix in enumerate("KMGTPE", 1)},
}


def amount(text: object) -> Fraction:
    """A Kubernetes quantity as an exact number; finer than a billionth is rounded up, as the API server does."""
    match = re.fullmatch(r"([+-]?)(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)", str(text))
    if match is None:
        message = f"not a quantity: {text!r}"
        raise ValueError(message)
    sign, digits, exponent, suffix = match.groups()
    value = Fraction(digits.rstrip(".")) * (Fraction(10) ** int(exponent) if exponent else _SUFFIXES[suffix or ""])
    return (-1 if sign == "-" else 1) * Fraction(math.ceil(value * 10**9), 10**9)


def _amounts(quantities: Json | None) -> Amounts:
    return {name: amount(text) for name, text in (quantities or {}).items()}


def _add(one: Amounts, other: Amounts) -> Amounts:
    return {name: one.get(name, Fraction(0)) + other.get(name, Fraction(0)) for name in {**one, **other}}


def _most(*all_amounts: Amounts) -> Amounts:
    names = {name: None for amounts in all_amounts for name in amounts}
    return {name: max(amounts[name] for amounts in all_amounts if name in amounts) for name in names}


def is_sidecar(container: Json) -> bool:
    """Whether an init container keeps running beside the others."""
    return container.get("restartPolicy") == "Always"


def _container_requests(pod: Json, container: Json, use_status: bool) -> Amounts:
    resources = container.get("resources") or {}
    spec = {**_amounts(resources.get("limits")), **_amounts(resources.get("requests"))}
    if not use_status:
        return spec
    status = pod.get("status") or {}
    for reported in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        if reported.get("name") == container.get("name") and reported.get("resources") is not None:
            return _resized(pod, spec, reported["resources"].get("requests"), reported.get("allocatedResources"))
    return spec


def _resized(pod: Json, spec: Amounts, actual: Json | None, allocated: Json | None) -> Amounts:
    """What a container holds while it is resized: the most of what is wanted, granted and in force."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            if condition.get("reason") == "Infeasible":
                return _most(_amounts(actual), _amounts(allocated))
            break
    return _most(spec, _amounts(actual), _amounts(allocated))


def _containers_requests(pod: Json, use_status: bool) -> Amounts:
    return _aggregate(pod, lambda one, status: _container_requests(pod, one, use_status and status))


def _aggregate(pod: Json, of_container: Callable[[Json, bool], Amounts]) -> Amounts:
    """The most that is held at a time: init containers run one by one, beside the sidecars that started before."""
    running: Amounts = {}
    for container in spec_of(pod).get("containers") or ():
        running = _add(running, of_container(container, True))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec_of(pod).get("initContainers") or ():
        if is_sidecar(container):
            own = of_container(container, True)
            running = _add(running, own)
            sidecars = _add(sidecars, own)
            peak = _most(peak, sidecars)
        else:
            peak = _most(peak, _add(of_container(container, False), sidecars))
    return _most(running, peak)


def _is_pod_level(resource: str) -> bool:
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def _pod_level_requests(pod: Json) -> Amounts:
    """The pod's own requests, with what the API server adds to them where the pod has limits of its own."""
    resources = spec_of(pod).get("resources") or {}
    requests = _amounts(resources.get("requests"))
    limits = _amounts(resources.get("limits"))
    if requests or limits:
        held = _aggregate(pod, lambda one, _: _amounts((one.get("resources") or {}).get("limits")))
        pages = {name: value for name, value in held.items() if name.startswith("hugepages-") and name not in requests}
        limits = {**pages, **limits}
    if limits:
        containers = _containers_requests(pod, use_status=False)
        defaults = {name: value for name, value in containers.items() if name in ("cpu", "memory")}
        requests = {**limits, **defaults, **requests}
    return {name: value for name, value in requests.items() if _is_pod_level(name)}


def requests_of(pod: Json, *, use_status: bool = False) -> dict[str, int]:
    """What a pod asks of a node: milli-cpu, bytes and units, each rounded up once all is added.

    The status, which says what a running pod holds while it is resized, counts for pods that are on a node.
    """
    total = _containers_requests(pod, use_status)
    own = _pod_level_requests(pod)
    status = pod.get("status") or {}
    if use_status and status.get("resources") is not None:
        actual = _resized(pod, own, status["resources"].get("requests"), status.get("allocatedResources"))
        own = {name: actual.get(name, Fraction(0)) for name in own}
    total = _add({**total, **own}, _amounts(spec_of(pod).get("overhead")))
    return {
        name: math.ceil(value * 1000) if name == "cpu" else math.ceil(value)
        for name, value in total.items()
        if _is_counted(name)
    }


def _is_counted(resource: str) -> bool:
    """Whether the scheduler looks at a resource: its own three, huge pages, attachable volumes, extended resources."""
    if resource in ("cpu", "memory", "ephemeral-storage"):
        return True
    if resource.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in resource:
        return True
    return "/" in resource and not resource.startswith("requests.")


# Selectors


def _requirement_matches(requirement: Json, labels: Mapping[str, str]) -> bool:
    key, operator, values = requirement["key"], requirement["operator"], requirement.get("values") or []
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator in ("Gt", "Lt") and key in labels and len(values) == 1:
        label, bound = _int64(labels[key]), _int64(values[0])
        if label is not None and bound is not None:
            return label > bound if operator == "Gt" else label < bound
    return False


def _int64(text: str) -> int | None:
    """A number as Go's ParseInt reads it, or None."""
    if re.fullmatch(r"[+-]?[0-9]+", text) is None:
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def selector_matches(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches: none matches nothing, an empty one everything."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()) and all(
        _requirement_matches(one, labels) for one in selector.get("matchExpressions") or ()
    )


def _is_everything(selector: Json | None) -> bool:
    return selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")


def _with_requirements(selector: Json, requirements: list[Json]) -> Json:
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *requirements]}


def _term_matches(term: Json, labels: Mapping[str, str], name: str | None) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    if any(_is_malformed(one) for one in expressions):
        return False
    if not all(_requirement_matches(one, labels) for one in expressions):
        return False
    if name is None:
        return True
    return all(_field_matches(one, name) for one in fields)


def _is_malformed(requirement: Json) -> bool:
    """Whether the scheduler cannot read the requirement, by which its whole term matches nothing."""
    operator, values = requirement["operator"], requirement.get("values") or []
    if operator in ("Gt", "Lt"):
        return len(values) != 1 or _int64(values[0]) is None
    if operator in ("In", "NotIn"):
        return not values
    return operator not in ("Exists", "DoesNotExist") or bool(values)


def _field_matches(requirement: Json, name: str) -> bool:
    values = requirement.get("values") or []
    if requirement["key"] != "metadata.name" or len(values) != 1:
        return False
    if requirement["operator"] == "In":
        return bool(name == values[0])
    return bool(requirement["operator"] == "NotIn" and name != values[0])


def terms_match(terms: Sequence[Json], labels: Mapping[str, str], name: str | None) -> bool:
    """Whether any node selector term matches; without a name the fields of nodes are left out of it."""
    return any(_term_matches(term, labels, name) for term in terms)


# Nodes


def tolerates(toleration: Json, taint: Json) -> bool:
    """Whether a toleration covers a taint (Lt and Gt as with the gate TaintTolerationComparisonOperators)."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator, wanted, present = toleration.get("operator"), toleration.get("value") or "", taint.get("value") or ""
    if not operator or operator == "Equal":
        return bool(wanted == present)
    if operator == "Exists":
        return True
    bound, value = _canonical_int64(wanted), _canonical_int64(present)
    if bound is None or value is None:
        return False
    return value > bound if operator == "Gt" else operator == "Lt" and value < bound


def _canonical_int64(text: str) -> int | None:
    return _int64(text) if re.fullmatch(r"0|-?[1-9][0-9]*", text) else None


def _is_tolerated(pod: Json, taint: Json) -> bool:
    return any(tolerates(one, taint) for one in spec_of(pod).get("tolerations") or ())


def node_unschedulable(cluster: Cluster, pod: Json, node: Json, nominated: list[Json]) -> bool:
    """A cordoned node refuses pods that do not tolerate the taint that stands for it."""
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    return bool(spec_of(node).get("unschedulable")) and not _is_tolerated(pod, taint)


def node_name(cluster: Cluster, pod: Json, node: Json, nominated: list[Json]) -> bool:
    """A pod that names its node fits no other."""
    wanted = spec_of(pod).get("nodeName")
    return bool(wanted) and wanted != name_of(node)


def taint_toleration(cluster: Cluster, pod: Json, node: Json, nominated: list[Json]) -> bool:
    """Every taint with NoSchedule or NoExecute has to be tolerated."""
    return any(
        taint.get("effect") in ("NoSchedule", "NoExecute") and not _is_tolerated(pod, taint)
        for taint in spec_of(node).get("taints") or ()
    )


def node_affinity(cluster: Cluster, pod: Json, node: Json, nominated: list[Json]) -> bool:
    """The node selector has to match, and one term of the required node affinity, if there is one."""
    selector = spec_of(pod).get("nodeSelector") or {}
    if any(labels_of(node).get(key) != value for key, value in selector.items()):
        return True
    affinity = (spec_of(pod).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return False
    return not terms_match(required.get("nodeSelectorTerms") or [], labels_of(node), name_of(node))


def host_ports(pod: Json) -> list[tuple[str, str, int]]:
    """The ports of the node that a pod uses, as address, protocol and number; ordinary init containers use none."""
    spec = spec_of(pod)
    sidecars = [one for one in spec.get("initContainers") or () if is_sidecar(one)]
    ports = []
    for container in [*sidecars, *(spec.get("containers") or ())]:
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port["containerPort"] if spec.get("hostNetwork") else 0)
            if number > 0:
                ports.append((port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", number))
    return ports


def node_ports(cluster: Cluster, pod: Json, node: Json, nominated: list[Json]) -> bool:
    """No port may be taken: same number and protocol, and the same address or all of them (only 0.0.0.0 is all)."""
    for other in [*cluster.pods_on(node, but=pod), *nominated]:
        for address, protocol, number in host_ports(pod):
            for other_address, other_protocol, other_number in host_ports(other):
                if (protocol, number) != (other_protocol, other_number):
                    continue
                if address == other_address or "0.0.0.0" in (address, other_address):
                    return True
    return False


def node_resources_fit(cluster: Cluster, pod: Json, node: Json, nominated: list[Json]) -> bool:
    """The pod counts as one of the node's pods, and each resource it asks for has to be left; zero asks for nothing."""
    allocatable = _amounts((node.get("status") or {}).get("allocatable"))
    others = [*cluster.pods_on(node, but=pod), *nominated]
    if len(others) + 1 > math.ceil(allocatable.get("pods", Fraction(0))):
        return True
    for resource, wanted in requests_of(pod).items():
        if wanted == 0:
            continue
        scale = 1000 if resource == "cpu" else 1
        free = math.ceil(allocatable.get(resource, Fraction(0)) * scale)
        for other in others:
            free -= requests_of(other, use_status=True).get(resource, 0)
        if wanted > free:
            return True
    return False


# Volumes


def _claim_name(pod: Json, volume: Json) -> str | None:
    """The name of the claim of a volume, None for volumes without one."""
    if volume.get("persistentVolumeClaim"):
        return str(volume["persistentVolumeClaim"]["claimName"])
    if volume.get("ephemeral"):
        return f"{name_of(pod)}-{volume['name']}"
    return None


def _claims(cluster: Cluster, pod: Json) -> list[Json | None]:
    """The claims of a pod; None for each that is missing, or that belongs to another pod though it is ephemeral."""
    found: list[Json | None] = []
    for volume in spec_of(pod).get("volumes") or ():
        name = _claim_name(pod, volume)
        if name is None:
            continue
        pvc = cluster.pvc(namespace_of(pod), name)
        if pvc is not None and volume.get("ephemeral") and not _is_owned(pvc, pod):
            pvc = None
        found.append(pvc)
    return found


def _is_owned(pvc: Json, pod: Json) -> bool:
    return any(
        owner.get("controller") and owner.get("uid") == pod["metadata"].get("uid")
        for owner in pvc["metadata"].get("ownerReferences") or ()
    )


def _class_name(thing: Json) -> str:
    return annotations_of(thing).get(CLASS_ANNOTATION) or spec_of(thing).get("storageClassName") or ""


def _waits(cluster: Cluster, pvc: Json) -> bool:
    """Whether the claim is bound only when its first pod has a node."""
    found = cluster.storage_class(_class_name(pvc))
    return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"


def _is_bound(pvc: Json) -> bool:
    return bool(spec_of(pvc).get("volumeName")) and BIND_COMPLETED in annotations_of(pvc)


def volume_restrictions(cluster: Cluster, pod: Json, node: Json, nominated: list[Json]) -> bool:
    """A ReadWriteOncePod claim may not be in use anywhere, nor a disk of the old kinds on this node."""
    volumes = spec_of(pod).get("volumes") or []
    for volume in volumes:
        if not volume.get("persistentVolumeClaim"):
            continue
        pvc = cluster.pvc(namespace_of(pod), volume["persistentVolumeClaim"]["claimName"])
        if pvc is None:
            return True
        if "ReadWriteOncePod" in (spec_of(pvc).get("accessModes") or ()) and _is_in_use(cluster, pvc, pod):
            return True
    return any(
        _disks_conflict(volume, other)
        for existing in [*cluster.pods_on(node, but=pod), *nominated]
        for volume in volumes
        for other in spec_of(existing).get("volumes") or ()
    )


def _is_in_use(cluster: Cluster, pvc: Json, but: Json) -> bool:
    return any(
        (volume.get("persistentVolumeClaim") or {}).get("claimName") == name_of(pvc)
        for node in cluster.nodes
        for other in cluster.pods_on(node, but=but)
        if namespace_of(other) == namespace_of(pvc)
        for volume in spec_of(other).get("volumes") or ()
    )


def _disks_conflict(one: Json, other: Json) -> bool:
    def both(kind: str) -> bool:
        return bool(one.get(kind) and other.get(kind))

    def read_only(kind: str) -> bool:
        return bool(one[kind].get("readOnly") and other[kind].get("readOnly"))

    def equal(kind: str, *fields: str) -> bool:
        return all((one[kind].get(field) or "") == (other[kind].get(field) or "") for field in fields)

    if both("gcePersistentDisk") and equal("gcePersistentDisk", "pdName") and not read_only("gcePersistentDisk"):
        return True
    if both("awsElasticBlockStore") and equal("awsElasticBlockStore", "volumeID"):
        return True
    if both("iscsi") and equal("iscsi", "iqn") and not read_only("iscsi"):
        return True
    return (
        both("rbd")
        and any(monitor in other["rbd"]["monitors"] for monitor in one["rbd"]["monitors"])
        and (one["rbd"].get("pool") or "rbd") == (other["rbd"].get("pool") or "rbd")
        and equal("rbd", "image")
        and not read_only("rbd")
    )


def _attached(cluster: Cluster, pod: Json) -> list[tuple[str, str]]:
    """The volumes that a pod attaches, as driver and handle; a claim without a volume stands for its future one."""
    found = []
    for pvc in _claims(cluster, pod):
        if pvc is None:
            continue
        pv = cluster.pv(spec_of(pvc).get("volumeName") or "")
        if pv is not None:
            csi = spec_of(pv).get("csi")
            if csi:
                found.append((csi["driver"], f"handle {csi['volumeHandle']}"))
            continue
        storage_class = cluster.storage_class(_class_name(pvc))
        if storage_class is not None:
            found.append((storage_class["provisioner"], f"claim {namespace_of(pvc)}/{name_of(pvc)}"))
    return found


def node_volume_limits(cluster: Cluster, pod: Json, node: Json, nominated: list[Json]) -> bool:
    """Distinct volumes of each CSI driver on the node are limited by the node's CSINode; a claim has to exist."""
    if None in _claims(cluster, pod):
        return True
    csi_node = cluster.csi_node(name_of(node))
    if csi_node is None:
        return False
    present = [one for other in [*cluster.pods_on(node, but=pod), *nominated] for one in _attached(cluster, other)]
    new = [one for one in _attached(cluster, pod) if one not in present]
    for driver in spec_of(csi_node).get("drivers") or ():
        count = (driver.get("allocatable") or {}).get("count")
        arriving = {one for one in new if one[0] == driver["name"]}
        attached = {one for one in present if one[0] == driver["name"]}
        if count is not None and arriving and len(arriving) + len(attached) > count:
            return True
    return False


def _pv_allows(pv: Json, node: Json) -> bool:
    required = (spec_of(pv).get("nodeAffinity") or {}).get("required")
    return required is None or terms_match(required.get("nodeSelectorTerms") or [], labels_of(node), None)


def volume_binding(cluster: Cluster, pod: Json, node: Json, nominated: list[Json]) -> bool:
    """Bound claims need a volume that the node reaches, waiting ones a volume or a provisioner there; others refuse."""
    claims = _claims(cluster, pod)
    for pvc in claims:
        if pvc is None or (pvc.get("status") or {}).get("phase") == "Lost" or is_terminating(pvc):
            return True
        if _is_bound(pvc):
            pv = cluster.pv(spec_of(pvc)["volumeName"])
            if pv is None or not _pv_allows(pv, node):
                return True
        elif spec_of(pvc).get("volumeName") or not _waits(cluster, pvc):
            return True
    return _unbound_claims(cluster, pod, node) is None


def _unbound_claims(cluster: Cluster, pod: Json, node: Json) -> list[tuple[Json, Json | None]] | None:
    """The claims that wait for a node, each with the volume found there or None if provisioned; None if impossible."""
    waiting = [
        pvc
        for pvc in _claims(cluster, pod)
        if pvc is not None and not spec_of(pvc).get("volumeName") and _waits(cluster, pvc)
    ]
    chosen: list[tuple[Json, Json | None]] = []
    used: list[str] = []
    selected = [pvc for pvc in waiting if SELECTED_NODE in annotations_of(pvc)]
    if any(annotations_of(pvc)[SELECTED_NODE] != name_of(node) for pvc in selected):
        return None
    provisioned = list(selected)
    for pvc in sorted((one for one in waiting if one not in selected), key=_storage):
        pv = _matching_volume(cluster, pvc, node, used)
        if pv is None:
            provisioned.append(pvc)
        else:
            used.append(name_of(pv))
            chosen.append((pvc, pv))
    for pvc in provisioned:
        storage_class = cluster.storage_class(_class_name(pvc))
        if storage_class is None or storage_class.get("provisioner") in (None, "", "kubernetes.io/no-provisioner"):
            return None
        if not _topologies_allow(storage_class.get("allowedTopologies") or [], labels_of(node)):
            return None
        chosen.append((pvc, None))
    return chosen


def _storage(pvc: Json) -> Fraction:
    return amount(((spec_of(pvc).get("resources") or {}).get("requests") or {}).get("storage", 0))


def _topologies_allow(terms: list[Json], labels: Mapping[str, str]) -> bool:
    return not terms or any(
        term.get("matchLabelExpressions")
        and all(labels.get(one["key"]) in one["values"] for one in term["matchLabelExpressions"])
        for term in terms
    )


def _matching_volume(cluster: Cluster, pvc: Json, node: Json, used: list[str]) -> Json | None:
    """The volume that the claim would get on the node: the one reserved for it, or else the smallest that suits."""
    best: Json | None = None
    size = Fraction(0)
    for pv in cluster.pvs:
        spec = spec_of(pv)
        reserved = spec.get("claimRef")
        capacity = amount((spec.get("capacity") or {}).get("storage", 0))
        if name_of(pv) in used or (reserved and not _is_reserved_for(reserved, pvc)) or capacity < _storage(pvc):
            continue
        # The scheduler looks only at volumes of the claim's class, even at reserved ones.
        if _class_name(pv) != _class_name(pvc) or is_terminating(pv):
            continue
        if (spec.get("volumeMode") or "Filesystem") != (spec_of(pvc).get("volumeMode") or "Filesystem"):
            continue
        if (spec.get("volumeAttributesClassName") or "") != (spec_of(pvc).get("volumeAttributesClassName") or ""):
            continue
        if reserved:
            return pv if _pv_allows(pv, node) else None
        selector = spec_of(pvc).get("selector")
        if (pv.get("status") or {}).get("phase") != "Available" or not _pv_allows(pv, node):
            continue
        if selector is not None and not selector_matches(selector, labels_of(pv)):
            continue
        if any(mode not in (spec.get("accessModes") or ()) for mode in spec_of(pvc).get("accessModes") or ()):
            continue
        if best is None or capacity < size:
            best, size = pv, capacity
    return best


def _is_reserved_for(reference: Json, pvc: Json) -> bool:
    if (reference.get("namespace"), reference.get("name")) != (namespace_of(pvc), name_of(pvc)):
        return False
    return not reference.get("uid") or reference["uid"] == pvc["metadata"].get("uid")


_ZONE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}


def volume_zone(cluster: Cluster, pod: Json, node: Json, nominated: list[Json]) -> bool:
    """Zones and regions in the labels of a volume bind the pod, on nodes that have any such label themselves."""
    node_labels = labels_of(node)
    topologies = []
    for volume in spec_of(pod).get("volumes") or ():
        if not volume.get("persistentVolumeClaim"):
            continue
        pvc = cluster.pvc(namespace_of(pod), volume["persistentVolumeClaim"]["claimName"])
        if pvc is None:
            return True
        if not spec_of(pvc).get("volumeName"):
            if not _waits(cluster, pvc):
                return True
            continue
        pv = cluster.pv(spec_of(pvc)["volumeName"])
        if pv is None:
            return True
        topologies += [(key, value) for key, value in labels_of(pv).items() if key in _ZONE_LABELS]
    if not any(key in node_labels for key in _ZONE_LABELS):
        return False
    for key, value in topologies:
        zones = [zone.strip() for zone in value.split("__")]
        if "" in zones:
            continue
        if node_labels.get(key, node_labels.get(_ZONE_LABELS[key])) not in zones:
            return True
    return False


# Pods beside pods


def _spread_selector(constraint: Json, pod: Json) -> Json | None:
    selector: Json | None = constraint.get("labelSelector")
    if selector is None:
        return None
    own = labels_of(pod)
    keys = [key for key in constraint.get("matchLabelKeys") or () if key in own]
    return _with_requirements(selector, [{"key": key, "operator": "In", "values": [own[key]]} for key in keys])


def pod_topology_spread(cluster: Cluster, pod: Json, node: Json, nominated: list[Json]) -> bool:
    """With the pod, the node's domain may hold at most `maxSkew` matching pods more than the emptiest domain."""
    constraints = [
        one
        for one in spec_of(pod).get("topologySpreadConstraints") or ()
        if one.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
    ]
    keys = [one["topologyKey"] for one in constraints]
    if any(key not in labels_of(node) for key in keys):
        return True
    for constraint in constraints:
        key, selector = constraint["topologyKey"], _spread_selector(constraint, pod)
        domains: dict[str, int] = {}
        for other_node in cluster.nodes:
            other_labels = labels_of(other_node)
            if any(one not in other_labels for one in keys) or not _is_included(cluster, constraint, pod, other_node):
                continue
            count = _spread_count(selector, pod, cluster.pods_on(other_node, but=pod))
            if name_of(other_node) == name_of(node):
                # Pods promised to the node are added to the sums, which leaves out the two exceptions.
                count += sum(
                    namespace_of(one) == namespace_of(pod) and selector_matches(selector, labels_of(one))
                    for one in nominated
                )
            domains[other_labels[key]] = domains.get(other_labels[key], 0) + count
        least = min(domains.values(), default=0)
        if len(domains) < int(constraint.get("minDomains") or 1):
            least = 0
        itself = 1 if selector_matches(selector, labels_of(pod)) else 0
        if domains.get(labels_of(node)[key], 0) + itself - least > int(constraint["maxSkew"]):
            return True
    return False


def _spread_count(selector: Json | None, pod: Json, others: list[Json]) -> int:
    """The pods of the namespace that match; an empty selector, which matches everything, counts no pod."""
    if _is_everything(selector):
        return 0
    return sum(
        namespace_of(other) == namespace_of(pod)
        and not is_terminating(other)
        and selector_matches(selector, labels_of(other))
        for other in others
    )


def _is_included(cluster: Cluster, constraint: Json, pod: Json, node: Json) -> bool:
    if (constraint.get("nodeAffinityPolicy") or "Honor") == "Honor" and node_affinity(cluster, pod, node, []):
        return False
    return constraint.get("nodeTaintsPolicy") != "Honor" or not taint_toleration(cluster, pod, node, [])


def _required_terms(pod: Json, kind: str) -> list[Json]:
    """The required terms of `podAffinity` or `podAntiAffinity`, with selectors that hold the pod's label keys."""
    own = labels_of(pod)
    affinity = (spec_of(pod).get("affinity") or {}).get(kind) or {}
    terms = []
    for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
        selector = term.get("labelSelector")
        if selector is not None:
            stored = [(one["key"], one["operator"]) for one in selector.get("matchExpressions") or ()]
            for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
                for key in term.get(field) or ():
                    # The API server has stored it already, with the labels that the pod had when it was made.
                    if key in own and (key, operator) not in stored:
                        requirement = {"key": key, "operator": operator, "values": [own[key]]}
                        selector = _with_requirements(selector, [requirement])
        terms.append({**term, "labelSelector": selector})
    return terms


def _affinity_term_matches(cluster: Cluster, term: Json, holder: Json, other: Json, *, listed: bool) -> bool:
    """Whether a term of one pod matches another; `listed` if selected namespaces are looked up among the known ones."""
    names = term.get("namespaces") or []
    selector = term.get("namespaceSelector")
    if not names and selector is None:
        names = [namespace_of(holder)]
    in_namespace = namespace_of(other) in names
    if not in_namespace and selector is not None:
        known = any(name_of(space) == namespace_of(other) for space in cluster.namespaces)
        if known or not listed:
            in_namespace = selector_matches(selector, cluster.namespace_labels(namespace_of(other)))
        # Besides looking namespaces up, 1.36 asks the selector about no labels at all: NotIn and DoesNotExist match
        # those, and so select every namespace. Only the empty selector was to do that.
        in_namespace = in_namespace or (listed and selector_matches(selector, {}))
    return in_namespace and selector_matches(term.get("labelSelector"), labels_of(other))


def inter_pod_affinity(cluster: Cluster, pod: Json, node: Json, nominated: list[Json]) -> bool:
    """Required affinity and anti-affinity of the pod, and the required anti-affinity of pods that are there."""
    labels = labels_of(node)
    existing = [
        (labels_of(other_node), other) for other_node in cluster.nodes for other in cluster.pods_on(other_node, but=pod)
    ]
    affinity, anti_affinity = _required_terms(pod, "podAffinity"), _required_terms(pod, "podAntiAffinity")
    objections = list(_objections(cluster, pod, existing))
    if not affinity and not anti_affinity and not objections:
        # The scheduler leaves out the whole check, and with it what pods promised to the node object to.
        return False
    promised = [(labels, other) for other in nominated]
    existing += promised
    objections += _objections(cluster, pod, promised)
    if any(labels.get(key) == value for key, value in objections):
        return True
    for term in anti_affinity:
        key = term["topologyKey"]
        for other_labels, other in existing:
            if key not in labels or other_labels.get(key) != labels[key]:
                continue
            if _affinity_term_matches(cluster, term, pod, other, listed=True):
                return True
    return bool(affinity) and not _affinity_holds(cluster, affinity, pod, labels, existing)


def _objections(cluster: Cluster, pod: Json, existing: list[tuple[dict[str, str], Json]]) -> Iterator[tuple[str, str]]:
    """The domains, as key and value, from which the anti-affinity of pods that are there keeps the pod out."""
    for other_labels, other in existing:
        for term in _required_terms(other, "podAntiAffinity"):
            key = term["topologyKey"]
            if key in other_labels and _affinity_term_matches(cluster, term, other, pod, listed=False):
                yield key, other_labels[key]


def _affinity_holds(
    cluster: Cluster,
    terms: list[Json],
    pod: Json,
    labels: dict[str, str],
    existing: list[tuple[dict[str, str], Json]],
) -> bool:
    """Whether each term's domain holds a pod that matches all terms, or the pod is the first of a group of its own."""

    def matches_all(other: Json) -> bool:
        return all(_affinity_term_matches(cluster, term, pod, other, listed=True) for term in terms)

    if any(term["topologyKey"] not in labels for term in terms):
        return False
    found = [
        (term["topologyKey"], other_labels[term["topologyKey"]])
        for other_labels, other in existing
        if matches_all(other)
        for term in terms
        if term["topologyKey"] in other_labels
    ]
    if all((term["topologyKey"], labels[term["topologyKey"]]) in found for term in terms):
        return True
    return not found and matches_all(pod)


# Pods that are not scheduled at all


def scheduling_gates(cluster: Cluster, pod: Json, node: Json, nominated: list[Json]) -> bool:
    """A pod with gates is not scheduled."""
    return bool(spec_of(pod).get("schedulingGates"))


def dynamic_resources(cluster: Cluster, pod: Json, node: Json, nominated: list[Json]) -> bool:
    """A pod with resource claims is never said to fit: devices are not modelled."""
    return bool(spec_of(pod).get("resourceClaims"))


PREDICATES: dict[str, Callable[[Cluster, Json, Json, list[Json]], bool]] = {
    "NodeUnschedulable": node_unschedulable,
    "NodeName": node_name,
    "TaintToleration": taint_toleration,
    "NodeAffinity": node_affinity,
    "NodePorts": node_ports,
    "NodeResourcesFit": node_resources_fit,
    "VolumeRestrictions": volume_restrictions,
    "NodeVolumeLimits": node_volume_limits,
    "VolumeBinding": volume_binding,
    "VolumeZone": volume_zone,
    "PodTopologySpread": pod_topology_spread,
    "InterPodAffinity": inter_pod_affinity,
    "SchedulingGates": scheduling_gates,
    "DynamicResources": dynamic_resources,
}
"""Every predicate by name, in the order of kube-scheduler; each returns whether it *refuses* the pod on the node."""


def refusals(cluster: Cluster, pod: Json, node: Json, *, nominated: bool = True) -> list[str]:
    """The names of all predicates that refuse the pod on the node; none if the pod fits.

    Pods of the same or higher priority that preemption has promised the node are regarded twice, once as if they were
    there and once as if not, and both times the pod has to fit. Without `nominated` they are not regarded.
    """
    promised = cluster.nominated_to(node, pod) if nominated else []
    return [
        name
        for name, refuses in PREDICATES.items()
        if refuses(cluster, pod, node, []) or (promised and refuses(cluster, pod, node, promised))
    ]


def feasible_nodes(cluster: Cluster, pod: Json, *, nominated: bool = True) -> list[str]:
    """The names of the nodes on which the pod fits, in the order of the nodes."""
    return [name_of(node) for node in cluster.nodes if not refusals(cluster, pod, node, nominated=nominated)]


def replay(
    cluster: Cluster, steps: Iterable[tuple[Json, str]], *, nominated: bool = True
) -> list[tuple[str, str, list[str]]]:
    """Bind pods to their nodes in order, and return those that are refused; they stay without a node.

    The cluster is changed: give a copy to keep it.
    """
    refused = []
    for pod, node in steps:
        reasons = refusals(cluster, pod, cluster.node(node), nominated=nominated)
        if reasons:
            refused.append((name_of(pod), node, reasons))
        else:
            cluster.bind(pod, node)
    return refused


# Plans


def place_greedily(cluster: Cluster, pods: Iterable[Json]) -> list[tuple[str, str | None]]:
    """Put each pod, in order, on the first node where it fits; each pod's name with its node's name or None."""
    trial = cluster.copy()
    placed: list[tuple[str, str | None]] = []
    for pod in pods:
        node = next(iter(feasible_nodes(trial, pod)), None)
        if node is not None:
            trial.bind(pod, node)
        placed.append((name_of(pod), node))
    return placed


class Offering(NamedTuple):
    """A kind of node that can be added: a node without a name, its price, and the pool that it counts for."""

    node: Json
    price: int
    pool: str = "default"


def cheapest_plan(
    cluster: Cluster,
    pods: Sequence[Json],
    offerings: Sequence[Offering],
    limits: Mapping[str, Mapping[str, object]] | None = None,
) -> int | None:
    """The least price of new nodes with which all pods fit, in some order of binding; None if there are none.

    Everything is tried, and so at most five pods and four offerings are sensible. Limits are quantities by pool and
    resource (`nodes` is one): what nodes of the pool have as capacity, existing ones included, may not exceed them.
    """
    for price, kinds in sorted(
        (sum(offerings[kind].price for kind in kinds), kinds)
        for count in range(len(pods) + 1)
        for kinds in itertools.combinations_with_replacement(range(len(offerings)), count)
    ):
        chosen = [offerings[kind] for kind in kinds]
        if _is_within(cluster, chosen, limits or {}) and _can_place(cluster, pods, chosen):
            return price
    return None


def _is_within(cluster: Cluster, chosen: list[Offering], limits: Mapping[str, Mapping[str, object]]) -> bool:
    for pool, by_resource in limits.items():
        added = [one.node for one in chosen if one.pool == pool]
        members = [node for node in cluster.nodes if labels_of(node).get(POOL) == pool]
        for resource, limit in by_resource.items():
            used = sum((_capacity(node, resource) for node in [*members, *added]), Fraction(0))
            if any(_capacity(node, resource) > 0 for node in added) and used > amount(limit):
                return False
    return True


def _capacity(node: Json, resource: str) -> Fraction:
    status = node.get("status") or {}
    return amount(
        1 if resource == "nodes" else (status.get("capacity") or status.get("allocatable") or {}).get(resource, 0)
    )


def _shape(pod: Json) -> str:
    """What is said of a pod, without what tells it from others that are made alike."""
    own = ("name", "uid", "creationTimestamp", "resourceVersion")
    meta = {key: value for key, value in pod["metadata"].items() if key not in own}
    text = json.dumps([meta, spec_of(pod), pod.get("status")], sort_keys=True)
    return text if '"ephemeral":' not in text else f"{name_of(pod)} {text}"


def _can_place(cluster: Cluster, pods: Sequence[Json], chosen: list[Offering]) -> bool:
    """Whether some order puts every pod on an existing or a new node, with no new node left empty."""
    start = cluster.copy()
    kinds: dict[str, int] = {}
    for index, offering in enumerate(chosen):
        node = copy.deepcopy(offering.node)
        name = f"new-{index}"
        node.setdefault("metadata", {})["name"] = name
        node["metadata"]["labels"] = {**labels_of(node), HOSTNAME: name}
        start.nodes.append(node)
        kinds[name] = next(place for place, one in enumerate(chosen) if one is offering)
    static = ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "SchedulingGates", "DynamicResources")
    alone = Cluster(start.nodes)
    possible = [
        [
            name_of(node)
            for node in start.nodes
            if not any(PREDICATES[one](start, pod, node, []) for one in static)
            and not node_resources_fit(alone, pod, node, [])
        ]
        for pod in pods
    ]
    shapes = [_shape(pod) for pod in pods]
    seen: set[tuple[tuple[str, str], ...]] = set()

    def search(trial: Cluster, state: tuple[str | None, ...]) -> bool:
        # Pods of one shape are alike: they are placed in their order, and which of them is where does not matter.
        key = tuple(sorted((shape, node or "") for shape, node in zip(shapes, state, strict=True)))
        if key in seen:
            return False
        seen.add(key)
        unused = [name for name in kinds if name not in state]
        left = [index for index, node in enumerate(state) if node is None]
        if len(unused) > len(left):
            return False
        if not left:
            return True
        for index in left:
            if shapes[index] in [shapes[earlier] for earlier in left if earlier < index]:
                continue
            tried: list[int] = []
            for name in possible[index]:
                if name in unused:
                    # Empty nodes of one kind are alike.
                    if kinds[name] in tried:
                        continue
                    tried.append(kinds[name])
                if refusals(trial, pods[index], trial.node(name)):
                    continue
                after = trial.copy()
                after.bind(pods[index], name)
                if search(after, (*state[:index], name, *state[index + 1 :])):
                    return True
        return False

    return search(start, (None,) * len(pods))
