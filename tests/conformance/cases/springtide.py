"""Springtide's own kinds: a real server accepts, fills in and refuses them as the embedded one does."""

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


def _served(play: Session, kind: str) -> tuple[str, Object]:
    """Have a kind of ours defined; gives the path of its objects, and one of them without its spec."""
    spec = _DEFINITIONS[kind]["spec"]
    version = next(each["name"] for each in spec["versions"] if each["storage"])
    short = f"{spec['group']}/{version}/{spec['names']['plural']}"
    if play.quietly("GET", f"/apis/{short}").status == 404:
        serve(play, _DEFINITIONS[kind], stays=True)
    path = short if spec["scope"] == "Namespaced" else f"/apis/{short}"
    return path, {"apiVersion": f"{spec['group']}/{version}", "kind": kind, "metadata": {"name": play.unique("one")}}


@each({kind: kind for kind in _SPECS})
def is_accepted(play: Session, kind: str) -> None:
    path, body = _served(play, kind)
    play.create(path, body | {"spec": _SPECS[kind]})
    play.get(f"{path}/{body['metadata']['name']}")


@each({kind: kind for kind in _SPECS})
def is_applied(play: Session, kind: str) -> None:
    path, body = _served(play, kind)
    one = f"{path}/{body['metadata']['name']}"
    play.apply(one, body | {"spec": _SPECS[kind]}, "gitops")
    play.apply(one, body | {"spec": _SPECS[kind]}, "gitops")
    play.quietly("DELETE", one)


@each({kind: kind for kind in _SPECS})
def is_shown_in_a_table(play: Session, kind: str) -> None:
    path, body = _served(play, kind)
    play.prepare(path, body | {"spec": _SPECS[kind]})
    answer = play.get(f"{path}/{body['metadata']['name']}", accept=TABLE, includeObject="None")
    names = [each["name"] for each in answer["columnDefinitions"]]
    for row in answer["rows"]:
        row["cells"] = ["<age>" if name == "Age" else cell for name, cell in zip(names, row["cells"], strict=True)]


@each({kind: kind for kind in _SPECS})
def is_refused_without_a_spec(play: Session, kind: str) -> None:
    path, body = _served(play, kind)
    play.create(path, body)
    play.create(path, body | {"spec": {}})


_WRONG: dict[str, tuple[str, Object]] = {
    "rule without a schedule": ("CronFederatedHPA", {"rules": [{"name": "up", "targetReplicas": 1}]}),
    "two rules of one name": ("CronFederatedHPA", {"rules": _SPECS["CronFederatedHPA"]["rules"] * 2}),
    "autoscaler upside down": ("HorizontalAutoscaler", {"minReplicas": 9}),
    "group below zero": ("ScalableNodeGroup", {"replicas": -1}),
    "buffer of nothing": ("CapacityBuffer", {"scalableRef": None}),
    "buffer of less than nothing": ("CapacityBuffer", {"percentage": -1}),
    "request for nobody": ("ProvisioningRequest", {"podSets": []}),
    "request for too few": ("ProvisioningRequest", {"podSets": [{"podTemplateRef": {"name": "worker"}, "count": 0}]}),
    "pool with a bad budget": ("NodePool", {"disruption": {"consolidateAfter": "5m", "budgets": [{"nodes": "many"}]}}),
    "pool with half a schedule": (
        "NodePool",
        {"disruption": {"consolidateAfter": "5m", "budgets": [{"nodes": "1", "schedule": "@daily"}]}},
    ),
    "pool with a bad operator": (
        "NodePool",
        {
            "template": {
                "spec": _POOL["template"]["spec"]
                | {"requirements": [{"key": "a", "operator": "Like", "values": ["b"]}]}
            }
        },
    ),
    "calendar of no dates": ("Calendar", {"dates": ["soon"]}),
    "calendar of a day in words": ("Calendar", {"yearly": ["May 1"]}),
    "class of nobody": ("NodeClass", {"provider": ""}),
}


@each(_WRONG)
def is_refused(play: Session, what: tuple[str, Object]) -> None:
    kind, spec = what
    path, body = _served(play, kind)
    whole = {key: value for key, value in (_SPECS[kind] | spec).items() if value is not None}
    play.create(path, body | {"spec": whole})


@each({kind: kind for kind in _SPECS})
def has_a_status_of_its_own(play: Session, kind: str) -> None:
    path, body = _served(play, kind)
    one = f"{path}/{body['metadata']['name']}"
    play.prepare(path, body | {"spec": _SPECS[kind]})
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Fine",
        "message": "",
        "lastTransitionTime": "2017-03-01T10:00:00Z",
    }
    play.patch(f"{one}/status", {"status": {"conditions": [condition]}, "spec": {"colour": "red"}})
    play.patch(f"{one}/status", {"status": {"conditions": [condition | {"status": "Perhaps"}]}})


@case
def a_group_of_nodes_scales(play: Session) -> None:
    path, body = _served(play, "ScalableNodeGroup")
    one = f"{path}/{body['metadata']['name']}"
    play.prepare(path, body | {"spec": _SPECS["ScalableNodeGroup"]})
    play.get(f"{one}/scale")
    play.patch(f"{one}/scale", {"spec": {"replicas": 7}})


@case
def a_group_of_nodes_without_replicas_scales(play: Session) -> None:
    """Whoever leaves the number to an autoscaler does not write one."""
    path, body = _served(play, "ScalableNodeGroup")
    one = f"{path}/{body['metadata']['name']}"
    spec = {name: value for name, value in _SPECS["ScalableNodeGroup"].items() if name != "replicas"}
    play.prepare(path, body | {"spec": spec})
    play.get(f"{one}/scale")
    play.patch(f"{one}/scale", {"spec": {"replicas": 7}})
    play.get(f"{one}/scale")


@case
def nodes_are_found_by_their_pool(play: Session) -> None:
    name = play.unique("n")
    body = node(name)
    body["metadata"]["labels"] = {"karpenter.sh/nodepool": play.unique("pool")}
    play.prepare("/api/v1/nodes", body)
    answer: Any = play.get("/api/v1/nodes", labelSelector=f"karpenter.sh/nodepool={play.unique('pool')}")
    play.steps[-1]["body"] = {"names": [each["metadata"]["name"] for each in answer["items"]]}
