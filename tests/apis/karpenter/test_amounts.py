"""What `nodes` of a budget comes to, and what is refused."""

from __future__ import annotations

import pytest
from tests.apis.judging import judge
from tests.apis.karpenter.samples import compiled, limits, node_pool

from springtide.apis.karpenter.pools import pool_budgets


@pytest.mark.parametrize(
    ("nodes", "total", "expected"),
    [
        pytest.param("10%", 0, 0, id="1"),
        pytest.param("10%", 1, 1, id="2"),
        pytest.param("10%", 10, 1, id="4"),
        pytest.param("10%", 11, 2, id="5"),
        pytest.param("50%", 3, 2, id="7"),
        pytest.param("5%", 10, 1, id="8"),
        pytest.param("0%", 50, 0, id="9"),
        pytest.param("99%", 1, 1, id="10"),
        pytest.param("33%", 3, 1, id="12"),
        pytest.param("20%", 25, 5, id="13"),
        pytest.param("100%", 7, 7, id="15"),
        pytest.param("007", 100, 7, id="16"),
    ],
)
def test_limit_of_one_budget(nodes: str, total: int, expected: int) -> None:
    """A percentage of the nodes is rounded up; a count stays what it is."""
    found = limits(compiled(nodes), 0, total)

    assert dict.fromkeys("UEDX", expected) == found


REFUSED = [
    pytest.param("101%", id="18-more-than-all"),
    pytest.param("1000%", id="18-far-more-than-all"),
    pytest.param("-10", id="18-negative"),
    pytest.param("-10%", id="18-negative-percentage"),
    pytest.param("", id="empty"),
    pytest.param("1.5", id="fraction"),
    pytest.param("99999999999999999999", id="19"),
    pytest.param("2147483648", id="21"),
]


@pytest.mark.parametrize("nodes", REFUSED)
def test_refused_amounts(nodes: str) -> None:
    """What upstream refuses, or would misread, is an error at the field."""
    found = judge(node_pool({"budgets": [{"nodes": nodes}]}))

    assert [(p.severity, p.path) for p in found] == [("error", ("spec", "disruption", "budgets", 0, "nodes"))]


@pytest.mark.parametrize("nodes", REFUSED)
def test_refused_amounts_block_and_say_so(nodes: str) -> None:
    """In a stored pool such a budget is 0 for what it names, and nothing else."""
    pool = pool_budgets(node_pool({"budgets": [{"nodes": nodes, "reasons": ["Drifted"]}, {"nodes": "7"}]}))

    assert limits(pool, 0, 100) == {"U": 7, "E": 7, "D": 0, "X": 7}
    assert pool.budgets[0].failure


def test_the_largest_count_is_taken() -> None:
    """2147483647 is the largest count that a budget can have."""
    found = judge(node_pool({"budgets": [{"nodes": "2147483647"}]}))

    assert found == []
