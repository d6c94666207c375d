"""What the cron rules of an object will do: a lane for each, with a mark for each firing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from springtide.apis.forecast import Change, Lane, LaneStyle, Outlook, Question
from springtide.apis.karmada.actions import action_of
from springtide.apis.karmada.conflicts import forecast_collisions
from springtide.apis.karmada.rules import firings_of, zone_of
from springtide.apis.karmada.targets import TargetKind
from springtide.apis.meta.clock_times import clock_time

if TYPE_CHECKING:
    from springtide.apis.karmada.types import CronFederatedHPA, CronFederatedHPARule


def forecast(cron: CronFederatedHPA, question: Question) -> Outlook:
    """Look ahead: a lane for each rule, with a mark for each firing."""
    kind = cron.spec.scale_target_ref.target_kind
    rules = cron.spec.rules
    zones = dict.fromkeys(zone_of(rule, question.default_zone).name for rule in rules)
    return Outlook(
        zones=tuple(zones) or (question.default_zone,),
        lanes=tuple(_lane(rule, kind, question) for rule in rules),
        collisions=tuple(forecast_collisions(rules, kind, question)),
    )


def _lane(rule: CronFederatedHPARule, kind: TargetKind, question: Question) -> Lane:
    if rule.suspend:
        return Lane(rule.name, LaneStyle.FIRINGS, None, (), None, because=f"rule `{rule.name}` is suspended")
    zone = zone_of(rule, question.default_zone)
    firings = firings_of(rule, question.default_zone, question.calendars)
    action = action_of(rule, kind)

    def change(at: int) -> Change:
        return Change(at, dict(action), f"rule `{rule.name}` fires ({clock_time(at, zone)})")

    latest, following = firings.at_or_before(question.start), firings.after(question.start)
    return Lane(
        name=rule.name,
        style=LaneStyle.FIRINGS,
        current=None if latest is None else dict(action),
        changes=tuple(change(at) for at in firings.between(question.start, question.until)),
        next=None if following is None else change(following),
        because=f"rule `{rule.name}` has not fired yet" if latest is None else change(latest).because,
    )
