"""The embedded server's knowledge of built-in kinds comes from what this control plane publishes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.control_plane import ControlPlane
from tools.builtin_kinds import INCLUDED, OUTPUT, generate


def test_built_in_kind_data_matches_the_api_server(plane: ControlPlane, tmp_path: Path) -> None:
    for api_version in INCLUDED:
        path = f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"
        document = plane.kubectl("get", "--raw", f"/openapi/v3/{path}").stdout
        (tmp_path / f"{path.replace('/', '__')}_openapi.json").write_text(document)
    recorded = json.loads(OUTPUT.read_text())

    published = generate(tmp_path, recorded["kubernetes"])

    assert published == recorded
