"""karpenter.sh: NodePool with its disruption budgets, and NodeClaim."""

from __future__ import annotations

from springtide.apis.karpenter import types, v1beta1
from springtide.apis.karpenter.aliases import fixes, read_v1, read_v1beta1
from springtide.apis.karpenter.conversion import to_v1
from springtide.apis.karpenter.forecast import forecast_invalid_pool, forecast_pool
from springtide.apis.kinds import Kind, KindVersion, PrinterColumn, ScaleSubresource

__all__ = ["KINDS", "fixes"]


_GROUP = "karpenter.sh"
_READY = '.status.conditions[?(@.type=="Ready")].status'
_SUPERSEDED = "karpenter.sh/v1beta1 is superseded: use karpenter.sh/v1"

_POOL_COLUMNS = (
    PrinterColumn("NodeClass", "string", ".spec.template.spec.nodeClassRef.name"),
    PrinterColumn("Nodes", "string", ".status.nodes"),
    PrinterColumn("Ready", "string", _READY),
    PrinterColumn("Age", "date", ".metadata.creationTimestamp"),
    PrinterColumn("Weight", "integer", ".spec.weight", priority=1),
    PrinterColumn("CPU", "string", ".status.resources.cpu", priority=1),
    PrinterColumn("Memory", "string", ".status.resources.memory", priority=1),
)
_CLAIM_COLUMNS = (
    PrinterColumn("Type", "string", r".metadata.labels.node\.kubernetes\.io/instance-type"),
    PrinterColumn("Capacity", "string", r".metadata.labels.karpenter\.sh/capacity-type"),
    PrinterColumn("Zone", "string", r".metadata.labels.topology\.kubernetes\.io/zone"),
    PrinterColumn("Node", "string", ".status.nodeName"),
    PrinterColumn("Ready", "string", _READY),
    PrinterColumn("Age", "date", ".metadata.creationTimestamp"),
    PrinterColumn("ImageID", "string", ".status.imageID", priority=1),
    PrinterColumn("ID", "string", ".status.providerID", priority=1),
    PrinterColumn("NodePool", "string", r".metadata.labels.karpenter\.sh/nodepool", priority=1),
    PrinterColumn("NodeClass", "string", ".spec.nodeClassRef.name", priority=1),
)

KINDS: tuple[Kind, ...] = (
    Kind(
        group=_GROUP,
        kind="NodePool",
        plural="nodepools",
        scope="Cluster",
        own_short_names=("npool",),
        categories=("karpenter",),
        scale=ScaleSubresource(".spec.replicas", ".status.nodes"),
        versions=(
            KindVersion(
                "v1",
                types.NodePool,
                storage=True,
                columns=_POOL_COLUMNS,
                normalizer=read_v1,
                forecaster=forecast_pool,
                partial_forecaster=forecast_invalid_pool,
            ),
            KindVersion(
                "v1beta1",
                v1beta1.NodePoolV1Beta1,
                served=False,
                deprecated=_SUPERSEDED,
                columns=_POOL_COLUMNS,
                normalizer=read_v1beta1,
                to_storage=to_v1,
                forecaster=forecast_pool,
                partial_forecaster=forecast_invalid_pool,
            ),
        ),
    ),
    Kind(
        group=_GROUP,
        kind="NodeClaim",
        plural="nodeclaims",
        scope="Cluster",
        own_short_names=("nclaim",),
        categories=("karpenter",),
        versions=(
            KindVersion("v1", types.NodeClaim, storage=True, columns=_CLAIM_COLUMNS),
            KindVersion(
                "v1beta1",
                v1beta1.NodeClaimV1Beta1,
                served=False,
                deprecated=_SUPERSEDED,
                columns=_CLAIM_COLUMNS,
                to_storage=to_v1,
            ),
        ),
    ),
)
