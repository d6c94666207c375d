"""Slips in the kinds of this group that can mean only one thing.

None of them is read silently: the server would refuse the object, so its author had better know. They are repaired
where somebody asks for it.
"""

from __future__ import annotations

from typing import Any

from springtide.apis.kinds import Reading
from springtide.apis.meta.mending import Mending
from springtide.apis.meta.scale_targets import mend_target


def fixes(value: dict[str, Any]) -> Reading:
    """Repair every slip that can mean only one thing."""
    mending = Mending(value)
    if value.get("kind") in ("CronFederatedHPA", "FederatedHPA"):
        mend_target(mending, ("spec", "scaleTargetRef"))
    if value.get("kind") == "CronFederatedHPA":
        for rule in mending.entries(("spec", "rules")):
            mending.rename(rule, "ruleName", "name", "`ruleName` was renamed to `name`")
    return mending.reading()
