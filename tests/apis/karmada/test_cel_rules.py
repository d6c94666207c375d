"""The rules that the API server enforces say the same as the checks in Python."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from tests.apis.crd_server import admit
from tests.apis.karmada.objects import FEDERATED, cron, rule
from tests.apis.karmada.test_federated import federated
from tests.apis.manifests import problems_of

from springtide.apis.crds import Flavour
from springtide.apis.problems import has_errors

PARTS: tuple[dict[str, Any], ...] = (
    {"schedule": "30 8 * * *"},
    {"at": "2026-11-27T06:00:00Z"},
    {"targetMinReplicas": 2},
    {"targetMaxReplicas": 3},
)


@pytest.mark.parametrize("chosen", list(product((False, True), repeat=len(PARTS))))
def test_rules(chosen: tuple[bool, ...]) -> None:
    """A rule fires once or again and again, and sets something."""
    fields = {key: value for part, there in zip(PARTS, chosen, strict=True) if there for key, value in part.items()}
    value = cron({"name": "a", **fields}, target=FEDERATED)

    assert bool(admit(value)) == has_errors(problems_of(value))


@pytest.mark.parametrize("minimum", [1, 10, 11])
def test_bounds(minimum: int) -> None:
    value = federated(minReplicas=minimum)

    assert bool(admit(value)) == has_errors(problems_of(value))


def test_stock_crd_takes_what_upstream_takes() -> None:
    """Stock CRDs have none of our rules and fields."""
    assert admit(cron(rule(targetReplicas=1)), Flavour.STOCK) == []
    assert admit(cron(rule(targetReplicas=1, maxDelaySeconds=60)), Flavour.STOCK) != []
