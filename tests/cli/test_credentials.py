"""What clients of an embedded cluster need is kept with it, for as long as anybody believes it."""

from __future__ import annotations

import pytest

from springtide.cli.credentials import credentials

NOW = 1_800_000_000
DAY = 86_400


class Drawer:
    """Keeps things by name."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        """Give what is kept under a name."""
        return self.kept.get(name)

    def set(self, name: str, value: bytes) -> None:
        """Keep something."""
        self.kept[name] = value


@pytest.mark.parametrize(
    ("later", "same"),
    [
        pytest.param(0, True, id="at once"),
        pytest.param(3649 * DAY, True, id="after years"),
        pytest.param(3651 * DAY, False, id="when they have ended"),
        pytest.param(-DAY, False, id="when the clock was wrong before"),
    ],
)
def test_they_stay_the_same_while_they_are_good(later: int, same: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    drawer = Drawer()
    monkeypatch.setattr("springtide.cli.credentials.time.time", lambda: NOW)
    first = credentials(drawer)
    monkeypatch.setattr("springtide.cli.credentials.time.time", lambda: NOW + later)

    assert (credentials(drawer) == first) is same


def test_without_a_place_they_are_new_each_time() -> None:
    assert credentials(None) != credentials(None)


def test_they_are_shown_to_nobody_who_prints_them() -> None:
    made = credentials(None)

    assert made.token not in repr(made)
    assert "PRIVATE KEY" not in repr(made)
