"""The manifests of the designs: as printed, with their mistakes, and corrected."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest
from tests.apis.manifests import CONTEXT, shown

from springtide.apis.objects import LoadedObject, load
from springtide.apis.problems import Problem
from springtide.apis.xk8s.cross_object_checks import buffer_problems
from springtide.apis.yaml import UnreadableDocument

SHARE = """\
    apiVersion: autoscaling.x-k8s.io/v1alpha1
    kind: CapacityBuffer
    metadata: {name: my-deployment-buffer, namespace: my-namespace}
    spec:
      scalableRef:
        apiGroup: apps
        kind: Deployment
        name: my-deployment
      percentage: 10
      replicas: 1
    """

TEMPLATE = """\
    apiVersion: v1
    kind: PodTemplate
    metadata: {name: my-custom-template, namespace: my-namespace}
    template:
      spec:
        containers:
        - name: cpu-buffer-container
          resources:
            requests: {cpu: "8"}
            limits: {cpu: "8"}
        nodeSelector: {cloud.google.com/compute-class: my-custom-class}
    """

LIMITED = """\
    apiVersion: autoscaling.x-k8s.io/v1alpha1
    kind: CapacityBuffer
    metadata: {name: testing-capacity, namespace: my-namespace}
    spec:
      limits: {memory: 5120Mi, cpu: 40}
      podTemplateRef: {name: my-custom-template}
    """


def read(*texts: str) -> list[Any]:
    return load("---\n".join(dedent(text) for text in texts), CONTEXT)


def problems(*texts: str) -> list[Problem]:
    return [problem for found in read(*texts) for problem in found.problems]


def together(*texts: str) -> list[tuple[int, Problem]]:
    objects = [found for found in read(*texts) if isinstance(found, LoadedObject)]
    assert len(texts) == len(objects)
    return list(buffer_problems(objects))


@pytest.mark.parametrize("text", [SHARE, TEMPLATE, LIMITED], ids=["share", "template", "limited"])
def test_corrected_manifest(text: str) -> None:
    """Corrected, they have no problem of their own."""
    assert problems(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(SHARE.replace("apiVersion", "apiversion"), ["error apiversion"], id="apiversion"),
        pytest.param(
            LIMITED.replace("memory", "mem").replace("cpu", "cpi"),
            ["error spec.limits.cpi", "error spec.limits.mem"],
            id="mem-and-cpi",
        ),
        pytest.param(
            TEMPLATE.replace("        nodeSelector", "            nodeSelector"),
            ["error template.spec.containers[0].resources.nodeSelector"],
            id="node-selector-under-resources",
        ),
        pytest.param(SHARE.replace("v1alpha1", "v1beta1"), [], id="todays-version"),
    ],
)
def test_as_printed(text: str, expected: list[str]) -> None:
    """Each mistake of the design is found, and nothing else."""
    assert expected == shown(problems(text))


def test_a_missing_colon_is_named() -> None:
    """Without its colon the reference makes the text unreadable; the hint says what to write."""
    found, meant = read(SHARE.replace("scalableRef:", "scalableRef"))

    assert isinstance(found, UnreadableDocument)
    assert "scalableRef:" in found.hint
    assert isinstance(meant, LoadedObject)


def test_memory_never_limits_pods_that_ask_for_cpu() -> None:
    """The corrected design keeps five chunks of eight CPUs; its limit on memory has no effect, with a warning."""
    assert [(position, problem.severity, problem.path) for position, problem in together(TEMPLATE, LIMITED)] == [
        (1, "warning", ("spec", "limits", "memory"))
    ]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param("{cpu: 40}", [], id="fits"),
        pytest.param("{nvidia.com/gpu: 100m}", ["error spec.limits"], id="limits-of-other-resources"),
        pytest.param("{mem: 5120Mi, cpi: 40}", [], id="misspelt-limits-are-reported-once"),
        pytest.param("{cpu: 4}", ["warning spec.limits"], id="too-small-for-one"),
    ],
)
def test_limits_against_the_template(limits: str, expected: list[str]) -> None:
    """With the template at hand, limits are compared with what its pods ask for."""
    buffer = LIMITED.replace("{memory: 5120Mi, cpu: 40}", limits)

    assert expected == shown(problem for _, problem in together(TEMPLATE, buffer))


def test_limits_that_match_nothing_have_the_message_of_the_condition() -> None:
    """The message is that of the condition in the cluster."""
    ((_, problem),) = together(TEMPLATE, LIMITED.replace("{memory: 5120Mi, cpu: 40}", "{memory: 1Gi}"))

    assert (
        problem.message,
        problem.hint,
    ) == ("resources in configured limits not found in the pod template", "limit what the pods request, which is cpu")


DEPLOYMENT = """\
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: my-deployment, namespace: my-namespace}
    spec:
      replicas: 30
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec:
          containers: [{name: web}]
    """


def test_pods_that_ask_for_nothing_take_no_room() -> None:
    """A buffer of chunks without requests keeps nothing free."""
    assert shown(problem for _, problem in together(DEPLOYMENT, SHARE)) == ["warning spec"]


def test_other_namespaces_are_somebody_elses() -> None:
    """A template of the same name in another namespace is not used."""
    elsewhere = TEMPLATE.replace("my-namespace", "elsewhere")

    assert together(elsewhere, LIMITED) == []
