"""Reviews: who am I, whose token is this, and may I? They are answered and not stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object
from springtide.simulator.api.performing import User
from springtide.simulator.http.routes import Place
from springtide.simulator.http.virtual import VIRTUAL, Virtual

_EVERYTHING = "the embedded cluster has no RBAC: whoever has a token may do everything"


def virtual_of(place: Place) -> Virtual | None:
    """Find the kind of review that a path names."""
    for each in VIRTUAL:
        if (each.group, each.version, each.plural) == (place.group, place.version, place.plural):
            return each if each.namespaced == bool(place.namespace) and not place.name else None
    return None


def reviewed(
    virtual: Virtual, body: Any, user: User, authenticate: Callable[[str], User | None], *, now: str
) -> Object:
    """Give a review with its answer."""
    version = f"{virtual.group}/{virtual.version}"
    if not isinstance(body, dict) or body.get("kind", virtual.kind) != virtual.kind:
        raise BadRequest(f"the body of the request is no {virtual.kind}")
    if body.get("apiVersion", version) != version:
        raise BadRequest(
            f"the API version in the data ({body['apiVersion']}) does not match the expected API version ({version})"
        )
    spec = body.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    return {
        "kind": virtual.kind,
        "apiVersion": version,
        "metadata": {"creationTimestamp": now} if virtual.kind == "SelfSubjectReview" else body.get("metadata") or {},
        **({} if virtual.kind == "SelfSubjectReview" else {"spec": spec}),
        "status": _status(virtual, spec, user, authenticate),
    }


def _status(virtual: Virtual, spec: Object, user: User, authenticate: Callable[[str], User | None]) -> Object:
    match virtual.kind:
        case "SelfSubjectReview":
            return {"userInfo": user.info()}
        case "TokenReview":
            token = spec.get("token")
            known = authenticate(token) if isinstance(token, str) and token else None
            return {"user": {}} if known is None else {"authenticated": True, "user": known.info()}
        case "SelfSubjectRulesReview":
            return {
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": False,
            }
        case _:
            return {"allowed": True, "reason": _EVERYTHING}
