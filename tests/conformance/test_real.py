"""A kube-apiserver still answers as it did when its answers were recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.conformance.answers import differences, recorded
from tests.conformance.case import Case, all_cases
from tests.conformance.servers import case_runner
from tests.conformance.session import Object
from tests.conformance.wire import Endpoint
from tests.e2e.assets import Assets
from tests.e2e.control_plane import running

pytestmark = pytest.mark.e2e

_RunCase = Callable[[Case], list[Object]]


@pytest.fixture(scope="module", params=[False, True], ids=["server alone", "with controllers"])
def server(
    request: pytest.FixtureRequest, assets: Assets, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[bool, _RunCase]]:
    """Run a control plane of its own, because other clients would show in the answers."""
    controllers = bool(request.param)
    with (
        running(assets, tmp_path_factory.mktemp("conformance"), controllers=controllers) as plane,
        case_runner(Endpoint(plane.url, plane.token)) as played,
    ):
        yield controllers, played


def test_answers_as_recorded(server: tuple[bool, _RunCase]) -> None:
    """One test for all cases: a control plane that differs differs in many places."""
    controllers, played = server
    changed: dict[str, str] = {}
    for case in all_cases():
        if case.controllers == controllers:
            found = differences(recorded(case.area)[case.name], played(case))
            if text := "\n".join(map(str, found)):
                changed[case.id] = text

    assert changed == {}
