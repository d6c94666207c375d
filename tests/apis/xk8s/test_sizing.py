"""How many chunks a buffer has: the larger of count and share, capped by limits, in exact numbers."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.apis.core.pods import PodSpec
from springtide.apis.core.resources import pod_requests
from springtide.apis.xk8s.buffers import BufferSizeError, chunk_count
from springtide.quantity import Quantity

INT32_MAX = 2**31 - 1
UNDEFINED = "replicas, percentage and limits are not defined"
UNMATCHED = "resources in configured limits not found in the pod template"

GPU = "nvidia.com/gpu"
SMALL = {"memory": "4Gi", "cpu": "100m"}
LARGE = {GPU: "4", "memory": "16Gi", "cpu": "1"}


def quantities(listed: dict[str, str] | None) -> dict[str, Quantity] | None:
    return None if listed is None else {name: Quantity.parse(text) for name, text in listed.items()}


@pytest.mark.parametrize(
    ("replicas", "percentage", "target", "limits", "expected"),
    [
        pytest.param(5, None, None, None, 5, id="replicas"),
        pytest.param(None, 200, 10, None, 20, id="percentage"),
        pytest.param(25, 200, 10, None, 25, id="replicas-above-percentage"),
        pytest.param(15, 200, 10, None, 20, id="percentage-above-replicas"),
        pytest.param(15, None, None, {"cpu": "20"}, 15, id="replicas-within-limits"),
        pytest.param(None, 250, 10, {"cpu": "20"}, 20, id="percentage-cut-by-limits"),
        pytest.param(None, 0, 10, None, 0, id="zero-percent"),
        pytest.param(None, 1, 1, None, 1, id="one-percent-of-one"),
        pytest.param(None, 50, 0, None, 0, id="target-of-none"),
        pytest.param(1, 10, 95, None, 10, id="ten-percent-at-least-one"),
        pytest.param(1, 10, 3, None, 1, id="at-least-one"),
        pytest.param(INT32_MAX, None, None, None, INT32_MAX, id="largest-count"),
        pytest.param(None, 100_000, 100_000, None, 100_000_000, id="product-does-not-wrap"),
        pytest.param(None, INT32_MAX, INT32_MAX, None, INT32_MAX, id="clamped-to-32-bits"),
        pytest.param(3, 200, None, None, 3, id="share-of-unknown-target-is-left-out"),
    ],
)
def test_counts_with_one_cpu_each(
    replicas: int | None, percentage: int | None, target: int | None, limits: dict[str, str] | None, expected: int
) -> None:
    """The sizing table, with chunks that ask for one CPU."""
    actual = chunk_count(
        replicas=replicas,
        percentage=percentage,
        target_replicas=target,
        limits=quantities(limits),
        requests={"cpu": Quantity.parse("1")},
    )

    assert expected == actual


@pytest.mark.parametrize(
    ("percentage", "target"),
    [pytest.param(None, None, id="nothing-set"), pytest.param(200, None, id="percentage-of-unknown-target")],
)
def test_nothing_says_a_size(percentage: int | None, target: int | None) -> None:
    """A buffer without any size that counts has the message that its condition shows."""
    with pytest.raises(BufferSizeError, match=UNDEFINED):
        chunk_count(percentage=percentage, target_replicas=target)


@pytest.mark.parametrize(
    ("requests", "limits", "replicas", "expected"),
    [
        pytest.param(SMALL, {"memory": "5Gi", "cpu": "200m"}, None, 1, id="limits-decide"),
        pytest.param(SMALL, {"memory": "9Gi", "cpu": "200m"}, 3, 2, id="replicas-cut-by-limits"),
        pytest.param(LARGE, {GPU: "10", "memory": "100Gi", "cpu": "5"}, 5, 2, id="smallest-limit-decides"),
        pytest.param(LARGE, {GPU: "2", "memory": "100Gi", "cpu": "5"}, 5, 0, id="no-chunk-fits"),
        pytest.param({"cpu": "3"}, {"cpu": "10"}, None, 3, id="fraction-rounded-down"),
        pytest.param({"cpu": "8"}, {"memory": "5120Mi", "cpu": "40"}, None, 5, id="other-resources-limit-nothing"),
        pytest.param({"cpu": "1", "memory": "0"}, {"cpu": "4", "memory": "1"}, None, 4, id="request-of-zero"),
        pytest.param({"cpu": "1", "memory": "1"}, {"cpu": "4", "memory": "-1"}, None, 4, id="negative-limit-skipped"),
    ],
)
def test_limits_hold(requests: dict[str, str], limits: dict[str, str], replicas: int | None, expected: int) -> None:
    """The limits table: as many chunks as fit, or as many as are wanted if that is less."""
    actual = chunk_count(replicas=replicas, limits=quantities(limits), requests=quantities(requests))

    assert expected == actual


@pytest.mark.parametrize(
    ("requests", "limits", "replicas"),
    [
        pytest.param(SMALL, {GPU: "100m"}, 3, id="limit-of-another-resource"),
        pytest.param({"cpu": "8"}, {"mem": "5120Mi", "cpi": "40"}, None, id="misspelt-limits"),
        pytest.param({"cpu": "1"}, {"cpu": "-1"}, 2, id="nothing-but-negative"),
    ],
)
def test_limits_of_something_else(requests: dict[str, str], limits: dict[str, str], replicas: int | None) -> None:
    """Limits that name nothing that a chunk asks for are an error, even beside a count."""
    with pytest.raises(BufferSizeError, match=UNMATCHED):
        chunk_count(replicas=replicas, limits=quantities(limits), requests=quantities(requests))


def container(name: str, cpu: str, **more: str) -> dict[str, object]:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}


SIDECAR = container("side", "500m", restartPolicy="Always")


@pytest.mark.parametrize(
    ("init", "limit", "each", "expected"),
    [
        pytest.param([container("i", "4")], "8", 4000, 2, id="init-container-alone"),
        pytest.param([SIDECAR, container("i", "4")], "9", 4500, 2, id="init-container-beside-sidecar"),
        pytest.param([container("i", "4"), SIDECAR], "8", 4000, 2, id="init-container-before-sidecar"),
    ],
)
def test_limits_count_whole_pods(init: list[dict[str, object]], limit: str, each: int, expected: int) -> None:
    """A chunk asks for what its pod needs at its most demanding moment."""
    pod = msgspec.convert({"containers": [container("main", "1")], "initContainers": init}, PodSpec)
    requests = pod_requests(pod)

    assert each == requests["cpu"].milli
    assert expected == chunk_count(limits={"cpu": Quantity.parse(limit)}, requests=requests)


sizes = st.none() | st.integers(0, INT32_MAX)


@given(replicas=sizes, percentage=sizes, target=sizes, limit=st.integers(0, 10**15), request_=st.integers(1, 10**9))
def test_agrees_with_fractions(
    replicas: int | None, percentage: int | None, target: int | None, limit: int, request_: int
) -> None:
    """The formula, word for word, in fractions."""
    base = [] if replicas is None else [replicas]
    if percentage is not None and target is not None:
        base.append(ceil(Fraction(percentage, 100) * target))
    held = floor(Fraction(limit, request_))
    expected = min(held, max(base)) if base else held

    actual = chunk_count(
        replicas=replicas,
        percentage=percentage,
        target_replicas=target,
        limits={"cpu": Quantity.parse(f"{limit}m")},
        requests={"cpu": Quantity.parse(f"{request_}m")},
    )

    assert min(expected, INT32_MAX) == actual
