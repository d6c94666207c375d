"""ProvisioningRequest and ProvisioningClass: room for a group of pods, all of it or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from springtide.apis.fields import Context, DnsName, PositiveCount, Rule, View, doc, rules
from springtide.apis.meta.types import Conditions, Object
from springtide.apis.problems import Problem
from springtide.apis.xk8s.classes import class_problems, parameter_problems

_IMMUTABLE = Rule("self == oldSelf", "A request cannot be changed: delete it and create another.")

_SUBDOMAIN = Meta(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")

Parameters = Annotated[dict[str, Annotated[str, Meta(max_length=255)]], Meta(max_length=100)]


class TemplateReference(View, kw_only=True):
    """A PodTemplate of the same namespace."""

    name: Annotated[Annotated[DnsName, _SUBDOMAIN], doc("Name of the PodTemplate.")]


class PodSet(View, kw_only=True):
    """Pods of one shape."""

    __mistaken__ = {"replicas": "write `count`"}

    pod_template_ref: Annotated[TemplateReference, doc("The PodTemplate that the pods have the shape of.")]
    count: Annotated[PositiveCount, doc("How many pods.")]


class ProvisioningRequestSpec(View, kw_only=True):
    """The pods that need room, and how it is to be found."""

    pod_sets: Annotated[
        Annotated[tuple[PodSet, ...], Meta(min_length=1, max_length=32)],
        doc("The pods that need room."),
        rules(_IMMUTABLE),
    ]
    provisioning_class_name: Annotated[
        Annotated[DnsName, _SUBDOMAIN],
        doc(
            "How room is found: check-capacity.autoscaling.x-k8s.io looks for what is free, "
            "best-effort-atomic-scale-up.autoscaling.x-k8s.io adds nodes for all pods or for none."
        ),
        rules(_IMMUTABLE),
    ]
    parameters: Annotated[Parameters | None, doc("Settings of the class."), rules(_IMMUTABLE)] = None

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find classes under old or unknown names, and parameters that the class cannot use."""
        for problem in class_problems(self.provisioning_class_name):
            yield problem.under("provisioningClassName")
        for problem in parameter_problems(self.parameters, self.provisioning_class_name):
            yield problem.under("parameters")


class ProvisioningRequestStatus(View, kw_only=True):
    """How far the request is."""

    conditions: Annotated[Conditions | None, doc("Accepted, Provisioned, Failed, BookingExpired, CapacityRevoked.")] = (
        None
    )
    provisioning_class_details: Annotated[
        Annotated[dict[str, Annotated[str, Meta(max_length=32768)]], Meta(max_length=64)] | None,
        doc("What the class has to say beyond the conditions."),
    ] = None


class ProvisioningRequest(Object, kw_only=True):
    """A request for room for a group of pods, which is answered once and as a whole."""

    spec: Annotated[ProvisioningRequestSpec, doc("The pods, and how room is found for them. It cannot be changed.")]
    status: Annotated[ProvisioningRequestStatus | None, doc("How far the request is.")] = None


class ProvisioningClass(Object, kw_only=True):
    """A way of finding room that requests may name, and the settings it has unless a request says otherwise."""

    __mistaken__ = {
        "spec": "a ProvisioningClass has no spec: write `parameters` beside `metadata`",
        "name": "the name of the class stands in `metadata`",
    }

    description: Annotated[str | None, doc("What the class is for, in words for people.")] = None
    parameters: Annotated[
        Parameters | None, doc("Settings that requests of the class have unless they say otherwise.")
    ] = None

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find classes under old or unknown names, and parameters that the class cannot use."""
        name = self.metadata.name or ""
        for problem in class_problems(name):
            yield problem.under("metadata", "name")
        for problem in parameter_problems(self.parameters, name):
            yield problem.under("parameters")
