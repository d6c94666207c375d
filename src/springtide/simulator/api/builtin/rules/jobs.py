"""Jobs: what of them may change once they exist."""

from __future__ import annotations

from collections.abc import Iterator

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import invalid
from springtide.simulator.api.builtin.rules.making import IMMUTABLE, field_of, without


def job_keeps_its_pods(item: Object, old: Object | None) -> Iterator[Cause]:
    """Judge a change of a job: its template stays, but for where pods may run while it has not begun."""
    if old is None:
        return
    template, before = field_of(item, "spec.template"), field_of(old, "spec.template")
    if template == before:
        return
    waiting = field_of(old, "spec.suspend") is True and field_of(old, "status.startTime") is None
    if not waiting or _without_placement(template) != _without_placement(before):
        yield invalid("spec.template", template, IMMUTABLE)


def _without_placement(template: Object) -> tuple[Object, Object]:
    free = ("affinity", "nodeSelector", "schedulingGates", "tolerations")
    metadata = without(template.get("metadata") or {}, ("annotations", "labels"))
    return metadata, without(template.get("spec") or {}, free)


def completions_fixed(item: Object, old: Object | None) -> Iterator[Cause]:
    """Judge a change of a job's completions: only an indexed job grows or shrinks, together with its parallelism."""
    if old is None:
        return
    wanted = field_of(item, "spec.completions")
    if wanted == field_of(old, "spec.completions"):
        return
    elastic = field_of(item, "spec.completionMode") == "Indexed" and wanted == field_of(item, "spec.parallelism")
    if not elastic or wanted is None:
        yield invalid("spec.completions", wanted, IMMUTABLE)
