"""Which queries read which producer."""

from __future__ import annotations

import pytest
from tests.controllers.explained import PEAK, loaded

from springtide.apis.scheduled.cross_object_checks import producers_named_in, query_is_only, query_reads
from springtide.apis.scheduled.producer import MetricsProducer


@pytest.mark.parametrize(
    ("query", "mentioned", "alone"),
    [
        pytest.param('karpenter_scheduled_capacity{name="peak"}', True, True, id="by name"),
        pytest.param("karpenter_scheduled_replicas_value{name='peak', namespace='shop'}", True, True, id="both labels"),
        pytest.param(' karpenter_scheduled_capacity { name = "peak" } ', True, True, id="spaces"),
        pytest.param("karpenter_scheduled_capacity", True, False, id="no name"),
        pytest.param('karpenter_scheduled_capacity{name=~"pe.*"}', True, False, id="a pattern"),
        pytest.param('karpenter_scheduled_capacity{name=~"pe"}', False, False, id="a pattern matches as a whole"),
        pytest.param('karpenter_scheduled_capacity{name!="peak"}', False, False, id="all others"),
        pytest.param('karpenter_scheduled_capacity{name!~"pe.k"}', False, False, id="all that do not match"),
        pytest.param('karpenter_scheduled_capacity{name="quiet"}', False, False, id="another name"),
        pytest.param('karpenter_scheduled_capacity{name="peak",namespace="x"}', False, False, id="another namespace"),
        pytest.param('karpenter_queue_length{name="peak"}', False, False, id="another metric"),
        pytest.param('my_karpenter_scheduled_capacity{name="peak"}', False, False, id="a longer name"),
        pytest.param('job:karpenter_scheduled_capacity{name="peak"}', False, False, id="a recording rule"),
        pytest.param('2 * karpenter_scheduled_capacity{name="peak"}', True, False, id="arithmetic"),
        pytest.param(
            'max(karpenter_queue_length{name="q}"} or karpenter_scheduled_capacity{name="peak"})',
            True,
            False,
            id="one of two",
        ),
        pytest.param(
            'karpenter_scheduled_capacity{name="quiet"} + karpenter_scheduled_capacity{name="peak"}',
            True,
            False,
            id="the second",
        ),
        pytest.param(r'karpenter_scheduled_capacity{name=~"\p"}', True, False, id="an invalid escape may match"),
        pytest.param('karpenter_scheduled_capacity{name=~"(p+)+x"}', False, False, id="a hostile pattern"),
        pytest.param('karpenter_scheduled_capacity{name=~"("}', True, False, id="an invalid pattern may match"),
        pytest.param(r'karpenter_scheduled_capacity{name="p\x65ak"}', True, True, id="a name with an escape"),
        pytest.param(r'karpenter_scheduled_capacity{name=~"\\pL+"}', True, False, id="a pattern with an escape"),
        pytest.param(r'karpenter_scheduled_capacity{name=~"pe\\.k"}', False, False, id="a pattern with a literal dot"),
        pytest.param("karpenter_scheduled_capacity{name=`peak`}", True, True, id="a raw string"),
        pytest.param(r"karpenter_scheduled_capacity{name=~`\pL+}?`}", True, False, id="a pattern in a raw string"),
        pytest.param('karpenter_scheduled_capacity{name="peak"} offset 1h', True, False, id="of another time"),
    ],
)
def test_which_queries_read_a_producer(query: str, mentioned: bool, alone: bool) -> None:
    producer = loaded(PEAK).view
    assert isinstance(producer, MetricsProducer)
    assert (query_reads(query, "shop", producer), query_is_only(query, "shop", producer)) == (mentioned, alone)


@pytest.mark.parametrize(
    ("query", "mentioned"),
    [
        pytest.param('karpenter_scheduled_capacity{name="peak"}', False, id="one's own namespace is meant"),
        pytest.param('karpenter_scheduled_capacity{name="peak",namespace="shop"}', True, id="another one is named"),
        pytest.param('karpenter_scheduled_capacity{namespace=~"sh.*"}', True, id="another one matches"),
    ],
)
def test_other_namespaces_must_be_named(query: str, mentioned: bool) -> None:
    producer = loaded(PEAK).view
    assert isinstance(producer, MetricsProducer)
    assert query_reads(query, "elsewhere", producer) is mentioned


@pytest.mark.parametrize(
    ("query", "named"),
    [
        pytest.param('karpenter_scheduled_capacity{name="peak"}', [("shop", "peak")], id="by name"),
        pytest.param(
            "max(karpenter_queue_length{name='q}'} or karpenter_reserved_capacity_cpu_reserved{name='pool'})",
            [("shop", "q}"), ("shop", "pool")],
            id="several",
        ),
        pytest.param('karpenter_queue_length{namespace="bank",name="jobs"}', [("bank", "jobs")], id="elsewhere"),
        pytest.param(r'karpenter_queue_length{name="jo\u0062s"}', [("shop", "jobs")], id="by name with an escape"),
        pytest.param(r'karpenter_queue_length{name="jobs\q"}', [], id="an invalid escape"),
        pytest.param("karpenter_queue_length{name=`jobs`}", [("shop", "jobs")], id="a raw string"),
        pytest.param('karpenter_queue_length{namespace=~".*",name="jobs"}', [], id="anywhere"),
        pytest.param('karpenter_queue_length{name=~"jobs"}', [], id="a pattern"),
        pytest.param('karpenter_queue_length{name!="jobs"}', [], id="all others"),
        pytest.param("karpenter_queue_length", [], id="any"),
        pytest.param('karpenter_nodes_total{name="node"}', [], id="metric-of-another-project"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_which_producers_are_named(query: str, named: list[tuple[str, str]]) -> None:
    assert list(producers_named_in(query, "shop")) == named
