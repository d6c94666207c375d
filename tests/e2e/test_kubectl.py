"""One session with kubectl, two clusters: the embedded one answers as the real one does, word for word."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.e2e.assets import Assets
from tests.e2e.control_plane import ControlPlane
from tests.e2e.session import SESSION, Answer, Step, play
from tests.e2e.simulated_kubelets import machines
from tests.e2e.springtide_process import springtide, started
from tests.e2e.waiting import in_background

Answers = Mapping[str, Answer]


@pytest.fixture(scope="module")
def real(plane: ControlPlane, crds: None, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Play the session to a real cluster, with machines."""
    folder = tmp_path_factory.mktemp("real")
    with in_background(lambda: machines(plane)):
        return {step.name: play(plane.assets.path("kubectl"), plane.admin, folder, step) for step in SESSION}


@pytest.fixture(scope="module")
def embedded(assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Play the session to `springtide up`."""
    folder = tmp_path_factory.mktemp("embedded")
    kubeconfig = folder / "kubeconfig"
    up = springtide("up", folder, "up", "--port", "0", "--kubeconfig", kubeconfig)
    with started(up):
        up.wait_until("ready", kubeconfig.exists)
        return {step.name: play(assets.path("kubectl"), kubeconfig, folder / "home", step) for step in SESSION}


@pytest.mark.parametrize("step", SESSION, ids=lambda step: step.name.replace(" ", "-"))
def test_kubectl_output_matches_the_real_api_server(real: Answers, embedded: Answers, step: Step) -> None:
    assert embedded[step.name] == real[step.name]


def test_every_session_command_succeeds(real: Answers) -> None:
    """Else two clusters could agree that nothing works."""
    failed = {name for name, answer in real.items() if answer.code}

    assert failed == {
        "it is there already",
        "a difference is shown",
        "another manager is refused",
        "a test fails",
        "it is not there",
        "an unknown field is refused",
        "an invalid object is refused",
        "an unknown kind is refused",
        "an unknown selector is refused",
        "an invalid calendar is refused",
        "it is gone",
    }
