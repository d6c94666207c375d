"""Seeded faults of the network, the API server, processes and nodes of a simulated cluster."""

from springtide.simulator.faults.profile import Faults, Severity

__all__ = ["Faults", "Severity"]
