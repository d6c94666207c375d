"""Stages: the lifecycle of an object as data.

A stage says which objects it applies to, after which delay from which timestamp, and what it changes. All of this is
read from the object itself, so nothing depends on memory: a delay from a range is drawn from the seed, the uid of the
object and the name of the stage, and is the same each time.

**Paths** point into objects: `status.phase` goes through fields,
`metadata.annotations["example.com/a.b"]` through a field whose name has dots, and
`status.conditions[type=Ready].status` through the first entry of a list that has this value.

**Templates** are what a stage writes. A string that begins with `$` is a placeholder: `$now` is the time of the stage,
`$settings.NAME` a setting, `$item.PATH` a value of the current entry of `$each`, and any other `$PATH` a value of the
object. A placeholder without a value omits its field. A mapping whose first key begins with `$` is an operation:

* `{$first: [A, B, …]}`: the first that has a value
* `{$overlay: [A, B, …]}`: mappings merged, the last wins
* `{$sum: [A, B, …]}`: the sum of integers; a missing value counts as 0
* `{$each: PATH, $make: TEMPLATE}`: a list with an entry for every entry of another list
* `{$conditions: [TEMPLATE, …]}`: the conditions of the object with these merged in
* `{$address: TEMPLATE}`: an IPv4 address of the private network 10.0.0.0/8, the same for the same text
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import yaml

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import parse_instant
from springtide.cluster.resources import Object
from springtide.simulator.behaviours.pod_status import with_conditions
from springtide.simulator.behaviours.settings import BehaviourSettings, Delay

_STEP = re.compile(r'(?:^|\.)(?P<field>[A-Za-z_]\w*)|\["(?P<quoted>[^"]+)"\]|\[(?P<key>\w+)=(?P<value>[^\]]+)\]')

Step = Callable[[Any], Any]


def compile_path(path: str) -> Step:
    """Compile a path to a function that returns its value, None if absent or null."""
    steps: list[Step] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            msg = f"`{path}` is not a path: expected a field or an entry of a list at `{path[position:]}`"
            raise ValueError(msg)
        steps.append(
            _entry(match["key"], match["value"]) if match["key"] else _field(match["field"] or match["quoted"])
        )
        position = match.end()

    def read(value: Any) -> Any:
        for step in steps:
            if value is None:
                return None
            value = step(value)
        return value

    return read


def _field(name: str) -> Step:
    return lambda value: value.get(name) if isinstance(value, dict) else None


def _entry(key: str, wanted: str) -> Step:
    def find(value: Any) -> Any:
        for entry in value if isinstance(value, list) else ():
            if isinstance(entry, dict) and _text(entry.get(key)) == wanted:
                return entry
        return None

    return find


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class TemplateContext:
    """The values of placeholders."""

    object: Object
    now: str
    settings: BehaviourSettings
    item: Any = None


Template = Callable[[TemplateContext], Any]
"""Returns the value; None if a placeholder has none."""


def compile_template(written: Any) -> Template:
    """Compile a template to a function."""
    if isinstance(written, str) and written.startswith("$"):
        return _place(written[1:])
    if isinstance(written, dict):
        first = next(iter(written), "")
        return _operation(first, written) if first.startswith("$") else _mapping(written)
    if isinstance(written, list):
        entries = [compile_template(entry) for entry in written]
        return lambda filling: [entry(filling) for entry in entries]
    return lambda filling: written  # noqa: ARG005


def _place(name: str) -> Template:
    root, _, rest = name.partition(".")
    if name == "now":
        return lambda filling: filling.now
    if root == "settings":
        return lambda filling: getattr(filling.settings, rest)
    if root == "item":
        read_item = compile_path(rest)
        return lambda filling: read_item(filling.item)
    read = compile_path(name)
    return lambda filling: read(filling.object)


def _mapping(written: dict[str, Any]) -> Template:
    fields = {name: compile_template(value) for name, value in written.items()}
    removed = {name for name, value in written.items() if value is None}

    def make(filling: TemplateContext) -> Object:
        made = {name: template(filling) for name, template in fields.items()}
        return {name: value for name, value in made.items() if value is not None or name in removed}

    return make


def _operation(name: str, written: dict[str, Any]) -> Template:
    if name == "$each":
        return _each(compile_path(written["$each"]), compile_template(written["$make"]))
    argument = written[name]
    if name == "$address":
        text = compile_template(argument)
        return lambda filling: address(str(text(filling)))
    parts = [compile_template(part) for part in argument]
    if name == "$first":
        return lambda filling: next((value for part in parts if (value := part(filling)) is not None), None)
    if name == "$overlay":
        return lambda filling: {name: value for part in parts for name, value in (part(filling) or {}).items()}
    if name == "$sum":
        return lambda filling: sum(int(part(filling) or 0) for part in parts)
    if name == "$conditions":
        return _conditions(parts)
    msg = f"`{name}` is not an operation of templates"
    raise ValueError(msg)


def _each(read: Callable[[Any], Any], make: Template) -> Template:
    def make_all(filling: TemplateContext) -> list[Any] | None:
        entries = read(filling.object)
        return None if entries is None else [make(replace(filling, item=item)) for item in entries]

    return make_all


def _conditions(parts: list[Template]) -> Template:
    present = compile_path("status.conditions")
    return lambda filling: with_conditions(present(filling.object), [part(filling) for part in parts], filling.now)


def address(text: str) -> str:
    """Derive an IPv4 address from a name; addresses need not be unique, since nothing connects to them."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"10.{digest[0]}.{digest[1]}.{1 + digest[2] % 254}"


Test = Callable[[Object], bool]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a lifecycle."""

    name: str
    because: str
    matches: Test
    since: Callable[[Object], Any]
    """Reads the timestamp from which the delay counts."""
    setting: str
    """The name of the delay in the settings; empty for none."""
    annotation: str
    """The annotation whose value in seconds overrides the setting; empty for none."""
    status: Template | None
    """The merge patch of the status; None: the object is deleted with grace period 0."""


@dataclass(frozen=True, slots=True)
class DueStage:
    """The next stage of an object, and its time."""

    stage: Stage
    at: int


class Stages:
    """The stages of one kind; the first that matches an object is its next."""

    def __init__(self, stages: tuple[Stage, ...], settings: BehaviourSettings) -> None:
        self._stages = stages
        self._settings = settings

    def next(self, item: Object) -> DueStage | None:
        """Return the next stage of an object; None if no stage matches."""
        for stage in self._stages:
            if stage.matches(item):
                return DueStage(stage, _moment(stage, item) + self._delay(stage, item))
        return None

    def status(self, stage: Stage, item: Object, now: int) -> Object | None:
        """Return the merge patch of a stage; None if the stage deletes the object."""
        if stage.status is None:
            return None
        return {"status": stage.status(TemplateContext(item, format_instant(now), self._settings))}

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
    """Return the time from which a delay counts; by default the creation time."""
    for text in (stage.since(item), item["metadata"].get("creationTimestamp")):
        try:
            return parse_instant(text)
        except (TypeError, ValueError):
            continue
    return 0


def load_stages(name: str, settings: BehaviourSettings) -> Stages:
    """Load the stages of a kind."""
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text("utf-8")
    return Stages(tuple(compile_stage(written) for written in yaml.safe_load(text)), settings)


def compile_stage(written: Mapping[str, Any]) -> Stage:
    """Compile a stage from YAML."""
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
    """Compile one test: `exists`, `is`, `in` or `not-in`; null among listed values stands for an absent one."""
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
