"""Definitions of kinds: what others rely on once a kind is served."""

from __future__ import annotations

import re
from collections.abc import Iterator

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import invalid, required
from springtide.simulator.api.builtin.rules.making import IMMUTABLE, field_of

_ANNOTATION = "api-approved.kubernetes.io"
_URL = re.compile("[a-zA-Z][-+.a-zA-Z0-9]*://[^/]")
_WHERE_SERVED = ("spec.scope", "spec.names.kind")
_IN_THE_NAME = ("spec.group", "spec.names.plural")


def definition_approved(item: Object, old: Object | None) -> Iterator[Cause]:
    """Judge a definition in a group of the Kubernetes community: somebody there has approved of it, or knows."""
    group, approval = field_of(item, "spec.group") or "", _approval(item)
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")) or (old is not None and approval == _approval(old)):
        return
    path, words = (
        f"metadata.annotations[{_ANNOTATION}]",
        f'protected groups must have approval annotation "{_ANNOTATION}"',
    )
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not approval:
        yield required(path, f"{words}, {see}")
    elif not approval.startswith("unapproved") and not _URL.match(approval):
        yield invalid(path, approval, f'{words} with either a URL or a reason starting with "unapproved", {see}')


def _approval(item: Object) -> str:
    return (item["metadata"].get("annotations") or {}).get(_ANNOTATION) or ""


def definition_stays(item: Object, old: Object | None) -> Iterator[Cause]:
    """Judge a change of a definition: objects are stored under what it says of them."""
    if old is None:
        return
    conditions = field_of(old, "status.conditions") or ()
    established = any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)
    for path in (*(_WHERE_SERVED if established else ()), *_IN_THE_NAME):
        value = field_of(item, path)
        if value != field_of(old, path):
            yield invalid(path, value or "", IMMUTABLE)
