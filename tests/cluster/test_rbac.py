"""RBAC rules are generated from declared permissions, and the declared permissions suffice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.memory_cluster import CONFIG_MAPS, SECRETS, USER, MemoryCluster
from tests.cluster.rbac_transport import RbacTransport

from springtide.apis.meta.times import parse_instant
from springtide.cluster.client import Mode
from springtide.cluster.controller import Permission
from springtide.cluster.leader_election import LEASES, LeaderElector
from springtide.cluster.manager import Manager
from springtide.cluster.pausing import ANNOTATION
from springtide.cluster.rbac import MANAGER_PERMISSIONS, PolicyRule, rules_of
from springtide.cluster.resources import Key, Resource
from springtide.cluster.transport import Patch
from springtide.controllers import CONTROLLERS
from springtide.controllers.calendar import CALENDARS, CalendarController
from springtide.simulator.virtual_time import VirtualClock, run

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


def test_permissions_of_one_resource_become_one_rule() -> None:
    rules = rules_of(
        [
            Permission(CALENDARS, ("watch", "list")),
            Permission(CALENDARS, ("get", "list")),
            Permission(CALENDARS, ("patch",), subresource="status"),
            Permission(CONFIG_MAPS, ("patch", "get"), names=("b", "a"), own_namespace=True),
        ]
    )
    assert rules.cluster == (
        {"apiGroups": ["springtide.dev"], "resources": ["calendars"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["springtide.dev"], "resources": ["calendars/status"], "verbs": ["patch"]},
    )
    assert rules.namespace == (
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a", "b"], "verbs": ["get", "patch"]},
    )


@pytest.mark.parametrize(
    ("permission", "words"),
    [
        pytest.param(Permission(SECRETS, ("update",)), "there is no verb 'update'", id="an unknown verb"),
        pytest.param(Permission(SECRETS, ("create",), names=("a",)), "cannot be limited to names", id="named create"),
        pytest.param(Permission(NODES, ("get",), own_namespace=True), "it is in no namespace", id="own node"),
    ],
)
def test_ineffective_permissions_are_refused(permission: Permission, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        rules_of([permission])


PERMISSIONS = st.builds(
    Permission,
    st.sampled_from([CONFIG_MAPS, SECRETS, LEASES]),
    st.lists(st.sampled_from(["get", "list", "watch", "patch", "delete"]), min_size=1, max_size=3).map(tuple),
    st.sampled_from(["", "status"]),
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=2, unique=True).map(tuple),
    st.booleans(),
)
ANY_NAME = "(any)"


@given(st.lists(PERMISSIONS, max_size=8))
def test_rules_allow_exactly_what_was_declared(permissions: list[Permission]) -> None:
    rules = rules_of(permissions)
    assert {*_single(rules.cluster, own=False), *_single(rules.namespace, own=True)} == {
        one for permission in permissions for one in single_rights(permission)
    }
    assert rules_of(reversed(permissions)) == rules


def single_rights(permission: Permission) -> list[tuple[Any, ...]]:
    """Split a permission into one for each verb and name."""
    below = f"/{permission.subresource}" if permission.subresource else ""
    return [
        (permission.own_namespace, permission.resource.group, f"{permission.resource.plural}{below}", verb, name)
        for verb in permission.verbs
        for name in permission.names or (ANY_NAME,)
    ]


def _single(rules: tuple[PolicyRule, ...], *, own: bool) -> list[tuple[Any, ...]]:
    return [
        (own, group, resource, verb, name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [ANY_NAME])
    ]


@pytest.mark.parametrize("kind", CONTROLLERS, ids=lambda kind: kind.name)
def test_controllers_have_permissions_for_their_watches(kind: Any) -> None:
    for watch in kind.watches:
        resource = watch.cached.selection.resource
        verbs = {
            verb
            for permission in kind.permissions
            if permission.resource == resource and not permission.subresource
            for verb in permission.verbs
        }
        assert {"list", "watch"} <= verbs, f"{kind.name} watches {resource}"


START = parse_instant("2026-12-20T12:00:00Z")
STORY = (CalendarController,)
USED = [
    "create events",
    "create leases.coordination.k8s.io",
    "get events",
    "get leases.coordination.k8s.io",
    "list calendars.springtide.dev",
    "list configmaps",
    "patch calendars/status.springtide.dev",
    "patch events",
    "patch leases.coordination.k8s.io",
    "watch calendars.springtide.dev",
    "watch configmaps",
]
"""All that the calendars' story needs."""


class RbacHarness:
    """Two replicas with the roles of the manager and of the controller, and users who edit calendars."""

    def __init__(self, clock: VirtualClock, *, without: str = "", mode: Mode = Mode.ACT) -> None:
        self.clock = clock
        self.mode = mode
        self.world = MemoryCluster(clock)
        self.world.install_calendars()
        self.rules = rules_of([*MANAGER_PERMISSIONS, *(one for kind in STORY for one in kind.permissions)])
        self.without = without
        self.lines: list[RbacTransport] = []

    def open(self, identity: str) -> Manager:
        """Start a replica."""
        line = RbacTransport(
            self.world.line(), cluster=self.rules.cluster, namespace=self.rules.namespace, without=self.without
        )
        self.lines.append(line)
        leadership = LeaderElector(line, self.clock, identity=identity, random=Random(identity))
        return Manager(line, self.clock, STORY, random=Random(1), election=leadership, mode=self.mode)

    def write(self, name: str, *dates: str) -> None:
        """Create a calendar, or give it other days."""
        body = {
            "apiVersion": CALENDARS.api_version,
            "kind": CALENDARS.kind,
            "metadata": {"name": name},
            "spec": {"dates": list(dates)},
        }
        self.world.server.patch(CALENDARS, Key("", name), Patch.apply(body, force=True), USER)

    @property
    def refused(self) -> list[str]:
        return [one for line in self.lines for one in line.refused]

    @property
    def used(self) -> set[str]:
        return {one for line in self.lines for one in line.used}


async def everything(harness: RbacHarness) -> None:
    """Play everything that leads to requests of the processes."""
    managers = [harness.open(identity) for identity in ("first", "second")]
    running = [asyncio.ensure_future(manager.run()) for manager in managers]
    clock = harness.clock
    harness.write("good", "2026-12-24")
    harness.write("bad", "2026-02-30")
    await clock.sleep(60)
    harness.write("bad", "2026-02-30", "2026-12-24")
    await clock.sleep(60)
    harness.world.change("good", "", CALENDARS, metadata={"annotations": {ANNOTATION: "true"}})
    await clock.sleep(10)
    harness.world.config_map("springtide-pause", "springtide-system", paused="true")
    await clock.sleep(10)
    for manager, task in zip(managers, running, strict=True):
        stopping = asyncio.ensure_future(manager.stop())
        await clock.sleep(60)
        assert stopping.done()
        await task


def play(story: Callable[[RbacHarness], Awaitable[None]], **options: Any) -> RbacHarness:
    async def main(clock: VirtualClock) -> RbacHarness:
        harness = RbacHarness(clock, **options)
        await story(harness)
        return harness

    return run(main, start=START)


def test_the_declared_permissions_suffice() -> None:
    """Statuses and events are written, and leadership changes, with only the generated roles."""
    harness = play(everything)
    assert harness.refused == []
    assert sorted(harness.used) == USED
    assert harness.world.server.get(CALENDARS, Key("", "good"))["status"]["nextDates"] == ["2026-12-24"]
    assert {event["reason"] for event in harness.world.events()} >= {"Invalid", "Paused"}


@pytest.mark.parametrize("right", USED)
def test_every_used_permission_is_needed(right: str) -> None:
    """Each right that is used is needed: without it the same story is refused something."""
    assert right in play(everything, without=right).refused


def test_observe_mode_needs_no_further_permissions() -> None:
    """It has a Lease of its own, which the roles name too."""
    harness = play(everything, mode=Mode.OBSERVE)
    assert harness.refused == []
    assert "patch calendars/status.springtide.dev" not in harness.used
