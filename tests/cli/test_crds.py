"""`springtide crds`: the CRDs in both flavours, as a stream, as a list and as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from springtide.apis.crds import Flavour, all_crds
from springtide.apis.yaml import Document, read


@pytest.mark.parametrize("flavour", list(Flavour))
def test_a_stream_of_documents(run: Run, flavour: Flavour) -> None:
    documents = read(run("crds", "--flavour", flavour).stdout)
    assert [found.value for found in documents if isinstance(found, Document)] == all_crds(flavour)


def test_a_list_in_json(run: Run) -> None:
    value = json.loads(run("crds", "-o", "json").stdout)
    assert (value["kind"], value["items"]) == ("List", all_crds(Flavour.EXTENDED))


def test_a_file_for_each(run: Run, tmp_path: Path) -> None:
    result = run("crds", "--into", tmp_path / "crds")
    assert "13 CRDs written to" in result.stderr
    assert len(list((tmp_path / "crds").glob("*.yaml"))) == 13
