"""autoscaling.x-k8s.io: room that is kept free, and room that is asked for."""

from __future__ import annotations

from springtide.apis.kinds import Column, Kind, Version
from springtide.apis.xk8s.buffers import CapacityBuffer
from springtide.apis.xk8s.provisioning import ProvisioningClass, ProvisioningRequest
from springtide.apis.xk8s.schedule import forecast_buffer
from springtide.apis.xk8s.spellings import fixes, read_class, read_request

_GROUP = "autoscaling.x-k8s.io"
_AGE = Column("Age", "date", ".metadata.creationTimestamp")

_BUFFER_COLUMNS = (
    Column("Strategy", "string", ".status.provisioningStrategy"),
    Column("PodTemplate", "string", ".status.podTemplateRef.name"),
    Column("Replicas", "integer", ".status.replicas"),
    Column("ReadyReplicas", "integer", ".status.readyReplicas", extension=True),
    Column("ConditionsType", "string", ".status.conditions[*].type"),
    Column("ConditionsStatus", "string", ".status.conditions[*].status"),
    Column("ConditionsReason", "string", ".status.conditions[*].reason"),
    _AGE,
)

_REQUEST_COLUMNS = (
    *(
        Column(kind, "string", f'.status.conditions[?(@.type=="{kind}")].status', extension=True)
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
            Version(
                name="v1alpha1",
                view=CapacityBuffer,
                deprecated=f"{_GROUP}/v1alpha1 CapacityBuffer is deprecated: use {_GROUP}/v1beta1",
                columns=_BUFFER_COLUMNS,
                forecaster=forecast_buffer,
            ),
            Version(
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
            Version(name="v1", view=ProvisioningRequest, storage=True, columns=_REQUEST_COLUMNS, lenient=read_request),
            Version(
                name="v1beta1",
                view=ProvisioningRequest,
                deprecated=f"{_GROUP}/v1beta1 ProvisioningRequest is deprecated: use {_GROUP}/v1",
                columns=_REQUEST_COLUMNS,
                lenient=read_request,
            ),
        ),
    ),
    Kind(
        group=_GROUP,
        kind="ProvisioningClass",
        plural="provisioningclasses",
        scope="Cluster",
        status=False,
        versions=(
            Version(
                name="v1",
                view=ProvisioningClass,
                storage=True,
                columns=(Column("Description", "string", ".description"), _AGE),
                lenient=read_class,
            ),
        ),
    ),
)

__all__ = ["KINDS", "fixes"]
