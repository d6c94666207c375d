"""Pictures of plans: bars, groups, legends, and what is left out of large ones."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from springtide.cli.pictures.nodes import (
    NodeGroup,
    PlanPicture,
    StrategyResult,
    UnplacedPods,
    WorkloadPods,
    dollars,
    merged_groups,
    workload_totals,
)
from springtide.cli.pictures.nodes_html import render_plan_html
from springtide.cli.pictures.nodes_svg import render_plan_svg
from springtide.cli.pictures.nodes_terminal import render_plan, shares

GIB = 1 << 30
DOLLAR = 10**9


def pods(workload: str = "web", *, each: int = 2, nodes: int = 1, cpu: int = 1000) -> WorkloadPods:
    return WorkloadPods(workload, each, each, each * nodes, each * nodes * cpu, each * nodes * GIB)


def group(number: int = 1, *, nodes: int = 1, held: tuple[WorkloadPods, ...] = (), **about: object) -> NodeGroup:
    values = {"pool": "general", "zone": "zone-a", "capacity_type": "spot", "price": DOLLAR // 10, "type": "g-4x16"}
    return NodeGroup(
        names=tuple(f"new-{number + each}" for each in range(nodes)),
        cpu=4000,
        memory=16 * GIB,
        cpu_reserved=400 * nodes,
        memory_reserved=GIB * nodes,
        pods=held or (pods(nodes=nodes),),
        **{**values, **about},  # type: ignore[arg-type]
    )


def picture(*groups: NodeGroup, **about: object) -> PlanPicture:
    values = {
        "strategy": "least-cost",
        "pending": sum(each.pods for one in groups for each in one.pods),
        "on_existing": 0,
        "cost": sum(each.price * each.nodes for each in groups),
        "lower_bound": 0,
        "new": groups,
        "workloads": workload_totals(groups),
    }
    return PlanPicture(**{**values, **about})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("amounts", "whole", "cells", "expected"),
    [
        pytest.param([1, 1], 4, 8, [2, 2], id="exact"),
        pytest.param([1, 1, 1], 3, 10, [4, 3, 3], id="rest-to-the-first"),
        pytest.param([1, 999], 1000, 10, [1, 9], id="something-is-at-least-a-cell"),
        pytest.param([0, 10], 10, 5, [0, 5], id="nothing-is-nothing"),
        pytest.param([1] * 8, 8, 4, [1, 1, 1, 1, 0, 0, 0, 0], id="more-parts-than-cells"),
        pytest.param([1], 0, 5, [0], id="no-capacity"),
        pytest.param([5, 5], 20, 9, [3, 2], id="half-full"),
    ],
)
def test_cells_are_shared(amounts: list[int], whole: int, cells: int, expected: list[int]) -> None:
    assert shares(amounts, whole, cells) == expected


@pytest.mark.parametrize(
    ("nano", "expected"),
    [(0, "$0.0000"), (123_456_789, "$0.1235"), (12 * DOLLAR, "$12.00"), (1_234_567 * DOLLAR, "$1,234,567.00")],
)
def test_money(nano: int, expected: str) -> None:
    assert dollars(nano) == expected


def test_groups_are_merged_where_there_are_many() -> None:
    groups = [group(number, held=(pods(each=number),)) for number in range(1, 5)]

    assert len(merged_groups(groups, 4)) == 4
    (merged,) = merged_groups(groups, 3)
    assert (merged.nodes, merged.pods[0].least, merged.pods[0].most, merged.pods[0].pods) == (4, 1, 4, 10)
    assert merged.pods[0].text == "web ×1–4"


def test_groups_that_cost_the_most_come_first() -> None:
    groups = [group(1, type="cheap"), group(2, nodes=3, type="many"), group(5, type="dear", price=DOLLAR)]

    assert [each.type for each in merged_groups(groups, 9)] == ["dear", "many", "cheap"]


def test_a_line_of_nodes_in_a_wide_terminal() -> None:
    shown = render_plan(picture(group(nodes=10)), width=120, colour=False, unicode=True)

    assert "10 × g-4x16  zone-a  spot  general  $0.1000/h  cpu aaaa" in shown
    assert "  55 %  memory " in shown
    assert shown.count("web ×2") == 1
    assert max(map(len, shown.splitlines())) <= 120


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("colour", [True, False])
def test_no_line_is_wider_than_the_terminal(width: int, colour: bool) -> None:
    groups = [
        group(number, held=tuple(pods(f"{'long-name-' * 4}{each}", each=1, cpu=100) for each in range(30)))
        for number in range(20)
    ]
    unplaced = (UnplacedPods("web-1", 15, "0/412 types: 380 too small (needs 96 cpu), 32 excluded"),)
    shown = render_plan(picture(*groups, unplaced=unplaced), width=width, colour=colour, unicode=True)

    plain = "".join(part.partition("m")[2] if number else part for number, part in enumerate(shown.split("\x1b[")))
    assert max(map(len, plain.splitlines())) <= width
    assert "web-1 and 14 more" in plain


def test_a_terminal_without_unicode_gets_ascii() -> None:
    assert render_plan(picture(group()), width=80, colour=False, unicode=False).isascii()


def test_nothing_pending() -> None:
    assert render_plan(picture(), width=80, colour=False, unicode=True) == (
        "No pods are pending: there is nothing to add.\n"
    )


def test_strategies_are_compared_with_this_plan() -> None:
    alternatives = (
        StrategyResult("least-cost", 1, DOLLAR // 10, 0),
        StrategyResult("least-nodes", 1, DOLLAR, 0),
        StrategyResult("most-pods", 1, DOLLAR // 10, 3),
    )
    shown = render_plan(picture(group(), alternatives=alternatives), width=80, colour=False, unicode=True)

    assert "  least-cost         1 node        $0.1000/h  this plan" in shown
    assert "  least-nodes        1 node        $1.0000/h  +$0.9000" in shown
    assert "  most-pods          1 node        $0.1000/h  the same cost, 3 pods not placed" in shown


@pytest.mark.parametrize(
    ("cost", "bound", "expected"),
    [
        pytest.param(DOLLAR, 0, "", id="unknown"),
        pytest.param(DOLLAR, DOLLAR, "this plan is the cheapest", id="optimal"),
        pytest.param(1_053 * DOLLAR // 1000, DOLLAR, "this plan is 5.3 % above", id="above"),
    ],
)
def test_the_distance_from_the_bound(cost: int, bound: int, expected: str) -> None:
    assert picture(group(), cost=cost, lower_bound=bound).bound.endswith(expected)


def test_a_drawing_has_a_tile_for_each_pod_and_escapes_names() -> None:
    drawn = render_plan_svg(picture(group(held=(pods("<&>", each=3),))), title=None)

    ElementTree.fromstring(drawn)
    assert "&lt;&amp;&gt;: 3 pods, 3 cpu" in drawn
    assert drawn.count('class="gap"') == 2


def test_a_large_drawing_is_limited() -> None:
    groups = [group(number, type=f"type-{number}") for number in range(100)]

    drawn = render_plan_svg(picture(*groups), title=None)

    assert drawn.count('class="card edge"') == 48
    assert "… and 52 nodes more; -o json lists all" in drawn


def test_a_page_lists_names_of_nodes() -> None:
    page = render_plan_html(picture(group(nodes=30)), title="Machines & more")

    assert "<title>Machines &amp; more</title>" in page
    assert "new-20 and 10 more" in page
