"""Tokens, the kubeconfig of the embedded cluster, and the review kinds of authentication and authorization.

Reviews are answered and not stored. There is no authorization: every access review is allowed.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from springtide.apis.yaml import dump
from springtide.apiserver.admission import ADMIN, User
from springtide.apiserver.http.routes import ResourcePath
from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object

_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"

_ALLOWED_REASON = "the embedded cluster has no RBAC: every token has full access"

NAME = "springtide"


@dataclass(frozen=True, slots=True)
class ReviewKind:
    """A review kind, which supports create only; the response is the object with its status."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False


REVIEW_KINDS = (
    ReviewKind(_AUTHENTICATION, "v1", "selfsubjectreviews", "SelfSubjectReview"),
    ReviewKind(_AUTHENTICATION, "v1", "tokenreviews", "TokenReview"),
    ReviewKind(_AUTHORIZATION, "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
    ReviewKind(_AUTHORIZATION, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ReviewKind(_AUTHORIZATION, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    ReviewKind(_AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview"),
)


def review_kind_of(place: ResourcePath) -> ReviewKind | None:
    """Return the review kind of a path."""
    for each in REVIEW_KINDS:
        if (each.group, each.version, each.plural) == (place.group, place.version, place.plural):
            return each if each.namespaced == bool(place.namespace) and not place.name else None
    return None


def answer_review(
    review_kind: ReviewKind, body: Any, user: User, authenticate: Callable[[str], User | None], *, now: str
) -> Object:
    """Return a review with its status."""
    version = f"{review_kind.group}/{review_kind.version}"
    if not isinstance(body, dict) or body.get("kind", review_kind.kind) != review_kind.kind:
        raise BadRequest(f"the body of the request is not a {review_kind.kind}")
    if body.get("apiVersion", version) != version:
        raise BadRequest(
            f"the API version in the data ({body['apiVersion']}) does not match the expected API version ({version})"
        )
    spec = body.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    return {
        "kind": review_kind.kind,
        "apiVersion": version,
        "metadata": {"creationTimestamp": now}
        if review_kind.kind == "SelfSubjectReview"
        else body.get("metadata") or {},
        **({} if review_kind.kind == "SelfSubjectReview" else {"spec": spec}),
        "status": _status(review_kind, spec, user, authenticate),
    }


def _status(review_kind: ReviewKind, spec: Object, user: User, authenticate: Callable[[str], User | None]) -> Object:
    match review_kind.kind:
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
            return {"allowed": True, "reason": _ALLOWED_REASON}


class TokenAuthenticator:
    """The known bearer tokens, compared in constant time."""

    def __init__(self, users: dict[str, User] | None = None) -> None:
        self._users = dict(users or {})

    def issue(self, user: User = ADMIN) -> str:
        """Create a token for a user."""
        token = secrets.token_urlsafe(32)
        self._users[token] = user
        return token

    def __call__(self, token: str) -> User | None:
        """Return the user of a token; None for an unknown token."""
        given, found = token.encode(), None
        for known, user in self._users.items():
            if hmac.compare_digest(known.encode(), given):
                found = user
        return found


def kubeconfig(url: str, ca: bytes, token: str) -> str:
    """Return a kubeconfig with one cluster, user and context; it contains a secret."""
    authority = base64.b64encode(ca).decode()
    return dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": NAME, "cluster": {"server": url, "certificate-authority-data": authority}}],
            "users": [{"name": NAME, "user": {"token": token}}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
            "current-context": NAME,
        }
    )
