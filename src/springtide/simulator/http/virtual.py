"""Kinds that are asked and answered, and never stored: reviews of who somebody is, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Virtual:
    """A kind that can be created only; the answer is the created object with its status filled in."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False


_WHO = "authentication.k8s.io"
_MAY = "authorization.k8s.io"

VIRTUAL = (
    Virtual(_WHO, "v1", "selfsubjectreviews", "SelfSubjectReview"),
    Virtual(_WHO, "v1", "tokenreviews", "TokenReview"),
    Virtual(_MAY, "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
    Virtual(_MAY, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    Virtual(_MAY, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    Virtual(_MAY, "v1", "subjectaccessreviews", "SubjectAccessReview"),
)
