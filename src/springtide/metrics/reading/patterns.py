"""Regular expressions of matchers, in time that grows with the length of the text and never explodes.

Patterns are written by users of namespaces, and Python's own engine tries so many ways of matching some of them that a
process would stand still for hours. Prometheus has an engine that cannot be driven to that; this is a small one of the
same kind. It knows what patterns of names are made of (characters, classes, groups, alternatives, repetitions), always
matches a text as a whole, and refuses the rest rather than reading it differently.

Every character that a pattern names is a position. A set of positions, one bit for each, says how far a text can have
come; each character of the text leads from one set to the next (Glushkov's construction).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from operator import or_
from string import ascii_letters, digits
from typing import NoReturn, TypeAlias

_MOST_POSITIONS = 500
_MOST_STEPS = 10 * _MOST_POSITIONS
"""How often parts are put together at most: repetitions of what is empty have no positions to count."""
_DEEPEST = 50
_MOST_KEPT = 256
"""How many characters, and sets of positions, a pattern remembers the consequences of: names are much alike."""
_MOST_MATCHES = 1 << 15
"""How many texts it is remembered of whether a pattern matches them: the same names are looked at again and again."""
_STEPS_AT_LEAST = 4
"""What a character takes that leads nowhere new, in the time that it takes to look at one lead of a pattern."""
_SPACES = "\t\n\f\r "
_CLASSES = {"d": digits, "w": f"{ascii_letters}{digits}_", "s": _SPACES}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class UnknownPattern(ValueError):
    """A pattern that is not understood here; the message says which part."""


@dataclass(frozen=True, slots=True)
class _Span:
    """Characters from one to another."""

    first: str
    last: str


@dataclass(frozen=True, slots=True)
class _Characters:
    """What one position matches."""

    spans: tuple[_Span, ...]
    negated: bool = False

    def __contains__(self, character: str) -> bool:
        return any(span.first <= character <= span.last for span in self.spans) != self.negated


_ANY = _Characters((), negated=True)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a pattern: where a match of it can begin and end, and whether it can be empty."""

    firsts: int = 0
    lasts: int = 0
    empty: bool = True


_Maker: TypeAlias = Callable[[], _Part]
"""Adds a part with positions of its own, as often as it is called: for repetitions."""


@dataclass(slots=True)
class _Positions:
    """The positions of a pattern, and which can follow which."""

    characters: list[_Characters] = field(default_factory=list)
    leads: list[tuple[int, int]] = field(default_factory=list)
    """After any of the first ones, any of the others can follow."""
    steps: int = 0

    def one(self, characters: _Characters) -> _Part:
        """Add a position."""
        if len(self.characters) == _MOST_POSITIONS:
            raise UnknownPattern(f"it has more than {_MOST_POSITIONS} characters, repetitions counted")
        bit = 1 << len(self.characters)
        self.characters.append(characters)
        return _Part(bit, bit, empty=False)

    def then(self, before: _Part, after: _Part) -> _Part:
        """Put a part after another."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise UnknownPattern("it has too many repetitions in each other")
        self._lead(before.lasts, after.firsts)
        return _Part(
            before.firsts | (after.firsts if before.empty else 0),
            after.lasts | (before.lasts if after.empty else 0),
            before.empty and after.empty,
        )

    def again(self, part: _Part) -> _Part:
        """Let a part follow itself, any number of times."""
        self._lead(part.lasts, part.firsts)
        return _Part(part.firsts, part.lasts, empty=True)

    def _lead(self, lasts: int, firsts: int) -> None:
        if lasts and firsts:
            self.leads.append((lasts, firsts))


class Pattern:
    """A pattern that texts are held against."""

    def __init__(self, text: str) -> None:
        self._positions = _Positions()
        self._whole = _Reader(text, self._positions).read()
        self._taking = lru_cache(_MOST_KEPT)(self._taking_now)
        self._after = lru_cache(_MOST_KEPT)(self._after_now)

    @property
    def steps_per_character(self) -> int:
        """How much a character of a text takes at most: it may lead to a set of positions that was not seen before."""
        return _STEPS_AT_LEAST + len(self._positions.leads)

    def matches(self, text: str) -> bool:
        """Tell whether the pattern matches the whole of a text."""
        return _matched(self, text)

    def found(self, text: str) -> bool:
        """Find that out anew."""
        if not text:
            return self._whole.empty
        reachable = self._whole.firsts
        reached = 0
        for character in text:
            reached = reachable & self._taking(character)
            if not reached:
                return False
            reachable = self._after(reached)
        return bool(reached & self._whole.lasts)

    def _taking_now(self, character: str) -> int:
        """Find the positions that a character matches."""
        characters = self._positions.characters
        return reduce(or_, (1 << at for at, each in enumerate(characters) if character in each), 0)

    def _after_now(self, reached: int) -> int:
        """Find the positions that can follow a set of them."""
        return reduce(or_, (firsts for lasts, firsts in self._positions.leads if lasts & reached), 0)


@lru_cache(_MOST_MATCHES)
def _matched(pattern: Pattern, text: str) -> bool:
    return pattern.found(text)


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str, positions: _Positions) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._positions = positions

    def read(self) -> _Part:
        """Read the whole."""
        whole = self._alternatives()
        if self._at < len(self._text):
            self._refuse("a `)` without its `(`")
        return whole()

    def _alternatives(self) -> _Maker:
        choices = [self._sequence()]
        while self._take("|"):
            choices.append(self._sequence())

        def make() -> _Part:
            parts = [choice() for choice in choices]
            return _Part(
                reduce(or_, (part.firsts for part in parts)),
                reduce(or_, (part.lasts for part in parts)),
                any(part.empty for part in parts),
            )

        return make

    def _sequence(self) -> _Maker:
        # A match is of the whole text anyway: anchors around what is not in a group say nothing new.
        if self._depth == 0:
            self._take("^")
        pieces: list[_Maker] = []
        while self._peek() not in ("", "|", ")"):
            if self._depth == 0 and self._text[self._at : self._at + 2] in ("$", "$|"):
                self._at += 1
            else:
                pieces.append(self._repeated(self._atom()))
        return lambda: reduce(self._positions.then, (piece() for piece in pieces), _Part())

    def _repeated(self, atom: _Maker) -> _Maker:
        least, most = self._counts()
        if (least, most) == (1, 1):
            return atom
        self._take("?")  # how greedy it is makes no difference to a whole match
        if self._peek() and self._peek() in "*+?":
            self._refuse("a repetition of a repetition")

        def make() -> _Part:
            together = reduce(self._positions.then, (atom() for _ in range(least)), _Part())
            if most is None:
                return self._positions.then(together, self._positions.again(atom()))
            for _ in range(most - least):
                part = atom()
                together = self._positions.then(together, _Part(part.firsts, part.lasts, empty=True))
            return together

        return make

    def _counts(self) -> tuple[int, int | None]:
        """Read how often something comes: at least, and at most."""
        for mark, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(mark):
                return counts
        if not self._take("{"):
            return 1, 1
        least, comma, most = self._until("}").partition(",")
        if not (least.isdecimal() and (most.isdecimal() or not most)):
            self._refuse("a `{` that begins no repetition")
        if int(least) > _MOST_POSITIONS or (most and not int(least) <= int(most) <= _MOST_POSITIONS):
            self._refuse(f"a repetition that is not within 0 and {_MOST_POSITIONS}")
        if not comma:
            return int(least), int(least)
        return int(least), int(most) if most else None

    def _atom(self) -> _Maker:
        character = self._next()
        match character:
            case "(":
                return self._group()
            case "[":
                characters = self._class()
            case ".":
                characters = _ANY
            case "\\":
                characters = self._escaped()
            case "^" | "$" | "*" | "+" | "?" | "{":
                self._refuse(f"a `{character}` at this place")
            case _:
                characters = _just(character)
        return lambda: self._positions.one(characters)

    def _group(self) -> _Maker:
        if self._take("?"):
            if self._take("P<") or self._take("<"):
                self._until(">")
            elif not self._take(":"):
                self._refuse("a group with flags")
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse(f"more than {_DEEPEST} groups in each other")
        inner = self._alternatives()
        if not self._take(")"):
            self._refuse("a `(` without its `)`")
        self._depth -= 1
        return inner

    def _class(self) -> _Characters:
        negated = self._take("^")
        spans: list[_Span] = []
        while not spans or self._peek() != "]":
            character = self._next()
            if character == "[":
                self._refuse("a `[` within brackets")
            first = self._escaped() if character == "\\" else _just(character)
            if first.negated:
                self._refuse("a negated class within brackets")
            if self._text[self._at : self._at + 1] == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._next()
                spans.append(self._span(first))
            else:
                spans.extend(first.spans)
        self._next()
        return _Characters(tuple(spans), negated)

    def _span(self, first: _Characters) -> _Span:
        character = self._next()
        last = self._escaped() if character == "\\" else _just(character)
        if character == "[" or len(first.spans) + len(last.spans) != 2 or last.negated:
            self._refuse("a range whose ends are not characters")
        if last.spans[0].first < first.spans[0].first:
            self._refuse("a range whose end comes before its beginning")
        return _Span(first.spans[0].first, last.spans[0].first)

    def _escaped(self) -> _Characters:
        character = self._next()
        if character.lower() in _CLASSES:
            spans = tuple(_Span(one, one) for one in _CLASSES[character.lower()])
            return _Characters(spans, negated=character.isupper())
        if character in _CONTROLS:
            return _just(_CONTROLS[character])
        if character.isalnum() or not character.isascii():
            self._refuse(f"`\\{character}`")
        return _just(character)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        if self._at == len(self._text):
            self._refuse("an end that comes too early")
        self._at += 1
        return self._text[self._at - 1]

    def _take(self, mark: str) -> bool:
        found = self._text.startswith(mark, self._at)
        self._at += len(mark) if found else 0
        return found

    def _until(self, mark: str) -> str:
        end = self._text.find(mark, self._at)
        if end < 0:
            self._refuse(f"a `{mark}` that is missing")
        begin, self._at = self._at, end + len(mark)
        return self._text[begin:end]

    def _refuse(self, what: str) -> NoReturn:
        raise UnknownPattern(f"it has {what}")


def _just(character: str) -> _Characters:
    return _Characters((_Span(character, character),))
