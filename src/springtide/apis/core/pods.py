"""Views of pods and pod templates in manifests, and checks of the annotations that consume a ProvisioningRequest.

Only what concerns requests and scheduling is typed. Other fields are known by name, which is enough to find misspelt
and misplaced ones. `pod_record` has what is kept of running pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from springtide.apis.core.affinity import AffinityView
from springtide.apis.core.resources import Resources
from springtide.apis.core.volume_sources import Volume
from springtide.apis.kinds import Int32, NonEmpty, Quantity, ValidationContext, View, by_key, doc
from springtide.apis.meta.types import LabelSelectorView, Object, ObjectMeta
from springtide.apis.problems import Problem, error, warning

CONSUME_ANNOTATION = "autoscaling.x-k8s.io/consume-provisioning-request"
CLASS_ANNOTATION = "autoscaling.x-k8s.io/provisioning-class-name"
OLD_CONSUME_ANNOTATION = "cluster-autoscaler.kubernetes.io/consume-provisioning-request"
OLD_CLASS_ANNOTATION = "cluster-autoscaler.kubernetes.io/provisioning-class-name"


def consumer_problems(metadata: ObjectMeta | None) -> Iterator[Problem]:
    """Find annotations of a pod that name a ProvisioningRequest without its class, or under an old name."""
    annotations = (metadata.annotations if metadata is not None else None) or {}
    for old, new in ((OLD_CONSUME_ANNOTATION, CONSUME_ANNOTATION), (OLD_CLASS_ANNOTATION, CLASS_ANNOTATION)):
        if old in annotations:
            yield warning(("annotations", old), f"`{old}` is the old name of an annotation", f"write `{new}`")
    consumes = CONSUME_ANNOTATION in annotations or OLD_CONSUME_ANNOTATION in annotations
    classed = CLASS_ANNOTATION in annotations or OLD_CLASS_ANNOTATION in annotations
    if consumes != classed:
        given, missing = (CONSUME_ANNOTATION, CLASS_ANNOTATION) if consumes else (CLASS_ANNOTATION, CONSUME_ANNOTATION)
        yield warning(("annotations",), f"`{given}` is set without `{missing}`", f"add `{missing}`")


def misplaced_consumer_problems(metadata: ObjectMeta) -> Iterator[Problem]:
    """Find consumer annotations on a workload instead of on its pods."""
    for name in (CONSUME_ANNOTATION, CLASS_ANNOTATION, OLD_CONSUME_ANNOTATION, OLD_CLASS_ANNOTATION):
        if name in (metadata.annotations or {}):
            yield warning(
                ("metadata", "annotations", name),
                f"`{name}` has an effect on pods only",
                "move it to `spec.template.metadata.annotations`",
            )


_CONTAINER_FIELDS = (
    "args",
    "command",
    "env",
    "envFrom",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "resizePolicy",
    "restartPolicyRules",
    "securityContext",
    "startupProbe",
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts",
    "workingDir",
)


class ContainerPort(View, kw_only=True):
    """A port that a container listens on."""

    container_port: Annotated[Int32, doc("The port inside the pod.")]
    host_port: Annotated[Int32 | None, doc("The port of the node that it occupies.")] = None
    host_ip: Annotated[str | None, doc("The address of the node that the port is bound to.")] = None
    name: Annotated[str | None, doc("Name that services may use.")] = None
    protocol: Annotated[Literal["TCP", "UDP", "SCTP"] | None, doc("The protocol; TCP if not set.")] = None


class Container(View, kw_only=True):
    """A container of a pod."""

    __opaque__ = _CONTAINER_FIELDS

    name: Annotated[NonEmpty, doc("Name, unique in the pod.")]
    image: Annotated[str | None, doc("Image that is run.")] = None
    resources: Annotated[Resources | None, doc("Requests and limits of the container.")] = None
    ports: Annotated[tuple[ContainerPort, ...] | None, doc("Ports that the container listens on.")] = None
    restart_policy: Annotated[
        str | None, doc("Always makes an init container a sidecar, which runs as long as the pod.")
    ] = None

    @property
    def sidecar(self) -> bool:
        """Whether an init container is a sidecar, which keeps running."""
        return self.restart_policy == "Always"


class PodResourceClaim(View, kw_only=True):
    """Devices that the pod claims."""

    name: Annotated[NonEmpty, doc("Name that containers use.")]
    resource_claim_name: Annotated[str | None, doc("An existing claim.")] = None
    resource_claim_template_name: Annotated[str | None, doc("A template that a claim is made from.")] = None


class Toleration(View, kw_only=True):
    """Taints that the pod tolerates."""

    key: Annotated[str | None, doc("Key of the taint; every taint if not set.")] = None
    operator: Annotated[
        Literal["Exists", "Equal", "Lt", "Gt"] | None, doc("How the value is compared; Equal if not set.")
    ] = None
    value: Annotated[str | None, doc("Value of the taint.")] = None
    effect: Annotated[
        Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None, doc("Effect; every one if not set.")
    ] = None
    toleration_seconds: Annotated[int | None, doc("How long a NoExecute taint is tolerated.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find tolerations that the API server rejects."""
        if not self.key and self.operator != "Exists":
            yield error(("operator",), "a toleration without a key needs operator Exists", "add `operator: Exists`")
        if self.operator == "Exists" and self.value:
            yield error(("value",), "operator Exists needs no value", "remove `value`, or write `operator: Equal`")


class TopologySpreadConstraint(View, kw_only=True):
    """How evenly pods spread over topology domains."""

    max_skew: Annotated[Annotated[int, Meta(ge=1)], doc("How uneven the spread may be.")]
    topology_key: Annotated[NonEmpty, doc("The node label whose values are the topology domains.")]
    when_unsatisfiable: Annotated[Literal["DoNotSchedule", "ScheduleAnyway"], doc("Whether it must hold.")]
    label_selector: Annotated[LabelSelectorView | None, doc("Which pods are counted.")] = None
    match_label_keys: Annotated[tuple[str, ...] | None, doc("Labels whose values must equal those of the pod.")] = None
    min_domains: Annotated[Annotated[int, Meta(ge=1)] | None, doc("How many domains there must be.")] = None
    node_affinity_policy: Annotated[Literal["Honor", "Ignore"] | None, doc("Whether affinity counts.")] = None
    node_taints_policy: Annotated[Literal["Honor", "Ignore"] | None, doc("Whether taints count.")] = None


class SchedulingGate(View, kw_only=True):
    """What must be removed from the pod before it is scheduled."""

    name: Annotated[NonEmpty, doc("Name of the gate.")]


Containers = Annotated[tuple[Container, ...], by_key("name")]


class PodSpec(View, kw_only=True):
    """What a pod runs, and where it may run."""

    __opaque__ = (
        "activeDeadlineSeconds",
        "automountServiceAccountToken",
        "dnsConfig",
        "dnsPolicy",
        "enableServiceLinks",
        "ephemeralContainers",
        "hostAliases",
        "hostIPC",
        "hostPID",
        "hostUsers",
        "hostname",
        "hostnameOverride",
        "imagePullSecrets",
        "os",
        "readinessGates",
        "schedulingGroup",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "subdomain",
        "workloadRef",
    )

    containers: Annotated[
        Annotated[tuple[Container, ...], Meta(min_length=1), by_key("name")],
        doc("The containers that run side by side."),
    ]
    init_containers: Annotated[Containers | None, doc("Containers that run before, in order; and sidecars.")] = None
    resources: Annotated[Resources | None, doc("Requests and limits of the whole pod.")] = None
    overhead: Annotated[dict[str, Quantity] | None, doc("What running the pod itself takes.")] = None
    resource_claims: Annotated[tuple[PodResourceClaim, ...] | None, doc("Devices that the pod claims.")] = None
    node_selector: Annotated[dict[str, str] | None, doc("Labels that the node must have.")] = None
    affinity: Annotated[AffinityView | None, doc("Which nodes, and near which pods.")] = None
    node_name: Annotated[str | None, doc("The node that the pod is bound to.")] = None
    tolerations: Annotated[tuple[Toleration, ...] | None, doc("Taints that the pod tolerates.")] = None
    topology_spread_constraints: Annotated[
        tuple[TopologySpreadConstraint, ...] | None, doc("How evenly pods spread.")
    ] = None
    priority: Annotated[Int32 | None, doc("Priority, set from the class.")] = None
    priority_class_name: Annotated[str | None, doc("Name of the PriorityClass.")] = None
    preemption_policy: Annotated[
        str | None, doc("Never, or PreemptLowerPriority if not set: whether others are evicted for the pod.")
    ] = None
    scheduling_gates: Annotated[
        Annotated[tuple[SchedulingGate, ...], by_key("name")] | None, doc("What keeps the pod from being scheduled.")
    ] = None
    host_network: Annotated[bool | None, doc("Whether its ports are ports of the node.")] = None
    volumes: Annotated[
        Annotated[tuple[Volume, ...], by_key("name")] | None, doc("Volumes that containers can mount.")
    ] = None
    termination_grace_period_seconds: Annotated[int | None, doc("How long the pod may take to end.")] = None
    restart_policy: Annotated[
        Literal["Always", "OnFailure", "Never"] | None, doc("When containers are started again.")
    ] = None
    runtime_class_name: Annotated[str | None, doc("Name of the RuntimeClass.")] = None
    scheduler_name: Annotated[str | None, doc("Name of the scheduler.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find init containers with the name of a container; duplicates within one list are found elsewhere."""
        taken = {container.name for container in self.containers}
        for position, container in enumerate(self.init_containers or ()):
            if container.name in taken:
                yield error(
                    ("initContainers", position, "name"), f'"{container.name}" is the name of a container already'
                )


class PodTemplateSpec(View, kw_only=True):
    """The template of pods."""

    metadata: Annotated[ObjectMeta | None, doc("Labels and annotations of the pods.")] = None
    spec: Annotated[PodSpec, doc("What the pods run.")]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find incomplete annotations that consume a ProvisioningRequest."""
        for problem in consumer_problems(self.metadata):
            yield problem.under("metadata")


class PodTemplate(Object, kw_only=True):
    """A pod template as an object of its own."""

    __mistaken__ = {"spec": "a PodTemplate holds its pod in `template`: write `template:` and put `spec` under it"}

    template: Annotated[PodTemplateSpec, doc("The pod.")]


class Pod(Object, kw_only=True):
    """A pod."""

    __opaque__ = ("status",)

    spec: Annotated[PodSpec, doc("What the pod runs.")]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find incomplete annotations that consume a ProvisioningRequest."""
        for problem in consumer_problems(self.metadata):
            yield problem.under("metadata")
