"""What nodes must be like: requirements, taints and the labels that Karpenter keeps to itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from springtide.apis.fields import Context, Quantity, Rule, Time, View, atomic, doc, rules
from springtide.apis.problems import Problem, error, warning

LABEL_KEY = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)
LABEL_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"

NODEPOOL_LABEL = "karpenter.sh/nodepool"
HOSTNAME_LABEL = "kubernetes.io/hostname"
_OWN_DOMAIN = re.compile(r"([a-z0-9-]+\.)*karpenter\.sh/")
_WELL_KNOWN = ("karpenter.sh/capacity-type", NODEPOOL_LABEL)
_BOUNDS = ("Gt", "Lt", "Gte", "Lte")

ResourceAmounts = dict[str, Quantity]
"""Amounts by resource name."""


def restricted_label(key: str) -> str | None:
    """Say why Karpenter does not let users choose a label; none where they may."""
    if key == HOSTNAME_LABEL:
        return f"`{key}` is restricted: it is the node's own"
    if _OWN_DOMAIN.match(key) and key not in _WELL_KNOWN:
        return f"`{key}` is restricted: labels under karpenter.sh are Karpenter's own"
    return None


POOL_LABEL_MESSAGE = f"remove {NODEPOOL_LABEL}: every node of the pool gets it by itself"


def label_rules(subject: str, each: str) -> tuple[Rule, ...]:
    """Write the same as CEL, for a field in which `each` holds of every label `subject`."""
    own = f"!{subject}.matches('^([a-z0-9-]+[.])*karpenter[.]sh/')"
    known = " || ".join(f"{subject} == '{label}'" for label in _WELL_KNOWN)
    return (
        Rule(each.format(f"{subject} != '{HOSTNAME_LABEL}'"), f"remove {HOSTNAME_LABEL}: it is the node's own"),
        Rule(each.format(f"{known} || {own}"), "remove labels under karpenter.sh: they are Karpenter's own"),
    )


def pool_label_problems(keys: Iterable[str]) -> Iterator[Problem]:
    """Find labels that a NodePool must not set; each problem's path is the label."""
    for key in keys:
        if key == NODEPOOL_LABEL:
            yield error((key,), f"`{key}` is restricted: every node of the pool gets it by itself", "remove it")
        elif (why := restricted_label(key)) is not None:
            yield error((key,), why, "remove it, or use a label of your own domain")


class Requirement(View, kw_only=True):
    """What a label of a node must be."""

    __rules__ = (
        Rule(
            "self.operator != 'In' || (has(self.values) && self.values.size() > 0)",
            "give `values` at least one value for the operator In",
        ),
        Rule(
            "!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte'])"
            " || (has(self.values) && self.values.size() == 1 && int(self.values[0]) >= 0)",
            "give `values` exactly one whole number, 0 or more, for the operators Gt, Lt, Gte and Lte",
        ),
        Rule(
            "self.operator != 'In' || !has(self.minValues) || self.values.size() >= self.minValues",
            "give `values` at least as many values as `minValues` asks for",
        ),
    )
    __mistaken__: ClassVar[dict[str, str]] = {"value": "write `values`, a list"}

    key: Annotated[
        str,
        doc("The label."),
        Meta(max_length=316, pattern=LABEL_KEY),
        rules(*label_rules("self", "{}")),
    ]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"],
        doc("How the label is compared with the values."),
    ]
    values: Annotated[
        tuple[Annotated[str, Meta(max_length=63, pattern=LABEL_VALUE)], ...] | None,
        doc("The values: at least one for In, one whole number for Gt, Lt, Gte and Lte, none for the others."),
        atomic,
    ] = None
    min_values: Annotated[
        Annotated[int, Meta(ge=1, le=50)] | None,
        doc("How many different values must stay possible, so that the choice of machines stays wide."),
    ] = None

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find values that do not go with the operator, and labels that are not the user's to choose."""
        values = self.values or ()
        if (why := restricted_label(self.key)) is not None:
            yield error(("key",), why, "remove the requirement")
        if self.operator == "In" and not values:
            yield error(("values",), "the operator In needs at least one value")
        elif self.operator == "In" and self.min_values is not None and len(values) < self.min_values:
            yield error(
                ("minValues",),
                f"asks for {self.min_values} different values, but `values` has {len(values)}",
                "list more values, or lower `minValues`",
            )
        elif self.operator in _BOUNDS and not (len(values) == 1 and re.fullmatch("[0-9]+", values[0])):
            given = ", ".join(values) or "none"
            message = f"the operator {self.operator} needs exactly one whole number, 0 or more; `values` has {given}"
            yield error(("values",), message, 'write it in quotes, such as ["4"]')
        elif self.operator in ("Exists", "DoesNotExist") and values:
            yield warning(("values",), f"the operator {self.operator} ignores values", "remove `values`")


Requirements = Annotated[tuple[Requirement, ...], Meta(max_length=100)]


class Taint(View, kw_only=True):
    """Keeps pods away from a node that do not tolerate it."""

    key: Annotated[str, doc("Name of the taint."), Meta(min_length=1, pattern=LABEL_KEY)]
    effect: Annotated[
        Literal["NoSchedule", "PreferNoSchedule", "NoExecute"],
        doc("What happens to pods that do not tolerate it."),
    ]
    value: Annotated[Annotated[str, Meta(pattern=f"^$|{LABEL_KEY}")] | None, doc("Value of the taint.")] = None
    time_added: Annotated[Time | None, doc("When the taint was added; written by the server.")] = None
