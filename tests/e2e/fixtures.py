"""The fixtures of those who need a real control plane; import them into a `conftest.py`.

However many folders do so, all tests of a run share one control plane.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.assets import Assets, AssetsMissing, find
from tests.e2e.control_plane import ControlPlane
from tests.e2e.objects import install_crds

_shared: dict[str, ControlPlane] = {}
folders: list[Path] = []
"""Where the control planes of this run have their logs."""


@pytest.fixture(autouse=True)
def nothing_left_open(request: pytest.FixtureRequest) -> Iterator[None]:
    """Find what a test has left open there, and not in whichever test runs when it happens to be collected."""
    yield
    if request.node.get_closest_marker("e2e"):
        gc.collect()


@pytest.fixture(scope="session")
def assets(request: pytest.FixtureRequest) -> Assets:
    """Return the programs of a control plane, built where it must be; skips where there are none."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():  # A build takes minutes, and shows that it goes on.
        try:
            return find()
        except AssetsMissing as missing:
            pytest.skip(str(missing))


@pytest.fixture(scope="session")
def plane(assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Return a control plane with everything in it; it is shared, so tests have namespaces of their own."""
    try:
        running = _shared.get("plane") or _started(assets, tmp_path_factory.mktemp("plane"))
    except AssetsMissing as missing:
        pytest.skip(str(missing))
    try:
        yield running
    finally:
        running.stop()
        _shared.clear()


@pytest.fixture(scope="session")
def crds(plane: ControlPlane) -> None:
    """Have our CRDs, in the extended flavour, in the control plane."""
    install_crds(plane)


def _started(assets: Assets, folder: Path) -> ControlPlane:
    folders.append(folder)
    plane = _shared["plane"] = ControlPlane(assets, folder)
    try:
        plane.start()
    except BaseException:
        plane.stop()
        raise
    return plane
