"""ProvisioningRequest and ProvisioningClass: capacity for a group of pods, all of it or none.

The names of the classes have changed twice. All of them select the same two engines, and Springtide never rewrites the
name in a request: pods name the class too, and must use the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Meta

from springtide.apis.kinds import CelRule, DnsName, PositiveCount, ValidationContext, View, doc, rules
from springtide.apis.meta.types import Conditions, Object
from springtide.apis.problems import Problem, error, warning
from springtide.apis.schema import nearest
from springtide.quantity import DurationError, parse_duration

CHECK_CAPACITY = "check-capacity.autoscaling.x-k8s.io"
ATOMIC_SCALE_UP = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CLASSES = (CHECK_CAPACITY, ATOMIC_SCALE_UP)

FORMER_NAMES = {
    "check-capacity.kubernetes.io": CHECK_CAPACITY,
    "atomic-scale-up.kubernetes.io": ATOMIC_SCALE_UP,
    "best-effort-atomic-scale-up.kubernetes.io": ATOMIC_SCALE_UP,
}

VALID_UNTIL = "ValidUntilSeconds"
NO_RETRY = "noRetry"
PROCESSOR_INSTANCE = "processorInstance"
_PARAMETERS = (VALID_UNTIL, NO_RETRY, PROCESSOR_INSTANCE)

_SECONDS = re.compile(r"[0-9]+", re.ASCII)
_NANOSECONDS = 10**9


def engine_of(class_name: str) -> str | None:
    """Return the current name of one of our classes; None for classes of other projects."""
    return class_name if class_name in CLASSES else FORMER_NAMES.get(class_name)


def class_problems(class_name: str) -> Iterator[Problem]:
    """Find class names that are outdated, misspelt, or of another project."""
    if class_name in CLASSES:
        return
    if class_name in FORMER_NAMES:
        today = FORMER_NAMES[class_name]
        yield warning((), f"`{class_name}` is a former name of `{today}`, and is read as that", f"write `{today}`")
        return
    guess = nearest(class_name, (*CLASSES, *FORMER_NAMES))
    hint = f"did you mean `{engine_of(guess)}`?" if guess is not None else f"ours are {' and '.join(CLASSES)}"
    yield warning((), f'class "{class_name}" belongs to another project: Springtide ignores the request', hint)


def valid_for(text: str) -> int:
    """Parse how long a request is retried, in whole seconds: a number of seconds, or a duration such as `2h`.

    Raises `ValueError` for other values, and for less than a second.
    """
    if _SECONDS.fullmatch(text):
        seconds = int(text)
    else:
        try:
            seconds = parse_duration(text) // _NANOSECONDS
        except DurationError as failure:
            msg = f'"{text}" is neither a number of seconds nor a duration'
            raise ValueError(msg) from failure
    if seconds < 1:
        msg = f'"{text}" is shorter than a second'
        raise ValueError(msg)
    return seconds


def parameter_problems(parameters: Mapping[str, str] | None, class_name: str) -> Iterator[Problem]:
    """Find values that our classes do not accept; unknown parameters are ignored."""
    engine = engine_of(class_name)
    if engine is None:
        return
    for name, value in (parameters or {}).items():
        if name == VALID_UNTIL:
            try:
                valid_for(value)
            except ValueError as failure:
                yield error((name,), str(failure), 'write seconds, such as "7200", or a duration, such as "2h"')
        elif name == NO_RETRY and engine != CHECK_CAPACITY:
            yield warning((name,), f"`{NO_RETRY}` has no effect here", f"it is a parameter of `{CHECK_CAPACITY}`")
        elif name == NO_RETRY and value not in ("true", "false"):
            yield warning((name,), f'"{value}" is read as false: the request is retried', 'write "true" or "false"')
        else:
            yield from _spelling_problems(name)


def _spelling_problems(name: str) -> Iterator[Problem]:
    for known in _PARAMETERS:
        if name != known and name.lower() == known.lower():
            yield warning((name,), f"`{name}` has no effect: names are case-sensitive", f"write `{known}`")


_IMMUTABLE = CelRule("self == oldSelf", "A request cannot be changed: delete it and create another.")

_SUBDOMAIN = Meta(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")

Parameters = Annotated[dict[str, Annotated[str, Meta(max_length=255)]], Meta(max_length=100)]


class TemplateReference(View, kw_only=True):
    """A PodTemplate of the same namespace."""

    name: Annotated[Annotated[DnsName, _SUBDOMAIN], doc("Name of the PodTemplate.")]


class PodSet(View, kw_only=True):
    """Pods of one template."""

    __mistaken__ = {"replicas": "write `count`"}

    pod_template_ref: Annotated[TemplateReference, doc("The PodTemplate of the pods.")]
    count: Annotated[PositiveCount, doc("How many pods.")]


class ProvisioningRequestSpec(View, kw_only=True):
    """The pods that need capacity, and how it is provided."""

    pod_sets: Annotated[
        Annotated[tuple[PodSet, ...], Meta(min_length=1, max_length=32)],
        doc("The pods that need capacity."),
        rules(_IMMUTABLE),
    ]
    provisioning_class_name: Annotated[
        Annotated[DnsName, _SUBDOMAIN],
        doc(
            "How capacity is provided: check-capacity.autoscaling.x-k8s.io looks for free capacity, "
            "best-effort-atomic-scale-up.autoscaling.x-k8s.io adds nodes for all pods or for none."
        ),
        rules(_IMMUTABLE),
    ]
    parameters: Annotated[Parameters | None, doc("Settings of the class."), rules(_IMMUTABLE)] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find outdated and unknown classes, and parameters that the class does not accept."""
        for problem in class_problems(self.provisioning_class_name):
            yield problem.under("provisioningClassName")
        for problem in parameter_problems(self.parameters, self.provisioning_class_name):
            yield problem.under("parameters")


class ProvisioningRequestStatus(View, kw_only=True):
    """The observed state of the request."""

    conditions: Annotated[Conditions | None, doc("Accepted, Provisioned, Failed, BookingExpired, CapacityRevoked.")] = (
        None
    )
    provisioning_class_details: Annotated[
        Annotated[dict[str, Annotated[str, Meta(max_length=32768)]], Meta(max_length=64)] | None,
        doc("Details from the class beyond the conditions."),
    ] = None


class ProvisioningRequest(Object, kw_only=True):
    """A request for capacity for a group of pods, which is answered once and as a whole."""

    spec: Annotated[ProvisioningRequestSpec, doc("The pods, and how they get capacity. It cannot be changed.")]
    status: Annotated[ProvisioningRequestStatus | None, doc("The observed state of the request.")] = None


class ProvisioningClass(Object, kw_only=True):
    """A way to provide capacity, which requests name, and its default parameters."""

    __mistaken__ = {
        "spec": "a ProvisioningClass has no spec: write `parameters` beside `metadata`",
        "name": "write the name of the class in `metadata`",
    }

    description: Annotated[str | None, doc("What the class is for.")] = None
    parameters: Annotated[Parameters | None, doc("Default parameters of requests of the class.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find outdated and unknown classes, and parameters that the class does not accept."""
        name = self.metadata.name or ""
        for problem in class_problems(name):
            yield problem.under("metadata", "name")
        for problem in parameter_problems(self.parameters, name):
            yield problem.under("parameters")
