"""Worlds with our controllers in them: only here do the simulator and the controllers meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from springtide.controllers import CONTROLLERS
from springtide.simulator import behaviours
from springtide.simulator.faults import Severity
from springtide.simulator.scenario import Scenario
from springtide.simulator.trace import Entry


def simulated(objects: list[dict[str, Any]], *, start: str, faults: str, listener: Callable[[Entry], None]) -> Scenario:
    """Tell the story of these objects in a cluster of their own, with everything that runs in one."""
    severity = Severity(faults)
    return (
        Scenario("simulate", start=start)
        .given(*objects)
        .behaving(*behaviours.ALL)
        .running(*CONTROLLERS, replicas=1 if severity is Severity.NONE else 2)
        .under(severity)
        .told_to(listener)
    )
