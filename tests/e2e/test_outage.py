"""Servers are restarted under running controllers: these wait, come back, and have missed nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.control_plane import ControlPlane
from tests.e2e.objects import calendar, read_all, remove, told_dates, write
from tests.e2e.processes import Program
from tests.e2e.springtide_process import NAMESPACE, controller, started
from tests.e2e.waiting import eventually

NAMES = tuple(f"outage-{number}" for number in range(10))


@pytest.fixture
def running(plane: ControlPlane, crds: None, tmp_path: Path) -> Iterator[Program]:
    """Run our controllers, and see that they do their work."""
    plane.kubectl("create", "namespace", NAMESPACE, check=False)
    program = controller("controllers", tmp_path, plane.admin, "--leader-elect")
    with started(program):
        change_all(plane, "2100-01-01")
        yield program
    remove(plane, "calendars", NAMES)


def change_all(plane: ControlPlane, day: str) -> None:
    """Return calendars another day, and wait until their status says so."""
    write(plane, *(calendar(name, day) for name in NAMES))

    def reported() -> bool:
        found = [item for item in read_all(plane, "calendars") if item["metadata"]["name"] in NAMES]
        return len(found) == len(NAMES) and all(told_dates(item) == [day] for item in found)

    eventually(f"all calendars have {day}", reported, patience=60)


@pytest.mark.parametrize(
    ("names", "killed"),
    [
        pytest.param(("kube-apiserver",), True, id="apiserver-killed"),
        pytest.param(("etcd",), True, id="etcd-killed"),
        pytest.param(("kube-apiserver", "etcd"), True, id="both-killed"),
        pytest.param(("kube-apiserver", "etcd"), False, id="both-stopped"),
    ],
)
def test_no_change_is_lost_when_servers_restart(
    plane: ControlPlane, running: Program, names: tuple[str, ...], killed: bool
) -> None:
    """What is written as soon as they are back is seen, and what was there is not forgotten."""
    pid = running.pid
    for program in reversed(plane.programs):
        if program.name in names:
            _ = program.kill() if killed else program.stop()
    plane.start()
    change_all(plane, "2100-02-02")

    assert running.running
    assert running.pid == pid
    assert "Traceback" not in running.log.read_text()


def test_a_long_outage_only_loses_the_lease(plane: ControlPlane, running: Program) -> None:
    """Past its deadline the leader steps down; when the server is back it leads again and catches up."""
    plane.apiserver.kill()
    running.wait_until("aware that it lost the lease", lambda: "is not the leader any more" in running.log.read_text())
    plane.start()
    change_all(plane, "2100-03-03")

    assert running.running
