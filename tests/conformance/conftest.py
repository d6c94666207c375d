"""Fixtures of the end-to-end tests that the conformance suite needs: the binaries of the control plane."""

from __future__ import annotations

from tests.e2e.fixtures import assets, nothing_left_open

__all__ = ["assets", "nothing_left_open"]
