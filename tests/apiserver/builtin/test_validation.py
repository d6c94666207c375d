"""Validation of built-in kinds, with the messages of kube-apiserver."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tests.apiserver.builtin.samples import (
    BY_KIND,
    defaulted,
    job,
    kind_of,
    messages,
    other_object,
    pod,
    pod_spec,
    validated,
    workload,
)

from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object

_HPA = ("HorizontalPodAutoscaler", "autoscaling/v2")
_TARGET = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}}


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(workload(), id="deployment"),
        pytest.param(workload("ReplicaSet"), id="replica-set"),
        pytest.param(workload("StatefulSet"), id="stateful-set"),
        pytest.param(workload("DaemonSet"), id="daemon-set"),
        pytest.param(pod(), id="pod"),
        pytest.param(job(), id="job"),
        pytest.param(other_object(*_HPA, spec=_TARGET | {"maxReplicas": 3}), id="autoscaler"),
        pytest.param(other_object("PodDisruptionBudget", "policy/v1", spec={"maxUnavailable": "50%"}), id="budget"),
        pytest.param(other_object("Namespace"), id="namespace"),
        pytest.param(other_object("Node"), id="node"),
        pytest.param(other_object("ConfigMap", data={"a": "b"}), id="config-map"),
        pytest.param(other_object("LimitRange", spec={}), id="empty-limit-range"),
        pytest.param(other_object("Lease", "coordination.k8s.io/v1", spec={"leaseDurationSeconds": 15}), id="lease"),
        pytest.param(other_object("Event", involvedObject={"kind": "Pod", "name": "p"}, reason="r"), id="event"),
        pytest.param(other_object("Event"), id="bare-event"),
        pytest.param(workload(somethingNew={"deep": [1]}), id="unknown-field"),
        pytest.param(workload(paused=None), id="null-is-unset"),
        pytest.param(pod() | {"status": {"conditions": [{}], "containerStatuses": [{}]}}, id="bare-status"),
        pytest.param(pod(overhead={"cpu": 0.5}), id="fractional-amount"),
    ],
)
def test_accepted(item: Object) -> None:
    assert messages(validated(item)) == []


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(
            other_object("Deployment", "apps/v1"),
            [
                "spec.selector: Required value",
                "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
                "spec.template.spec.containers: Required value",
            ],
            id="bare-deployment",
        ),
        pytest.param(
            workload(template={"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"image": "i"}]}}),
            ["spec.template.spec.containers[0].name: Required value"],
            id="container-without-name",
        ),
        pytest.param(pod(containers=[]), ["spec.containers: Required value"], id="no-containers"),
        pytest.param(
            pod(containers=[{"name": "a", "image": ""}]), ["spec.containers[0].image: Required value"], id="no-image"
        ),
        pytest.param(
            pod(volumes=[{"emptyDir": {}}]), ["spec.volumes[0].name: Required value"], id="volume-without-name"
        ),
        pytest.param(
            workload(replicas="3"), ['spec.replicas: Invalid value: "3": must be of type integer'], id="wrong-scalar"
        ),
        pytest.param(
            workload(replicas=True),
            ["spec.replicas: Invalid value: true: must be of type integer"],
            id="string-for-a-number",
        ),
        pytest.param(
            pod(containers={"name": "a"}),
            ['spec.containers: Invalid value: {"name":"a"}: must be of type array'],
            id="wrong-list",
        ),
        pytest.param(
            pod(containers=[None]),
            ["spec.containers[0].image: Required value", "spec.containers[0].name: Required value"],
            id="null-is-an-empty-entry",
        ),
        pytest.param(pod(affinity=[]), ["spec.affinity: Invalid value: []: must be of type object"], id="wrong-object"),
        pytest.param(
            other_object("ResourceQuota", spec={"hard": {"cpu": "much"}}),
            [
                'spec.hard[cpu]: Invalid value: "much": quantities must match the regular expression '
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ],
            id="not-a-quantity",
        ),
        pytest.param(
            workload(strategy={"rollingUpdate": {"maxSurge": 0.5}}),
            ["spec.strategy.rollingUpdate.maxSurge: Invalid value: 0.5: must be of type integer or string"],
            id="not-an-int-or-percent",
        ),
        pytest.param(
            other_object("Node", status={"conditions": "none"}),
            ['status.conditions: Invalid value: "none": must be of type array'],
            id="wrong-status",
        ),
        pytest.param(
            workload(selector={"matchLabels": {"app": "b"}}),
            ['spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`'],
            id="selector-misses-template",
        ),
        pytest.param(
            workload("StatefulSet", selector={}),
            ["spec.selector: Invalid value: {}: empty selector is invalid for statefulset"],
            id="empty-selector",
        ),
        pytest.param(
            workload(replicas=-1),
            ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
            id="negative",
        ),
        pytest.param(
            workload(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}),
            [
                'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0',
            ],
            id="no-surge-and-no-unavailable",
        ),
        pytest.param(
            workload(strategy={"type": "Blue"}),
            [
                'spec.strategy: Unsupported value: {"Type":"Blue","RollingUpdate":null}: '
                'supported values: "Recreate", "RollingUpdate"',
            ],
            id="unknown-strategy",
        ),
        pytest.param(
            workload(template={"metadata": {"labels": {"app": "a"}}, "spec": pod_spec(restartPolicy="Never")}),
            ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
            id="deployment-with-restart-policy-never",
        ),
        pytest.param(
            job(template={"spec": pod_spec()}),
            ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
            id="job-with-restart-policy-always",
        ),
        pytest.param(
            other_object(*_HPA, spec=_TARGET | {"maxReplicas": 1, "minReplicas": 2}),
            ["spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`"],
            id="min-above-max",
        ),
        pytest.param(
            other_object(*_HPA, spec={"maxReplicas": 1}),
            [
                'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group',
                "spec.scaleTargetRef.kind: Required value",
                "spec.scaleTargetRef.name: Required value",
            ],
            id="autoscaler-without-target-group",
        ),
        pytest.param(
            other_object("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1, "maxUnavailable": 1}),
            [
                'spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":1,'
                '"UnhealthyPodEvictionPolicy":null}: '
                "minAvailable and maxUnavailable cannot be both set"
            ],
            id="two-bounds",
        ),
        pytest.param(
            other_object("PodDisruptionBudget", "policy/v1", spec={"minAvailable": "120%"}),
            ['spec.minAvailable: Invalid value: "120%": must not be greater than 100%'],
            id="more-than-100-percent",
        ),
    ],
)
def test_rejected(item: Object, expected: list[str]) -> None:
    assert sorted(messages(validated(item))) == expected


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        pytest.param(pod(containers=[]), "FieldValueRequired", id="required"),
        pytest.param(workload(replicas="3"), "FieldValueTypeInvalid", id="type"),
        pytest.param(workload(replicas=-1), "FieldValueInvalid", id="value"),
        pytest.param(workload(strategy={"type": "Blue"}), "FieldValueNotSupported", id="not-supported"),
    ],
)
def test_reasons(item: Object, reason: str) -> None:
    assert [cause.reason for cause in validated(item)] == [reason]


_Change = Callable[[Object], object]


def _set(path: str, value: Any) -> _Change:
    def change(item: Object) -> None:
        *parents, last = path.split("/")
        target: Any = item
        for name in parents:
            target = target[int(name)] if name.isdecimal() else target.setdefault(name, {})
        target[last] = value

    return change


_NOT_IN_A_POD = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_TOLERATION = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
_TERMS = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def _affinity(*keys: str) -> Object:
    wanted = [{"key": key, "operator": "Exists"} for key in keys]
    terms = {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _definition(condition: str) -> Object:
    names = {"plural": "foos", "kind": "Foo"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [{"name": "v1"}]}
    status = {"conditions": [{"type": condition, "status": "True"}]}
    return other_object("CustomResourceDefinition", "apiextensions.k8s.io/v1", spec=spec, status=status)


_LABELS = "spec/template/metadata/labels/more"


@pytest.mark.parametrize(
    ("item", "change", "expected"),
    [
        pytest.param(workload(), _set("spec/replicas", 5), [], id="scaled"),
        pytest.param(workload(), _set(_LABELS, "x"), [], id="new-template"),
        pytest.param(
            workload(),
            lambda item: (
                _set("spec/selector", {"matchLabels": {"b": "c"}})(item),
                _set("spec/template/metadata/labels/b", "c")(item),
            ),
            ['spec.selector: Invalid value: {"matchLabels":{"b":"c"}}: field is immutable'],
            id="new-selector",
        ),
        pytest.param(workload("StatefulSet"), _set("spec/replicas", 5), [], id="scaled-stateful-set"),
        pytest.param(
            workload("StatefulSet"), _set("spec/updateStrategy/rollingUpdate/partition", 1), [], id="partition"
        ),
        pytest.param(
            workload("StatefulSet"),
            _set("spec/serviceName", "other"),
            [
                "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', "
                "'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
                "'minReadySeconds' are forbidden"
            ],
            id="stateful-set-with-new-service-name",
        ),
        pytest.param(pod(), _set("spec/containers/0/image", "web:2"), [], id="new-image"),
        pytest.param(pod(), _set("metadata/labels", {"a": "b"}), [], id="new-label"),
        pytest.param(
            pod(),
            lambda item: (
                _set("spec/nodeName", "n1")(item),
                _set("status/conditions", [{"type": "PodScheduled", "status": "True"}])(item),
            ),
            [],
            id="bound",
        ),
        pytest.param(pod(), _set("spec/nodeName", "n1"), [_NOT_IN_A_POD], id="node-name-set-by-an-update"),
        pytest.param(pod(nodeName="n1"), _set("spec/nodeName", "n2"), [_NOT_IN_A_POD], id="node-name-changed"),
        pytest.param(
            pod(tolerations=[_TOLERATION]),
            _set("spec/tolerations/0/tolerationSeconds", 9),
            [],
            id="toleration-seconds-changed",
        ),
        pytest.param(
            pod(schedulingGates=[{"name": "g"}], nodeSelector={"a": "b"}),
            _set("spec/nodeSelector", {"a": "b", "c": "d"}),
            [],
            id="gated-pod-narrowed",
        ),
        pytest.param(
            pod(schedulingGates=[{"name": "g"}], nodeSelector={"a": "b"}),
            _set("spec/nodeSelector", {"a": "c"}),
            [
                'spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed (no '
                "mutations or deletions)"
            ],
            id="gated-pod-with-other-node-selector",
        ),
        pytest.param(
            pod(schedulingGates=[{"name": "g"}], affinity=_affinity("a")),
            _set("spec/affinity", _affinity("a", "b")),
            [],
            id="gated-pod-with-one-more-requirement",
        ),
        pytest.param(
            pod(schedulingGates=[{"name": "g"}], affinity=_affinity("a")),
            _set("spec/affinity", _affinity("b")),
            [
                f"spec.{_TERMS}[0]: Invalid value: "
                '{"matchExpressions":[{"key":"b","operator":"Exists"}]}: only additions are allowed (no mutations or '
                "deletions)"
            ],
            id="gated-pod-with-other-requirement",
        ),
        pytest.param(
            pod(schedulingGates=[{"name": "g"}], affinity=_affinity("a")),
            _set("spec/affinity", None),
            [
                f"spec.{_TERMS}: Invalid value: null: no additions/deletions to non-empty NodeSelectorTerms list are "
                "allowed"
            ],
            id="gated-pod-without-requirement",
        ),
        pytest.param(
            pod(),
            _set("spec/nodeSelector", {"a": "b"}),
            [_NOT_IN_A_POD],
            id="ungated-pod-narrowed",
        ),
        pytest.param(
            pod(),
            lambda item: item["spec"]["containers"].append({"name": "b", "image": "i"}),
            ["spec.containers: Forbidden: pod updates may not add or remove containers"],
            id="container-added",
        ),
        pytest.param(
            pod(), lambda item: item["spec"]["tolerations"].append({"operator": "Exists"}), [], id="toleration-added"
        ),
        pytest.param(
            pod(tolerations=[{"key": "a"}]),
            lambda item: item["spec"]["tolerations"].pop(0),
            ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
            id="toleration-removed",
        ),
        pytest.param(
            pod(activeDeadlineSeconds=5),
            _set("spec/activeDeadlineSeconds", 6),
            ["spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"],
            id="longer-deadline",
        ),
        pytest.param(pod(schedulingGates=[{"name": "g"}]), _set("spec/schedulingGates", []), [], id="gate-removed"),
        pytest.param(pod(schedulingGates=[{"name": "g"}]), _set("spec/nodeSelector", {"a": "b"}), [], id="gate-kept"),
        pytest.param(
            pod(),
            _set("spec/schedulingGates", [{"name": "g"}]),
            ["spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"],
            id="new-gate",
        ),
        pytest.param(job(), _set("spec/parallelism", 2), [], id="job-with-more-parallelism"),
        pytest.param(
            job(completions=2),
            _set("spec/completions", 3),
            ["spec.completions: Invalid value: 3: field is immutable"],
            id="more-completions",
        ),
        pytest.param(
            job(suspend=True),
            _set("spec/template/spec/nodeSelector", {"a": "b"}),
            [],
            id="suspended-job-with-node-selector",
        ),
        pytest.param(
            other_object("PriorityClass", "scheduling.k8s.io/v1", value=1),
            _set("value", 2),
            ["value: Forbidden: may not be changed in an update."],
            id="priority",
        ),
        pytest.param(
            other_object("PriorityClass", "scheduling.k8s.io/v1", value=1),
            _set("preemptionPolicy", "Never"),
            ['preemptionPolicy: Invalid value: "Never": field is immutable'],
            id="preemption",
        ),
        pytest.param(
            other_object("Node", spec={"providerID": "a"}),
            _set("spec/providerID", "b"),
            ['spec.providerID: Forbidden: node updates may not change providerID except from "" to valid'],
            id="provider-id-changed",
        ),
        pytest.param(
            _definition("Established"),
            lambda item: item["spec"].update(scope="Cluster", group="other.example.com"),
            [
                'spec.scope: Invalid value: "Cluster": field is immutable',
                'spec.group: Invalid value: "other.example.com": field is immutable',
            ],
            id="established-definition",
        ),
        pytest.param(
            _definition("NamesAccepted"), _set("spec/scope", "Cluster"), [], id="definition-that-is-not-kind_of-yet"
        ),
        pytest.param(
            other_object("ConfigMap", immutable=True, data={"a": "b"}),
            _set("data/a", "c"),
            ["data: Forbidden: field is immutable when `immutable` is set"],
            id="immutable-config-map",
        ),
        pytest.param(
            other_object("Secret", type="a"),
            _set("type", "b"),
            ['type: Invalid value: "b": field is immutable'],
            id="immutable-secret",
        ),
        pytest.param(
            other_object("PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "1Gi"}}}),
            _set("spec/resources/requests/storage", "2Gi"),
            [],
            id="claim-grows",
        ),
        pytest.param(
            other_object("PersistentVolumeClaim", spec={"volumeName": "a"}),
            _set("spec/volumeName", "b"),
            [
                "spec: Forbidden: spec is immutable after creation except resources.requests and "
                "volumeAttributesClassName for bound claims"
            ],
            id="claim-moves",
        ),
        pytest.param(
            workload(),
            _set("spec/replicas", "x"),
            ['spec.replicas: Invalid value: "x": must be of type integer'],
            id="type",
        ),
    ],
)
def test_changes(item: Object, change: _Change, expected: list[str]) -> None:
    old = defaulted(copy.deepcopy(item))
    new = copy.deepcopy(old)
    change(new)

    assert messages(validated(new, old)) == expected


def test_the_template_of_a_job_is_immutable() -> None:
    old = defaulted(job())
    new = copy.deepcopy(old)
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    (cause,) = validated(new, old)

    assert (cause.field, cause.message.endswith(": field is immutable")) == ("spec.template", True)


def test_unchanged_fields_are_not_validated_again() -> None:
    """An object that was stored under other rules can still be updated elsewhere."""
    old = workload(template={"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": 7}]}})
    kind = kind_of(old)
    new = {**old, "metadata": {"name": "w", "labels": {"a": "b"}}}

    assert StatusCause(
        "spec.template.spec.containers[0].name", "Invalid value: 7: must be of type string", "FieldValueTypeInvalid"
    ) in kind.validate(new, None)
    assert [cause for cause in kind.validate(new, old) if cause.reason == "FieldValueTypeInvalid"] == []


def test_validation_does_not_change_the_object() -> None:
    item = defaulted(workload())
    before = copy.deepcopy(item)
    BY_KIND["Deployment", "apps/v1"].validate(item, None)

    assert item == before
