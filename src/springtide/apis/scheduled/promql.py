"""A small scan of PromQL for the one mistake that reads like arithmetic: `max(a, b)`.

Aggregations of PromQL work on the samples of one vector, so Prometheus refuses a second argument. What is meant is the
aggregation over the union of both: `max(a or b)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from springtide.apis.problems import Path, Problem, warning

# `quantile`, `topk`, `bottomk`, `count_values`, `limitk` and `limit_ratio` take a parameter first, and are left alone.
_AGGREGATIONS = ("sum", "min", "max", "avg", "group", "count", "stddev", "stdvar")
_CALL = re.compile(rf"\b({'|'.join(_AGGREGATIONS)})\s*(?:(?:by|without)\s*\([^()]*\)\s*)?\(", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Misaggregation:
    """An aggregation with several arguments, and the legal query that it stands for."""

    written: str
    legal: str


def misaggregations(query: str) -> Iterator[Misaggregation]:
    """Find aggregations that are written as functions of several arguments."""
    masked = _without_strings(query)
    for call in _CALL.finditer(masked):
        if masked[: call.start()].endswith(":"):
            continue  # the end of a recording rule's name
        split = _arguments(masked, call.end())
        if split is None or len(split) < 3:
            continue
        pieces = [_as_vector(query[a + 1 : b].strip()) for a, b in pairwise(split)]
        yield Misaggregation(
            written=query[call.start() : split[-1] + 1],
            legal=f"{query[call.start() : call.end()]}{' or '.join(pieces)})",
        )


def query_problems(query: str, path: Path) -> Iterator[Problem]:
    """Warn of queries that Prometheus will refuse."""
    for found in misaggregations(query):
        yield warning(
            path,
            f"`{found.written}` is not PromQL: an aggregation takes one vector, and Prometheus refuses more",
            f"write `{found.legal}`, or list the queries as metrics of their own, of which the highest counts",
        )


def _as_vector(argument: str) -> str:
    """Make a bare number something that `or` can join."""
    return f"vector({argument})" if _NUMBER.fullmatch(argument) else argument


def _without_strings(query: str) -> str:
    """Blank out what stands in quotes, so that commas and brackets there are not taken for syntax."""
    return re.sub(
        r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`",
        lambda quoted: "_" * len(quoted.group()),
        query,
    )


def _arguments(text: str, start: int) -> list[int] | None:
    """Give the positions of the opening bracket, the commas of the call itself, and the closing bracket."""
    marks = [start - 1]
    expected = [")"]
    for position in range(start, len(text)):
        character = text[position]
        if character in _CLOSING:
            expected.append(_CLOSING[character])
        elif character in ")]}":
            if character != expected.pop():
                return None
            if not expected:
                return [*marks, position]
        elif character == "," and len(expected) == 1:
            marks.append(position)
    return None
