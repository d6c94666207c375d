"""Label and field selectors."""

from __future__ import annotations

from tests.conformance.case import case, each
from tests.conformance.samples import config_map, event, lease, node, pod
from tests.conformance.session import Object, Session

_LABELS: dict[str, dict[str, str]] = {
    "a": {"tier": "front", "size": "3"},
    "b": {"tier": "back", "size": "5"},
    "c": {"tier": ""},
    "d": {},
}


def _names(session: Session, path: str, **query: str) -> None:
    """List objects and keep only their names."""
    answer: Object = session.get(path, **query)
    if "items" in answer:
        session.steps[-1]["body"] = {"names": [item["metadata"]["name"] for item in answer["items"]]}


@each(
    {
        each: each
        for each in (
            "tier=front",
            "tier==front",
            "tier!=front",
            "tier",
            "!tier",
            "tier in (front,back)",
            "tier in (front, )",
            "tier notin (front)",
            "tier=",
            "size>3",
            "size<4",
            "tier=front,size=3",
            "tier=front,tier=back",
            "tier in ()",
            "tier in front",
            "=front",
            "tier=front,,size=3",
            "tier front",
            "tier=a b",
            "size>x",
            "ti er",
            "-tier=x",
            "tier=-x",
            "tier>",
            ",",
            " tier = front ",
        )
    }
)
def by_labels(session: Session, selector: str) -> None:
    for name, labels in _LABELS.items():
        session.prepare("v1/configmaps", config_map(name, labels=labels))
    _names(session, "v1/configmaps", labelSelector=selector)


@each(
    {
        each: each
        for each in (
            "metadata.name=a",
            "metadata.name!=a",
            "metadata.name==a",
            "metadata.name=a,metadata.name=b",
            "metadata.name=nobody",
            "metadata.namespace=elsewhere",
            "data.a=1",
            "metadata.labels.tier=front",
            "metadata.name",
            "metadata.name in (a)",
            "metadata.name=",
            "metadata.name=a\\,b",
            "metadata.name=a\\b",
            "metadata.name>a",
        )
    }
)
def by_fields(session: Session, selector: str) -> None:
    for name in _LABELS:
        session.prepare("v1/configmaps", config_map(name))
    _names(session, "v1/configmaps", fieldSelector=selector)


@each(
    {
        each: each
        for each in (
            "spec.nodeName=machine",
            "spec.nodeName=",
            "status.phase=Pending",
            "status.phase!=Pending",
            "spec.restartPolicy=Never",
            "spec.schedulerName=default-scheduler",
            "spec.serviceAccountName=conformance",
            "spec.hostNetwork=false",
            "status.podIP=",
            "status.nominatedNodeName=",
            "spec.priority=0",
        )
    }
)
def pods_by_fields(session: Session, selector: str) -> None:
    session.prepare("v1/pods", pod("a", nodeName="machine"))
    session.prepare("v1/pods", pod("b", restartPolicy="Never"))
    _names(session, "v1/pods", fieldSelector=selector)


@each(
    {
        each: each
        for each in ("involvedObject.name=web", "reason=Happened", "type=Warning", "source=conformance", "count=1")
    }
)
def events_by_fields(session: Session, selector: str) -> None:
    session.prepare("v1/events", event(session))
    session.prepare("v1/events", event(session, "warned", type="Warning", reason="Other"))
    _names(session, "v1/events", fieldSelector=selector)


@case
def nodes_by_unschedulable(session: Session) -> None:
    for name, cordoned in (("x", True), ("y", False)):
        session.prepare("/api/v1/nodes", node(session.unique(name), unschedulable=cordoned))
    for selector in ("spec.unschedulable=true", "spec.unschedulable=false"):
        for name in ("x", "y"):
            _names(session, "/api/v1/nodes", fieldSelector=f"{selector},metadata.name={session.unique(name)}")


@case
def secrets_by_their_type(session: Session) -> None:
    session.prepare("v1/secrets", {"metadata": {"name": "plain"}})
    session.prepare("v1/secrets", {"metadata": {"name": "mine"}, "type": "example.com/mine"})
    _names(session, "v1/secrets", fieldSelector="type=example.com/mine")


@case
def leases_only_by_name(session: Session) -> None:
    session.prepare("coordination.k8s.io/v1/leases", lease(holderIdentity="me"))
    _names(session, "coordination.k8s.io/v1/leases", fieldSelector="metadata.name=leader")
    _names(session, "coordination.k8s.io/v1/leases", fieldSelector="spec.holderIdentity=me")


@case
def across_namespaces_in_order(session: Session) -> None:
    mark = session.unique("mark")
    for name in ("b", "a"):
        session.prepare("v1/configmaps", config_map(name, labels={"mark": mark}))
    _names(session, "/api/v1/configmaps", labelSelector=f"mark={mark}")
