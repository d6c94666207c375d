"""The manifests of the designs that Springtide is built on, as printed: every mistake is found and corrected."""

from __future__ import annotations

from pathlib import Path

import pytest

from springtide.apis.canonical import canonical_text
from springtide.apis.kinds import ValidationContext
from springtide.assembly.manifests import CheckedManifests, ManifestSource, check_sources

DESIGNS = Path(__file__).parent / "fixtures" / "designs"
NOT_AN_OBJECT = ["error 1 apiVersion", "error 1 kind"]
TARGET_ELSEWHERE = "warning 9 spec.scaleTargetRef.name"

EXPECTED = {
    "capacity-buffer-1": [
        "error 1 apiversion",
        "error 7",  # scalableRef has no colon
        "warning 10 spec.scalableRef.name",
    ],
    "capacity-buffer-2": [
        "error 9 template.spec.containers[0].image",
        "error 15 template.spec.containers[0].resources.nodeSelector",
        "error 19",  # no --- between the two objects
        "error 19 apiversion",
        "error 26 spec.limits.mem",
        "error 27 spec.limits.cpi",
    ],
    "cron-federated-hpa-1": [
        "error 7 spec.scaleTargetRef.apiVersion",
        "error 11 spec.rules[0].ruleName",
        "error 14 spec.rules[1].ruleName",
    ],
    "cron-federated-hpa-2": [
        TARGET_ELSEWHERE,
        "error 11 spec.rules[0].ruleName",
        "error 14 spec.rules[1].ruleName",
    ],
    "cron-federated-hpa-3": [
        TARGET_ELSEWHERE,
        "error 11 spec.rules[0].ruleName",
        "error 15 spec.rules[1].ruleName",
    ],
    "disruption-reasons-1": NOT_AN_OBJECT,
    "disruption-reasons-2": NOT_AN_OBJECT,
    "disruption-reasons-3": NOT_AN_OBJECT,
    "disruption-reasons-4": [
        "warning 5 spec.template",
        "warning 8 spec.disruption.budgets[0].schedule",
        "warning 9 spec.disruption.budgets[0].reason",
        "warning 9 spec.disruption.budgets[0].reason[0]",
        "warning 9 spec.disruption.budgets[0].reason[1]",
        "warning 10 spec.disruption.budgets[0].nodes",
        "warning 12 spec.disruption.budgets[1].nodes",
        "warning 13 spec.disruption.budgets[1].schedule",
    ],
    "disruption-reasons-5": [
        "warning 5 spec.template",
        "warning 8 spec.disruption.budgets[0].schedule",
        "warning 9 spec.disruption.budgets[0].reason",
        "warning 9 spec.disruption.budgets[0].reason",
        "warning 10 spec.disruption.budgets[0].nodes",
        "warning 12 spec.disruption.budgets[1].nodes",
        "warning 13 spec.disruption.budgets[1].schedule",
    ],
    "disruption-reasons-6": [
        "warning 5 spec.template",
        "warning 7 spec.disruption.defaults",
        "warning 13 spec.disruption.consolidation.consolidationPolicy",
        "warning 14 spec.disruption.consolidation.disruptAfter",
        "warning 15 spec.disruption.drift",
        "warning 24 spec.disruption.drift.budgets[2].schedule",
    ],
    "provisioning-request-1": NOT_AN_OBJECT,
    "scheduled-capacity-1": [
        "error 10",  # comments that begin with //
        "error 18",
        "error 26",
        "warning 27 spec.schedule.behaviors[2]",
    ],
    "scheduled-capacity-2": [
        "error 4 metadata.name",
        "error 10",
        "error 11",
        "error 14 spec.schedule.behaviors[0].start.weekdays",
        "error 16 spec.schedule.behaviors[0].start.months",
        "error 18 spec.schedule.behaviors[0].end.weekdays",
        "error 20 spec.schedule.behaviors[0].end.months",
        "error 21",
        "error 22",
        "warning 24 spec.schedule.behaviors[1].start",
    ],
}

LEFT_AFTER_CONVERSION = {
    "capacity-buffer-2": [
        "error 9 template.spec.containers[0].image",
        "error 15 template.spec.containers[0].resources.nodeSelector",
    ],
    "disruption-reasons-1": NOT_AN_OBJECT,
    "disruption-reasons-2": NOT_AN_OBJECT,
    "disruption-reasons-3": NOT_AN_OBJECT,
    "disruption-reasons-4": ["error 7 spec.template"],
    "disruption-reasons-5": ["error 7 spec.template"],
    "disruption-reasons-6": ["error 7 spec.template"],
    "provisioning-request-1": NOT_AN_OBJECT,
    "scheduled-capacity-2": ["error 4 metadata.name"],
}
"""Mistakes with several possible corrections, or none that can be guessed, which remain errors."""


def text_of(name: str) -> str:
    return (DESIGNS / f"{name}.yaml").read_text(encoding="utf-8")


def checked(text: str) -> CheckedManifests:
    return check_sources([ManifestSource("design.yaml", text)], [], ValidationContext(now=1_780_000_000))


def shown(found: CheckedManifests) -> list[str]:
    return [f"{problem.severity} {problem.line} {problem.path}".rstrip() for problem in found.problems]


def test_every_design_is_here() -> None:
    assert sorted(path.stem for path in DESIGNS.glob("*.yaml")) == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_mistake_is_found(name: str) -> None:
    found = checked(text_of(name))
    assert shown(found) == EXPECTED[name]
    assert all(problem.hint for problem in found.problems if problem.severity == "error")


@pytest.mark.parametrize("name", EXPECTED)
def test_conversion_corrects_mistakes_with_one_possible_correction(name: str) -> None:
    converted = canonical_text(text_of(name)).text
    errors = [text for text in shown(checked(converted)) if text.startswith("error")]
    assert errors == LEFT_AFTER_CONVERSION.get(name, [])


@pytest.mark.parametrize("name", EXPECTED)
def test_conversion_keeps_comments(name: str) -> None:
    def comments(text: str) -> list[str]:
        return [line.strip().lstrip("#/ ") for line in text.splitlines() if line.strip().startswith(("#", "//"))]

    assert comments(canonical_text(text_of(name)).text) == comments(text_of(name))
