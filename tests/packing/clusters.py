"""Small random clusters as raw Kubernetes objects, dense in the cases that decide where a pod may go.

What is made would be accepted by a real API server, with three things that only a status update, an admission plugin
or a feature gate brings about: statuses and deletion timestamps, the given UIDs, and the features in `GATED`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from hypothesis import strategies as st

Json: TypeAlias = dict[str, Any]
T = TypeVar("T")

ZONE, REGION, HOSTNAME = "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname"
LEGACY_ZONE = "failure-domain.beta.kubernetes.io/zone"
ZONES = ("zone-a", "zone-b", "zone-c")
NAMESPACES = ("default", "team-a", "team-b")
APPS = ("web", "db", "cache")
DRIVERS = ("disk.csi.example.com", "file.csi.example.com")
TIME = "2026-01-01T00:00:00Z"

FEATURES = frozenset(
    {
        "taints",
        "cordon",
        "node-selector",
        "node-affinity",
        "host-ports",
        "extended",
        "ephemeral-storage",
        "hugepages",
        "init",
        "sidecar",
        "overhead",
        "pod-level",
        "resize",
        "limits",
        "spread",
        "affinity",
        "anti-affinity",
        "namespaces",
        "label-keys",
        "terminating",
        "finished",
        "volumes",
        "rwop",
        "csi-limits",
        "gates",
        "resource-claims",
        "priorities",
        "nominated",
        "toleration-comparison",
    }
)
"""What a random cluster may have in it."""

GATED = frozenset({"toleration-comparison"})
"""Features that an API server refuses by default: TaintTolerationComparisonOperators is alpha in 1.36."""


def random_cluster(
    rng: random.Random, *, nodes: int = 4, bound: int = 6, pending: int = 4, features: Iterable[str] | None = None
) -> Json:
    """A cluster of the given size, as lists of raw objects; the same for the same generator state and arguments.

    Args:
        rng: what everything is drawn from.
        nodes: the number of nodes.
        bound: the number of pods that have a node; the filters need not have let them on it.
        pending: the number of pods without a node.
        features: names from `FEATURES`; None is all of them.

    Returns:
        `nodes`, `pods` (bound), `pending`, `namespaces`, `persistentVolumeClaims`, `persistentVolumes`,
        `storageClasses`, `csiNodes`, and the `priorityClasses` and `runtimeClasses` that the pods name.
    """
    chosen = FEATURES if features is None else frozenset(features)
    unknown = sorted(chosen - FEATURES)
    if unknown:
        message = f"unknown features: {', '.join(unknown)}"
        raise ValueError(message)
    return _Maker(rng, chosen).cluster(nodes, bound, pending)


def as_hypothesis(
    *, nodes: int = 5, bound: int = 8, pending: int = 5, features: Iterable[str] | None = None
) -> st.SearchStrategy[Json]:
    """Random clusters up to the given sizes as a strategy; it shrinks by sizes, not within a cluster."""
    chosen = None if features is None else frozenset(features)
    return st.builds(
        lambda seed, n, b, p: random_cluster(random.Random(seed), nodes=n, bound=b, pending=p, features=chosen),
        st.integers(0, 2**32 - 1),
        st.integers(1, nodes),
        st.integers(0, bound),
        st.integers(1, pending),
    )


class _Maker:
    """Draws one cluster; claims, volumes and names are collected on the way."""

    def __init__(self, rng: random.Random, features: frozenset[str]) -> None:
        self.rng = rng
        self.features = features
        self.claims: list[Json] = []
        self.volumes: list[Json] = []
        self.node_names: list[str] = []
        self.made = 0

    def may(self, feature: str, chance: float) -> bool:
        """Whether a feature is wanted, and drawn."""
        return self.rng.random() < chance and feature in self.features

    def one(self, *values: T) -> T:
        """One of the values."""
        return values[self.rng.randrange(len(values))]

    def some(self, values: Sequence[T], least: int = 1) -> list[T]:
        """Some of the values, in their order."""
        count = self.rng.randint(least, len(values))
        chosen = self.rng.sample(range(len(values)), count)
        return [values[index] for index in sorted(chosen)]

    def meta(self, name: str, namespace: str | None = None, labels: dict[str, str] | None = None) -> Json:
        """The metadata of an object."""
        number = self.rng.getrandbits(128)
        text = f"{number:032x}"
        meta: Json = {
            "name": name,
            "creationTimestamp": f"2026-01-01T{self.made // 60 % 24:02d}:{self.made % 60:02d}:00Z",
        }
        self.made += 1
        meta["uid"] = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
        if namespace is not None:
            meta["namespace"] = namespace
        if labels:
            meta["labels"] = labels
        return meta

    def cluster(self, nodes: int, bound: int, pending: int) -> Json:
        """The whole cluster."""
        made_nodes = [self.node(f"node-{index}") for index in range(nodes)]
        if "volumes" in self.features:
            self.local_volumes()
        made_bound = [self.bound_pod(f"bound-{index}") for index in range(bound if nodes else 0)]
        made_pending = [self.pending_pod(f"pending-{index}") for index in range(pending)]
        return {
            "nodes": made_nodes,
            "pods": made_bound,
            "pending": made_pending,
            "namespaces": [self.namespace(name) for name in NAMESPACES],
            "persistentVolumeClaims": self.claims,
            "persistentVolumes": self.volumes,
            "storageClasses": self.storage_classes() if "volumes" in self.features else [],
            "csiNodes": [one for name in self.node_names for one in self.csi_node(name)],
            "priorityClasses": [self.priority_class(name, value) for name, value in PRIORITIES.items()],
            "runtimeClasses": [self.runtime_class(name, fixed) for name, fixed in OVERHEADS.items()],
        }

    # Nodes

    def node(self, name: str) -> Json:
        """A node, at times without some of the usual labels."""
        self.node_names.append(name)
        labels = {}
        if self.rng.random() < 0.95:
            labels[HOSTNAME] = name
        if self.rng.random() < 0.9:
            labels[ZONE] = self.one(*ZONES)
            if self.rng.random() < 0.5:
                labels[REGION] = "region-1"
            if self.rng.random() < 0.2:
                labels[LEGACY_ZONE] = labels[ZONE]
        if self.rng.random() < 0.6:
            labels["disk"] = self.one("ssd", "hdd")
        if self.rng.random() < 0.7:
            labels["generation"] = self.one("1", "3", "5", "10", "x7", "")
        amounts = {
            "cpu": self.one("1500m", "2", "4", "3920m", "8"),
            "memory": self.one("2Gi", "4Gi", "7500M", "16Gi"),
            "ephemeral-storage": self.one("10Gi", "20G"),
            "pods": self.one("3", "10", "110", "110", "110"),
        }
        if self.may("extended", 0.5):
            amounts["example.com/gpu"] = self.one("0", "1", "2", "4")
        if self.may("hugepages", 0.4):
            amounts["hugepages-2Mi"] = self.one("0", "64Mi", "128Mi")
        spec: Json = {}
        if self.may("cordon", 0.12):
            spec["unschedulable"] = True
        if self.may("taints", 0.25):
            spec["taints"] = self.taints()
        status = {"capacity": dict(amounts), "allocatable": dict(amounts)}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": self.meta(name, None, labels),
            "spec": spec,
            "status": status,
        }

    def taints(self) -> list[Json]:
        """One or two taints, of different keys."""
        made = []
        for key in self.some(("dedicated", "score", "maintenance"))[:2]:
            taint = {"key": key, "effect": self.one("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")}
            if key == "score":
                taint["value"] = self.one("0", "5", "50", "007", "high")
            elif self.rng.random() < 0.7:
                taint["value"] = self.one("web", "db")
            made.append(taint)
        return made

    def csi_node(self, name: str) -> list[Json]:
        """The CSINode of a node, if it has one."""
        if not self.may("csi-limits", 0.8):
            return []
        drivers = []
        for driver in self.some(DRIVERS):
            made: Json = {"name": driver, "nodeID": name, "topologyKeys": [ZONE]}
            if self.rng.random() < 0.85:
                made["allocatable"] = {"count": self.rng.randint(1, 3)}
            drivers.append(made)
        return [
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": self.meta(name),
                "spec": {"drivers": drivers},
            }
        ]

    # What is not a pod or a node

    def namespace(self, name: str) -> Json:
        """A namespace; two of them have a label in common."""
        labels = {"kubernetes.io/metadata.name": name}
        if name.startswith("team-"):
            labels |= {"team": "yes", "tier": "gold" if name == "team-a" else "silver"}
        return {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": self.meta(name, None, labels),
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }

    def priority_class(self, name: str, value: int) -> Json:
        """A priority class."""
        return {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": self.meta(name),
            "value": value,
            "globalDefault": False,
            "preemptionPolicy": "PreemptLowerPriority",
        }

    def runtime_class(self, name: str, fixed: dict[str, str]) -> Json:
        """A runtime class, from which alone a pod may have an overhead."""
        return {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": self.meta(name),
            "handler": "runc",
            "overhead": {"podFixed": dict(fixed)},
        }

    def storage_classes(self) -> list[Json]:
        """A class of each kind of binding."""
        zonal = [{"matchLabelExpressions": [{"key": ZONE, "values": [ZONES[0], ZONES[1]]}]}]
        return [
            self.storage_class("immediate", DRIVERS[0], "Immediate", None),
            self.storage_class("wait", DRIVERS[0], "WaitForFirstConsumer", None),
            self.storage_class("wait-zonal", DRIVERS[1], "WaitForFirstConsumer", zonal),
            self.storage_class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer", None),
        ]

    def storage_class(self, name: str, provisioner: str, mode: str, topologies: list[Json] | None) -> Json:
        """A storage class."""
        made: Json = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": self.meta(name),
            "provisioner": provisioner,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": mode,
        }
        if topologies:
            made["allowedTopologies"] = topologies
        return made

    def volume(self, name: str, storage_class: str, size: str, modes: list[str]) -> Json:
        """A volume, reached from everywhere."""
        pv: Json = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": self.meta(name, None, {}),
            "spec": {
                "capacity": {"storage": size},
                "accessModes": modes,
                "persistentVolumeReclaimPolicy": "Delete",
                "storageClassName": storage_class,
                "volumeMode": "Filesystem",
                "csi": {"driver": self.one(*DRIVERS), "volumeHandle": name},
            },
            "status": {"phase": "Available"},
        }
        self.volumes.append(pv)
        return pv

    def node_term(self) -> Json:
        """A node selector term by zone or host name, as volumes have it."""
        if self.rng.random() < 0.6 or not self.node_names:
            return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": self.some(ZONES)[:2]}]}
        names = self.some(self.node_names)[:2]
        return {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": names}]}

    def local_volumes(self) -> None:
        """Free volumes that claims without a provisioner can have."""
        for index in range(self.rng.randint(0, 3)):
            pv = self.volume(f"local-{index}", "local", self.one("1Gi", "5Gi"), ["ReadWriteOnce"])
            pv["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [self.node_term()]}}

    def claim(self, name: str, namespace: str) -> Json:
        """A claim in one of the states in which claims are."""
        state = self.one("bound", "bound", "bound", "wait", "wait-zonal", "immediate", "local", "lost", "selected")
        modes = ["ReadWriteOncePod"] if self.may("rwop", 0.3) else [self.one("ReadWriteOnce", "ReadWriteMany")]
        storage_class = state if state in ("wait", "wait-zonal", "immediate", "local") else "wait"
        if state == "local":
            modes = ["ReadWriteOnce"]
        pvc: Json = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": self.meta(name, namespace),
            "spec": {
                "accessModes": modes,
                "resources": {"requests": {"storage": self.one("1Gi", "2Gi")}},
                "storageClassName": storage_class,
                "volumeMode": "Filesystem",
            },
            "status": {"phase": "Pending"},
        }
        if state == "selected" and self.node_names:
            pvc["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": self.one(*self.node_names)}
        if state in ("bound", "lost"):
            pvc["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            pvc["spec"]["volumeName"] = f"pv-{namespace}-{name}"
            pvc["status"] = {"phase": "Bound"}
        if state == "lost":
            pvc["status"] = {"phase": self.one("Lost", "Bound")}
        if state == "bound":
            pv = self.volume(f"pv-{namespace}-{name}", storage_class, "2Gi", modes)
            pv["spec"]["claimRef"] = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": namespace,
                "name": name,
                "uid": pvc["metadata"]["uid"],
            }
            pv["status"] = {"phase": "Bound"}
            if self.rng.random() < 0.6:
                pv["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [self.node_term()]}}
            if self.rng.random() < 0.3:
                pv["metadata"]["labels"] = {self.one(ZONE, LEGACY_ZONE): self.one(*ZONES, "zone-a__zone-b")}
        self.claims.append(pvc)
        return pvc

    # Pods

    def bound_pod(self, name: str) -> Json:
        """A pod on a node; at times it ends, has ended, or is being resized."""
        pod = self.pod(name)
        pod["spec"]["nodeName"] = self.one(*self.node_names)
        pod["status"] = {"phase": "Running"}
        if self.may("finished", 0.1):
            pod["status"] = {"phase": self.one("Succeeded", "Failed")}
        if self.may("terminating", 0.15):
            self.terminate(pod)
        if self.may("resize", 0.2):
            self.resize(pod)
        return pod

    def pending_pod(self, name: str) -> Json:
        """A pod without a node; at times it is not to be scheduled, or is promised a node."""
        pod = self.pod(name)
        pod["status"] = {"phase": "Pending"}
        if self.may("gates", 0.04):
            pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        elif self.may("nominated", 0.15) and self.node_names:
            pod["status"]["nominatedNodeName"] = self.one(*self.node_names)
        if self.may("resource-claims", 0.03):
            pod["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": "some-device"}]
        return pod

    def terminate(self, pod: Json) -> None:
        """Let a pod be one that is being deleted, which a finalizer keeps."""
        pod["metadata"]["finalizers"] = ["example.com/keep"]
        pod["metadata"]["deletionTimestamp"] = TIME
        pod["metadata"]["deletionGracePeriodSeconds"] = 30

    def resize(self, pod: Json) -> None:
        """Let the status say other amounts than the spec for the first container."""
        container = pod["spec"]["containers"][0]
        requests = (container.get("resources") or {}).get("requests") or {}
        if "cpu" not in requests:
            return
        actual, allocated = {**requests, "cpu": self.one("50m", "700m")}, {**requests, "cpu": self.one("50m", "900m")}
        pod["status"]["containerStatuses"] = [
            {
                "name": container["name"],
                "image": "pause",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "resources": {"requests": actual},
                "allocatedResources": allocated,
            }
        ]
        if "resources" in pod["spec"]:
            pod["status"]["resources"] = {"requests": {"cpu": self.one("50m", "6")}}
            pod["status"]["allocatedResources"] = {"cpu": self.one("50m", "7")}
        if self.rng.random() < 0.4:
            reason = self.one("Infeasible", "Deferred")
            pod["status"]["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]

    def pod(self, name: str) -> Json:
        """A pod that has a few of the wanted features, so that many nodes are still open to it."""
        labels = {"app": self.one("web", "web", *APPS)}
        if self.rng.random() < 0.7:
            labels["version"] = self.one("v1", "v2")
        if self.rng.random() < 0.3:
            labels["tenant"] = self.one("x", "y")
        namespace = self.one("default", "default", "default", *NAMESPACES)
        drawn: dict[str, None] = {}
        spec: Json = {
            "containers": [self.container("main")],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 0,
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": self.meta(name, namespace, labels), "spec": spec}
        wanted = [one for one in POD_FEATURES if one in self.features]
        weights = [
            3 if one in ("spread", "affinity", "anti-affinity", "volumes", "host-ports") else 1 for one in wanted
        ]
        for _ in range(self.one(0, 1, 1, 2, 2, 3) if wanted else 0):
            drawn |= dict.fromkeys(self.rng.choices(wanted, weights))
        # The amounts of the whole pod have to be enough for the containers that are there in the end.
        for feature in sorted(drawn, key="pod-level".__eq__):
            POD_FEATURES[feature](self, pod)
        if self.may("taints", 0.4) and "tolerations" not in spec:
            self.tolerations(pod)
        return pod

    def container(self, name: str) -> Json:
        """A container with few requests, or none."""
        requests: Json = {}
        if self.rng.random() < 0.75:
            requests["cpu"] = self.one("0", "10m", "100m", "250m", "0.5", "1", "333333u")
        if self.rng.random() < 0.6:
            requests["memory"] = self.one("0", "64Mi", "128Mi", "500M", "1Gi", "100000000500m")
        made: Json = {"name": name, "image": "pause"}
        if requests:
            made["resources"] = {"requests": requests}
        return made

    def extended(self, pod: Json) -> None:
        """Whole devices, whose requests and limits are equal."""
        self.limit(pod, "example.com/gpu", self.one("0", "1", "2"))

    def hugepages(self, pod: Json) -> None:
        """Huge pages, which need cpu or memory beside them."""
        pod["spec"]["containers"][0].setdefault("resources", {}).setdefault("requests", {}).setdefault("cpu", "100m")
        self.limit(pod, "hugepages-2Mi", self.one("32Mi", "64Mi"))

    def limit(self, pod: Json, resource: str, quantity: str) -> None:
        """Set request and limit of the first container."""
        resources = pod["spec"]["containers"][0].setdefault("resources", {})
        resources.setdefault("requests", {})[resource] = quantity
        resources.setdefault("limits", {})[resource] = quantity

    def storage(self, pod: Json) -> None:
        """Some of the node's own disk."""
        requests = pod["spec"]["containers"][0].setdefault("resources", {}).setdefault("requests", {})
        requests["ephemeral-storage"] = self.one("1Gi", "8Gi", "11G")

    def limits(self, pod: Json) -> None:
        """A second container whose requests follow from its limits; not always has the API server seen it yet."""
        held = {"cpu": self.one("200m", "1"), "memory": self.one("256Mi", "1Gi")}
        resources: Json = {"limits": held}
        if self.rng.random() < 0.5:
            resources["requests"] = self.one(dict(held), {"cpu": "200m"})
        pod["spec"]["containers"].append({"name": "second", "image": "pause", "resources": resources})

    def init(self, pod: Json) -> None:
        """An ordinary init container, before or after the sidecars."""
        container = self.container("init")
        container.setdefault("resources", {}).setdefault("requests", {})["cpu"] = self.one("500m", "1800m", "3")
        if self.rng.random() < 0.3:
            container["ports"] = [{"containerPort": 8080, "hostPort": 8080, "protocol": "TCP"}]
        self.before(pod, container)

    def sidecar(self, pod: Json) -> None:
        """An init container that keeps running, at times with a port of the host."""
        container = self.container("sidecar")
        container["restartPolicy"] = "Always"
        if self.may("host-ports", 0.3):
            container["ports"] = [{"containerPort": 9090, "hostPort": 8080, "protocol": self.one("TCP", "UDP")}]
        self.before(pod, container)

    def before(self, pod: Json, container: Json) -> None:
        """Add an init container in a random place."""
        present = pod["spec"].setdefault("initContainers", [])
        present.insert(self.rng.randint(0, len(present)), container)

    def overhead(self, pod: Json) -> None:
        """What the runtime itself takes."""
        name = self.one(*OVERHEADS)
        pod["spec"]["runtimeClassName"] = name
        pod["spec"]["overhead"] = dict(OVERHEADS[name])

    def pod_level(self, pod: Json) -> None:
        """Resources of the whole pod, which are enough for any of the containers that are made here."""
        requests = self.one({"cpu": "5", "memory": "5Gi"}, {"cpu": "5"}, {"memory": "6Gi"})
        for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
            resources = container.get("resources") or {}
            if "limits" in resources or "hugepages-2Mi" in (resources.get("requests") or {}):
                return
            if "initContainers" not in pod["spec"] and len(pod["spec"]["containers"]) == 1:
                resources["requests"] = {**(resources.get("requests") or {}), "cpu": "100m", "memory": "64Mi"}
                container["resources"] = resources
                requests = self.one({"cpu": "1", "memory": "1Gi"}, {"cpu": "1500m"}, {"memory": "128Mi"})
        pod["spec"]["resources"] = {"requests": dict(requests)}
        whole = not any(text in str(pod["spec"]) for text in ("333333u", "500m'"))
        if self.rng.random() < 0.4 and whole:
            # What has only a limit is requested too: by the containers, or else as much as the limit. The API server
            # rounds each container's amount but not their sum, and refuses pods of broken amounts for that.
            pod["spec"]["resources"]["limits"] = {"cpu": "6", "memory": "7Gi"}

    def host_ports(self, pod: Json) -> None:
        """One or two ports of the node."""
        ports: dict[tuple[str, int, str], Json] = {}
        for number in self.some((8080, 8081)):
            protocol, address = self.one("TCP", "TCP", "UDP"), self.one("", "0.0.0.0", "10.0.0.1", "10.0.0.2", "::")
            ports[protocol, number, address] = {"containerPort": number, "hostPort": number, "protocol": protocol}
            if address:
                ports[protocol, number, address]["hostIP"] = address
        container = pod["spec"]["containers"][0]
        container["ports"] = list(ports.values())
        if self.rng.random() < 0.15:
            pod["spec"]["hostNetwork"] = True
            container["ports"] = [{"containerPort": self.one(8080, 8081)}]

    def tolerations(self, pod: Json) -> None:
        """One to three tolerations."""
        forms: list[Callable[[], Json]] = [
            lambda: {"key": "dedicated", "operator": "Equal", "value": self.one("web", "db"), "effect": "NoSchedule"},
            lambda: {"key": "dedicated", "value": self.one("web", "db")},
            lambda: {"key": self.one("dedicated", "score"), "operator": "Exists"},
            lambda: {"key": "maintenance", "operator": "Exists", "effect": self.one("NoSchedule", "NoExecute")},
            lambda: {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
            lambda: {"operator": "Exists"},
        ]
        if "toleration-comparison" in self.features:
            forms += 2 * [
                lambda: {"key": "score", "operator": self.one("Gt", "Lt"), "value": self.one("-1", "5", "10")},
            ]
        pod["spec"]["tolerations"] = [self.one(*forms)() for _ in range(self.rng.randint(1, 3))]

    def node_selector(self, pod: Json) -> None:
        """One label of the node."""
        key, value = self.one((ZONE, self.one(*ZONES)), ("disk", "ssd"), ("disk", "hdd"), ("generation", "5"))
        pod["spec"]["nodeSelector"] = {key: value}

    def node_affinity(self, pod: Json) -> None:
        """One to three terms, one of which may be empty, and at times a preference, which decides nothing."""
        terms = [self.node_selector_term() for _ in range(self.one(1, 1, 2, 3))]
        made: Json = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        if self.rng.random() < 0.3:
            preference = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
            made["preferredDuringSchedulingIgnoredDuringExecution"] = [{"weight": 10, "preference": preference}]
        pod["spec"].setdefault("affinity", {})["nodeAffinity"] = made

    def node_selector_term(self) -> Json:
        """A term of up to two expressions, or by name, or empty."""
        if self.rng.random() < 0.08:
            return {}
        term: Json = {}
        if self.rng.random() < 0.85:
            term["matchExpressions"] = [self.node_requirement() for _ in range(self.one(1, 1, 2))]
        if self.node_names and (not term or self.rng.random() < 0.15):
            name = self.one(*self.node_names)
            term["matchFields"] = [{"key": "metadata.name", "operator": self.one("In", "NotIn"), "values": [name]}]
        return term

    def node_requirement(self) -> Json:
        """A requirement of any operator."""
        operator = self.one("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
        if operator in ("Gt", "Lt"):
            return {"key": "generation", "operator": operator, "values": [self.one("0", "3", "5", "9", "x")]}
        if operator in ("Exists", "DoesNotExist"):
            return {"key": self.one("disk", "generation", ZONE), "operator": operator}
        key, values = self.one((ZONE, ZONES), ("disk", ("ssd", "hdd")), ("generation", ("1", "3", "5", "x7")))
        return {"key": key, "operator": operator, "values": self.some(values)[:2]}

    def selector(self, pod: Json) -> Json | None:
        """A label selector: mostly the pod's own app, at times none, an empty one or expressions."""
        draw = self.rng.random()
        if draw < 0.05:
            return None
        if draw < 0.12:
            return {}
        if draw < 0.6:
            return {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}}
        if draw < 0.75:
            return {"matchLabels": {"app": self.one(*APPS)}}
        operator = self.one("In", "NotIn", "Exists", "DoesNotExist")
        expression: Json = {"key": self.one("app", "app", "tier"), "operator": operator}
        if operator in ("In", "NotIn"):
            expression["values"] = self.some(APPS)[:2]
        return {"matchExpressions": [expression]}

    def spread(self, pod: Json) -> None:
        """One or two constraints; no two have the same key and action."""
        made: dict[tuple[str, str], Json] = {}
        for _ in range(self.one(1, 1, 2, 2)):
            key, action = (
                self.one(ZONE, ZONE, HOSTNAME, "disk"),
                self.one("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"),
            )
            constraint: Json = {"maxSkew": self.one(1, 1, 1, 2, 3), "topologyKey": key, "whenUnsatisfiable": action}
            selector = self.selector(pod)
            if selector is not None:
                constraint["labelSelector"] = selector
                if self.may("label-keys", 0.25):
                    constraint["matchLabelKeys"] = self.one(["version"], ["version", "tenant"], ["absent"])
            if action == "DoNotSchedule" and self.rng.random() < 0.25:
                constraint["minDomains"] = self.rng.randint(1, 4)
            if self.rng.random() < 0.3:
                constraint["nodeAffinityPolicy"] = self.one("Honor", "Ignore")
            if self.rng.random() < 0.3:
                constraint["nodeTaintsPolicy"] = self.one("Honor", "Ignore")
            made[key, action] = constraint
        pod["spec"]["topologySpreadConstraints"] = list(made.values())

    def affinity(self, pod: Json) -> None:
        """Required affinity of one or two terms."""
        terms = [self.affinity_term(pod) for _ in range(self.one(1, 1, 1, 2))]
        made = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        pod["spec"].setdefault("affinity", {})["podAffinity"] = made

    def anti_affinity(self, pod: Json) -> None:
        """Required anti-affinity, at times with a preference, which decides nothing."""
        terms = [self.affinity_term(pod) for _ in range(self.one(1, 1, 2))]
        made: Json = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        if self.rng.random() < 0.2:
            preferred = {"weight": 5, "podAffinityTerm": self.affinity_term(pod)}
            made["preferredDuringSchedulingIgnoredDuringExecution"] = [preferred]
        pod["spec"].setdefault("affinity", {})["podAntiAffinity"] = made

    def affinity_term(self, pod: Json) -> Json:
        """A term with the options of namespaces and of label keys."""
        term: Json = {"topologyKey": self.one(ZONE, ZONE, HOSTNAME, HOSTNAME, "disk")}
        selector = self.selector(pod)
        if selector is not None:
            term["labelSelector"] = selector
            if self.may("label-keys", 0.2):
                term["matchLabelKeys"] = self.one(["version"], ["absent"])
            if self.may("label-keys", 0.2):
                term["mismatchLabelKeys"] = ["tenant"]
        if self.may("namespaces", 0.25):
            term["namespaces"] = self.some(NAMESPACES)[:2]
        if self.may("namespaces", 0.25):
            term["namespaceSelector"] = self.one(
                {},
                {"matchLabels": {"team": "yes"}},
                {"matchLabels": {"tier": "gold"}},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
            )
        return term

    def claims_of(self, pod: Json) -> None:
        """One or two claims: new ones, one that is there already, or one that is missing."""
        namespace = pod["metadata"]["namespace"]
        names: list[str] = []
        for number in range(self.one(1, 1, 1, 2)):
            present = [one["metadata"]["name"] for one in self.claims if one["metadata"]["namespace"] == namespace]
            draw = self.rng.random()
            if present and draw < 0.4:
                name = self.one(*present)
            elif draw < 0.93:
                name = f"{pod['metadata']['name']}-claim-{number}"
                self.claim(name, namespace)
            else:
                name = "missing"
            if name not in names:
                names.append(name)
        pod["spec"]["volumes"] = [
            {"name": f"data-{index}", "persistentVolumeClaim": {"claimName": name}} for index, name in enumerate(names)
        ]

    def priority(self, pod: Json) -> None:
        """A priority by its class, as admission sets it."""
        name = self.one(*PRIORITIES)
        pod["spec"] |= {
            "priorityClassName": name,
            "priority": PRIORITIES[name],
            "preemptionPolicy": "PreemptLowerPriority",
        }


PRIORITIES = {"low": -10, "middle": 100, "high": 1000}
"""The priority classes and their values."""

OVERHEADS = {"light": {"cpu": "10m"}, "heavy": {"cpu": "250m", "memory": "120Mi"}}
"""The runtime classes and what they add to their pods."""

POD_FEATURES: dict[str, Callable[[_Maker, Json], None]] = {
    "taints": _Maker.tolerations,
    "node-selector": _Maker.node_selector,
    "node-affinity": _Maker.node_affinity,
    "host-ports": _Maker.host_ports,
    "extended": _Maker.extended,
    "ephemeral-storage": _Maker.storage,
    "hugepages": _Maker.hugepages,
    "init": _Maker.init,
    "sidecar": _Maker.sidecar,
    "overhead": _Maker.overhead,
    "pod-level": _Maker.pod_level,
    "limits": _Maker.limits,
    "spread": _Maker.spread,
    "affinity": _Maker.affinity,
    "anti-affinity": _Maker.anti_affinity,
    "volumes": _Maker.claims_of,
    "priorities": _Maker.priority,
}
