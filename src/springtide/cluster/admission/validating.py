"""Validation: the problems that `springtide check` finds, said before the object is stored.

Only what is ours is refused. Objects of others pass with warnings at most: their owners may know better.
"""

from __future__ import annotations

from springtide.apis import registry
from springtide.apis.fields import Context
from springtide.apis.judging import judge
from springtide.apis.kinds import Kind, Version
from springtide.apis.ownership import owned
from springtide.cluster.admission.answers import ALLOWED, Verdict, verdict
from springtide.cluster.admission.meaning import as_warnings, to_be_judged, without_lingering
from springtide.cluster.admission.reviews import AdmissionRequest, read_admission
from springtide.cluster.resources import Object


def validate(body: bytes, context: Context) -> bytes:
    """Answer an AdmissionReview; raises `Malformed` for what is none."""
    request = read_admission(body)
    return validated(request, context).written(request.uid)


def validated(request: AdmissionRequest, context: Context) -> Verdict:
    """Judge what is about to be stored."""
    item = to_be_judged(request)
    found = kind_of(item) if item is not None else None
    if item is None or found is None:
        return ALLOWED
    problems = list(judge(item, *found, context).problems)
    old = request.old_object
    earlier = kind_of(old) if old is not None else None
    if not owned(item):
        problems = as_warnings(problems)
    elif old is not None and earlier is not None:
        problems = without_lingering(problems, judge(old, *earlier, context).problems)
    return verdict(item, problems)


def kind_of(item: Object) -> tuple[Kind, Version] | None:
    """Find the kind of an object, if it is one of those that we define."""
    api_version, kind = item.get("apiVersion"), item.get("kind")
    found = registry.find(api_version, kind) if isinstance(api_version, str) and isinstance(kind, str) else None
    return found if found is not None and not found[0].builtin else None
