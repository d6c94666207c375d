"""What `springtide explain` says about a workload or an autoscaler of another project: what scales it, and why.

A workload is scaled by autoscalers and cron rules, and a HorizontalPodAutoscaler has its bounds moved by cron rules.
Each of them is explained, and their explanations are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from springtide.apis.objects import LoadedObject
from springtide.controllers.explanation import Blocker, Explanation, ExplanationInput, target_sentences

_LISTED = 5
_SCALING_CONDITIONS = ("AbleToScale", "ScalingActive", "Ready")
"""Conditions of autoscalers of other projects; workloads have others."""
_BOUNDS = (("minReplicas", "maxReplicas"), ("minReplicaCount", "maxReplicaCount"))


@dataclass(frozen=True, slots=True)
class _ExplainedScaler:
    """An object that scales the target, and its explanation."""

    label: str
    command: str
    explanation: Explanation


def explain_target(facts: ExplanationInput, explain: Callable[[ExplanationInput], Explanation]) -> Explanation:
    """Explain an object by the explanations of what scales it; `explain` makes these."""
    scalers = [_scaler(scaler, explain(scaler)) for scaler in facts.scalers]
    wanting = [one for one in scalers if any(value is not None for value in one.explanation.wants.values())]
    several = len(scalers) > 1

    def told(one: _ExplainedScaler, text: str) -> str:
        return f"{one.label}: {text}" if several else text

    changes = sorted(
        (replace(change, because=told(one, change.because)) for one in scalers for change in one.explanation.next),
        key=lambda change: (change.at, change.lane, change.because),
    )
    past = [happened for one in scalers for happened in one.explanation.history]
    reasons = (told(one, text) for one in scalers for text in one.explanation.because)
    return Explanation(
        subject=facts.subject,
        zone=scalers[0].explanation.zone if scalers else facts.default_zone,
        wants=dict(wanting[0].explanation.wants) if wanting else {},
        headline=_headline(facts, scalers, wanting),
        because=tuple(
            dict.fromkeys((*_roles(facts, scalers), *_own_bounds(facts), *reasons, *target_sentences(facts)))
        ),
        next=tuple(changes[:_LISTED]),
        next_unknown="; ".join(
            told(one, one.explanation.next_unknown) for one in scalers if one.explanation.next_unknown
        ),
        stopped=(
            *(replace(stop, what=told(one, stop.what)) for one in scalers for stop in one.explanation.stopped),
            *_own_blockers(facts),
        ),
        conditions=facts.conditions,
        history=tuple(sorted((*past, *facts.events), key=lambda one: (-one.at, one.what))[:_LISTED]),
        notes=(*(f"`{one.command}` says more about it" for one in scalers), *facts.unknown),
    )


def _scaler(facts: ExplanationInput, explanation: Explanation) -> _ExplainedScaler:
    one = facts.object
    where = "" if one.namespace is None else f" -n {one.namespace}"
    return _ExplainedScaler(_label(one), f"springtide explain {one.kind.kind.lower()}/{one.name}{where}", explanation)


def _label(loaded: LoadedObject) -> str:
    return f"{loaded.kind.kind} `{loaded.name}`"


def _headline(facts: ExplanationInput, scalers: Sequence[_ExplainedScaler], wanting: Sequence[_ExplainedScaler]) -> str:
    if wanting:
        return f"{wanting[0].explanation.headline}, as {wanting[0].label} says"
    if scalers:
        return f"{scalers[0].label}: {scalers[0].explanation.headline}"
    bounded = next(_own_bounds(facts), "")
    return f"what it is set to: nothing {'of Springtide sets its bounds' if bounded else 'scales it'}"


def _roles(facts: ExplanationInput, scalers: Sequence[_ExplainedScaler]) -> Iterator[str]:
    """Say what each scaler sets."""
    moved = "its bounds" if next(_own_bounds(facts), "") else "its replicas"
    for one in scalers:
        yield f"{one.label} sets {moved}"


def _own_blockers(facts: ExplanationInput) -> Iterator[Blocker]:
    """Report what keeps an autoscaler of another project from scaling."""
    for one in facts.conditions:
        if facts.present and one.type in _SCALING_CONDITIONS and one.status == "False":
            yield Blocker(f"{one.type} is False", one.message or one.reason)


def _own_bounds(facts: ExplanationInput) -> Iterator[str]:
    """Say between which bounds an autoscaler of another project scales, and what."""
    spec = facts.object.value.get("spec")
    reference = spec.get("scaleTargetRef") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(reference, dict):
        return
    for least, most in _BOUNDS:
        if isinstance(spec.get(most), int):
            target = f"{reference.get('kind', 'Deployment')} `{reference.get('name', '')}`"
            yield f"it scales {target} between {spec.get(least, 1)} and {spec[most]} replicas"
