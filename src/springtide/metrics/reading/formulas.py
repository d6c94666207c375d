"""The subset of PromQL that is evaluated in process, as a syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

LABELS = ("name", "namespace")
"""The labels of series in process; Prometheus adds more to scraped series."""

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""Labels with their values, ordered by name."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on one label."""

    label: str
    accepts: Callable[[str], bool]
    written: str
    only: str | None = None
    """The only value that it accepts; None: there may be several."""
    steps: int = 0
    """The cost of matching one character of a value, in steps; 0: a comparison."""


@dataclass(frozen=True, slots=True)
class LabelSet:
    """The labels by which samples are matched or grouped: `by` and `on`, or `without` and `ignoring`."""

    labels: tuple[str, ...]
    only: bool
    """Whether these labels are used; otherwise all others."""

    def of(self, labels: Labels) -> Labels:
        """Return the labels that are used."""
        return tuple((label, value) for label, value in labels if (label in self.labels) == self.only)


@dataclass(frozen=True, slots=True)
class Number:
    """A number literal; None is NaN."""

    value: Fraction | None


@dataclass(frozen=True, slots=True)
class Selector:
    """The series of a metric that all matchers accept."""

    metric: str
    matchers: tuple[Matcher, ...]
    written: str

    @property
    def name(self) -> str | None:
        """The name of the only object that it can select; None: there may be several."""
        return next((one.only for one in self.matchers if one.label == "name" and one.only is not None), None)


@dataclass(frozen=True, slots=True)
class ScalarVector:
    """A scalar as a vector of one sample without labels: `vector(3)`."""

    number: Formula


@dataclass(frozen=True, slots=True)
class Negation:
    """Unary minus of a number or of all samples of a vector."""

    inner: Formula


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A binary operation on two numbers, on a number and every sample, or on samples with matching labels."""

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
    """`or`: the samples of the left side, and those of the right side without matching labels on the left."""

    left: Formula
    right: Formula
    matching: LabelSet


Formula: TypeAlias = Number | Selector | ScalarVector | Negation | Arithmetic | Aggregation | Union


def selectors(formula: Formula) -> Iterator[Selector]:
    """Yield all selectors, from left to right."""
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
