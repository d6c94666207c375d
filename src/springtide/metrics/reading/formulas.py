"""The part of PromQL that is answered in process, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

LABELS = ("name", "namespace")
"""The labels that series of ours have before Prometheus adds its own."""

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""Labels with their values, in the order of the names of labels."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on one label."""

    label: str
    accepts: Callable[[str], bool]
    written: str
    only: str | None = None
    """The one value that it accepts, where there is just one."""
    steps: int = 0
    """What each character of a value may take, where it is more than a comparison."""


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Which labels count when samples are compared or grouped, or stay when they are: `by` and `on`, or all others."""

    labels: tuple[str, ...]
    only: bool
    """Whether just these; otherwise all but these."""

    def of(self, labels: Labels) -> Labels:
        """Give those that count."""
        return tuple((label, value) for label, value in labels if (label in self.labels) == self.only)


@dataclass(frozen=True, slots=True)
class Number:
    """A number that is written in the query; None is NaN."""

    value: Fraction | None


@dataclass(frozen=True, slots=True)
class Selector:
    """The series of a metric that meet all conditions."""

    metric: str
    matchers: tuple[Matcher, ...]
    written: str

    @property
    def name(self) -> str | None:
        """The name of the one object whose series it can be; None where there may be others."""
        return next((one.only for one in self.matchers if one.label == "name" and one.only is not None), None)


@dataclass(frozen=True, slots=True)
class ScalarVector:
    """A number as a vector of one sample without labels: `vector(3)`."""

    number: Formula


@dataclass(frozen=True, slots=True)
class Negation:
    """A number, or all samples of a vector, with the other sign."""

    inner: Formula


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """An operation on two numbers, on a number and every sample, or on samples whose labels are the same."""

    operator: str
    left: Formula
    right: Formula
    matching: LabelSet
    written: str


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One sample for each group of samples."""

    operator: str
    inner: Formula
    grouping: LabelSet


@dataclass(frozen=True, slots=True)
class Union:
    """The samples of the left side, and those of the right side whose labels the left side does not have."""

    left: Formula
    right: Formula
    matching: LabelSet


Formula: TypeAlias = Number | Selector | ScalarVector | Negation | Arithmetic | Aggregation | Union


def selectors(formula: Formula) -> Iterator[Selector]:
    """Give all selectors, from left to right."""
    match formula:
        case Selector():
            yield formula
        case ScalarVector():
            yield from selectors(formula.number)
        case Negation() | Aggregation():
            yield from selectors(formula.inner)
        case Arithmetic() | Union():
            yield from selectors(formula.left)
            yield from selectors(formula.right)
        case Number():
            return
