"""Passwords in addresses reach no condition, event, log line or message of a command, whatever wrote the message."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner

from springtide.apis.problems import error, warning
from springtide.assembly.manifests import LocatedProblem
from springtide.cli.console import note, show_failure, show_problem
from springtide.cluster import events
from springtide.cluster.conditions import Condition, ConditionStatus, own_conditions
from springtide.cluster.events import EventCorrelator, InvolvedObject
from springtide.cluster.http.access import checked_proxy
from springtide.cluster.http.credentials import AccessError
from springtide.cluster.logs import JsonFormatter, TextFormatter
from springtide.cluster.resources import PODS, Key

SECRET = "S3cr3tPa55"
ADDRESSES = [
    f"https://user:{SECRET}@prom.example.com:9090/",
    f"https://user:%41{SECRET}@prom.example.com/",
    f"http:/user:{SECRET}@prom.example.com",
    f"https://prom.example.com/q?token={SECRET}",
]


def _condition(text: str) -> str:
    condition = Condition("Ready", ConditionStatus.FALSE, "NotGranted", text)
    return json.dumps(own_conditions([], [condition], now=0, generation=1))


def _event(text: str) -> str:
    involved = InvolvedObject(PODS, Key("shop", "web"))
    counted = EventCorrelator("calendar").correlate(involved, events.warning("NotGranted", text), 0)
    assert counted is not None
    return counted.message


def _record(text: str) -> logging.LogRecord:
    try:
        raise OSError(f"cannot connect: {text}")
    except OSError as failure:
        about = (type(failure), failure, failure.__traceback__)
    record = logging.LogRecord("springtide.calendar", logging.ERROR, "x.py", 1, "failed: %s", (text,), about)
    record.address = text
    return record


def _printed(show: Callable[[], object]) -> str:
    return CliRunner().invoke(click.Command("x", callback=show)).output


def _refused_proxy(text: str) -> str:
    with pytest.raises(AccessError) as refusal:
        checked_proxy(text.replace("https:", "ftp:").replace("http:", "ftp:"), "HTTPS_PROXY")
    return str(refusal.value)


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(
    "write",
    [
        pytest.param(_condition, id="condition"),
        pytest.param(_event, id="event"),
        pytest.param(lambda text: JsonFormatter().format(_record(text)), id="json-log"),
        pytest.param(lambda text: TextFormatter(colours=False).format(_record(text)), id="text-log"),
        pytest.param(lambda text: str(error((), text, text)), id="error-of-an-object"),
        pytest.param(lambda text: str(warning((), text, text)), id="warning-of-an-object"),
        pytest.param(
            lambda text: _printed(lambda: show_problem(LocatedProblem(file="a.yaml", message=text, hint=text))),
            id="problem-of-a-file",
        ),
        pytest.param(lambda text: _printed(lambda: note(text)), id="note"),
        pytest.param(lambda text: _printed(lambda: show_failure(text)), id="failure-of-a-command"),
        pytest.param(_refused_proxy, id="proxy"),
    ],
)
def test_secrets_are_not_written(write: Callable[[str], str], address: str) -> None:
    written = write(address)

    assert SECRET not in written
    assert "prom.example.com" in written


def test_messages_hide_nothing_else() -> None:
    stream = io.StringIO("the server https://10.0.0.1:6443 answers 503")
    assert stream.getvalue() in _condition(stream.getvalue())
