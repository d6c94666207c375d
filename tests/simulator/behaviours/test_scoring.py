"""The scorer caches evaluations, and chooses the same node as without a cache."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.apis.core.nodes import NodeRecord, NodeTaint
from springtide.apis.core.pod_record import PodSchedulingClass, pod_class_of
from springtide.simulator.behaviours import predicates
from springtide.simulator.behaviours import scheduler as judging
from springtide.simulator.behaviours.predicates import NodeInfo, effective_taints
from springtide.simulator.behaviours.scheduler import NodeScorer

BILLION = 1_000_000_000
TAINTS: list[tuple[NodeTaint, ...]] = [(), (NodeTaint("x", "NoSchedule"),), (NodeTaint("x", "PreferNoSchedule"),)]


def info(name: str, cpu: int, used: int, taints: tuple[NodeTaint, ...]) -> NodeInfo:
    node = NodeRecord(name=name, taints=taints, ready=True)
    return NodeInfo(node, effective_taints(node), {"cpu": cpu * BILLION}, 3, {"cpu": used * BILLION}, used)


nodes = st.builds(info, st.just("?"), st.integers(1, 4), st.integers(0, 3), st.sampled_from(TAINTS))
pod_classes = st.builds(
    lambda cpu, tolerations: pod_class_of(
        {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
            "tolerations": tolerations,
        }
    ),
    st.sampled_from(["1", "2", "4"]),
    st.sampled_from([[], [{"operator": "Exists"}]]),
)
steps = st.lists(st.one_of(st.tuples(st.sampled_from("abcd"), st.none() | nodes), pod_classes), max_size=30)


def fresh_choice(pod_class: PodSchedulingClass, there: list[NodeInfo]) -> str | None:
    fit = [one for one in there if not predicates.refusals(pod_class, one)]
    ranked = sorted(fit, key=lambda one: one.node.name)
    ranked.sort(key=lambda one: predicates.score(pod_class, one), reverse=True)
    return ranked[0].node.name if ranked else None


@settings(deadline=None)
@given(steps)
def test_cached_evaluations_do_not_change_the_choice(
    happened: list[tuple[str, NodeInfo | None] | PodSchedulingClass],
) -> None:
    judge, there = NodeScorer(), dict[str, NodeInfo]()
    for step in happened:
        if isinstance(step, PodSchedulingClass):
            listed = [there[name] for name in sorted(there)]
            choice = judge.choose(step, listed)
            assert choice.node == fresh_choice(step, listed)
            refused = [predicates.refusals(step, one) for one in listed]
            assert choice.node is not None or choice.because == predicates.unschedulable_message(len(listed), refused)
        else:
            name, new = step
            there.pop(name, None)
            if new is not None:
                there[name] = info(name, new.allocatable["cpu"] // BILLION, new.pods, new.taints)


def test_only_changed_nodes_are_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []

    def seen(pod_class: PodSchedulingClass, one: NodeInfo) -> tuple[str, ...]:
        results.append(one.node.name)
        return refusals(pod_class, one)

    refusals = predicates.refusals
    monkeypatch.setattr(predicates, "refusals", seen)
    judge, pod_class = NodeScorer(), pod_class_of({"containers": []})
    there = [info(name, 1, 0, ()) for name in "abc"]
    judge.choose(pod_class, there)
    judge.choose(pod_class, [there[0], info("b", 1, 1, ()), there[2]])
    assert results == ["a", "b", "c", "b"]


def test_the_least_recently_used_classes_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "_MAX_CLASSES", 2)
    judge, there = NodeScorer(), [info("a", 4, 0, ())]
    for cpu in ("1", "2", "1", "3"):
        judge.choose(pod_class_of({"containers": [], "nodeSelector": {"cpu": cpu}}), there)
    assert [pod_class.node_selector["cpu"] for pod_class in judge._results] == ["1", "3"]


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
