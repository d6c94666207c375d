"""Types that all kinds share: metadata, references, selectors, and both forms of conditions.

`autoscaling.karpenter.sh` uses conditions in the style of Knative, which are older than those of Kubernetes itself:
they may have a severity and need not have a reason. True means healthy, and `Ready` is true when all others are.
"""

from __future__ import annotations

from typing import Annotated, Literal, dataclass_transform

import msgspec
from msgspec import Meta

from springtide.apis.kinds import DnsName, Int64, NonEmpty, Time, View, by_key, doc, text_format


class ObjectMeta(View, kw_only=True):
    """Metadata of an object."""

    __opaque__ = (
        "deletionGracePeriodSeconds",
        "managedFields",
        "ownerReferences",
        "selfLink",
    )

    name: Annotated[DnsName | None, doc("Name, unique among objects of the kind in the namespace.")] = None
    generate_name: Annotated[str | None, doc("Prefix of a name that the server completes.")] = None
    namespace: Annotated[DnsName | None, doc("Namespace, for kinds that live in one.")] = None
    labels: Annotated[Annotated[dict[str, str], text_format("labels")] | None, doc("Labels.")] = None
    annotations: Annotated[Annotated[dict[str, str], text_format("annotations")] | None, doc("Annotations.")] = None
    creation_timestamp: Annotated[Time | None, doc("When the object was created.")] = None
    deletion_timestamp: Annotated[Time | None, doc("When the object will be or was deleted.")] = None
    finalizers: Annotated[tuple[str, ...] | None, doc("What must be removed before the object is deleted.")] = None
    generation: Annotated[int | None, doc("Counts the changes of the spec.")] = None
    resource_version: Annotated[str | None, doc("The version of the object in storage.")] = None
    uid: Annotated[str | None, doc("Unique identity, which a new object of the same name does not share.")] = None


class ObjectCondition(View, kw_only=True):
    """One observation about an object, as Kubernetes writes them."""

    type: Annotated[
        str,
        doc("What is observed, in CamelCase."),
        Meta(
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
    ]
    status: Annotated[Literal["True", "False", "Unknown"], doc("Whether it holds.")]
    last_transition_time: Annotated[Time, doc("When the status last changed.")]
    reason: Annotated[
        str,
        doc("Why, in one CamelCase word."),
        Meta(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
    ]
    message: Annotated[str, doc("Why, in a sentence."), Meta(max_length=32768)]
    observed_generation: Annotated[
        Annotated[int, Meta(ge=0, extra_json_schema={"format": "int64"})] | None,
        doc("The generation that this was observed at."),
    ] = None


Conditions = Annotated[tuple[ObjectCondition, ...], by_key("type")]


class LocalReference(View, kw_only=True):
    """An object of the same namespace, by name."""

    name: Annotated[NonEmpty, doc("Name of the object.")]


class ScaleTargetReference(View, kw_only=True):
    """An object of any kind in the same namespace."""

    kind: Annotated[NonEmpty, doc("Kind of the object."), text_format("path-segment")]
    name: Annotated[NonEmpty, doc("Name of the object."), text_format("path-segment")]
    api_version: Annotated[str | None, doc("Group and version of the object.")] = None


class LabelSelectorRequirement(View, kw_only=True):
    """One requirement on a label."""

    key: Annotated[str, doc("The label.")]
    operator: Annotated[Literal["In", "NotIn", "Exists", "DoesNotExist"], doc("How the values are compared.")]
    values: Annotated[tuple[str, ...] | None, doc("The values, for In and NotIn.")] = None


class LabelSelectorView(View, kw_only=True):
    """A selection of objects by labels; all requirements must hold."""

    match_labels: Annotated[dict[str, str] | None, doc("Labels that must have exactly these values.")] = None
    match_expressions: Annotated[tuple[LabelSelectorRequirement, ...] | None, doc("Requirements on labels.")] = None


class Object(View, kw_only=True):
    """The root of every kind, which adds its spec and status."""

    api_version: Annotated[str, doc("Group and version of this kind.")]
    kind: Annotated[str, doc("The kind.")]
    metadata: Annotated[ObjectMeta, doc("Metadata of the object.")]


Generation = Int64


class KnativeCondition(View, kw_only=True):
    """One observation about an object; True means healthy."""

    type: Annotated[str, doc("What is observed, in CamelCase.")]
    status: Annotated[Literal["True", "False", "Unknown"], doc("Whether it holds.")]
    severity: Annotated[
        str | None, doc("How bad it is if it does not hold: empty is an error, else Warning or Info.")
    ] = None
    last_transition_time: Annotated[Time | None, doc("When the status last changed.")] = None
    reason: Annotated[str | None, doc("Why, in one CamelCase word.")] = None
    message: Annotated[str | None, doc("Why, in a sentence.")] = None


KnativeConditions = Annotated[tuple[KnativeCondition, ...], by_key("type")]

PAUSED_ANNOTATION = "springtide.dev/paused"
"""The annotation with which a user stops the reconciles of an object."""


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class DecodedPart(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A part of an object as the API server sends it: decoded without validation, for records that stay in memory."""
