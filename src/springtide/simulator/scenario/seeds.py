"""Scenarios over many seeds: a seed that breaks something tells the one command that plays it again."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from springtide.simulator.scenario.outcome import Outcome
from springtide.simulator.scenario.scenario import Scenario

SEED = "SPRINGTIDE_SEED"
"""The environment variable that makes a test play this one seed instead of its own."""


def play(scenario: Scenario, duration: str, seeds: Iterable[int]) -> list[Outcome]:
    """Play a scenario with every seed, or with the one that the environment names; for tests that pytest runs."""
    chosen = [int(os.environ[SEED])] if SEED in os.environ else seeds
    return [_play(scenario, duration, seed) for seed in chosen]


def _play(scenario: Scenario, duration: str, seed: int) -> Outcome:
    try:
        return scenario.run(duration, seed=seed)
    except Exception as failure:
        # pytest names the test that is running here, and the phase it is in.
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        failure.add_note(f"play it again with: {SEED}={seed} .venv/bin/python -m pytest -n0 {shlex.quote(test)}")
        raise
