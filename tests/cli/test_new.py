"""`springtide new`: answers as options, answers at a terminal, and a manifest that passes every check."""

from __future__ import annotations

import codecs
import datetime
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from springtide.apis.yaml import Document, read

Write = Callable[[str, str], Path]

PRODUCER = ("new", "metricsproducer", "office", "--timezone", "Europe/Berlin", "--default", "2")
CRON = ("new", "cronfederatedhpa", "peak", "--timezone", "UTC")


def objects(text: str) -> list[dict[str, object]]:
    return [document.value for document in read(text) if isinstance(document, Document)]


def test_a_producer_from_options(run: Run, write: Write) -> None:
    result = run(*PRODUCER, "-n", "web", "--window", "mon-fri 08:30-18:00=6", "--target", "deploy/shop")
    assert result.exit_code == 0
    producer, autoscaler = objects(result.stdout)
    assert producer["metadata"] == {"name": "office", "namespace": "web"}
    assert producer["spec"] == {
        "schedule": {
            "timezone": "Europe/Berlin",
            "defaultReplicas": 2,
            "behaviors": [
                {
                    "name": "mon-fri-0830",
                    "replicas": 6,
                    "start": {"weekdays": "Mon,Tue,Wed,Thu,Fri", "hours": 8, "minutes": 30},
                    "end": {"weekdays": "Mon,Tue,Wed,Thu,Fri", "hours": 18},
                }
            ],
        }
    }
    assert autoscaler["kind"] == "HorizontalAutoscaler"
    assert "MetricsProducer/office in namespace web" in result.stderr  # the picture
    assert run("check", write("new.yaml", result.stdout)).exit_code == 0


@pytest.mark.parametrize(
    ("window", "start", "end"),
    [
        pytest.param("22:00-06:00=3", {"hours": 22}, {"hours": 6}, id="daily"),
        pytest.param("daily 9-17=3", {"hours": 9}, {"hours": 17}, id="hours"),
        pytest.param("fri 22-6=3", {"weekdays": "Fri", "hours": 22}, {"weekdays": "Sat", "hours": 6}, id="over-night"),
        pytest.param(
            "weekends=3", {"weekdays": "Sat,Sun", "hours": 0}, {"weekdays": "Sun,Mon", "hours": 0}, id="whole-days"
        ),
        pytest.param(
            "Monday, wed 8:15 - 24:00 = 3",
            {"weekdays": "Mon,Wed", "hours": 8, "minutes": 15},
            {"weekdays": "Tue,Thu", "hours": 0},
            id="until-midnight",
        ),
        pytest.param(
            "sat - mon 10-11=3", {"weekdays": "Sat,Sun,Mon", "hours": 10}, {"weekdays": "Sat,Sun,Mon", "hours": 11},
            id="around-the-week",
        ),
    ],
)  # fmt: skip
def test_forms_of_windows(run: Run, window: str, start: object, end: object) -> None:
    result = run(*PRODUCER, "--window", window)
    assert result.exit_code == 0, result.stderr
    (producer,) = objects(result.stdout)
    (behavior,) = producer["spec"]["schedule"]["behaviors"]  # type: ignore[index]
    assert (behavior["replicas"], behavior["start"], behavior["end"]) == (3, start, end)


@pytest.mark.parametrize(
    ("window", "opens", "closes"),
    [
        pytest.param("2099-11-27 06:00-22:00=3", "2099-11-27T06:00:00+01:00", "2099-11-27T22:00:00+01:00", id="times"),
        pytest.param("2099-11-27 22-6=3", "2099-11-27T22:00:00+01:00", "2099-11-28T06:00:00+01:00", id="over-night"),
        pytest.param("2099-12-24=3", "2099-12-24T00:00:00+01:00", "2099-12-25T00:00:00+01:00", id="whole-day"),
        pytest.param(
            "2099-03-28 - 2099-03-29=3", "2099-03-28T00:00:00+01:00", "2099-03-30T00:00:00+02:00", id="whole-days"
        ),
        pytest.param(
            "2099-11-27 06:00 - 2099-11-29 22:00=3",
            "2099-11-27T06:00:00+01:00",
            "2099-11-29T22:00:00+01:00",
            id="from-one-date-to-another",
        ),
    ],
)
def test_windows_of_dates_happen_once(run: Run, write: Write, window: str, opens: str, closes: str) -> None:
    """They are read in the zone of the schedule."""
    result = run(*PRODUCER, "--window", "mon-fri 8-18=6", "--window", window)
    assert result.exit_code == 0, result.stderr
    (producer,) = objects(result.stdout)
    weekly, once = producer["spec"]["schedule"]["behaviors"]  # type: ignore[index]
    assert (once["replicas"], once["from"], once["until"]) == (3, opens, closes)
    assert "start" in weekly
    path = write("new.yaml", result.stdout)
    assert run("check", "--strict", path).exit_code == 0
    previewed = json.loads(run("preview", path, "--from", opens, "--for", "1h", "-o", "json").stdout)
    assert previewed["objects"][0]["lanes"][0]["current"] == 3, "it applies before windows that recur"


@pytest.mark.parametrize(
    ("windows", "bounds"),
    [
        pytest.param(["2099-11-27 06:00-22:00=20"], (2, 20), id="a-sale"),
        pytest.param(["mon-fri 8-18=6", "2099-11-27 06:00-22:00=20"], (2, 20), id="a-sale-beside-office-hours"),
        pytest.param(["daily 22:00-06:00=0", "2099-12-24=1"], (0, 2), id="fewer-than-the-default"),
    ],
)
def test_the_bounds_of_the_autoscaler_hold_the_schedule(
    run: Run, write: Write, windows: list[str], bounds: tuple[int, int]
) -> None:
    asked = [option for window in windows for option in ("--window", window)]
    result = run(*PRODUCER, "-n", "web", *asked, "--target", "deployment/shop")
    assert result.exit_code == 0, result.stderr
    _, autoscaler = objects(result.stdout)
    spec = autoscaler["spec"]
    assert isinstance(spec, dict)
    assert (spec["minReplicas"], spec["maxReplicas"]) == bounds
    path = write("new.yaml", result.stdout)
    found = json.loads(run("check", path, "-o", "json").stdout)["problems"]
    assert [problem["message"] for problem in found] == ["Deployment `shop` is not in these files"]
    drawn = json.loads(run("preview", path, "--for", "1d", "-o", "json").stdout)["objects"]
    assert [item["kind"] for item in drawn] == ["MetricsProducer"], "nothing is cut"


@pytest.mark.parametrize(
    ("window", "said"),
    [
        pytest.param("2099-11-31 06:00-22:00=3", "2099-11-31 is not a calendar date", id="no-date"),
        pytest.param("2099-11-27 06:00=3", "has only one time", id="one-time"),
        pytest.param("2099-11-27 06:00 - 2099-11-26 22:00=3", "ends before it begins", id="dates-in-reverse"),
        pytest.param("mon-fri 08:30-18:00", "does not say how many replicas", id="no-replicas"),
        pytest.param("mon-fri 08:30-18:00=many", '"many" is not a number of replicas', id="no-number"),
        pytest.param("mon-fry 08:30-18:00=6", '"fry" is not a weekday; did you mean fri?', id="weekday"),
        pytest.param("mon-fri 08:30-25:00=6", "25:00 is not a time of day", id="hour"),
        pytest.param("mon-fri 24:00-25:00=6", "24:00 is not a time of day", id="start-at-midnight"),
        pytest.param("daily=6", "covers all times", id="always"),
        pytest.param("mon-fri 8-18 sharp=6", '"sharp" after the times', id="rest"),
    ],
)
def test_windows_that_cannot_be_parsed(run: Run, window: str, said: str) -> None:
    result = run(*PRODUCER, "--window", window)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in " ".join(result.stderr.split())


@pytest.mark.parametrize(("days", "drawn"), [(3, True), (30, True), (90, False)])
def test_the_picture_reaches_to_a_window_that_happens_once(run: Run, days: int, drawn: bool) -> None:
    """Up to two months ahead: a picture of a year would show nothing else."""
    day = datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=days)

    result = run(*PRODUCER, "--timezone", "UTC", "--window", f"{day} 00:00-00:01=7")

    assert (f"  7  behaviour `{day}-0000` starts" in result.stderr) is drawn


def test_warnings_are_shown_once(run: Run) -> None:
    result = run(*PRODUCER, "--window", "mon-fri 8-18=6", "--window", "fri 12-14=9", "--window", "sat=1")
    assert result.stderr.count("never takes effect") == 1


@pytest.mark.parametrize(
    ("target", "rule", "action"),
    [
        pytest.param("deployment/shop", "up=30 8 * * mon-fri:10", {"targetReplicas": 10}, id="replicas"),
        pytest.param(
            "hpa/shop", "up=30 8 * * mon-fri:5-20", {"targetMinReplicas": 5, "targetMaxReplicas": 20}, id="both"
        ),
        pytest.param("hpa/shop", "up=30 8 * * mon-fri:5", {"targetMinReplicas": 5}, id="min"),
        pytest.param("so/shop", "up=30 8 * * mon-fri:-7", {"targetMaxReplicas": 7}, id="max"),
        pytest.param("argoproj.io/v1alpha1/Rollout/shop", "up=30 8 * * mon-fri:0", {"targetReplicas": 0}, id="other"),
    ],
)  # fmt: skip
def test_rules_from_options(run: Run, write: Write, target: str, rule: str, action: dict[str, int]) -> None:
    result = run(*CRON, "--target", target, "--rule", rule)
    assert result.exit_code == 0, result.stderr
    (made,) = objects(result.stdout)
    expected = {"name": "up", "schedule": "30 8 * * mon-fri", "timeZone": "UTC", **action}
    assert made["spec"]["rules"] == [expected]  # type: ignore[index]
    assert run("check", write("new.yaml", result.stdout)).exit_code == 0


def test_a_rule_may_fire_once(run: Run) -> None:
    result = run(*CRON, "--target", "sts/db", "--rule", "launch=2099-11-27T06:00:00Z:50")
    (made,) = objects(result.stdout)
    (rule,) = made["spec"]["rules"]  # type: ignore[index]
    assert rule == {"name": "launch", "at": "2099-11-27T06:00:00Z", "targetReplicas": 50}


def test_a_rule_may_fire_once_at_a_local_time(run: Run) -> None:
    result = run(*CRON[:-1], "Europe/Berlin", "--target", "sts/db", "--rule", "launch=2099-11-27 06:00:50")
    (made,) = objects(result.stdout)
    (rule,) = made["spec"]["rules"]  # type: ignore[index]
    assert rule == {"name": "launch", "at": "2099-11-27T06:00:00+01:00", "targetReplicas": 50}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(("--target", "shop", "--rule", "a=0 8 * * *:1"), "write kind and name", id="target"),
        pytest.param(
            ("--target", "foo/bar/baz", "--rule", "a=0 8 * * *:1"), '"foo/bar/baz" is not a target', id="parts"
        ),
        pytest.param(("--target", "deploy/shop", "--rule", "a=0 8 * * *:5-20"), "a Deployment has replicas", id="both"),
        pytest.param(("--target", "deploymnt/shop", "--rule", "a=0 8 * * *:1"), "deployment/shop?", id="kind"),
        pytest.param(("--target", "deploy/Shop", "--rule", "a=0 8 * * *:1"), "not a legal name", id="name"),
        pytest.param(("--target", "deploy/shop", "--rule", "0 8 * * *"), "is not a rule", id="rule"),
        pytest.param(("--target", "deploy/shop", "--rule", "a=0 8 * *:1"), "has 4 fields, expected 5", id="schedule"),
        pytest.param(("--target", "hpa/shop", "--rule", "a=0 8 * * *:9-3"), "greater than", id="bounds"),
        pytest.param(("--target", "hpa/shop", "--rule", "a=0 8 * * *:-"), "has no bounds", id="no-bounds"),
        pytest.param(
            ("--target", "deploy/shop", "--rule", "a=0 8 * * *:1", "--rule", "a=0 9 * * *:1"), "--rule", id="same-name"
        ),
    ],
)
def test_rules_that_are_refused(run: Run, options: tuple[str, ...], said: str) -> None:
    result = run(*CRON, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        pytest.param(("metricsproducer",), "NAME, --timezone, --default, --window", id="producer"),
        pytest.param(("metricsproducer", "a", "--default", "1"), "--timezone, --window", id="producer-half"),
        pytest.param(("cronfederatedhpa",), "NAME, --target, --timezone, --rule", id="cron"),
        pytest.param(("cronfederatedhpa", "a", "--rule", "a=0 8 * * *:1"), "--target, --timezone", id="cron-half"),
    ],
)
def test_without_a_terminal_all_missing_options_are_listed(run: Run, arguments: tuple[str, ...], missing: str) -> None:
    result = run("new", *arguments)
    assert result.exit_code == 2
    assert f"these options are required: {missing}\n" in result.stderr


def test_zones_and_names_are_checked_as_in_manifests(run: Run) -> None:
    result = run("new", "metricsproducer", "office", "--timezone", "berlin", "--default", "1", "--window", "mon=2")
    assert "did you mean Europe/Berlin?" in result.stderr
    assert "not a legal name" in run("new", "metricsproducer", "My Office").stderr


def test_a_file_is_not_overwritten_without_confirmation(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "office.yaml"
    options = (*PRODUCER, "--window", "mon=6", "--file", path)
    assert run(*options).exit_code == 0
    path.write_text("precious", encoding="utf-8")
    refused = run(*options)
    assert (refused.exit_code, path.read_text(encoding="utf-8")) == (1, "precious")
    assert "`--yes` overwrites it" in refused.stderr
    assert run(*options, "--yes").exit_code == 0
    assert objects(path.read_text(encoding="utf-8"))[0]["kind"] == "MetricsProducer"
    assert run(*PRODUCER, "--window", "mon=6", "--file", tmp_path / "no" / "a.yaml").exit_code == 2


class Terminal:
    """The command in a pseudo-terminal."""

    def __init__(self, *arguments: str) -> None:
        self._screen, child = pty.openpty()
        environment = {**os.environ, "TERM": "dumb", "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from springtide.cli import main; main()", *arguments],
            stdin=child,
            stdout=child,
            stderr=child,
            env=environment,
        )
        os.close(child)
        self.shown = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end within a character

    def expect(self, text: str) -> None:
        """Wait until the command has printed a text."""
        deadline = time.monotonic() + 30
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.shown!r}"
            if select.select([self._screen], [], [], 1)[0]:
                self.shown += re.sub(r"\x1b\[[0-9;]*m", "", self._decoder.decode(os.read(self._screen, 65536))).replace(
                    "\r\n", "\n"
                )

    def answer(self, prompt: str, text: str) -> None:
        """Wait for a prompt and type an answer."""
        self.expect(prompt)
        self.shown = self.shown[self.shown.index(prompt) + len(prompt) :]
        os.write(self._screen, f"{text}\n".encode())

    def finish(self) -> int:
        """Wait until the command exits; returns the exit code."""
        while True:
            try:
                data = os.read(self._screen, 65536)
            except OSError:  # the command has closed the terminal
                break
            if not data:
                break
            self.shown += self._decoder.decode(data)
        return self._process.wait(60)

    def close(self) -> None:
        """Kill the command and close the terminal."""
        self._process.kill()
        self._process.wait(60)
        os.close(self._screen)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Start commands in pseudo-terminals."""
    with ExitStack() as opened:

        def start(*arguments: object) -> Terminal:
            made = Terminal(*(str(argument) for argument in arguments))
            opened.callback(made.close)
            return made

        yield start


def test_prompts_are_repeated_until_the_answer_is_valid(
    tmp_path: Path, run: Run, terminal: Callable[..., Terminal]
) -> None:
    path = tmp_path / "office.yaml"
    path.write_text("old", encoding="utf-8")
    screen = terminal("new", "metricsproducer", "--file", path)
    screen.answer("Name: ", "My Office")
    screen.expect("is not a legal name")
    screen.answer("Name", "office")
    screen.answer("Namespace (empty for none)", "")
    screen.answer("Time zone", "berlin")
    screen.expect("did you mean Europe/Berlin?")
    screen.answer("[Europe/Berlin]: ", "")
    screen.answer("Replicas outside all windows", "two")
    screen.expect('"two" is not a number of replicas')
    screen.answer("Replicas outside all windows", "2")
    screen.answer("=20: ", "")
    screen.answer("=20: ", "mon-fri 08:30-18:00")
    screen.expect("does not say how many replicas")
    screen.answer("=20: ", "mon-fri 08:30-18:00=6")
    screen.answer("=20 (empty to go on): ", "")
    screen.answer("What it scales", "deployment/shop")
    screen.expect("MetricsProducer/office")  # the picture
    screen.answer("Overwrite it? [y/N]: ", "y")
    assert screen.finish() == 0
    producer, autoscaler = objects(path.read_text(encoding="utf-8"))
    assert (producer["kind"], autoscaler["kind"]) == ("MetricsProducer", "HorizontalAutoscaler")
    behavior = autoscaler["spec"]["behavior"]  # type: ignore[index]
    assert behavior == {"scaleDown": {"stabilizationWindowSeconds": 0}}, "replicas change when the picture shows it"
    assert run("check", path).exit_code == 0


def test_without_confirmation_a_file_is_left_unchanged(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    path = tmp_path / "office.yaml"
    path.write_text("old", encoding="utf-8")
    given = ("-n", "web", "--timezone", "UTC", "--default", "2", "--window", "daily 8-18=6", "--target", "deployment/a")
    screen = terminal("new", "metricsproducer", "office", *given, "--file", path)
    screen.answer("Overwrite it? [y/N]: ", "")
    assert screen.finish() == 1
    assert path.read_text(encoding="utf-8") == "old"


def test_a_file_is_asked_for_and_an_existing_one_is_kept(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text("old", encoding="utf-8")
    given = ("-n", "web", "--timezone", "UTC", "--default", "2", "--window", "daily 8-18=6", "--target", "deployment/a")
    screen = terminal("new", "metricsproducer", "office", *given)
    screen.answer("File to write", str(old))
    screen.answer("Overwrite it? [y/N]: ", "n")
    screen.answer("File to write", str(new))
    assert screen.finish() == 0
    assert old.read_text(encoding="utf-8") == "old"
    assert objects(new.read_text(encoding="utf-8"))[0]["kind"] == "MetricsProducer"


def test_a_rule_is_checked_together_with_earlier_ones(terminal: Callable[..., Terminal]) -> None:
    screen = terminal("new", "cronfederatedhpa", "peak", "-n", "web", "--timezone", "UTC")
    screen.answer("What is scaled", "hpa/shop")
    screen.answer("Rule", "up=30 8 * * *:5-20")
    screen.answer("Rule", "up=0 18 * * *:1")
    screen.expect('spec.rules[1].name: "up" is listed twice')
    screen.answer("Rule", "down=0 18 * * *:1")
    screen.answer("Rule", "")
    screen.answer("File to write, such as office.yaml (empty to print): ", "")
    assert screen.finish() == 0
    assert "targetMinReplicas: 1" in screen.shown
    assert screen.shown.count("- name: ") == 2
