"""The manifests of the CronFederatedHPA proposal: as they were written, and as they are repaired."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.apis.judging import CONTEXT, loaded, shown

from springtide.apis.karmada import fixes
from springtide.apis.objects import LoadedObject, load

DESIGNS = Path(__file__).parents[2] / "fixtures" / "designs"
NAMES = ["error spec.rules[0].ruleName", "error spec.rules[1].ruleName"]


def read(name: str) -> LoadedObject:
    (found,) = load((DESIGNS / name).read_text(), CONTEXT)
    assert isinstance(found, LoadedObject)
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("cron-federated-hpa-1.yaml", [*NAMES, "error spec.scaleTargetRef.apiVersion"], id="workload"),
        pytest.param("cron-federated-hpa-2.yaml", NAMES, id="bounds"),
        pytest.param("cron-federated-hpa-3.yaml", NAMES, id="zones"),
    ],
)
def test_as_written_and_repaired(name: str, expected: list[str]) -> None:
    written = read(name)

    assert expected == shown(written.problems)
    assert loaded(fixes(written.value).value).problems == ()
