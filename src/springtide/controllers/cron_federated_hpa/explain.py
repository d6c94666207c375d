"""What `springtide explain` says about a CronFederatedHPA, from the same evaluation as its controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from springtide.almanac import Zone, load_zone
from springtide.apis.forecast import format_instant
from springtide.apis.karmada.cron import CronFederatedHPA
from springtide.apis.meta.times import clock_time, date_and_time
from springtide.controllers.cron_federated_hpa.decide import CronEvaluation, evaluate
from springtide.controllers.cron_federated_hpa.history import APPLIED_FIELDS, MISSED_PREFIX, histories_in
from springtide.controllers.cron_federated_hpa.messages import conflict_remedy
from springtide.controllers.cron_federated_hpa.plan import CandidateRule, RuleAction, field_winners, latest_claims
from springtide.controllers.cron_federated_hpa.records import compile_cron, record_of, zone_of
from springtide.controllers.explanation import (
    Blocker,
    Explanation,
    ExplanationInput,
    PastEvent,
    UpcomingChange,
    common_blockers,
    conflict_blockers,
    instant_of,
    stored_form,
    target_blockers,
    target_sentences,
)

_EXECUTION_EVENTS = ("Scaled: ", "ScaleFailed: ", "Missed: ")
"""Events about executions, which the history lists already."""
_LISTED = 5
_CONTROLLER = "cron-federated-hpa"
_USUAL_DELAY = 60
"""Seconds by which a record may be late before that is reported; the clocks of two machines may differ as well."""


@dataclass(frozen=True, slots=True)
class _RecordedExecution:
    """One firing: recorded in a history, or due at the explained time."""

    rule: str
    due: int
    done: int
    action: RuleAction
    message: str = ""
    """Why it failed, if it did."""

    @property
    def order(self) -> tuple[int, str]:
        """Sort by time; two rules of one instant by their names."""
        return self.due, self.rule


def explain_cron(facts: ExplanationInput) -> Explanation:
    """Explain what rules did, what they do next, and what they did not do."""
    cron = facts.object.view if isinstance(facts.object.view, CronFederatedHPA) else None
    evaluation = _evaluation(facts)
    histories = histories_in(facts.status)
    executions = tuple(_executions(histories))
    claims = _claims(facts, evaluation, executions)
    zones = {rule.name: zone_of(evaluation.spec, rule.name, facts.default_zone) for rule in evaluation.spec.rules}
    zone = next(iter(zones.values()), load_zone(facts.default_zone))
    wants = {field: claim.action[field] for field, claim in sorted(claims.items())}
    return Explanation(
        subject=facts.subject,
        zone=zone.name,
        wants=wants,
        headline=action_sentence(wants) if wants else "nothing yet",
        because=tuple(_because(facts, claims, zone)),
        next=tuple(_next(evaluation, zones)),
        stopped=(
            *common_blockers(facts, _CONTROLLER),
            *_overdue(facts, histories, evaluation, zones),
            *_suspended(cron),
            *(_failures(executions, zone) if facts.present else ()),
            *target_blockers(facts),
            *_changed_since(facts, wants),
            *conflict_blockers(facts, conflict_remedy),
        ),
        conditions=facts.conditions,
        history=tuple(_history(facts, executions)),
        notes=(*facts.unusable_calendars, *facts.unknown),
    )


def action_sentence(action: Mapping[str, int]) -> str:
    """Write what is set: `10 replicas`, `a minimum of 5 and a maximum of 9`."""
    parts = []
    if "replicas" in action:
        parts.append(f"{action['replicas']} replica{'' if action['replicas'] == 1 else 's'}")
    parts += [
        f"a {word} of {action[name]}" for name, word in (("min", "minimum"), ("max", "maximum")) if name in action
    ]
    return " and ".join(parts)


def _evaluation(facts: ExplanationInput) -> CronEvaluation:
    """Evaluate the rules at the explained time.

    Progress and histories belong to the present. At another time every firing since the object was created counts.
    """
    item = stored_form(facts.object)
    created = facts.created if facts.created is not None else facts.at
    metadata = {"uid": "", "resourceVersion": "", **item["metadata"], "creationTimestamp": format_instant(created)}
    if not _is_recorded(facts):
        metadata = {name: part for name, part in metadata.items() if name != "annotations"}
    status = {"executionHistories": list(histories_in(facts.status).values())} if _is_recorded(facts) else {}
    extended = {"spec": item.get("spec"), "metadata": metadata, "status": status}
    record = record_of(extended)
    spec = compile_cron(record, facts.default_zone)
    return evaluate(record, spec, facts.calendars, default_zone=facts.default_zone, now=facts.at)


def _executions(histories: Mapping[str, Mapping[str, Any]]) -> Iterator[_RecordedExecution]:
    for rule, history in histories.items():
        for name in ("successfulExecutions", "failedExecutions"):
            for entry in history.get(name) or ():
                due, done = instant_of(entry.get("scheduleTime")), instant_of(entry.get("executionTime"))
                if due is None or done is None:
                    continue
                action = {field: entry[key] for field, key in APPLIED_FIELDS.items() if isinstance(entry.get(key), int)}
                message = str(entry.get("message") or "it failed") if name == "failedExecutions" else ""
                yield _RecordedExecution(rule, due, done, action, message)


def _claims(
    facts: ExplanationInput, evaluation: CronEvaluation, executions: Sequence[_RecordedExecution]
) -> dict[str, _RecordedExecution]:
    """Find for each field the execution that set it last; without records, the firing that should have."""
    if _is_recorded(facts):
        recorded: dict[str, _RecordedExecution] = {}
        for one in sorted((one for one in executions if not one.message), key=lambda one: one.order):
            recorded |= dict.fromkeys(one.action, one)
        return recorded
    candidates = evaluation.candidates
    actions = {one.name: one.action for one in candidates}
    winners = field_winners(candidates, latest_claims(candidates, facts.at), (), facts.at)
    return {
        field: _RecordedExecution(claim.rule, claim.at, claim.at, actions[claim.rule])
        for field, claim in winners.items()
    }


def _is_recorded(facts: ExplanationInput) -> bool:
    """Return whether the status says what was done until the explained time."""
    return facts.present and bool(facts.status)


def _because(facts: ExplanationInput, claims: Mapping[str, _RecordedExecution], zone: Zone) -> Iterator[str]:
    for order, claim in sorted({claim.order: claim for claim in claims.values()}.items()):
        fields = {name: claim.action[name] for name, owner in sorted(claims.items()) if owner.order == order}
        when = date_and_time(claim.due, zone)
        if _is_recorded(facts):
            late = f", {claim.done - claim.due} s late" if claim.done - claim.due > 1 else ""
            yield f"rule `{claim.rule}` set {action_sentence(fields)} on {when}{late}"
        else:
            verb = "was" if facts.present else "is"
            yield f"rule `{claim.rule}` {verb} due on {when}, with {action_sentence(fields)}"
    if not claims:
        yield ("no rule has been applied yet" if _is_recorded(facts) else "no rule has fired since it was created")
    yield from target_sentences(facts)


def _next(evaluation: CronEvaluation, zones: Mapping[str, Zone]) -> list[UpcomingChange]:
    """Return the next firing of each rule, in the order in which they come."""
    found = []
    for place, one in enumerate(evaluation.candidates):
        at = evaluation.plan.next.get(one.name)
        if at is not None:
            zone = zones[one.name]
            because = f"rule `{one.name}` fires ({clock_time(at, zone)})"
            if winner := _overruling(one, evaluation.candidates[place + 1 :], at):
                because += f", and rule `{winner}` wins, as it is listed last"
            found.append(UpcomingChange(at, dict(one.action), one.name, because, zone.name))
    return sorted(found, key=lambda coming: coming.at)


def _overruling(one: CandidateRule, later: Sequence[CandidateRule], at: int) -> str:
    """Name the rule that fires at the same instant and sets the same, if there is one; the last of them wins."""
    winners = [
        other.name
        for other in later
        if other.ended is None
        and not other.action.keys().isdisjoint(one.action)
        and other.firings.at_or_before(at) == at
    ]
    return winners[-1] if winners else ""


def _overdue(
    facts: ExplanationInput,
    histories: Mapping[str, Mapping[str, Any]],
    evaluation: CronEvaluation,
    zones: Mapping[str, Zone],
) -> Iterator[Blocker]:
    """Report a controller that has not recorded the firing that it announced; a retry announces the next firing."""
    if not facts.present or facts.paused:
        return
    in_force = {one.name for one in evaluation.candidates if one.ended is None}
    announced = [
        (due, rule)
        for rule, history in histories.items()
        if rule in in_force and (due := instant_of(history.get("nextExecutionTime"))) is not None
    ]
    due, rule = min(announced, default=(facts.at, ""))
    if rule and facts.at - due > _USUAL_DELAY:
        yield Blocker(
            f"nothing has been done since {date_and_time(due, zones[rule])}",
            f"rule `{rule}` was to fire then, and no controller has recorded what became of it: check that"
            f" `springtide controller` runs and leads, with {_CONTROLLER}",
        )


def _suspended(cron: CronFederatedHPA | None) -> Iterator[Blocker]:
    for rule in cron.spec.rules if cron is not None else ():
        if rule.suspend:
            yield Blocker(
                f"rule `{rule.name}` does not fire", "it is suspended; what is due meanwhile is not applied later"
            )


def _failures(executions: Sequence[_RecordedExecution], zone: Zone) -> Iterator[Blocker]:
    """Report rules whose latest execution failed or was missed."""
    latest: dict[str, _RecordedExecution] = {}
    for one in sorted(executions, key=lambda one: one.order):
        latest[one.rule] = one
    for one in latest.values():
        if one.message:
            what = "missed" if one.message.startswith(MISSED_PREFIX.strip()) else "failed"
            why = one.message.removeprefix(MISSED_PREFIX.strip()).strip()
            yield Blocker(f"rule `{one.rule}` {what} on {date_and_time(one.due, zone)}", why)


def _changed_since(facts: ExplanationInput, wants: Mapping[str, int]) -> Iterator[Blocker]:
    """Report values of the target that differ from what a rule has set."""
    target = facts.target
    if target is None or target.trouble or not _is_recorded(facts):
        return
    other = {
        name: target.values[name] for name in wants if name in target.values and target.values[name] != wants[name]
    }
    if other:
        before = action_sentence({name: wants[name] for name in other})
        yield Blocker(
            f"{target.label} has {action_sentence(other)} now",
            f"a user or another controller has changed that since a rule set {before}; rules act when they fire, and"
            " not in between",
        )


def _history(facts: ExplanationInput, executions: Sequence[_RecordedExecution]) -> list[PastEvent]:
    newest = sorted(executions, key=lambda one: one.order, reverse=True)[:_LISTED]
    done = [
        PastEvent(
            one.done,
            f"rule `{one.rule}` of {format_instant(one.due)}: {one.message or action_sentence(one.action)}",
            bool(one.message),
        )
        for one in newest
    ]
    events = [one for one in facts.events if not (done and one.what.startswith(_EXECUTION_EVENTS))]
    return sorted((*done, *events), key=lambda one: -one.at)
