"""Kinds of Kubernetes and of other projects that ours refer to: read and validated, but without a CRD of ours."""

from __future__ import annotations

from springtide.apis.core import nodes, pods, policies, volumes, workloads
from springtide.apis.kinds import Kind, KindVersion, View

__all__ = ["KINDS"]


def _kind(group: str, plural: str, *, cluster_scoped: bool = False, **versions: type[View]) -> Kind:
    """Declare a kind of another project; the last version is its storage version."""
    *_, newest = versions
    return Kind(
        group=group,
        kind=versions[newest].__name__,
        plural=plural,
        scope="Cluster" if cluster_scoped else "Namespaced",
        versions=tuple(KindVersion(name=name, view=view, storage=name == newest) for name, view in versions.items()),
        builtin=True,
    )


KINDS: tuple[Kind, ...] = (
    _kind("", "limitranges", v1=policies.LimitRange),
    _kind("", "namespaces", cluster_scoped=True, v1=nodes.Namespace),
    _kind("", "nodes", cluster_scoped=True, v1=nodes.Node),
    _kind("", "persistentvolumeclaims", v1=volumes.PersistentVolumeClaim),
    _kind("", "persistentvolumes", cluster_scoped=True, v1=volumes.PersistentVolume),
    _kind("", "pods", v1=pods.Pod),
    _kind("", "podtemplates", v1=pods.PodTemplate),
    _kind("", "replicationcontrollers", v1=workloads.ReplicationController),
    _kind("apps", "daemonsets", v1=workloads.DaemonSet),
    _kind("apps", "deployments", v1=workloads.Deployment),
    _kind("apps", "replicasets", v1=workloads.ReplicaSet),
    _kind("apps", "statefulsets", v1=workloads.StatefulSet),
    _kind("batch", "jobs", v1=workloads.Job),
    _kind(
        "autoscaling",
        "horizontalpodautoscalers",
        v1=workloads.HorizontalPodAutoscalerV1,
        v2=workloads.HorizontalPodAutoscaler,
    ),
    _kind("keda.sh", "scaledobjects", v1alpha1=workloads.ScaledObject),
    _kind("policy", "poddisruptionbudgets", v1=policies.PodDisruptionBudget),
    _kind("scheduling.k8s.io", "priorityclasses", cluster_scoped=True, v1=policies.PriorityClass),
    _kind("storage.k8s.io", "csinodes", cluster_scoped=True, v1=volumes.CSINode),
    _kind("storage.k8s.io", "storageclasses", cluster_scoped=True, v1=volumes.StorageClass),
)
