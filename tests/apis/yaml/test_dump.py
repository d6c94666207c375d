"""Dumped values are parsed back as themselves, by YAML 1.1 parsers too, and have the usual style of manifests."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from tests.apis.yaml.trees import TEMPTING_TEXTS, values

from springtide.apis.yaml import Document, dump, read, same
from springtide.apis.yaml.dump import flow_text


def test_style_of_a_manifest() -> None:
    manifest = {
        "status": {},
        "spec": {
            "rules": [{"name": "up", "schedule": "* * * * *", "args": ["--x=1", "-v"]}, {"name": "down", "empty": []}],
            "country": "NO",
            "at": "22:00",
            "day": "2026-12-24",
            "cpu": "500m",
            "image": "nginx:1.27",
            "script": "one\n  two\n",
            "last": "a\nb",
            "nested": [[1, 2], [{"a": None}]],
            "ratio": 1.5,
            "large": 1e22,
        },
        "zebra": True,
        "metadata": {"name": "x", "labels": {"a/b": "1"}},
        "kind": "K",
        "apiVersion": "v1",
    }

    assert dump(manifest) == (
        "apiVersion: v1\n"
        "kind: K\n"
        "metadata:\n"
        "  name: x\n"
        "  labels:\n"
        '    a/b: "1"\n'
        "spec:\n"
        "  rules:\n"
        "  - name: up\n"
        '    schedule: "* * * * *"\n'
        "    args:\n"
        "    - --x=1\n"
        "    - -v\n"
        "  - name: down\n"
        "    empty: []\n"
        '  country: "NO"\n'
        '  at: "22:00"\n'
        '  day: "2026-12-24"\n'
        "  cpu: 500m\n"
        "  image: nginx:1.27\n"
        "  script: |\n"
        "    one\n"
        "      two\n"
        "  last: |-\n"
        "    a\n"
        "    b\n"
        "  nested:\n"
        "  - - 1\n"
        "    - 2\n"
        "  - - a: null\n"
        "  ratio: 1.5\n"
        "  large: 1.0e+22\n"
        "status: {}\n"
        "zebra: true\n"
    )


def reads_as(text: str, value: Any) -> bool:
    """Return whether `read` and a strict YAML 1.1 parser both give this value, without a problem."""
    if value is None:
        return not read(text)
    (document,) = read(text)
    assert isinstance(document, Document)
    return same(document.value, value) and not document.problems and same(yaml.safe_load(text), value)


@given(values)
def test_every_dumped_value_is_parsed_back(value: Any) -> None:
    assert reads_as(dump(value), value)


@given(values)
def test_every_value_on_one_line_is_parsed_back(value: Any) -> None:
    assert reads_as(flow_text(value), value)


@pytest.mark.parametrize("text", TEMPTING_TEXTS)
def test_ambiguous_strings_stay_strings(text: str) -> None:
    for value in ({"k": text}, {text: "v"}, [text], {"a": [{"k": text}, text]}):
        assert reads_as(dump(value), value)
        assert reads_as(flow_text(value), value)


def test_a_key_longer_than_parsers_allow_on_one_line() -> None:
    value = {"a": {"k" * 2000: [1], "b" * 1001: 2}}

    assert reads_as(dump(value), value)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_infinite_numbers_are_rejected(number: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        dump({"a": number})
