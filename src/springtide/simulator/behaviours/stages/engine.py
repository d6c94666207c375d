"""Stages: the life of an object as data.

A stage says of which objects it is the next step, how long after which moment it comes, and what it changes. All of
that is read from the object itself, so that nothing is lost with the memory of whoever plays the stages: the moment is
a timestamp in the object, and a delay that is drawn from a range is drawn from the seed, the object's uid and the name
of the stage, and comes out the same every time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml

from springtide.apis.forecast import format_instant
from springtide.apis.meta.instants import parse_instant
from springtide.cluster.resources import Object
from springtide.simulator.behaviours.settings import Delay, Settings
from springtide.simulator.behaviours.stages.paths import compile_path
from springtide.simulator.behaviours.stages.templates import Filling, Template, compile_template

Test = Callable[[Object], bool]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step in the life of objects."""

    name: str
    because: str
    matches: Test
    since: Callable[[Object], Any]
    """Reads the timestamp from which the delay counts."""
    setting: str
    """The delay's name in the settings; empty: there is none."""
    annotation: str
    """Whose value, in seconds, goes before the setting; empty: there is none."""
    status: Template | None
    """What is merged into the status; None: the object is deleted, without any grace."""


@dataclass(frozen=True, slots=True)
class Due:
    """The next stage of an object, and when it comes."""

    stage: Stage
    at: int


class Stages:
    """The stages of one kind; of those that match an object, the first is its next."""

    def __init__(self, stages: tuple[Stage, ...], settings: Settings) -> None:
        self._stages = stages
        self._settings = settings

    def next(self, item: Object) -> Due | None:
        """Tell what comes next in the life of an object, and when; None: it stays as it is."""
        for stage in self._stages:
            if stage.matches(item):
                return Due(stage, _moment(stage, item) + self._delay(stage, item))
        return None

    def status(self, stage: Stage, item: Object, now: int) -> Object | None:
        """Write the merge patch that a stage makes to an object; None: the stage deletes it."""
        if stage.status is None:
            return None
        return {"status": stage.status(Filling(item, format_instant(now), self._settings))}

    def _delay(self, stage: Stage, item: Object) -> int:
        given = (item["metadata"].get("annotations") or {}).get(stage.annotation, "")
        if given.isdecimal():
            return int(given)
        if not stage.setting:
            return 0
        delay: Delay = getattr(self._settings, stage.setting)
        if delay.most is None:
            return delay.least
        drawn = random.Random(f"{self._settings.seed}/{item['metadata'].get('uid')}/{stage.name}")  # noqa: S311
        return drawn.randint(delay.least, delay.most)


def _moment(stage: Stage, item: Object) -> int:
    """Give the instant from which a delay counts; that of the creation where the stage finds none."""
    for text in (stage.since(item), item["metadata"].get("creationTimestamp")):
        try:
            return parse_instant(text)
        except (TypeError, ValueError):
            continue
    return 0


def load_stages(name: str, settings: Settings) -> Stages:
    """Load the stages that are shipped for a kind."""
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text("utf-8")
    return Stages(tuple(compile_stage(written) for written in yaml.safe_load(text)), settings)


def compile_stage(written: Mapping[str, Any]) -> Stage:
    """Make a stage from how it is written."""
    after = written.get("after") or {}
    if ("status" in written) == bool(written.get("delete")):
        msg = f"stage `{written['name']}` must have either `status` or `delete: true`"
        raise ValueError(msg)
    return Stage(
        name=written["name"],
        because=written["because"],
        matches=_all(written["when"]),
        since=compile_path(written["since"]),
        setting=after.get("setting", ""),
        annotation=after.get("annotation", ""),
        status=compile_template(written["status"]) if "status" in written else None,
    )


def _all(written: Mapping[str, Any]) -> Test:
    tests = [_any(test) if path == "any" else _test(path, test) for path, test in written.items()]
    return lambda item: all(test(item) for test in tests)


def _any(written: list[Mapping[str, Any]]) -> Test:
    tests = [_all(test) for test in written]
    return lambda item: any(test(item) for test in tests)


def _test(path: str, written: Mapping[str, Any]) -> Test:
    """Read one test: `exists`, `is`, `in` or `not-in`; null among listed values stands for what is not there."""
    read = compile_path(path)
    ((operator, wanted),) = written.items()
    if operator == "exists":
        return lambda item: (read(item) is not None) is wanted
    if operator == "is":
        return lambda item: bool(read(item) == wanted)
    if operator == "in":
        return lambda item: read(item) in wanted
    if operator == "not-in":
        return lambda item: read(item) not in wanted
    msg = f"`{operator}` is not a test of stages: expected exists, is, in or not-in"
    raise ValueError(msg)
