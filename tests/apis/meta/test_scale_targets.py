"""Which apiVersion must be meant."""

from __future__ import annotations

import pytest

from springtide.apis.meta.scale_targets import intended_version


@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        pytest.param("Deployment", "apps/v1", None, id="right"),
        pytest.param("Deployment", "app/v1", "apps/v1", id="letter-missing"),
        pytest.param("Deployment", "Apps/v1", "apps/v1", id="case"),
        pytest.param("Deployment", "apps/v1beta2", "apps/v1", id="older-version"),
        pytest.param("Deployment", "extensions/v1beta1", "apps/v1", id="older-group"),
        pytest.param("Deployment", "v1", "apps/v1", id="core"),
        pytest.param("Deployment", "apps", "apps/v1", id="no-version"),
        pytest.param("Deployment", None, "apps/v1", id="nothing"),
        pytest.param("StatefulSet", "apps.kruise.io/v1alpha1", None, id="kind-of-another-group"),
        pytest.param("ReplicationController", "v1", None, id="controller"),
        pytest.param("ReplicationController", "apps/v1", "v1", id="controller-in-apps"),
        pytest.param("HorizontalPodAutoscaler", "autoscaling/v1", None, id="hpa-v1"),
        pytest.param("HorizontalPodAutoscaler", "autoscaling/v2beta2", "autoscaling/v2", id="hpa-beta"),
        pytest.param("ScaledObject", "keda.k8s.io/v1alpha1", "keda.sh/v1alpha1", id="keda-1"),
        pytest.param("FederatedHPA", "autoscaling/v1alpha1", "autoscaling.karmada.io/v1alpha1", id="group-cut-short"),
        pytest.param("Rollout", "argoproj.io/v1alpha1", None, id="kind-that-is-not-known"),
        pytest.param("Rollout", None, None, id="kind-that-is-not-known-and-nothing"),
    ],
)
def test_intended_version(kind: str, written: str | None, meant: str | None) -> None:
    assert meant == intended_version(kind, written)
