"""Label selectors as requests write them, such as `name=shop` or `name in (shop,depot),namespace!=test`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from springtide.cluster.errors import BadRequest

_LABEL = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_ONE_VALUE = re.compile(_VALUE)
_REQUIREMENT = re.compile(
    rf"""\s*(?:
        (?P<absent>!)\s*(?P<missing>{_LABEL})
      | (?P<listed>{_LABEL})\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\)
      | (?P<compared>{_LABEL})\s*(?P<sign>==|=|!=)\s*(?P<value>{_VALUE})
      | (?P<present>{_LABEL})
    )\s*(?:(?P<comma>,)|$)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one label must, or must not, be."""

    label: str
    values: frozenset[str] | None
    """None: any value, the label only has to be there."""
    wanted: bool = True
    """Whether it must be so; else it must not, and a label that is not there is never so."""

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Tell whether these labels are as required."""
        value = labels.get(self.label)
        found = value is not None and (self.values is None or value in self.values)
        return found is self.wanted


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that all have to hold; none: everything is meant."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Read a selector; raises `BadRequest` with what was not understood."""
        requirements: list[Requirement] = []
        position, more = 0, bool(text.strip())
        while more:
            match = _REQUIREMENT.match(text, position)
            if match is None or not all(_ONE_VALUE.fullmatch(value) for value in _listed(match)):
                rest = text[position:].strip()
                raise BadRequest(
                    f"labelSelector {text!r}: {rest!r} is not a requirement,"
                    " expected such as name=shop, name!=shop, name in (shop,depot), name or !name"
                )
            requirements.append(_requirement(match))
            position, more = match.end(), match["comma"] is not None
        return cls(tuple(requirements))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether something with these labels is meant."""
        return all(requirement.holds(labels) for requirement in self.requirements)


def _listed(match: re.Match[str]) -> list[str]:
    """Give the values that stand in brackets, if any do.

    They are told apart here: a pattern that finds the spaces around each can be led to try all ways of sharing them.
    """
    return [value.strip() for value in match["values"].split(",")] if match["listed"] else []


def _requirement(match: re.Match[str]) -> Requirement:
    if match["absent"]:
        return Requirement(match["missing"], None, wanted=False)
    if match["present"]:
        return Requirement(match["present"], None)
    if match["listed"]:
        return Requirement(match["listed"], frozenset(_listed(match)), wanted=match["word"] == "in")
    return Requirement(match["compared"], frozenset((match["value"],)), wanted=match["sign"] != "!=")
