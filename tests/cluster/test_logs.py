"""The log format: text in a terminal, JSON everywhere else."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.manager_process import Process, StampController, stamp_controller
from tests.cluster.memory_cluster import START, MemoryCluster
from tests.logging_state import logging_kept

from springtide.cluster.controller import Result
from springtide.cluster.logs import LogFormat, configure, log_subject
from springtide.cluster.resources import Key
from springtide.simulator.virtual_time import VirtualClock, run


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Leave the logging of the process as it was."""
    with logging_kept():
        yield


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


def logged(stream: io.StringIO) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_lines() -> None:
    stream = io.StringIO()
    configure(stream)
    logging.getLogger("springtide.calendar").info("wrote %s", "it", extra={"attempts": 3, "node": "a b"})

    (record,) = logged(stream)
    assert list(record)[:4] == ["ts", "level", "logger", "controller"]
    stamp = record.pop("ts")
    assert len(stamp) == len("2026-01-05T00:00:00.000Z")
    assert stamp.endswith("Z")
    assert record == {
        "level": "info",
        "logger": "springtide.calendar",
        "controller": "calendar",
        "message": "wrote it",
        "attempts": 3,
        "node": "a b",
    }


@pytest.mark.usefixtures("plain")
def test_text_lines() -> None:
    stream = Terminal()
    configure(stream)
    with log_subject("Calendar days"):
        logging.getLogger("springtide.calendar").warning("wrote %s", "it", extra={"attempts": 3, "node": "a b"})

    line = stream.getvalue()
    assert line[24:] == ' WARNING calendar: wrote it object="Calendar days" attempts=3 node="a b"\n'


@pytest.mark.parametrize(
    ("stream", "wanted", "is_json"),
    [
        pytest.param(io.StringIO, LogFormat.AUTO, True, id="a file"),
        pytest.param(Terminal, LogFormat.AUTO, False, id="a terminal"),
        pytest.param(io.StringIO, LogFormat.TEXT, False, id="a file, as text"),
        pytest.param(Terminal, "json", True, id="a terminal, as JSON"),
    ],
)
def test_the_format_follows_the_stream_by_default(
    stream: type[io.StringIO], wanted: LogFormat | str, is_json: bool
) -> None:
    out = stream()
    configure(out, format=wanted)
    logging.getLogger("springtide.x").info("hello")
    assert out.getvalue().startswith("{") is is_json


@pytest.mark.parametrize(
    ("stream", "environment", "coloured"),
    [
        pytest.param(Terminal, {}, True, id="a terminal"),
        pytest.param(Terminal, {"NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param(Terminal, {"NO_COLOR": ""}, True, id="empty NO_COLOR"),
        pytest.param(Terminal, {"TERM": "dumb"}, False, id="a dumb terminal"),
        pytest.param(io.StringIO, {}, False, id="a file"),
    ],
)
def test_colours_are_for_terminals(
    stream: type[io.StringIO], environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out = stream()
    configure(out, format="text")
    logging.getLogger("springtide.x").error("hello")
    assert ("\x1b[" in out.getvalue()) is coloured


def test_json_has_the_stack_trace_in_one_field() -> None:
    stream = io.StringIO()
    configure(stream)
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("springtide.x").exception("it failed")

    (record,) = logged(stream)
    assert record["message"] == "it failed"
    assert record["error"].startswith("Traceback")
    assert record["error"].endswith("ValueError: broken")


@pytest.mark.usefixtures("plain")
def test_text_has_the_stack_trace_below_the_line() -> None:
    stream = Terminal()
    configure(stream)
    try:
        raise ValueError("broken\x1b[2J")
    except ValueError:
        logging.getLogger("springtide.x").exception("it failed")

    first, *below = stream.getvalue().splitlines()
    assert first.endswith("x: it failed")
    assert all(line.startswith("    ") for line in below)
    assert below[-1] == "    ValueError: broken\\x1b[2J"


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(
    ("message", "shown"),
    [
        pytest.param("a\nERROR forged", "a\\nERROR forged", id="a forged line"),
        pytest.param("a\x1b[31mb", "a\\x1b[31mb", id="an escape sequence"),
        pytest.param("a\x9b31mb", "a\\x9b31mb", id="an eight-bit escape sequence"),
        pytest.param("a\u2028b", "a\\u2028b", id="a separator of lines"),
        pytest.param("a\udcffb", "a\\udcffb", id="a lone surrogate"),
        pytest.param("grün ✓", "grün ✓", id="printable text"),
    ],
)
def test_messages_cannot_forge_lines(message: str, shown: str) -> None:
    """They quote text of servers and users; also as values of fields."""
    stream = Terminal()
    configure(stream)
    logging.getLogger("springtide.x").info("%s", message, extra={"said": f"{message}"})
    (line,) = stream.getvalue().splitlines()
    assert f"x: {shown} said=" in line
    assert line.count(shown) == 2


def test_json_accepts_any_value() -> None:
    """Other values become text; `extra` does not override the constant fields."""
    stream = io.StringIO()
    configure(stream)
    extra = {"key": Key("ns", "a"), "half": "\udcff", "nothing": None, "level": "none", "ratio": float("nan")}
    logging.getLogger("springtide.x").info("a\n\udcffb", extra=extra)
    (record,) = logged(stream)
    assert record["message"] == "a\n\\udcffb"
    assert record["level"] == "info"
    assert (record["key"], record["half"], record["nothing"], record["ratio"]) == ("ns/a", "\\udcff", None, None)


@pytest.mark.parametrize(
    ("logger", "level", "heard"),
    [
        pytest.param("springtide.x", logging.INFO, True, id="springtide"),
        pytest.param("springtide.x", logging.DEBUG, False, id="springtide, debug"),
        pytest.param("uvicorn.error", logging.INFO, False, id="uvicorn, info"),
        pytest.param("asyncio", logging.WARNING, True, id="another library, warning"),
    ],
)
def test_other_libraries_log_from_warnings_on(logger: str, level: int, heard: bool) -> None:
    stream = io.StringIO()
    configure(stream, "info")
    logging.getLogger(logger).log(level, "hello")
    assert bool(stream.getvalue()) is heard


def test_the_level_applies_to_all_loggers_of_springtide() -> None:
    stream = io.StringIO()
    configure(stream, "debug")
    configure(stream, "error")
    logging.getLogger("springtide.x").warning("hello")
    logging.getLogger("other").warning("hello")
    assert stream.getvalue() == ""


def test_python_warnings_are_logged() -> None:
    stream = io.StringIO()
    configure(stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    (record,) = logged(stream)
    assert record["logger"] == "py.warnings"


@pytest.mark.parametrize(
    ("logger", "controller"),
    [
        pytest.param("springtide.calendar", "calendar", id="a controller"),
        pytest.param("springtide.cluster.leader_election", None, id="a module"),
        pytest.param("aiohttp.client", None, id="another library"),
        pytest.param("springtide", None, id="the root logger of springtide"),
    ],
)
def test_the_controller_is_derived_from_the_logger(logger: str, controller: str | None) -> None:
    stream = io.StringIO()
    configure(stream)
    logging.getLogger(logger).error("hello")
    (record,) = logged(stream)
    assert record.get("controller") == controller


def test_logs_of_a_reconcile_name_its_object() -> None:
    """Also if two run side by side; logs after it name none."""
    stream = io.StringIO()
    configure(stream)

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        await asyncio.sleep(1)
        logging.getLogger("springtide.somewhere.deep").info("done")
        return None

    async def main(clock: VirtualClock) -> None:
        world = MemoryCluster(clock)
        world.config_map("a")
        world.config_map("b")
        process = Process(world, clock, stamp_controller(reconcile=reconcile, workers=2))
        await clock.sleep(5)
        await process.manager.stop()
        logging.getLogger("springtide.x").info("over")

    run(main, start=START)
    objects = [record.get("object") for record in logged(stream) if record["message"] in ("done", "over")]
    assert objects == ["ConfigMap work/a", "ConfigMap work/b", None]
