"""Our CRDs and examples before a real server: it takes them as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.assets import Assets
from tests.e2e.control_plane import ControlPlane, running
from tests.e2e.objects import install_crds, paths_of, read, wait_served

from springtide.apis.crds import Flavour, all_crds, crd_files

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


def check_served(plane: ControlPlane, flavour: Flavour) -> None:
    """See that every CRD is accepted without a complaint, and exactly the versions served that it says."""
    wait_served(plane, flavour)
    for definition in all_crds(flavour):
        name = definition["metadata"]["name"]
        found = read(plane, "crd", name)
        assert found is not None
        reported = {entry["type"]: entry["status"] for entry in found["status"]["conditions"]}

        assert reported == {"NamesAccepted": "True", "Established": "True"}, name
        for path, served in paths_of(definition).items():
            assert plane.answers(path) is served, path


def test_our_crds_are_accepted_and_served(plane: ControlPlane, crds: None) -> None:
    check_served(plane, Flavour.EXTENDED)


def test_the_upstream_crds_are_accepted_and_replaced_by_the_extended_ones(assets: Assets, tmp_path: Path) -> None:
    """A user who replaces an upstream CRD applies ours on top; in a cluster of its own, as the names are the same."""
    with running(assets, tmp_path, controllers=False) as plane:
        install_crds(plane, Flavour.STOCK)
        check_served(plane, Flavour.STOCK)
        install_crds(plane, Flavour.EXTENDED)
        check_served(plane, Flavour.EXTENDED)
        ours = "---\n".join(crd_files(Flavour.EXTENDED).values())
        difference = plane.kubectl("diff", "--server-side", "-f", "-", text=ours, check=False)

        assert (difference.returncode, difference.stdout) == (0, "")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_accepted(plane: ControlPlane, crds: None, example: Path) -> None:
    """Every field is known to the server: a warning would be about one that is not."""
    plane.kubectl("create", "namespace", "my-namespace", check=False)
    done = plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", example)

    assert done.stderr == ""
