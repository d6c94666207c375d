"""How fast autoscalers may change replicas: what HorizontalAutoscaler and FederatedHPA say in the same words.

Which `apiVersion` a scaled object has: the one that people miss by a letter or by some years.

A reference with the wrong group or version is found by nobody, and nothing is scaled; so the mistake is named where
the reference is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from springtide.apis.kinds import PositiveCount, ValidationContext, View, doc, int32
from springtide.apis.meta.repair import TreeRepair
from springtide.apis.meta.types import ScaleTargetReference
from springtide.apis.problems import Path, Problem, error


class SpeedLimit(View, kw_only=True):
    """How much may change within a period; the kinds add in which unit."""

    value: Annotated[PositiveCount, doc("How much may change.")]
    period_seconds: Annotated[Annotated[int, int32(1, 1800)], doc("Within how many seconds.")]


class DirectionRules(View, kw_only=True):
    """How replicas may change in one direction; the kinds add their policies."""

    stabilization_window_seconds: Annotated[
        Annotated[int, int32(0, 3600)] | None,
        doc("How far back recommendations count; 0 for up and 300 for down if not set."),
    ] = None
    select_policy: Annotated[
        Literal["Max", "Min", "Disabled"] | None,
        doc("Which of several recommendations or policies is taken; Disabled never moves this way. Max if not set."),
    ] = None


_VERSION = re.compile(r"v\d+((alpha|beta)\d+)?")

_CURRENT = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicationController": "v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "ScaledObject": "keda.sh/v1alpha1",
    "FederatedHPA": "autoscaling.karmada.io/v1alpha1",
    "CronFederatedHPA": "autoscaling.karmada.io/v1alpha1",
    "ScalableNodeGroup": "autoscaling.karpenter.sh/v1alpha1",
}
_ALSO_SERVED = {("HorizontalPodAutoscaler", "autoscaling/v1")}

_MISTAKEN_GROUPS = {
    "apps/v1": ("", "app", "apps", "app.k8s.io", "apps.k8s.io", "extension", "extensions"),
    "v1": ("", "app", "apps", "core", "extensions"),
    "autoscaling/v2": ("", "autoscaler", "autoscaling", "autoscaling.k8s.io", "apps"),
    "keda.sh/v1alpha1": ("", "keda", "keda.sh", "keda.k8s.io"),
    "autoscaling.karmada.io/v1alpha1": ("", "autoscaling", "karmada.io", "autoscaling.karmada.io"),
    "autoscaling.karpenter.sh/v1alpha1": ("", "autoscaling", "karpenter.sh", "autoscaling.karpenter.sh"),
}
"""Groups that nobody else defines these kinds in: written with one of them, only one thing can be meant.

`StatefulSet` of another group, for one, is a kind of its own, and none of our business.
"""


def expected_api_version(kind: str, api_version: str | None) -> str | None:
    """Give the `apiVersion` that must be meant for a kind, or None where the written one may be right."""
    current = _CURRENT.get(kind)
    if current is None or api_version == current or (kind, api_version) in _ALSO_SERVED:
        return None
    group = api_group_of(api_version or "")
    return current if group in _MISTAKEN_GROUPS[current] else None


def api_group_of(api_version: str) -> str:
    """Take the group out of what stands for an apiVersion, be it whole or in part."""
    group, slash, _ = api_version.strip().lower().partition("/")
    return "" if not slash and _VERSION.fullmatch(group) else group


class ScaleTarget(ScaleTargetReference, kw_only=True):
    """The object whose replicas are set: any kind with a scale subresource, in the same namespace."""

    __mistaken__ = {"namespace": "the target is in the namespace of this object"}

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find references that lead nowhere."""
        meant = expected_api_version(self.kind, self.api_version)
        if not (self.api_version or "").strip():
            if meant == "v1":
                return  # no group is the group of the core kinds
            hint = f"write `apiVersion: {meant}`" if meant else f"write the group and version of {self.kind}"
            yield error(("apiVersion",), f"`apiVersion` of the {self.kind} is not set: it would not be found", hint)
        elif meant is not None:
            yield error(
                ("apiVersion",),
                f"there is no {self.kind} in `{self.api_version}`",
                f"write `apiVersion: {meant}`",
            )


def repair_target_version(mending: TreeRepair, path: Path) -> None:
    """Repair the `apiVersion` of a reference where only one can be meant."""
    kind, written = mending.at((*path, "kind")), mending.at((*path, "apiVersion"))
    if not isinstance(kind, str) or not isinstance(written, str):
        return
    meant = expected_api_version(kind, written)
    if meant is not None:
        mending.replace((*path, "apiVersion"), meant, f"`apiVersion: {written}` of the {kind} was changed to `{meant}`")
