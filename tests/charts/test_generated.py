"""What stands in the chart is what the code says, and nobody has more rights than his code declares."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.cluster.test_roles import single_rights
from tools.chart import FILES, bearers, chart_files

from springtide.cluster.controller import Permission
from springtide.controllers import CONTROLLERS


def test_the_chart_holds_what_the_code_declares() -> None:
    """`make chart` writes it anew."""
    written = {path.relative_to(FILES).as_posix(): path.read_text(encoding="utf-8") for path in FILES.rglob("*.yaml")}
    assert written == chart_files()


@pytest.mark.parametrize("path", bearers())
def test_roles_hold_every_permission_and_nothing_else(path: str) -> None:
    rules = yaml.safe_load((FILES / path).read_text(encoding="utf-8"))
    held = [right for place in ("cluster", "namespace") for rule in rules[place] for right in _rights(rule, place)]
    assert len(held) == len(set(held))
    declared: tuple[Permission, ...] = bearers()[path]
    assert set(held) == {right for permission in declared for right in single_rights(permission)}


def _rights(rule: dict[str, list[str]], place: str) -> list[tuple[Any, ...]]:
    assert set(rule) <= {"apiGroups", "resources", "resourceNames", "verbs"}
    return [
        (place == "namespace", group, resource, verb, name)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", ["(any)"])
    ]


def test_every_controller_has_a_role_of_its_own() -> None:
    """The chart knows controllers by these files: `controllers` in its values is checked against them."""
    files = sorted(path.stem for path in (FILES / "roles" / "controllers").glob("*.yaml"))
    assert files == sorted(kind.name for kind in CONTROLLERS)


def test_no_rule_is_for_everything() -> None:
    """Neither verbs, nor groups, nor resources are ever wildcards; and nobody reads the Secrets of others."""
    for path in bearers():
        text = (FILES / path).read_text(encoding="utf-8")
        assert "*" not in text
        for rule in yaml.safe_load(text)["cluster"]:
            assert "secrets" not in rule["resources"], path


def test_webhooks_may_change_only_what_bears_their_names() -> None:
    rules = yaml.safe_load((FILES / "roles" / "webhooks.yaml").read_text(encoding="utf-8"))
    for rule in [*rules["cluster"], *rules["namespace"]]:
        assert rule.get("resourceNames") or rule["verbs"] == ["create"], rule
