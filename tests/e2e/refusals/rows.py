"""An object with one mistake, and how it is written: what is right, but for some fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from springtide.cluster.resources import Object

KARMADA = "autoscaling.karmada.io/v1alpha1"
KARPENTER = "autoscaling.karpenter.sh/v1alpha1"
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
TARGET = "spec.scaleTargetRef"


@dataclass(frozen=True, slots=True)
class Refused:
    """An object with one mistake."""

    id: str
    item: Object
    field: str
    """What the answer names."""
    words: str
    """What it says about it, or how to mend it."""
    by_crd: bool = False
    """Whether the rules of the CRD refuse it already, with no webhook asked."""


def written(kind: str, version: str, spec: Any) -> Object:
    """Write an object of a kind."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "refused"}, "spec": spec}


def but(right: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    """Change some fields of what is right; None takes a field away."""
    return {name: value for name, value in {**right, **changed}.items() if value is not None}
