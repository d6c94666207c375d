"""Defaulting: the canonical form, by the smallest patch, of what is ours."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.apis.karpenter.samples import node_pool
from tests.cluster.admission.asking import defaulted, foreign_pool

BUDGETS = ("spec", "disruption", "budgets")


def budgets_of(item: Any) -> Any:
    for step in BUDGETS:
        item = item[step]
    return item


@pytest.mark.parametrize(
    ("written", "stored", "operations"),
    [
        pytest.param([{"nodes": 5}], [{"nodes": "5"}], 1, id="a count"),
        pytest.param([{"nodes": "5", "reasons": ["drifted"]}], [{"nodes": "5", "reasons": ["Drifted"]}], 1, id="case"),
        pytest.param([{"nodes": "5", "reasons": "empty"}], [{"nodes": "5", "reasons": ["Empty"]}], 1, id="one reason"),
        pytest.param(
            [{"nodes": "5", "reason": "empty"}], [{"nodes": "5", "reasons": ["Empty"]}], 2, id="under another name"
        ),
        pytest.param([{"nodes": "1"}, {"nodes": 2}], [{"nodes": "1"}, {"nodes": "2"}], 1, id="only what is wrong"),
        pytest.param([{"nodes": "5"}], [{"nodes": "5"}], 0, id="nothing"),
        pytest.param([{"nodes": True}], [{"nodes": True}], 0, id="what means nothing"),
    ],
)
def test_what_is_read_leniently_is_stored_canonically(written: Any, stored: Any, operations: int) -> None:
    """With as few operations as it takes, and a warning for each thing that was mended."""
    made, response = defaulted(node_pool({"budgets": written}))

    assert stored == budgets_of(made)
    patch = json.loads(base64.b64decode(response.get("patch", "W10=")))
    assert operations == len(patch)
    assert bool(operations) == bool(response.get("warnings"))


def test_it_is_done_once() -> None:
    """What was mended needs no mending: the API server may ask again."""
    made, _ = defaulted(node_pool({"budgets": [{"nodes": 5, "reason": "drift"}], "expireAfter": "1h"}))

    again, response = defaulted(made)

    assert made == again
    assert response.keys() == {"uid", "allowed"}


def test_objects_of_others_stay_as_they_are() -> None:
    assert defaulted(foreign_pool({"budgets": [{"nodes": 5}]}))[1].keys() == {"uid", "allowed"}


def test_a_change_of_labels_mends_nothing() -> None:
    """Whoever adds a label has not asked for another spec."""
    old = node_pool({"budgets": [{"nodes": 5}]})
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}

    assert defaulted(labelled, old)[1].keys() == {"uid", "allowed"}


def test_the_version_stays() -> None:
    """Between versions the conversion webhook is asked, not this one."""
    pool = {**node_pool({"budgets": [{"nodes": 5}]}), "apiVersion": "karpenter.sh/v1beta1"}

    made, _ = defaulted(pool)

    assert (made["apiVersion"], budgets_of(made)) == ("karpenter.sh/v1beta1", [{"nodes": "5"}])
