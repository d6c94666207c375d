"""Conditions as this API group writes them: true is happy, and `Ready` holds when all others do.

They are older than the conditions of Kubernetes itself: a severity may stand there, a reason need not.
"""

from __future__ import annotations

from typing import Annotated, Literal

from springtide.apis.fields import Time, View, by_key, doc


class LivingCondition(View, kw_only=True):
    """One observation about an object; true is always the good news."""

    type: Annotated[str, doc("What is observed, in CamelCase.")]
    status: Annotated[Literal["True", "False", "Unknown"], doc("Whether it holds.")]
    severity: Annotated[
        str | None, doc("How bad it is if it does not hold: empty is an error, else Warning or Info.")
    ] = None
    last_transition_time: Annotated[Time | None, doc("When the status last changed.")] = None
    reason: Annotated[str | None, doc("Why, in one CamelCase word.")] = None
    message: Annotated[str | None, doc("Why, in a sentence.")] = None


LivingConditions = Annotated[tuple[LivingCondition, ...], by_key("type")]
