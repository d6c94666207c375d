"""karpenter.sh: NodePool with its disruption budgets, and NodeClaim."""

from __future__ import annotations

from springtide.apis.karpenter import types, v1beta1
from springtide.apis.karpenter.conversion import to_v1
from springtide.apis.karpenter.lenient import fixes, read_v1, read_v1beta1
from springtide.apis.karpenter.outlook import forecast_broken_pool, forecast_pool
from springtide.apis.kinds import Column, Kind, Scale, Version

__all__ = ["KINDS", "fixes"]

_GROUP = "karpenter.sh"
_READY = '.status.conditions[?(@.type=="Ready")].status'
_SUPERSEDED = "karpenter.sh/v1beta1 is superseded: use karpenter.sh/v1"

_POOL_COLUMNS = (
    Column("NodeClass", "string", ".spec.template.spec.nodeClassRef.name"),
    Column("Nodes", "string", ".status.nodes"),
    Column("Ready", "string", _READY),
    Column("Age", "date", ".metadata.creationTimestamp"),
    Column("Weight", "integer", ".spec.weight", priority=1),
    Column("CPU", "string", ".status.resources.cpu", priority=1),
    Column("Memory", "string", ".status.resources.memory", priority=1),
)
_CLAIM_COLUMNS = (
    Column("Type", "string", r".metadata.labels.node\.kubernetes\.io/instance-type"),
    Column("Capacity", "string", r".metadata.labels.karpenter\.sh/capacity-type"),
    Column("Zone", "string", r".metadata.labels.topology\.kubernetes\.io/zone"),
    Column("Node", "string", ".status.nodeName"),
    Column("Ready", "string", _READY),
    Column("Age", "date", ".metadata.creationTimestamp"),
    Column("ImageID", "string", ".status.imageID", priority=1),
    Column("ID", "string", ".status.providerID", priority=1),
    Column("NodePool", "string", r".metadata.labels.karpenter\.sh/nodepool", priority=1),
    Column("NodeClass", "string", ".spec.nodeClassRef.name", priority=1),
)

KINDS: tuple[Kind, ...] = (
    Kind(
        group=_GROUP,
        kind="NodePool",
        plural="nodepools",
        scope="Cluster",
        categories=("karpenter",),
        scale=Scale(".spec.replicas", ".status.nodes"),
        versions=(
            Version(
                "v1",
                types.NodePool,
                storage=True,
                columns=_POOL_COLUMNS,
                lenient=read_v1,
                forecaster=forecast_pool,
                salvager=forecast_broken_pool,
            ),
            Version(
                "v1beta1",
                v1beta1.NodePool,
                served=False,
                deprecated=_SUPERSEDED,
                columns=_POOL_COLUMNS,
                lenient=read_v1beta1,
                to_storage=to_v1,
                forecaster=forecast_pool,
                salvager=forecast_broken_pool,
            ),
        ),
    ),
    Kind(
        group=_GROUP,
        kind="NodeClaim",
        plural="nodeclaims",
        scope="Cluster",
        categories=("karpenter",),
        versions=(
            Version("v1", types.NodeClaim, storage=True, columns=_CLAIM_COLUMNS),
            Version(
                "v1beta1",
                v1beta1.NodeClaim,
                served=False,
                deprecated=_SUPERSEDED,
                columns=_CLAIM_COLUMNS,
                to_storage=to_v1,
            ),
        ),
    ),
)
