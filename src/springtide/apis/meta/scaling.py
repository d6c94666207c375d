"""What autoscalers share: limits of how fast replicas change, and references to the object that is scaled.

A reference with a wrong group or version finds no object, so nothing would be scaled. The check therefore knows the
current `apiVersion` of common kinds, and the wrong ones that users write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from springtide.apis.kinds import PositiveCount, ValidationContext, View, doc, int32
from springtide.apis.meta.repair import TreeRepair
from springtide.apis.meta.types import ScaleTargetReference
from springtide.apis.problems import Path, Problem, error
from springtide.apis.schema import nearest


class SpeedLimit(View, kw_only=True):
    """How much may change within a period; the kinds add the unit."""

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
_SHORT_NAMES = {
    "hpa": "HorizontalPodAutoscaler",
    "deploy": "Deployment",
    "sts": "StatefulSet",
    "rs": "ReplicaSet",
    "rc": "ReplicationController",
    "so": "ScaledObject",
}
"""What kubectl accepts and a reference does not."""
_UNSCALABLE = {"DaemonSet": "apps", "Job": "batch", "CronJob": "batch", "Pod": ""}
"""Workloads without a scale subresource, with their groups; a kind of the same name in another group may have one."""

_MISTAKEN_GROUPS = {
    "apps/v1": ("", "app", "apps", "app.k8s.io", "apps.k8s.io", "extension", "extensions"),
    "v1": ("", "app", "apps", "core", "extensions"),
    "autoscaling/v2": ("", "autoscaler", "autoscaling", "autoscaling.k8s.io", "apps"),
    "keda.sh/v1alpha1": ("", "keda", "keda.sh", "keda.k8s.io"),
    "autoscaling.karmada.io/v1alpha1": ("", "autoscaling", "karmada.io", "autoscaling.karmada.io"),
    "autoscaling.karpenter.sh/v1alpha1": ("", "autoscaling", "karpenter.sh", "autoscaling.karpenter.sh"),
}
"""Wrong groups that no other project defines these kinds in.

A `StatefulSet` of any other group, for example, is another project's kind.
"""


def expected_api_version(kind: str, api_version: str | None) -> str | None:
    """Return the only possible `apiVersion` of a kind, or None if the written one may be right."""
    current = _CURRENT.get(kind)
    if current is None or api_version == current or (kind, api_version) in _ALSO_SERVED:
        return None
    group = api_group_of(api_version or "")
    return current if group in _MISTAKEN_GROUPS[current] else None


def api_group_of(api_version: str) -> str:
    """Return the group of an `apiVersion`, which may be incomplete."""
    group, slash, _ = api_version.strip().lower().partition("/")
    return "" if not slash and _VERSION.fullmatch(group) else group


def scalable_kind_meant(kind: str, group: str) -> str | None:
    """Return the kind that a misspelt one means; None for a kind that may exist in this group."""
    guess = (_SHORT_NAMES.get(kind.lower()) or nearest(kind, _CURRENT)) if kind not in _CURRENT else None
    return guess if guess is not None and group in (*_MISTAKEN_GROUPS[_CURRENT[guess]], _group(guess)) else None


def _group(kind: str) -> str:
    return api_group_of(_CURRENT[kind])


class NamedScaleTarget(ScaleTargetReference, kw_only=True):
    """The object whose replicas are set: any kind with a scale subresource, in the same namespace."""

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find misspelt kinds."""
        if (meant := scalable_kind_meant(self.kind, api_group_of(self.api_version or ""))) is not None:
            group = self.api_version or "the core group"
            yield error(("kind",), f"there is no kind {self.kind} in {group}", f"did you mean `{meant}`?")


class ScaleTargetSpec(NamedScaleTarget, kw_only=True):
    """The object whose replicas are set: any kind with a scale subresource, in the same namespace."""

    __mistaken__ = {"namespace": "the target is in the namespace of this object"}

    def problems(self, context: ValidationContext) -> Iterator[Problem]:
        """Find references that cannot find an object."""
        misspelt = list(super().problems(context))
        if misspelt:
            yield from misspelt
            return
        if (group := _UNSCALABLE.get(self.kind)) is not None and api_group_of(self.api_version or "") in ("", group):
            hint = "name a Deployment, a StatefulSet or another kind with a scale subresource"
            yield error(("kind",), f"a {self.kind} has no replicas to set", hint)
            return
        expected = expected_api_version(self.kind, self.api_version)
        if not (self.api_version or "").strip():
            if expected == "v1":
                return  # kinds of the core group have no group
            hint = f"write `apiVersion: {expected}`" if expected else f"write the group and version of {self.kind}"
            yield error(("apiVersion",), f"`apiVersion` of the {self.kind} is not set: it would not be found", hint)
        elif expected is not None:
            yield error(
                ("apiVersion",),
                f"there is no {self.kind} in `{self.api_version}`",
                f"write `apiVersion: {expected}`",
            )


def repair_target_version(repair: TreeRepair, path: Path) -> None:
    """Repair the `apiVersion` of a reference if only one is possible."""
    kind, written = repair.at((*path, "kind")), repair.at((*path, "apiVersion"))
    if not isinstance(kind, str) or not isinstance(written, str):
        return
    expected = expected_api_version(kind, written)
    if expected is not None:
        message = f"`apiVersion: {written}` of the {kind} was changed to `{expected}`"
        repair.replace((*path, "apiVersion"), expected, message)
