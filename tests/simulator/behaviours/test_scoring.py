"""The scheduler chooses the same node with a cache that has seen every delta as with a new one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulator.behaviours.objects import live_pod, record_of

from springtide.apis.core.nodes import NodeRecord
from springtide.apis.core.pod_record import pod_class_of
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.packing import snapshot as snapshots
from springtide.packing.scoring import ScoreBoard
from springtide.packing.space import Space
from springtide.simulator.behaviours.scheduler import choose
from springtide.simulator.behaviours.scheduler_cache import SchedulerCache

BILLION = 1_000_000_000
ZONES = {"a": "1", "b": "1", "c": "2", "d": "2"}
SAME = {"labelSelector": {"matchLabels": {"app": "x"}}}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **SAME}
TERM = {"topologyKey": "zone", **SAME}


def node_of(name: str, cpu: str, taints: list[Object]) -> NodeRecord:
    conditions = [{"type": "Ready", "status": "True"}]
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "3"}
    return record_of(
        {
            "metadata": {"name": name, "labels": {"zone": ZONES[name], "kubernetes.io/hostname": name}},
            "spec": {"taints": taints},
            "status": {"allocatable": allocatable, "conditions": conditions},
        }
    )


def required(kind: str) -> Object:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}}


SPECS: dict[str, Object] = {
    "plain": {},
    "tolerant": {"tolerations": [{"operator": "Exists"}]},
    "on-a": {"nodeSelector": {"kubernetes.io/hostname": "a"}},
    "spread": {"topologySpreadConstraints": [SPREAD]},
    "near": required("podAffinity"),
    "apart": required("podAntiAffinity"),
    "port": {"port": 80},
    "other-port": {"port": 81},
    "important": {"priority": 10},
}


def pod_of(name: str, kind: str, cpu: str, node: str | None, nominated: str | None) -> Object:
    spec: dict[str, Any] = dict(SPECS[kind])
    port = spec.pop("port", None)
    made = live_pod(name, node=node, phase="Running" if node else "Pending", labels={"app": "x"}, **spec)
    container: Object = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    made["spec"]["containers"] = [container | ({"ports": [{"hostPort": port, "containerPort": port}]} if port else {})]
    if nominated and not node:
        made["status"]["nominatedNodeName"] = nominated
    return made


TAINTS: list[list[Object]] = [[], [{"key": "x", "effect": "NoSchedule"}], [{"key": "x", "effect": "PreferNoSchedule"}]]
names, places = st.sampled_from("pqrstu"), st.sampled_from("abcd")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("node"), places, st.none() | st.tuples(st.sampled_from("124"), st.sampled_from(TAINTS))),
        st.tuples(
            st.just("pod"),
            names,
            st.none()
            | st.tuples(st.sampled_from(list(SPECS)), st.sampled_from(["500m", "1", "2"]), *[st.none() | places] * 2),
        ),
        st.tuples(st.just("place"), names, st.none()),
    ),
    max_size=25,
)


class Story:
    """A cache that sees every delta, and what a new one would be made of."""

    def __init__(self) -> None:
        self.cache = SchedulerCache()
        self.nodes: dict[str, NodeRecord] = {}
        self.pods: dict[str, Object] = {}

    def node(self, name: str, new: NodeRecord | None) -> None:
        old = self.nodes.pop(name, None)
        if new is not None:
            self.nodes[name] = new
        if old is not None or new is not None:
            self.cache.node_changed(Delta(Key("", name), old, new))

    def pod(self, name: str, new: Object | None) -> None:
        old = self.pods.pop(name, None)
        if new is not None:
            self.pods[name] = new
        if old is not None or new is not None:
            self.cache.pod_changed(Delta(Key("default", name), old, new))

    def place(self, name: str) -> None:
        """Place a pending pod where the cache says, and let the binding be seen later."""
        pod = self.pods.get(name)
        if pod is None or pod["spec"].get("nodeName"):
            return
        chosen = self.compare(name)
        if chosen is not None:
            self.cache.assume(pod, chosen)
            status = {"phase": "Pending", "conditions": []}
            self.pod(name, {**pod, "spec": {**pod["spec"], "nodeName": chosen}, "status": status})

    def compare(self, name: str) -> str | None:
        """Choose a node with the cache and with a new one; the answers are equal."""
        new = SchedulerCache()
        for node, record in sorted(self.nodes.items(), reverse=True):
            new.node_changed(Delta(Key("", node), None, record))
        for pod, item in sorted(self.pods.items(), reverse=True):
            new.pod_changed(Delta(Key("default", pod), None, item))
        key, nominated = Key("default", name), self.pods[name]["status"].get("nominatedNodeName", "")
        found = choose(self.cache, key, nominated)
        assert found == choose(new, key, nominated)
        return found.node


@pytest.mark.parametrize("most_empty", [pytest.param(4096, id="few-pods"), pytest.param(0, id="shapes-are-forgotten")])
@settings(deadline=None, max_examples=100)
@given(happened=steps)
def test_the_cache_does_not_change_the_choice(most_empty: int, happened: list[tuple[str, str, Any]]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(snapshots, "_MOST_EMPTY", most_empty)
        play(happened)


def play(happened: list[tuple[str, str, Any]]) -> None:
    story = Story()
    for kind, name, what in happened:
        if kind == "node":
            story.node(name, None if what is None else node_of(name, *what))
        elif kind == "pod":
            known = story.pods.get(name)
            if known is not None and known["spec"].get("nodeName"):
                story.pod(name, None)
            if what is not None:
                size, cpu, node, nominated = what
                story.pod(name, pod_of(name, size, cpu, node, nominated))
            else:
                story.pod(name, None)
        else:
            story.place(name)
    for name, pod in story.pods.items():
        if not pod["spec"].get("nodeName"):
            story.compare(name)


def test_shapes_that_are_forgotten_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_MOST_EMPTY", 0)
    story = Story()
    story.node("a", node_of("a", "2", []))
    story.node("c", node_of("c", "4", []))
    story.pod("bound", pod_of("bound", "plain", "100m", "a", None))
    for number in range(5):
        story.pod(f"p-{number}", pod_of(f"p-{number}", "port", f"{number + 1}00m", None, None))
    story.pod("s", pod_of("s", "spread", "1", None, None))
    for name in ("p-0", "s"):
        story.compare(name)
    for number in range(5):
        story.pod(f"p-{number}", None)
    # Its counter has the number that another counter had before; there are as many counters as before.
    story.pod("t", pod_of("t", "other-port", "1", None, None))
    for name in "ts":
        story.compare(name)


def test_placing_pods_computes_only_changed_nodes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Space] = []
    of = ScoreBoard.of

    def counted(space: Space) -> ScoreBoard:
        made.append(space)
        return of(space)

    monkeypatch.setattr(ScoreBoard, "of", counted)
    story = Story()
    for name in "abc":
        story.node(name, node_of(name, "4", []))
    for name in "pqrst":
        story.pod(name, pod_of(name, "plain", "500m", None, None))
    for name in "pqrst":
        choice = choose(story.cache, Key("default", name))
        assert choice.node is not None
        story.cache.assume(story.pods[name], choice.node)
    assert len(made) == 1


def test_pods_that_differ_only_in_their_node_have_the_same_class() -> None:
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]}
    bound = pod_class_of({"nodeName": "a", **spec})
    assert bound == pod_class_of(spec)
    assert {name: amount.nano for name, amount in bound.requests.items()} == {"cpu": BILLION // 10}
    assert bound != pod_class_of({**spec, "priority": 1})


@pytest.mark.parametrize("cpu", [pytest.param("x", id="not a quantity"), pytest.param([], id="not a scalar")])
def test_a_class_with_requests_that_cannot_be_parsed_requests_nothing(cpu: object) -> None:
    unreadable = pod_class_of({"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]})
    assert (unreadable.requests, unreadable.unreadable) == ({}, True)
