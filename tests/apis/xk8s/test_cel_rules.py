"""The rules that the API server enforces say the same as the checks in Python."""

from __future__ import annotations

from itertools import product
from typing import Any

import msgspec
import pytest
from cel_expr_python import cel
from tests.apis.manifests import CONTEXT

from springtide.apis.kinds import CelRule
from springtide.apis.problems import has_errors
from springtide.apis.schema import schema_of
from springtide.apis.springtide.calendars import DateRange
from springtide.apis.xk8s.buffers import BufferWindow, CapacityBufferSpec
from springtide.apis.xk8s.provisioning import ProvisioningRequestSpec

PARTS: tuple[dict[str, Any], ...] = (
    {"podTemplateRef": {"name": "chunk"}},
    {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}},
    {"replicas": 1},
    {"percentage": 10},
    {"limits": {"cpu": 1}},
    {"dedicated": True},
    {"podSelector": {"matchLabels": {"app": "web"}}},
)


def chosen_parts(parts: tuple[dict[str, Any], ...], chosen: tuple[bool, ...]) -> dict[str, Any]:
    return {key: value for part, there in zip(parts, chosen, strict=True) if there for key, value in part.items()}


def holds(rule: CelRule, value: Any) -> bool:
    expression = cel.NewEnv(variables={"self": cel.Type.DYN}).compile(rule.rule)
    return bool(expression.eval(data={"self": value}).value())


@pytest.mark.parametrize("chosen", list(product((False, True), repeat=len(PARTS))))
def test_buffers_are_refused_by_the_server_as_by_us(chosen: tuple[bool, ...]) -> None:
    """Every combination of fields is rejected by a CEL rule exactly if Python finds an error."""
    spec = chosen_parts(PARTS, chosen)
    refused = not all(holds(rule, spec) for rule in CapacityBufferSpec.__rules__)

    found = msgspec.convert(spec, CapacityBufferSpec).problems(CONTEXT)

    assert refused == has_errors(found)


WINDOW_PARTS: tuple[dict[str, Any], ...] = (
    {"start": {"hours": 8}},
    {"end": {"hours": 18}},
    {"from": "2026-11-27T06:00:00Z"},
    {"until": "2026-11-27T20:00:00Z"},
)


@pytest.mark.parametrize("chosen", list(product((False, True), repeat=len(WINDOW_PARTS))))
def test_windows_are_refused_by_the_server_as_by_us(chosen: tuple[bool, ...]) -> None:
    """Python and CEL agree on every combination of window fields."""
    window = {
        key: value for part, there in zip(WINDOW_PARTS, chosen, strict=True) if there for key, value in part.items()
    }
    refused = not all(holds(rule, window) for rule in BufferWindow.__rules__)

    assert refused == has_errors(msgspec.convert(window, BufferWindow).problems(CONTEXT))


def test_ranges_of_days_are_refused_by_the_server_as_by_us() -> None:
    """Dates compare as texts."""
    days = ["2025-12-31", "2026-01-01", "2026-09-30", "2026-10-01"]
    for first, last in product(days, days):
        days_in_a_row = {"from": first, "until": last}
        refused = not all(holds(rule, days_in_a_row) for rule in DateRange.__rules__)

        assert refused == has_errors(msgspec.convert(days_in_a_row, DateRange).problems(CONTEXT))


def test_stock_rules_are_upstreams() -> None:
    """Only the two rules of the published CRD are in the flavour that others own."""
    stock = [rule.rule for rule in CapacityBufferSpec.__rules__ if not rule.extension]

    assert stock == [
        "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
        "!(has(self.podTemplateRef) && has(self.scalableRef))",
    ]


def test_requests_cannot_be_changed() -> None:
    """Every field of a request's spec is immutable."""
    rules = {
        field.name: [rule.rule for rule in field.schema.rules] for field in schema_of(ProvisioningRequestSpec).fields
    }

    assert rules == {name: ["self == oldSelf"] for name in ("podSets", "provisioningClassName", "parameters")}
