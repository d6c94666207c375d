"""What others own and an apply would change: the answer that refuses it, in the words that `kubectl` shows."""

from __future__ import annotations

from springtide.cluster.errors import Cause, Conflict
from springtide.simulator.api.patches.managed import entries, fieldsets
from springtide.simulator.api.patches.managed.entries import Entry
from springtide.simulator.api.patches.managed.fieldsets import FieldSet, intersection


def refuse_conflicts(others: list[Entry], changed: FieldSet) -> None:
    """Raise `Conflict`, with a cause for each path, if any of these owners owns a path that would change."""
    conflicts = []
    for entry in sorted(others, key=entries.identity_of):
        contested = list(fieldsets.paths(intersection(entry["fieldsV1"], changed)))
        if contested:
            conflicts.append((entries.shown(entry), contested))
    if not conflicts:
        return
    causes = tuple(
        Cause(field=path, message=f"conflict with {owner}", reason="FieldManagerConflict")
        for owner, contested in conflicts
        for path in contested
    )
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        lines = [
            line
            for owner, contested in conflicts
            for line in (f"conflicts with {owner}:", *(f"- {p}" for p in contested))
        ]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    raise Conflict(message, causes=causes)
