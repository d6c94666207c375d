"""Seeded faults at every boundary of the simulated world."""

from springtide.simulator.faults.profile import Faults, Severity

__all__ = ["Faults", "Severity"]
