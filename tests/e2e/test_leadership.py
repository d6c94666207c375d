"""Two processes, one leader: who takes over when it dies, and what becomes of one that was away and comes back."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.control_plane import ADMINS, ControlPlane
from tests.e2e.objects import calendar, read, read_all, remove, told_dates, write
from tests.e2e.output_lines import Line, line
from tests.e2e.processes import Program
from tests.e2e.springtide_process import NAMESPACE, controller, started
from tests.e2e.waiting import eventually, in_background

from springtide.cluster.leader_election import NAME, LeaseTiming

TIMING = LeaseTiming()
TAKEOVER = TIMING.duration + TIMING.retry * (1 + TIMING.jitter) + 10
"""Seconds within which another process must lead, on a machine that has other things to do as well."""
NAMES = tuple(f"led-{number}" for number in range(20))


@pytest.fixture
def slow(plane: ControlPlane) -> Iterator[Line]:
    """Return a line to the server on which one of the rivals can be held up."""
    with in_background(lambda: line(plane.port)) as made:
        yield made


@pytest.fixture
def rivals(plane: ControlPlane, crds: None, slow: Line, tmp_path: Path) -> Iterator[tuple[Program, Program]]:
    """Run two processes that want to lead, the first of which does, over the line that can be slow."""
    plane.kubectl("create", "namespace", NAMESPACE, check=False)
    remove(plane, "lease", [NAME, "--namespace", NAMESPACE])
    first = controller("first", tmp_path, plane.kubeconfig("admin", groups=ADMINS, port=slow.port), "--leader-elect")
    second = controller("second", tmp_path, plane.admin, "--leader-elect")
    with started(first):
        eventually("the first one leads", lambda: lease(plane).get("holderIdentity"))
        write_all(plane, "2100-01-01")
        eventually("it works", lambda: settled(plane, "2100-01-01"))
        with started(second):
            yield first, second
    remove(plane, "calendars", NAMES)


def lease(plane: ControlPlane) -> dict[str, Any]:
    """Read what the Lease says."""
    return ((read(plane, "lease", NAME, NAMESPACE) or {}).get("spec")) or {}


def write_all(plane: ControlPlane, day: str) -> None:
    """Give all calendars one day."""
    write(plane, *(calendar(name, day) for name in NAMES))


def settled(plane: ControlPlane, day: str) -> dict[str, str]:
    """Return the version of every calendar once all tell of the day; nothing before that."""
    found = [item for item in read_all(plane, "calendars") if item["metadata"]["name"] in NAMES]
    if len(found) < len(NAMES) or any(told_dates(item) != [day] for item in found):
        return {}
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in found}


def test_a_standby_takes_over_from_a_killed_leader(plane: ControlPlane, rivals: tuple[Program, Program]) -> None:
    first, second = rivals
    before = lease(plane)
    first.kill()
    write_all(plane, "2100-02-02")
    eventually("the other one works", lambda: settled(plane, "2100-02-02"), patience=TAKEOVER)
    after = lease(plane)

    assert second.running
    assert after["holderIdentity"] != before["holderIdentity"]
    assert after["leaseTransitions"] == before["leaseTransitions"] + 1


def test_a_leader_that_stops_releases_the_lease_at_once(plane: ControlPlane, rivals: tuple[Program, Program]) -> None:
    """It gives the lease up, so that the standby does not wait until it expires."""
    first, second = rivals
    second.wait_until("standing by", lambda: "is a candidate for the lease" in second.log.read_text())
    before = lease(plane)["holderIdentity"]

    assert first.stop() == 0
    given_up = time.monotonic()
    eventually("the other one leads", lambda: lease(plane).get("holderIdentity") not in ("", None, before))
    assert time.monotonic() - given_up < TIMING.duration


def test_a_paused_leader_writes_nothing_when_it_resumes(
    plane: ControlPlane, rivals: tuple[Program, Program], slow: Line
) -> None:
    """Neither by what it had sent before, and what arrives late, nor by what it still had to do."""
    first, second = rivals
    slow.hold()
    write_all(plane, "2100-02-02")
    eventually("the leader has sent something", lambda: slow.held)
    assert settled(plane, "2100-01-01"), "what it has sent has not arrived"
    first.signal(signal.SIGSTOP)
    write_all(plane, "2100-03-03")
    versions = eventually("the other one works", lambda: settled(plane, "2100-03-03"), patience=TAKEOVER)
    taken = lease(plane)
    slow.release()
    first.signal(signal.SIGCONT)
    first.wait_until("aware that it lost the lease", lambda: "is not the leader any more" in first.log.read_text())
    # Long enough for everything that it had queued, and for the server to answer what it had sent.
    time.sleep(TIMING.duration - TIMING.deadline)
    now = lease(plane)

    assert settled(plane, "2100-03-03") == versions
    assert (now["holderIdentity"], now["leaseTransitions"]) == (taken["holderIdentity"], taken["leaseTransitions"])
    assert first.running
    assert second.running
