"""Provisioning classes: what they are called today, what they were called before, and what they take.

The names have changed twice. All of them lead to the same two engines, and what the user wrote is never rewritten:
pods name the class too, and must name it the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from springtide.apis.problems import Problem, error, warning
from springtide.apis.suggestions import nearest
from springtide.quantity import DurationError, parse_duration

CHECK_CAPACITY = "check-capacity.autoscaling.x-k8s.io"
ATOMIC_SCALE_UP = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CLASSES = (CHECK_CAPACITY, ATOMIC_SCALE_UP)

FORMER_NAMES = {
    "check-capacity.kubernetes.io": CHECK_CAPACITY,
    "atomic-scale-up.kubernetes.io": ATOMIC_SCALE_UP,
    "best-effort-atomic-scale-up.kubernetes.io": ATOMIC_SCALE_UP,
}

VALID_UNTIL = "ValidUntilSeconds"
NO_RETRY = "noRetry"
PROCESSOR_INSTANCE = "processorInstance"
_PARAMETERS = (VALID_UNTIL, NO_RETRY, PROCESSOR_INSTANCE)

_SECONDS = re.compile(r"[0-9]+", re.ASCII)
_NANOSECONDS = 10**9


def engine_of(class_name: str) -> str | None:
    """Give today's name of a class that we provide, under whichever of its names; None for classes of others."""
    return class_name if class_name in CLASSES else FORMER_NAMES.get(class_name)


def class_problems(class_name: str) -> Iterator[Problem]:
    """Find names that are out of date, misspelt, or somebody else's."""
    if class_name in CLASSES:
        return
    if class_name in FORMER_NAMES:
        today = FORMER_NAMES[class_name]
        yield warning((), f"`{class_name}` is a former name of `{today}`, and is read as that", f"write `{today}`")
        return
    guess = nearest(class_name, (*CLASSES, *FORMER_NAMES))
    hint = f"did you mean `{engine_of(guess)}`?" if guess is not None else f"ours are {' and '.join(CLASSES)}"
    yield warning((), f'class "{class_name}" is not ours: the request is left to whoever provides it', hint)


def valid_for(text: str) -> int:
    """Read how long a request is retried, in whole seconds: a number of seconds, or a duration such as `2h`.

    Raises `ValueError` for what is neither, and for what is over before it begins.
    """
    if _SECONDS.fullmatch(text):
        seconds = int(text)
    else:
        try:
            seconds = parse_duration(text) // _NANOSECONDS
        except DurationError as failure:
            msg = f'"{text}" is neither a number of seconds nor a duration'
            raise ValueError(msg) from failure
    if seconds < 1:
        msg = f'"{text}" is over before it begins'
        raise ValueError(msg)
    return seconds


def parameter_problems(parameters: Mapping[str, str] | None, class_name: str) -> Iterator[Problem]:
    """Find values that our classes cannot use; names that nobody knows may be anybody's and are left alone."""
    engine = engine_of(class_name)
    if engine is None:
        return
    for name, value in (parameters or {}).items():
        if name == VALID_UNTIL:
            try:
                valid_for(value)
            except ValueError as failure:
                yield error((name,), str(failure), 'write seconds, such as "7200", or a duration, such as "2h"')
        elif name == NO_RETRY and engine != CHECK_CAPACITY:
            yield warning((name,), f"`{NO_RETRY}` has no effect here", f"it is a parameter of `{CHECK_CAPACITY}`")
        elif name == NO_RETRY and value not in ("true", "false"):
            yield warning((name,), f'"{value}" is read as false: the request is retried', 'write "true" or "false"')
        else:
            yield from _spelling_problems(name)


def _spelling_problems(name: str) -> Iterator[Problem]:
    for known in _PARAMETERS:
        if name != known and name.lower() == known.lower():
            yield warning((name,), f"`{name}` has no effect: upper and lower case count", f"write `{known}`")
