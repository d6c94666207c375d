"""Springtide's own kinds: accepted, defaulted and rejected by both servers alike."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import node, serve
from tests.conformance.session import TABLE, Object, Session

from springtide.apis.crds import Flavour, all_crds

_DEFINITIONS = {each["spec"]["names"]["kind"]: each for each in all_crds(Flavour.EXTENDED)}
_POOL: Object = {
    "template": {
        "spec": {
            "nodeClassRef": {"group": "springtide.dev", "kind": "NodeClass", "name": "small"},
            "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
        }
    }
}
_PRODUCER: Object = {
    "schedule": {
        "timezone": "America/Los_Angeles",
        "defaultReplicas": 2,
        "behaviors": [
            {
                "name": "weekend",
                "replicas": 1,
                "start": {"weekdays": "Fri", "hours": 17},
                "end": {"weekdays": "Mon", "hours": 9},
            }
        ],
    }
}
_SPECS: dict[str, Object] = {
    "CronFederatedHPA": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"},
        "rules": [{"name": "up", "schedule": "30 08 * * *", "targetReplicas": 100}],
    },
    "MetricsProducer": _PRODUCER,
    "HorizontalAutoscaler": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"},
        "minReplicas": 1,
        "maxReplicas": 5,
        "metrics": [{"prometheus": {"query": "up", "target": {"type": "AverageValue", "value": 1}}}],
    },
    "ScalableNodeGroup": {"type": "Simulated", "id": "office", "replicas": 2},
    "CapacityBuffer": {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "shop"}, "percentage": 10},
    "ProvisioningRequest": {
        "provisioningClassName": "check-capacity.autoscaling.x-k8s.io",
        "podSets": [{"podTemplateRef": {"name": "worker"}, "count": 16}],
    },
    "NodePool": _POOL,
    "Calendar": {"timeZone": "Europe/Berlin", "dates": ["2017-12-24"], "yearly": ["12-25"]},
    "NodeClass": {"provider": "simulated"},
}


def _served(session: Session, kind: str) -> tuple[str, Object]:
    """Define one of our kinds; returns the path of its objects and an object without its spec."""
    spec = _DEFINITIONS[kind]["spec"]
    version = next(each["name"] for each in spec["versions"] if each["storage"])
    short = f"{spec['group']}/{version}/{spec['names']['plural']}"
    if session.send_unrecorded("GET", f"/apis/{short}").status == 404:
        serve(session, _DEFINITIONS[kind], keep=True)
    path = short if spec["scope"] == "Namespaced" else f"/apis/{short}"
    return path, {"apiVersion": f"{spec['group']}/{version}", "kind": kind, "metadata": {"name": session.unique("one")}}


@each({kind: kind for kind in _SPECS})
def is_accepted(session: Session, kind: str) -> None:
    path, body = _served(session, kind)
    session.create(path, body | {"spec": _SPECS[kind]})
    session.get(f"{path}/{body['metadata']['name']}")


@each({kind: kind for kind in _SPECS})
def is_applied(session: Session, kind: str) -> None:
    path, body = _served(session, kind)
    one = f"{path}/{body['metadata']['name']}"
    session.apply(one, body | {"spec": _SPECS[kind]}, "gitops")
    session.apply(one, body | {"spec": _SPECS[kind]}, "gitops")
    session.send_unrecorded("DELETE", one)


@each({kind: kind for kind in _SPECS})
def is_shown_in_a_table(session: Session, kind: str) -> None:
    path, body = _served(session, kind)
    session.prepare(path, body | {"spec": _SPECS[kind]})
    answer = session.get(f"{path}/{body['metadata']['name']}", accept=TABLE, includeObject="None")
    names = [each["name"] for each in answer["columnDefinitions"]]
    for row in answer["rows"]:
        row["cells"] = ["<age>" if name == "Age" else cell for name, cell in zip(names, row["cells"], strict=True)]


@each({kind: kind for kind in _SPECS})
def is_rejected_without_a_spec(session: Session, kind: str) -> None:
    path, body = _served(session, kind)
    session.create(path, body)
    session.create(path, body | {"spec": {}})


_WRONG: dict[str, tuple[str, Object]] = {
    "rule without a schedule": ("CronFederatedHPA", {"rules": [{"name": "up", "targetReplicas": 1}]}),
    "two rules of one name": ("CronFederatedHPA", {"rules": _SPECS["CronFederatedHPA"]["rules"] * 2}),
    "autoscaler with min above max": ("HorizontalAutoscaler", {"minReplicas": 9}),
    "node group with negative replicas": ("ScalableNodeGroup", {"replicas": -1}),
    "buffer without template": ("CapacityBuffer", {"scalableRef": None}),
    "buffer with a negative percentage": ("CapacityBuffer", {"percentage": -1}),
    "request without pods": ("ProvisioningRequest", {"podSets": []}),
    "request for zero pods": ("ProvisioningRequest", {"podSets": [{"podTemplateRef": {"name": "worker"}, "count": 0}]}),
    "pool with an invalid budget": (
        "NodePool",
        {"disruption": {"consolidateAfter": "5m", "budgets": [{"nodes": "many"}]}},
    ),
    "pool with a schedule without duration": (
        "NodePool",
        {"disruption": {"consolidateAfter": "5m", "budgets": [{"nodes": "1", "schedule": "@daily"}]}},
    ),
    "pool with an unknown operator": (
        "NodePool",
        {
            "template": {
                "spec": _POOL["template"]["spec"]
                | {"requirements": [{"key": "a", "operator": "Like", "values": ["b"]}]}
            }
        },
    ),
    "calendar with an invalid date": ("Calendar", {"dates": ["soon"]}),
    "calendar with an invalid yearly date": ("Calendar", {"yearly": ["May 1"]}),
    "node class without provider": ("NodeClass", {"provider": ""}),
}


@each(_WRONG)
def is_rejected(session: Session, what: tuple[str, Object]) -> None:
    kind, spec = what
    path, body = _served(session, kind)
    whole = {key: value for key, value in (_SPECS[kind] | spec).items() if value is not None}
    session.create(path, body | {"spec": whole})


@each({kind: kind for kind in _SPECS})
def the_status_subresource(session: Session, kind: str) -> None:
    path, body = _served(session, kind)
    one = f"{path}/{body['metadata']['name']}"
    session.prepare(path, body | {"spec": _SPECS[kind]})
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Fine",
        "message": "",
        "lastTransitionTime": "2017-03-01T10:00:00Z",
    }
    session.patch(f"{one}/status", {"status": {"conditions": [condition]}, "spec": {"colour": "red"}})
    session.patch(f"{one}/status", {"status": {"conditions": [condition | {"status": "Perhaps"}]}})


@case
def a_node_group_is_scaled(session: Session) -> None:
    path, body = _served(session, "ScalableNodeGroup")
    one = f"{path}/{body['metadata']['name']}"
    session.prepare(path, body | {"spec": _SPECS["ScalableNodeGroup"]})
    session.get(f"{one}/scale")
    session.patch(f"{one}/scale", {"spec": {"replicas": 7}})


@case
def a_node_group_without_replicas_is_scaled(session: Session) -> None:
    """Users leave the number out if an autoscaler sets it."""
    path, body = _served(session, "ScalableNodeGroup")
    one = f"{path}/{body['metadata']['name']}"
    spec = {name: value for name, value in _SPECS["ScalableNodeGroup"].items() if name != "replicas"}
    session.prepare(path, body | {"spec": spec})
    session.get(f"{one}/scale")
    session.patch(f"{one}/scale", {"spec": {"replicas": 7}})
    session.get(f"{one}/scale")


@case
def node_claims_by_field(session: Session) -> None:
    name = session.unique("n")
    body = node(name)
    body["metadata"]["labels"] = {"karpenter.sh/nodepool": session.unique("pool")}
    session.prepare("/api/v1/nodes", body)
    answer: Any = session.get("/api/v1/nodes", labelSelector=f"karpenter.sh/nodepool={session.unique('pool')}")
    session.steps[-1]["body"] = {"names": [each["metadata"]["name"] for each in answer["items"]]}
