"""What all tests share: the same examples on every run, and many more of them in `make soak`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("test", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", deadline=None, max_examples=5000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "test"))
