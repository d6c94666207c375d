"""What the end-to-end tests share: one control plane for all of them."""

from __future__ import annotations

import pytest
from tests.e2e.fixtures import assets, crds, folders, nothing_left_open, plane

__all__ = ["assets", "crds", "nothing_left_open", "plane"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that needs a program of the control plane, before those are sorted out that are not wanted."""
    for item in items:
        if "assets" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.e2e)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report where the logs of the control plane are after a failure."""
    if terminalreporter.stats.keys() & {"failed", "error"}:
        for folder in folders:
            terminalreporter.write_line(f"logs of the control plane: {folder}")
