"""Views of affinity in manifests: which nodes a pod runs on, and near which other pods.

Operators, weights and topology keys are those that the API server checks; its rules report what is wrong with them.
"""

from __future__ import annotations

from typing import Annotated

from springtide.apis.kinds import View, doc
from springtide.apis.meta.types import LabelSelectorView


class NodeRequirementView(View, kw_only=True):
    """One requirement on a label or a field of a node."""

    key: Annotated[str, doc("The label of the node; in `matchFields`, `metadata.name`.")]
    operator: Annotated[str, doc("In, NotIn, Exists, DoesNotExist, Gt or Lt.")]
    values: Annotated[tuple[str, ...] | None, doc("The values; one whole number for Gt and Lt.")] = None


class NodeSelectorTermView(View, kw_only=True):
    """Requirements on a node, all of which must hold."""

    match_expressions: Annotated[tuple[NodeRequirementView, ...] | None, doc("Requirements on labels.")] = None
    match_fields: Annotated[tuple[NodeRequirementView, ...] | None, doc("Requirements on the name.")] = None


class NodeSelectorView(View, kw_only=True):
    """Terms of which one must hold."""

    node_selector_terms: Annotated[tuple[NodeSelectorTermView, ...], doc("The terms.")]


class PreferredNodeTermView(View, kw_only=True):
    """A term that a node should match."""

    weight: Annotated[int, doc("How much it counts, from 1 to 100.")]
    preference: Annotated[NodeSelectorTermView, doc("What the node should match.")]


class NodeAffinityView(View, kw_only=True):
    """Which nodes the pod must or should run on."""

    required_during_scheduling_ignored_during_execution: Annotated[
        NodeSelectorView | None, doc("What the node must match.")
    ] = None
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredNodeTermView, ...] | None, doc("What the node should match.")
    ] = None


class PodAffinityTermView(View, kw_only=True):
    """Other pods, and the domain of nodes in which they run."""

    topology_key: Annotated[str, doc("The node label whose values are the domains.")]
    label_selector: Annotated[LabelSelectorView | None, doc("Which pods are meant; none if not set.")] = None
    namespaces: Annotated[tuple[str, ...] | None, doc("Namespaces of these pods; the pod's own if not set.")] = None
    namespace_selector: Annotated[
        LabelSelectorView | None, doc("Further namespaces, by their labels; an empty one means all.")
    ] = None
    match_label_keys: Annotated[tuple[str, ...] | None, doc("Labels whose values must equal those of the pod.")] = None
    mismatch_label_keys: Annotated[tuple[str, ...] | None, doc("Labels whose values must differ.")] = None


class WeightedPodAffinityTermView(View, kw_only=True):
    """A term that should hold."""

    weight: Annotated[int, doc("How much it counts, from 1 to 100.")]
    pod_affinity_term: Annotated[PodAffinityTermView, doc("The pods and the domain.")]


class PodAffinityView(View, kw_only=True):
    """Near which pods the pod must or should run, or not run."""

    required_during_scheduling_ignored_during_execution: Annotated[
        tuple[PodAffinityTermView, ...] | None, doc("Terms that must hold.")
    ] = None
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[WeightedPodAffinityTermView, ...] | None, doc("Terms that should hold.")
    ] = None


class AffinityView(View, kw_only=True):
    """Affinity of the pod to nodes and to other pods."""

    node_affinity: Annotated[NodeAffinityView | None, doc("Which nodes.")] = None
    pod_affinity: Annotated[PodAffinityView | None, doc("Near which pods.")] = None
    pod_anti_affinity: Annotated[PodAffinityView | None, doc("Away from which pods.")] = None
