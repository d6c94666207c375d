"""`--controllers`: which of them run."""

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
        pytest.param("", "calendar buffer node-pool", id="nothing said: all"),
        pytest.param("*", "calendar buffer node-pool", id="a star: all"),
        pytest.param("buffer", "buffer", id="one"),
        pytest.param("node-pool,calendar", "calendar node-pool", id="several, in their own order"),
        pytest.param("-buffer", "calendar node-pool", id="all but one"),
        pytest.param("*,-buffer", "calendar node-pool", id="all but one, said in full"),
        pytest.param("calendar, -buffer ,", "calendar", id="spaces and a comma too many"),
    ],
)
def test_what_runs(text: str, names: str) -> None:
    assert [controller.name for controller in select_controllers(text, _ALL)] == names.split()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("calender", "no controller 'calender'; did you mean 'calendar'", id="a slip"),
        pytest.param("-zzz", "expected some of calendar, buffer, node-pool", id="nothing like it"),
        pytest.param("buffer,-buffer", "both named and left out", id="a contradiction"),
        pytest.param("-calendar,-buffer,-node-pool", "leaves nothing to run", id="nobody left"),
        pytest.param("-*", "leaves nothing to run", id="all left out"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidSelection, match=message):
        select_controllers(text, _ALL)
