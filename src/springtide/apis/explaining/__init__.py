"""What an object wants now, why, what comes next, and what stopped it: for command lines and dashboards alike.

Everything here is pure. Whoever asks gathers the `Facts`: the object, what it has to do with, and the time.
`explain` puts them together to an `Explanation`, in sentences for people and in one stable shape for scripts.
"""

from springtide.apis.explaining.explain import EXPLAINED, explain
from springtide.apis.explaining.explanation import Coming, Explanation, Happening, Observation, Stop, Subject
from springtide.apis.explaining.facts import Facts, TargetState

__all__ = [
    "EXPLAINED",
    "Coming",
    "Explanation",
    "Facts",
    "Happening",
    "Observation",
    "Stop",
    "Subject",
    "TargetState",
    "explain",
]
