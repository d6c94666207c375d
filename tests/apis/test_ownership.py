"""Which objects are ours, in Python and in CEL."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from cel_expr_python import cel
from cel_expr_python.ext import ext_optional
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.karpenter.samples import beta_pool, node_pool

from springtide.apis.scheme import KINDS, WITHOUT_CONTROLLER, missing_effect, owned, ownership_of
from springtide.controllers import CONTROLLERS

XK8S = "autoscaling.x-k8s.io"
CHECKING = "check-capacity.autoscaling.x-k8s.io"
ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"


def pool(**reference: str) -> dict[str, Any]:
    made = node_pool()
    made["spec"]["template"]["spec"]["nodeClassRef"] = reference
    return made


def claim(**reference: str) -> dict[str, Any]:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "spec": {"nodeClassRef": reference}}


def request(class_name: str, **parameters: str) -> dict[str, Any]:
    spec = {"provisioningClassName": class_name, "parameters": parameters}
    return {"apiVersion": f"{XK8S}/v1", "kind": "ProvisioningRequest", "spec": spec}


def buffer(**spec: str) -> dict[str, Any]:
    return {"apiVersion": f"{XK8S}/v1beta1", "kind": "CapacityBuffer", "spec": spec}


def named(api_version: str, kind: str, name: str = "a") -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(pool(group="springtide.dev", kind="NodeClass", name="a"), True, id="pool with our node class"),
        pytest.param(pool(group="karpenter.k8s.aws", kind="EC2NodeClass", name="a"), False, id="pool of Karpenter"),
        pytest.param(pool(apiVersion="springtide.dev/v1alpha1"), True, id="pool that writes the version too"),
        pytest.param(pool(group="x.io", apiVersion="springtide.dev/v1"), False, id="pool whose group is another's"),
        pytest.param(pool(apiVersion="springtide.dev.evil.io/v1"), False, id="pool with a longer group"),
        pytest.param(beta_pool(), False, id="v1beta1 pool of Karpenter"),
        pytest.param(pool(), False, id="pool without node class"),
        pytest.param(claim(group="springtide.dev"), True, id="claim with our node class"),
        pytest.param(claim(group="karpenter.azure.com"), False, id="claim of Karpenter"),
        pytest.param(request(CHECKING), True, id="our class"),
        pytest.param(request("atomic-scale-up.kubernetes.io"), True, id="our class under a former name"),
        pytest.param(request("queued-provisioning.gke.io"), False, id="a cloud's class"),
        pytest.param(request(CHECKING, processorInstance="other"), False, id="request for a certain instance"),
        pytest.param(request(ATOMIC, processorInstance="other"), True, id="instance that atomic requests do not have"),
        pytest.param(named(f"{XK8S}/v1", "ProvisioningClass", CHECKING), True, id="settings of our class"),
        pytest.param(named(f"{XK8S}/v1", "ProvisioningClass", "gke"), False, id="settings of another class"),
        pytest.param(buffer(), True, id="buffer without a strategy"),
        pytest.param(buffer(provisioningStrategy=""), True, id="buffer with an empty strategy"),
        pytest.param(buffer(provisioningStrategy="buffer.x-k8s.io/active-capacity"), True, id="our strategy"),
        pytest.param(buffer(provisioningStrategy="buffer.gke.io/standby"), False, id="a cloud's strategy"),
        pytest.param(named("springtide.dev/v1alpha1", "Calendar"), True, id="our own kinds"),
        pytest.param(named("autoscaling.karpenter.sh/v1alpha1", "MetricsProducer"), True, id="own kind"),
        pytest.param(named("autoscaling.karmada.io/v1alpha1", "CronFederatedHPA"), True, id="cron rules"),
        pytest.param(named("autoscaling.karmada.io/v1alpha1", "FederatedHPA"), False, id="what cron rules act on"),
        pytest.param(named("apps/v1", "Deployment"), False, id="built-in"),
        pytest.param(named("example.com/v1", "NodePool"), False, id="same name in another group"),
        pytest.param({}, False, id="nothing"),
        pytest.param({"apiVersion": 1, "kind": []}, False, id="nonsense"),
    ],
)
def test_ownership_depends_on_the_object(item: dict[str, Any], expected: bool) -> None:
    assert expected == owned(item)


@cache
def program(expression: str) -> Any:
    environment = cel.NewEnv(variables={"object": cel.Type.DYN}, extensions=[ext_optional.ExtOptional()])
    return environment, environment.compile(expression)


def allowed_by_expression(item: dict[str, Any]) -> bool:
    """Ask the rule that the API server is given."""
    group = item["apiVersion"].rpartition("/")[0]
    environment, compiled = program(ownership_of(group, item["kind"]).expression)
    outcome = compiled.eval(environment.Activation({"object": item}))
    assert outcome.type() == cel.Type.BOOL, outcome.value()
    return bool(outcome.value())


OURS = ["springtide.dev", "springtide.dev/v1", CHECKING, ATOMIC, "buffer.x-k8s.io/active-capacity"]
OTHERS = ["", "springtide.devil/v1", "karpenter.k8s.aws", "check-capacity.kubernetes.io", "x"]
TEXTS = st.sampled_from([*OURS, *OTHERS])
REFERENCES = st.dictionaries(st.sampled_from(["group", "apiVersion", "name"]), TEXTS)
PARAMETERS = st.dictionaries(st.sampled_from(["processorInstance", "noRetry"]), TEXTS)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "nodeClassRef": REFERENCES,
        "template": st.fixed_dictionaries(
            {}, optional={"spec": st.fixed_dictionaries({}, optional={"nodeClassRef": REFERENCES})}
        ),
        "provisioningClassName": TEXTS,
        "provisioningStrategy": TEXTS,
        "parameters": PARAMETERS,
    },
)
HEADS = st.sampled_from(
    [(kind.api_version(version), kind.kind) for kind in KINDS if not kind.builtin for version in kind.versions]
)


@given(HEADS, st.dictionaries(st.just("name"), TEXTS), SPECS, st.booleans())
def test_cel_expressions_are_the_same_rule(
    head: tuple[str, str], metadata: dict[str, str], spec: dict[str, Any], with_spec: bool
) -> None:
    """What the expression says of any object that the schema lets through is what the function says."""
    item = {"apiVersion": head[0], "kind": head[1], "metadata": metadata, **({"spec": spec} if with_spec else {})}

    assert owned(item) == allowed_by_expression(item)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["spec", "group", "name"]), inner),
    max_leaves=5,
)


@given(HEADS, JSON, JSON)
def test_no_object_is_too_strange_to_be_asked_about(head: tuple[str, str], metadata: Any, spec: Any) -> None:
    """Controllers and webhooks ask before anything is known about the object."""
    assert owned({"apiVersion": head[0], "kind": head[1], "metadata": metadata, "spec": spec}) in (True, False)


def test_kinds_without_a_controller_are_those_that_no_controller_watches() -> None:
    watched = {
        (watch.cached.selection.resource.group, watch.cached.selection.resource.kind)
        for controller in CONTROLLERS
        for watch in controller.watches
    }
    ours = {(kind.group, kind.kind) for kind in KINDS if ownership_of(kind.group, kind.kind).expression != "false"}
    assert ours - watched == WITHOUT_CONTROLLER


@pytest.mark.parametrize(
    ("item", "noted"),
    [
        pytest.param(pool(group="springtide.dev", kind="NodeClass", name="a"), "acts on NodePool yet", id="our pool"),
        pytest.param(pool(group="karpenter.k8s.aws", kind="EC2NodeClass", name="a"), "", id="pool of Karpenter"),
        pytest.param(request(CHECKING), "acts on ProvisioningRequest yet", id="our request"),
        pytest.param(request("example.com/class"), "", id="request of another class"),
        pytest.param(buffer(), "acts on CapacityBuffer yet", id="our buffer"),
        pytest.param(buffer(provisioningStrategy="example.com/s"), "", id="buffer of another strategy"),
        pytest.param(
            {
                "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
                "kind": "MetricsProducer",
                "spec": {"pendingCapacity": {"nodeSelector": {"a": "b"}}},
            },
            "computes `pendingCapacity` yet",
            id="producer of pending capacity",
        ),
        pytest.param(
            {
                "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
                "kind": "MetricsProducer",
                "spec": {"schedule": {"defaultReplicas": 1}},
            },
            "",
            id="producer of a schedule",
        ),
        pytest.param({"apiVersion": "apps/v1", "kind": "Deployment"}, "", id="built-in kind"),
        pytest.param({"apiVersion": 1, "kind": ["NodePool"]}, "", id="malformed"),
    ],
)
def test_objects_that_nothing_acts_on_are_noted(item: dict[str, Any], noted: str) -> None:
    found = missing_effect(item)
    assert noted in found
    assert bool(found) is bool(noted)
