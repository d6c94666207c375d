"""What the rules of a CronFederatedHPA have set, what they will set, and what became of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from springtide.almanac import Firings, load_zone
from springtide.apis.forecast import format_instant
from springtide.apis.karmada.cron import CronFederatedHPA, CronFederatedHPARule
from springtide.apis.karmada.rules import firings_of, timing_problems, zone_of
from springtide.apis.karmada.targets import CronAction, action_of, action_problems
from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import clock_time, date_and_time
from springtide.apis.problems import has_errors
from springtide.apis.references import ReferenceRole
from springtide.controllers.explanation import (
    Blocker,
    Explanation,
    ExplanationInput,
    PastEvent,
    UpcomingChange,
    common_blockers,
    instant_of,
    mappings,
)
from springtide.controllers.horizontal_autoscaler.explain import target_blockers, target_sentences

_APPLIED = {"appliedReplicas": "replicas", "appliedMinReplicas": "min", "appliedMaxReplicas": "max"}
_MISSED = "missed:"
_CONFLICT_CONDITION = "Unopposed"
_EXECUTION_EVENTS = ("Scaled: ", "ScaleFailed: ", "Missed: ")
"""Events that tell of executions, which the history has already."""
_LISTED = 5
_CONTROLLER = "cron-federated-hpa"
_USUAL_DELAY = 60
"""Seconds by which a record may be late without anybody saying so; the clocks of two machines may differ as well."""
_KINDS_WITH_BOUNDS = ("FederatedHPA", "HorizontalPodAutoscaler", "ScaledObject")
"""Autoscalers whose bounds rules can set."""


@dataclass(frozen=True, slots=True)
class _RecordedExecution:
    """One entry of a rule's history."""

    rule: str
    due: int
    done: int
    action: CronAction
    message: str = ""
    """Why it failed, where it did."""

    @property
    def order(self) -> tuple[int, str]:
        """Sort by time; two rules of one instant by their names."""
        return self.due, self.rule


@dataclass(frozen=True, slots=True)
class _ExplainedRule:
    """A rule that can be evaluated."""

    rule: CronFederatedHPARule
    action: CronAction
    firings: Firings
    zone: str


def explain_cron(facts: ExplanationInput) -> Explanation:
    """Explain what rules did, do next, and did not do."""
    cron = facts.object.view if isinstance(facts.object.view, CronFederatedHPA) else None
    rules = tuple(_sound_rules(facts, cron)) if cron is not None else ()
    executions = tuple(_executions(facts.status))
    claims = _claims(facts, rules, executions)
    zone = rules[0].zone if rules else facts.default_zone
    wants = {field: claim.action[field] for field, claim in sorted(claims.items())}
    return Explanation(
        subject=facts.subject,
        zone=zone,
        wants=wants,
        headline=action_sentence(wants) if wants else "nothing yet",
        because=tuple(_because(facts, claims, zone)),
        next=tuple(_next(facts, rules)),
        stopped=(
            *common_blockers(facts, _CONTROLLER),
            *_overdue(facts, rules),
            *_suspended(cron),
            *(_failures(executions, zone) if facts.present else ()),
            *target_blockers(facts),
            *_contradicted(facts, wants),
            *_conflicts(facts),
        ),
        conditions=facts.conditions,
        history=tuple(_history(facts, executions)),
        notes=(*facts.unusable_calendars, *facts.unknown),
    )


def action_sentence(action: Mapping[str, int]) -> str:
    """Write what is set: `10 replicas`, `a minimum of 5 and a maximum of 9`."""
    words = []
    if "replicas" in action:
        words.append(f"{action['replicas']} replica{'' if action['replicas'] == 1 else 's'}")
    words += [
        f"a {word} of {action[name]}" for name, word in (("min", "minimum"), ("max", "maximum")) if name in action
    ]
    return " and ".join(words)


def _sound_rules(facts: ExplanationInput, cron: CronFederatedHPA) -> Iterator[_ExplainedRule]:
    """Compile the rules that have no errors; one of the object as a whole concerns all of them."""
    wrong = [problem.path for problem in facts.object.problems if problem.severity == "error"]
    if any(path[:2] != ("spec", "rules") or len(path) < 3 for path in wrong):
        return
    kind = cron.spec.scale_target_ref.target_kind
    context = ValidationContext(now=facts.at, default_zone=facts.default_zone, deep_search=False)
    for rule in cron.spec.rules:
        if not has_errors((*timing_problems(rule, context), *action_problems(rule, kind))):
            firings = firings_of(rule, facts.default_zone, facts.calendars)
            yield _ExplainedRule(rule, action_of(rule, kind), firings, zone_of(rule, facts.default_zone).name)


def _executions(status: Mapping[str, Any]) -> Iterator[_RecordedExecution]:
    for history in mappings(status.get("executionHistories")):
        rule = str(history.get("ruleName") or "")
        for name in ("successfulExecutions", "failedExecutions"):
            for entry in mappings(history.get(name)):
                due, done = instant_of(entry.get("scheduleTime")), instant_of(entry.get("executionTime"))
                if due is None or done is None:
                    continue
                action = {word: entry[key] for key, word in _APPLIED.items() if isinstance(entry.get(key), int)}
                message = str(entry.get("message") or "it failed") if name == "failedExecutions" else ""
                yield _RecordedExecution(rule, due, done, action, message)


def _claims(
    facts: ExplanationInput, rules: tuple[_ExplainedRule, ...], executions: tuple[_RecordedExecution, ...]
) -> dict[str, _RecordedExecution]:
    """Find for each field the execution that set it last; without any, the firing that should have."""
    done = [one for one in executions if not one.message] if _is_recorded(facts) else [*_due(facts, rules)]
    claims: dict[str, _RecordedExecution] = {}
    for one in sorted(done, key=lambda one: one.order):
        claims |= dict.fromkeys(one.action, one)
    return claims


def _is_recorded(facts: ExplanationInput) -> bool:
    """Tell whether the status says what was done until the time that is explained."""
    return facts.present and bool(facts.status)


def _due(facts: ExplanationInput, rules: tuple[_ExplainedRule, ...]) -> Iterator[_RecordedExecution]:
    """Give the latest firing of each rule since the object is there."""
    for one in rules:
        due = None if one.rule.suspend else one.firings.at_or_before(facts.at)
        if due is not None and facts.created is not None and due > facts.created:
            yield _RecordedExecution(one.rule.name, due, due, one.action)


def _because(facts: ExplanationInput, claims: Mapping[str, _RecordedExecution], zone: str) -> Iterator[str]:
    for order, claim in sorted({claim.order: claim for claim in claims.values()}.items()):
        fields = {name: claim.action[name] for name, owner in sorted(claims.items()) if owner.order == order}
        when = date_and_time(claim.due, load_zone(zone))
        if _is_recorded(facts):
            late = f", {claim.done - claim.due} s late" if claim.done - claim.due > 1 else ""
            yield f"rule `{claim.rule}` set {action_sentence(fields)} on {when}{late}"
        else:
            tense = "was" if facts.present else "is"
            yield f"rule `{claim.rule}` {tense} due on {when}, with {action_sentence(fields)}"
    if not claims:
        yield "no rule has been applied yet" if _is_recorded(facts) else "no rule has fired since the object is there"
    yield from target_sentences(facts)


def _next(facts: ExplanationInput, rules: tuple[_ExplainedRule, ...]) -> list[UpcomingChange]:
    """Give the next firing of each rule, in the order in which they come."""
    found = []
    for place, one in enumerate(rules):
        at = None if one.rule.suspend else one.firings.after(facts.at)
        if at is not None:
            because = f"rule `{one.rule.name}` fires ({clock_time(at, load_zone(one.zone))})"
            if winner := _overruling(one, rules[place + 1 :], at):
                because += f", and rule `{winner}` wins, as it is listed last"
            found.append(UpcomingChange(at, dict(one.action), one.rule.name, because, one.zone))
    return sorted(found, key=lambda coming: coming.at)


def _overruling(one: _ExplainedRule, later: tuple[_ExplainedRule, ...], at: int) -> str:
    """Name the rule that fires at the same instant and sets the same, if there is one; the last of them wins."""
    winners = [
        other.rule.name
        for other in later
        if not other.rule.suspend
        and not other.action.keys().isdisjoint(one.action)
        and other.firings.at_or_before(at) == at
    ]
    return winners[-1] if winners else ""


def _overdue(facts: ExplanationInput, rules: tuple[_ExplainedRule, ...]) -> Iterator[Blocker]:
    """Find a controller that has not come to what it announced; one that tries again has announced the next firing."""
    if not facts.present or facts.paused:
        return
    in_force = {one.rule.name: one for one in rules if not one.rule.suspend}
    announced = (
        (due, in_force[name])
        for history in mappings(facts.status.get("executionHistories"))
        if (due := instant_of(history.get("nextExecutionTime"))) is not None
        and (name := str(history.get("ruleName"))) in in_force
    )
    due, late = min(announced, key=lambda one: one[0], default=(facts.at, None))
    if late is not None and facts.at - due > _USUAL_DELAY:
        when = date_and_time(due, load_zone(late.zone))
        yield Blocker(
            f"nothing has been done since {when}",
            f"rule `{late.rule.name}` was to fire then, and no controller has recorded what became of it: see that"
            f" `springtide controller` runs and leads, with {_CONTROLLER}",
        )


def _suspended(cron: CronFederatedHPA | None) -> Iterator[Blocker]:
    for rule in cron.spec.rules if cron is not None else ():
        if rule.suspend:
            yield Blocker(
                f"rule `{rule.name}` does not fire", "it is suspended; what is due meanwhile is not made up for"
            )


def _failures(executions: tuple[_RecordedExecution, ...], zone: str) -> Iterator[Blocker]:
    """Find rules whose latest execution failed or was missed."""
    latest: dict[str, _RecordedExecution] = {}
    for one in sorted(executions, key=lambda one: one.order):
        latest[one.rule] = one
    for one in latest.values():
        if one.message:
            when = date_and_time(one.due, load_zone(zone))
            what = "missed" if one.message.startswith(_MISSED) else "failed"
            yield Blocker(f"rule `{one.rule}` {what} on {when}", one.message.removeprefix(_MISSED).strip())


def _contradicted(facts: ExplanationInput, wants: Mapping[str, int]) -> Iterator[Blocker]:
    """Find values that somebody else has changed since a rule set them."""
    target = facts.target
    if target is None or target.trouble or not _is_recorded(facts):
        return
    other = {
        name: target.values[name] for name in wants if name in target.values and target.values[name] != wants[name]
    }
    if other:
        yield Blocker(
            f"{target.label} has {action_sentence(other)} now",
            f"somebody else has changed that since a rule set {action_sentence({name: wants[name] for name in other})};"
            " rules act when they fire, and not between",
        )


def _conflicts(facts: ExplanationInput) -> Iterator[Blocker]:
    if facts.has_reported(_CONFLICT_CONDITION):
        return  # the controller has looked, and what it found is told
    for other in facts.conflicting(ReferenceRole.SCALES):
        label = facts.target.label if facts.target is not None else "its target"
        rival = f"{other.kind.kind} `{other.name}`"
        remedy = (
            "let `scaleTargetRef` name that one, and set its bounds"
            if other.kind.kind in _KINDS_WITH_BOUNDS
            else "keep one"
        )
        yield Blocker(f"{label} has another master", f"{rival} scales it too, and undoes what rules set; {remedy}")


def _history(facts: ExplanationInput, executions: tuple[_RecordedExecution, ...]) -> list[PastEvent]:
    newest = sorted(executions, key=lambda one: one.order, reverse=True)[:_LISTED]
    done = [
        PastEvent(
            one.done,
            f"rule `{one.rule}` of {format_instant(one.due)}: {one.message or action_sentence(one.action)}",
            bool(one.message),
        )
        for one in newest
    ]
    told = [one for one in facts.events if not (done and one.what.startswith(_EXECUTION_EVENTS))]
    return sorted((*done, *told), key=lambda one: -one.at)
