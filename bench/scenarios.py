"""Measures how fast scenarios run: calendars under leader election and heavy faults, and a quiet year."""

from __future__ import annotations

import logging
import time

from tests.scenarios.calendar_lease import LENGTH, calendar_lease
from tests.scenarios.story import four_hundred_days

from springtide.quantity import parse_span
from springtide.simulator.scenario import Scenario

SEEDS = 20


def measure(name: str, scenario: Scenario, duration: str, seeds: int) -> None:
    scenario.run(duration, seed=0)  # compiles the CRDs, once for all scenarios of the process
    begin = time.perf_counter()
    for seed in range(seeds):
        scenario.run(duration, seed=seed)
    seconds = (time.perf_counter() - begin) / seeds
    print(f"{name:28} {seconds:6.3f} s a run   {parse_span(duration) / seconds:12,.0f} times as fast as real time")


def main() -> None:
    logging.disable(logging.CRITICAL)
    measure("lease under heavy faults", calendar_lease(), LENGTH, SEEDS)
    measure("400 days of calendars", four_hundred_days(), "400d", 1)


if __name__ == "__main__":
    main()
