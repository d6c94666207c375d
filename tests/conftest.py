"""Settings of all tests: Hypothesis profiles, and which tests of exhaustive tables `make test` runs."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("test", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", deadline=None, max_examples=5000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "test"))

_EXHAUSTIVE = tuple(Path(__file__).with_name(name) for name in ("apiserver", "conformance", "costs"))
_SAMPLED = 7


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `make test` leaves out of exhaustive tables: it runs every seventh in each file."""
    seen: Counter[Path] = Counter()
    for item in items:
        if any(folder in item.path.parents for folder in _EXHAUSTIVE):
            if seen[item.path] % _SAMPLED:
                item.add_marker("exhaustive")
            seen[item.path] += 1
