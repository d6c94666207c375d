"""Data for scripts, written in pieces: the same text as written at once, and no more in memory than a piece."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from springtide.apis.forecast import ForecastQuery, to_plain
from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import LoadedObject, forecast_of, load
from springtide.cli.console import as_data, data_pieces
from springtide.cli.pictures.ics import render_ics

START = 1_780_617_600
DAY = 24 * 60 * 60
EVERY_MINUTE = """
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata: {name: every-minute}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  rules: [{name: tick, schedule: "* * * * *", targetReplicas: 3}]
"""


def lazily(value: Any) -> Any:
    """Replace the lists of mappings in a value by iterators."""
    if isinstance(value, dict):
        return {key: lazily(item) for key, item in value.items()}
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return iter([lazily(item) for item in value])
    return value


@pytest.mark.parametrize("output", ["json", "yaml"])
@pytest.mark.parametrize(
    "value",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"objects": []}, id="no-items"),
        pytest.param({"objects": [{"name": "a", "lanes": []}]}, id="an-item-without-items"),
        pytest.param({"objects": [{"a": n, "b": {"c": [1, "x"]}} for n in range(1_234)]}, id="more-than-a-batch"),
        pytest.param({"a": 1, "rows": [{"x": n} for n in range(500)], "z": None}, id="exactly-a-batch"),
        pytest.param(
            {"objects": [{"lanes": [{"changes": [{"at": 1}, {"at": 2}]}, {"changes": []}], "problems": [1]}] * 2},
            id="nested",
        ),
        pytest.param({"rows": [{"a": 1}, {"b": [{"c": 1}]}, {"d": 2}, {"e": [{}]}]}, id="batches-between-nested-items"),
        pytest.param({"rows": [{"text": "a\nb\u202e\x1b\u0085 ]}\"' #: x"}, {"": "-"}]}, id="texts-with-line-breaks"),
    ],
)
def test_pieces_are_the_text_that_is_written_at_once(value: dict[str, Any], output: str) -> None:
    assert "".join(data_pieces(lazily(value), output)) == as_data(value, output)


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_the_first_pieces_of_an_endless_list_are_written(output: str) -> None:
    rows = ({"row": number} for number in count())
    text = "".join(islice(data_pieces({"rows": rows}, output), 4))
    assert "row" in text
    assert next(rows)["row"] < 10_000, "later rows are not computed yet"


def forecast_every_minute(days: int) -> Any:
    (loaded,) = load(EVERY_MINUTE, ValidationContext(now=START))
    assert isinstance(loaded, LoadedObject)
    return forecast_of(loaded, ForecastQuery(START, START + days * DAY))


def json_of(days: int) -> Iterator[str]:
    return data_pieces({"objects": iter([to_plain(forecast_every_minute(days))])}, "json")


def yaml_of(days: int) -> Iterator[str]:
    return data_pieces({"objects": iter([to_plain(forecast_every_minute(days))])}, "yaml")


def calendar_of(days: int) -> Iterator[str]:
    return render_ics([forecast_every_minute(days)])


def peak_of(pieces: Iterator[str]) -> int:
    tracemalloc.start()
    try:
        assert sum(map(len, pieces)) > 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("write", [json_of, yaml_of, calendar_of], ids=["json", "yaml", "ics"])
def test_the_memory_does_not_grow_with_the_length_of_a_forecast(write: Callable[[int], Iterator[str]]) -> None:
    peak_of(write(1))  # fills caches
    short, long = peak_of(write(3)), peak_of(write(12))
    assert long < short * 1.5


def test_every_firing_of_a_busy_rule_is_written() -> None:
    (written,) = json.loads("".join(json_of(3)))["objects"]
    changes = written["lanes"][0]["changes"]
    assert len(changes) == 3 * 24 * 60
    assert changes[-1] == {
        "at": "2026-06-08T00:00:00Z",
        "value": {"replicas": 3},
        "because": "rule `tick` fires (00:00 UTC)",
    }


def test_a_reader_that_stops_ends_the_command_quietly(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(EVERY_MINUTE, encoding="utf-8")
    command = [
        sys.executable,
        "-c",
        "from springtide.cli import main; main()",
        "preview",
        str(file),
        "--for",
        "90d",
        "-o",
        "json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10) == b'{\n  "objec'
        process.stdout.close()
        assert process.stderr.read() == b""
