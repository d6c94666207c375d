"""What `springtide up` says when it is ready."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from springtide.cli.applying import Applied
from springtide.cli.hosting import Hosting
from springtide.cli.staging import Placed
from springtide.cli.welcome import welcome
from springtide.cluster.clock import Clock, ScaledClock, WallClock
from springtide.cluster.errors import Invalid
from springtide.controllers import CONTROLLERS

YEAR_2030 = 1_893_456_000
KINDS = ("Node", "Node", "Deployment", "Calendar", "Job", "Secret")
PLACED = [Placed("a.yaml", 1, {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}}) for kind in KINDS]


def said(clock: Clock | None = None, applied: Applied | None = None, **hosting: Any) -> str:
    hosted = Hosting(controllers=CONTROLLERS, **hosting)
    text = welcome("https://127.0.0.1:7443", clock or WallClock(), hosted, applied or Applied(), Path("/tmp/a b/c"))
    plain = click.unstyle(text)
    assert max(map(len, plain.splitlines())) <= 80
    return plain


def test_the_first_line_says_where_it_is_and_the_export_can_be_pasted() -> None:
    lines = said().splitlines()
    assert "https://127.0.0.1:7443" in lines[0]
    assert any(line.strip().startswith("export KUBECONFIG='/tmp/a b/c'") for line in lines)


@pytest.mark.parametrize(
    ("speed", "pace"),
    [pytest.param(600, "600 times as fast", id="fast"), pytest.param(1, "at the world's speed", id="ahead")],
)
def test_a_time_that_is_not_the_worlds_is_told_whatever_the_options_are(speed: float, pace: str) -> None:
    text = said(ScaledClock(speed, start=YEAR_2030))
    assert "2030-01-01T00:" in text
    assert pace in text


def test_the_worlds_time_is_not_told() -> None:
    assert "its time" not in said()


@pytest.mark.parametrize(
    ("host", "told"),
    [
        pytest.param("127.0.0.1", False, id="loopback"),
        pytest.param("::1", False, id="loopback of IPv6"),
        pytest.param("localhost", False, id="its name"),
        pytest.param("0.0.0.0", True, id="every address"),
        pytest.param("shop.example.com", True, id="a name"),
    ],
)
def test_who_else_can_reach_it(host: str, told: bool) -> None:
    assert ("whoever has the token" in said(host=host)) is told


def test_manifests_are_counted_and_refusals_too() -> None:
    text = said(applied=Applied(PLACED, [(PLACED[0], Invalid("no"))]))
    assert "2 Node, 1 Deployment, 1 Calendar and 2 more" in text
    assert "1 Node, as told above" in text


@pytest.mark.parametrize("found", ["/usr/bin/kubectl", None], ids=["installed", "not installed"])
def test_how_to_get_kubectl_is_told_where_it_is_missing(found: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: found)
    assert ("is not on your PATH" in said()) is (found is None)
