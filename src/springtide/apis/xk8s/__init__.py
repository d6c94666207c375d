"""autoscaling.x-k8s.io: CapacityBuffer, ProvisioningRequest and ProvisioningClass."""

from __future__ import annotations

from springtide.apis.kinds import Kind, KindVersion, PrinterColumn
from springtide.apis.xk8s.aliases import fixes, read_class, read_request
from springtide.apis.xk8s.buffers import CapacityBuffer, forecast_buffer
from springtide.apis.xk8s.provisioning import ProvisioningClass, ProvisioningRequest

__all__ = ["KINDS", "fixes"]


_GROUP = "autoscaling.x-k8s.io"
_AGE = PrinterColumn("Age", "date", ".metadata.creationTimestamp")

_BUFFER_COLUMNS = (
    PrinterColumn("Strategy", "string", ".status.provisioningStrategy"),
    PrinterColumn("PodTemplate", "string", ".status.podTemplateRef.name"),
    PrinterColumn("Replicas", "integer", ".status.replicas"),
    PrinterColumn("ReadyReplicas", "integer", ".status.readyReplicas", extension=True),
    PrinterColumn("ConditionsType", "string", ".status.conditions[*].type"),
    PrinterColumn("ConditionsStatus", "string", ".status.conditions[*].status"),
    PrinterColumn("ConditionsReason", "string", ".status.conditions[*].reason"),
    _AGE,
)

_REQUEST_COLUMNS = (
    *(
        PrinterColumn(kind, "string", f'.status.conditions[?(@.type=="{kind}")].status', extension=True)
        for kind in ("Accepted", "Provisioned", "Failed")
    ),
    _AGE,
)

KINDS: tuple[Kind, ...] = (
    Kind(
        group=_GROUP,
        kind="CapacityBuffer",
        plural="capacitybuffers",
        scope="Namespaced",
        short_names=("cb",),
        versions=(
            KindVersion(
                name="v1alpha1",
                view=CapacityBuffer,
                deprecated=f"{_GROUP}/v1alpha1 CapacityBuffer is deprecated: use {_GROUP}/v1beta1",
                columns=_BUFFER_COLUMNS,
                forecaster=forecast_buffer,
            ),
            KindVersion(
                name="v1beta1",
                view=CapacityBuffer,
                storage=True,
                columns=_BUFFER_COLUMNS,
                forecaster=forecast_buffer,
            ),
        ),
    ),
    Kind(
        group=_GROUP,
        kind="ProvisioningRequest",
        plural="provisioningrequests",
        scope="Namespaced",
        short_names=("provreq", "provreqs"),
        versions=(
            KindVersion(
                name="v1", view=ProvisioningRequest, storage=True, columns=_REQUEST_COLUMNS, normalizer=read_request
            ),
            KindVersion(
                name="v1beta1",
                view=ProvisioningRequest,
                deprecated=f"{_GROUP}/v1beta1 ProvisioningRequest is deprecated: use {_GROUP}/v1",
                columns=_REQUEST_COLUMNS,
                normalizer=read_request,
            ),
        ),
    ),
    Kind(
        group=_GROUP,
        kind="ProvisioningClass",
        plural="provisioningclasses",
        scope="Cluster",
        own_short_names=("provclass",),
        status=False,
        versions=(
            KindVersion(
                name="v1",
                view=ProvisioningClass,
                storage=True,
                columns=(PrinterColumn("Description", "string", ".description"), _AGE),
                normalizer=read_class,
            ),
        ),
    ),
)
