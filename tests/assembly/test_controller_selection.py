"""The `--controllers` option: which controllers run."""

from __future__ import annotations

import pytest

from springtide.assembly.live_cluster import InvalidSelection, select_controllers
from springtide.cluster.controller import Controller, Result
from springtide.cluster.resources import Key


def _controller(label: str) -> type[Controller]:
    class _Named(Controller):
        name = label
        watches = ()
        permissions = ()

        async def reconcile(self, key: Key, now: int) -> Result | None:
            return None

    return _Named


_ALL = tuple(_controller(name) for name in ("calendar", "buffer", "node-pool"))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("", "calendar buffer node-pool", id="empty: all"),
        pytest.param("*", "calendar buffer node-pool", id="star: all"),
        pytest.param("buffer", "buffer", id="one"),
        pytest.param("node-pool,calendar", "calendar node-pool", id="several, in the order of the process"),
        pytest.param("-buffer", "calendar node-pool", id="all but one"),
        pytest.param("*,-buffer", "calendar node-pool", id="all but one, with a star"),
        pytest.param("calendar, -buffer ,", "calendar", id="spaces and a comma too many"),
    ],
)
def test_selected_controllers(text: str, names: str) -> None:
    assert [controller.name for controller in select_controllers(text, _ALL)] == names.split()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("calender", "no controller 'calender'; did you mean 'calendar'", id="misspelled"),
        pytest.param("-zzz", "expected some of calendar, buffer, node-pool", id="unknown"),
        pytest.param("buffer,-buffer", "both named and left out", id="named and left out"),
        pytest.param("-calendar,-buffer,-node-pool", "leaves nothing to run", id="none left"),
        pytest.param("-*", "leaves nothing to run", id="all left out"),
    ],
)
def test_an_invalid_selection_raises(text: str, message: str) -> None:
    with pytest.raises(InvalidSelection, match=message):
        select_controllers(text, _ALL)
