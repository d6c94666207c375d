"""Defaulting: what is read leniently is stored in its canonical form.

The defaults of fields stand in the CRDs. What they cannot do is to rename a reason that is written in lower case, or
to turn a count into the text that the schema asks for. Nothing depends on it: without this webhook the schema refuses
such an object, and says why.
"""

from __future__ import annotations

from springtide.apis.ownership import owned
from springtide.cluster.admission.answers import ALLOWED, Verdict, verdict
from springtide.cluster.admission.json_patch import json_patch
from springtide.cluster.admission.meaning import to_be_judged
from springtide.cluster.admission.reviews import AdmissionRequest, read_admission
from springtide.cluster.admission.validating import kind_of

_MOST_OPERATIONS = 10_000
"""The API server takes no longer patch; the lists of an object that needs one are too long for its schema anyway."""


def default(body: bytes) -> bytes:
    """Answer an AdmissionReview; raises `Malformed` for what is none."""
    request = read_admission(body)
    return defaulted(request).written(request.uid)


def defaulted(request: AdmissionRequest) -> Verdict:
    """Give the repairs of what is about to be stored, each with a warning; objects of others stay as they are."""
    item = to_be_judged(request)
    found = kind_of(item) if item is not None else None
    if item is None or found is None or not owned(item):
        return ALLOWED
    _, version = found
    if version.lenient is None:
        return ALLOWED
    reading = version.lenient(item)
    patch = json_patch(item, reading.value)
    return verdict(item, reading.problems, patch=patch) if 0 < len(patch) <= _MOST_OPERATIONS else ALLOWED
