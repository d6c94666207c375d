"""What a CronFederatedHPA says, compiled: its target, and the rules that can be used.

One rule that is wrong says nothing against its neighbours. Where the target is wrong, or the whole cannot be read,
nothing is done at all. Objects that say the same, and rules with the same times, are compiled once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from springtide.almanac import Calendar, Firings
from springtide.almanac.civil import DAY
from springtide.apis.fields import Context
from springtide.apis.karmada.actions import action_of, action_problems
from springtide.apis.karmada.rules import firings_of
from springtide.apis.karmada.targets import CronTarget
from springtide.apis.karmada.timing import timing_problems
from springtide.apis.karmada.types import CronFederatedHPA, CronFederatedHPARule
from springtide.apis.problems import Problem, has_errors
from springtide.controllers.cron.cursor import timing_of
from springtide.controllers.cron.history import Limits
from springtide.controllers.cron.plan import Action
from springtide.controllers.cron.records import CronRecord
from springtide.controllers.judged import judged

_OBJECTS = 16_384
"""How many different objects are kept compiled: some kilobytes each, and milliseconds to make."""
_TIMES = 4096
"""How many different times of rules are."""

_ALL_RULES = ("spec", "rules")


@dataclass(frozen=True, slots=True)
class SoundRule:
    """A rule that can be used."""

    name: str
    view: CronFederatedHPARule
    action: Action
    timing: str

    @property
    def limits(self) -> Limits:
        """How much of its history it keeps."""
        return Limits(self.view.successful_history_limit, self.view.failed_history_limit)

    def firings(self, default_zone: str, calendars: Mapping[str, Calendar]) -> Firings:
        """Give the instants at which it fires while it is not suspended."""
        if self.view.calendars:
            return firings_of(self.view, default_zone, calendars)
        return _firings(self.view.schedule, self.view.at, self.view.time_zone or default_zone)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an object says."""

    target: CronTarget | None
    """None where nothing can be done."""
    rules: tuple[SoundRule, ...]
    """Those that can be used, in the order of the object."""
    written: tuple[str, ...] | None
    """The names of all rules, also of those that cannot be used; None where they cannot be told."""
    wrong: str
    """What is wrong, in words; empty where nothing is."""

    def missing_calendars(self, calendars: Mapping[str, Calendar]) -> tuple[str, ...]:
        """Name the calendars that rules refer to and that are not there, or cannot be used."""
        named = (one.name for rule in self.rules for one in rule.view.calendars or ())
        return tuple(dict.fromkeys(name for name in named if name not in calendars))


def meaning_of(record: CronRecord, default_zone: str) -> Meaning:
    """Read what an object says, as of the day on which it was written: what was sound then stays so."""
    written = record.created if record.edited is None else record.edited
    return _meanings(record.written, default_zone, written // DAY * DAY)


@lru_cache(maxsize=_OBJECTS)
def _meanings(written: bytes, default_zone: str, day: int) -> Meaning:
    item = msgspec.json.decode(written)
    verdict = judged(item, CronFederatedHPA, now=day, default_zone=default_zone)
    names = _names_in(item)
    if verdict.view is None or any(not _concerns_one_rule(problem) for problem in verdict.errors):
        return Meaning(None, (), names, verdict.words)
    spec = verdict.view.spec
    kind = spec.scale_target_ref.target_kind
    context = Context(now=day, default_zone=default_zone, thorough=False)
    sound: dict[str, SoundRule] = {}
    for rule in spec.rules:
        if not has_errors((*timing_problems(rule, context), *action_problems(rule, kind))):
            timing = timing_of(rule.schedule, rule.at, rule.time_zone)
            sound.setdefault(rule.name, SoundRule(rule.name, rule, action_of(rule, kind), timing))
    return Meaning(spec.scale_target_ref, tuple(sound.values()), names, verdict.words)


@lru_cache(maxsize=_TIMES)
def _firings(schedule: str | None, at: str | None, zone: str) -> Firings:
    return firings_of(CronFederatedHPARule(name="any", schedule=schedule, at=at), zone, {})


def _concerns_one_rule(problem: Problem) -> bool:
    return problem.path[:2] == _ALL_RULES and len(problem.path) > len(_ALL_RULES)


def _names_in(item: dict[str, Any]) -> tuple[str, ...] | None:
    spec = item.get("spec")
    rules = spec.get("rules") if isinstance(spec, dict) else None
    if not isinstance(rules, list):
        return None
    names = (rule.get("name") for rule in rules if isinstance(rule, dict))
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))
