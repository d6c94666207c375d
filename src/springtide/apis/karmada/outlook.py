"""What the cron rules of an object will do: a lane for each, with a mark for each firing."""

from __future__ import annotations

from collections.abc import Sequence

from springtide.apis.fields import Context, View
from springtide.apis.forecast import Change, Lane, LaneStyle, Outlook, Question
from springtide.apis.karmada.actions import action_of, action_problems
from springtide.apis.karmada.conflicts import forecast_collisions
from springtide.apis.karmada.rules import firings_of, zone_of
from springtide.apis.karmada.targets import TargetKind
from springtide.apis.karmada.timing import timing_problems
from springtide.apis.karmada.types import CronFederatedHPA, CronFederatedHPARule
from springtide.apis.meta.clock_times import clock_time
from springtide.apis.problems import has_errors


def forecast(cron: CronFederatedHPA, question: Question) -> Outlook:
    """Look ahead: a lane for each rule, with a mark for each firing."""
    return _outlook(cron.spec.rules, cron.spec.scale_target_ref.target_kind, question)


def forecast_sound_rules(view: View | None, _: object, question: Question) -> Outlook | None:
    """Look ahead at an object with errors: one bad rule says nothing against its neighbours."""
    if not isinstance(view, CronFederatedHPA):
        return None
    kind = view.spec.scale_target_ref.target_kind
    context = Context(now=question.start, default_zone=question.default_zone)
    sound = [
        rule
        for rule in view.spec.rules
        if not has_errors((*timing_problems(rule, context), *action_problems(rule, kind)))
    ]
    return _outlook(sound, kind, question)


def _outlook(rules: Sequence[CronFederatedHPARule], kind: TargetKind, question: Question) -> Outlook:
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
        because=_never_fired(rule, following) if latest is None else change(latest).because,
    )


def _never_fired(rule: CronFederatedHPARule, following: int | None) -> str:
    if following is not None:
        return f"rule `{rule.name}` has not fired yet"
    return f"calendars exclude every time of rule `{rule.name}`"
