"""What a real cluster has and this one has not, said in words that help whoever asks for it."""

from __future__ import annotations

from springtide.cluster.errors import About, ApiError, NotFound
from springtide.simulator.http.routes import Place

_SUBRESOURCES = {
    ("pods", "attach"): "no containers run in the embedded cluster, so there is nothing to attach to",
    ("pods", "ephemeralcontainers"): "no containers run in the embedded cluster, so none can be debugged",
    ("pods", "exec"): "no containers run in the embedded cluster, so nothing can be executed in them",
    ("pods", "log"): "no containers run in the embedded cluster, so there are no logs",
    ("pods", "portforward"): "no containers run in the embedded cluster, so no port can be forwarded",
    ("pods", "proxy"): "no containers run in the embedded cluster, so they cannot be reached",
    ("pods", "resize"): "pods of the embedded cluster cannot be resized in place",
    ("nodes", "proxy"): "nodes of the embedded cluster are simulated, so their kubelets cannot be reached",
    ("services", "proxy"): "the embedded cluster has no pod network, so services cannot be reached",
    ("serviceaccounts", "token"): "the embedded cluster issues no tokens to service accounts; use its kubeconfig",
}
_GROUPS = {
    "rbac.authorization.k8s.io": "roles and bindings: whoever has a token may do everything",
    "certificates.k8s.io": "certificate signing requests",
    "networking.k8s.io": "ingresses and network policies",
    "discovery.k8s.io": "endpoint slices: there is no pod network",
    "events.k8s.io": "events in this group: they are served in v1",
    "flowcontrol.apiserver.k8s.io": "flow control",
    "node.k8s.io": "runtime classes",
    "resource.k8s.io": "dynamic resource allocation",
    "metrics.k8s.io": "resource metrics",
}
_CORE = {
    "endpoints": "endpoints: there is no pod network",
    "componentstatuses": "component statuses",
    "bindings": "bindings by themselves: post to the binding of a pod",
}


class NotImplementedHere(ApiError):
    """The embedded cluster does not do this."""

    code = 501
    reason = "NotImplemented"


def absence(place: Place) -> ApiError | None:
    """Give the answer to a request for something that only a real cluster has; None for anything else."""
    if not place.group and (why := _SUBRESOURCES.get((place.plural, place.subresource.partition("/")[0]))):
        return NotImplementedHere(why)
    missing = _GROUPS.get(place.group) or (_CORE.get(place.plural) if not place.group else None)
    return None if missing is None else NotFound(f"the embedded cluster has no {missing}", about=About())
