"""Questions to a person at a terminal, whose answers can be given on the command line as well.

An answer is checked at once, by the same function wherever it comes from. At a terminal a wrong one is told and asked
again; on the command line it ends the command. Without a terminal nothing is asked: all that is missing is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

import click

from springtide.cli.screen import speaks_unicode

A = TypeVar("A")


class AnswerError(ValueError):
    """An answer that cannot be used: why, what to write instead, and what was probably meant."""

    def __init__(self, message: str, hint: str = "", offer: str | None = None) -> None:
        self.message = message
        self.hint = hint
        self.offer = offer
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Question(Generic[A]):
    """What is asked, how the answer is given on the command line, and how it is read."""

    option: str
    text: str
    read: Callable[[str], A]
    """Turns an answer into what it means; raises `AnswerError`."""
    default: str | None = None


class Interview:
    """Asks questions, or takes the answers that were given."""

    def __init__(self, *, interactive: bool) -> None:
        if interactive:
            with suppress(ImportError):
                import readline  # noqa: F401 - so that arrow keys move instead of writing what they send
        self.interactive = interactive
        self._missing: list[str] = []

    def one(self, question: Question[A], given: str | None) -> A | None:
        """Get one answer; None where there is nobody to ask, which `complete` then reports."""
        if given is not None:
            return _accept(question, given)
        if self.interactive:
            return _asked(question, question.default)
        if question.default is not None:
            return _accept(question, question.default)
        self._missing.append(question.option)
        return None

    def several(
        self, question: Question[A], given: Sequence[str], judge: Callable[[list[A]], None], *, needed: bool
    ) -> list[A]:
        """Get answers until an empty one; `judge` sees all of them after each, and may refuse the last."""
        answers: list[A] = []
        for text in given:
            answers = _accept(_judged(question, answers, judge), text)
        if given or not self.interactive:
            if needed and not answers:
                self._missing.append(question.option)
            return answers
        while True:
            text = click.prompt(question.text, default="", show_default=False, err=True).strip()
            if not text and (answers or not needed):
                return answers
            try:
                answers = _judged(question, answers, judge).read(text)
            except AnswerError as failure:
                _tell(failure)

    def complete(self) -> None:
        """End the command if answers are missing, and name all of them."""
        if self._missing:
            needed = ", ".join(self._missing)
            raise click.UsageError(f"there is no terminal to ask at, and these are missing: {needed}")

    def agreed(self, text: str) -> bool:
        """Ask for leave to do what cannot be undone; no answer is a no, and so is nobody to ask."""
        return self.interactive and click.confirm(text, default=False, err=True)


def _judged(question: Question[A], before: list[A], judge: Callable[[list[A]], None]) -> Question[list[A]]:
    """Ask for one answer more, which is judged together with those before."""

    def read(text: str) -> list[A]:
        answers = [*before, question.read(text)]
        judge(answers)
        return answers

    return Question(question.option, question.text, read)


def _accept(question: Question[A], text: str) -> A:
    try:
        return question.read(text.strip())
    except AnswerError as failure:
        message = failure.message + (f"; {failure.hint}" if failure.hint else "")
        raise click.BadParameter(message, param_hint=question.option) from None


def _asked(question: Question[A], default: str | None) -> A:
    while True:
        text = click.prompt(question.text, default=default, err=True, show_default=bool(default))
        try:
            return question.read(text.strip())
        except AnswerError as failure:
            _tell(failure)
            # What was probably meant is one keystroke away.
            default = failure.offer or default


def _tell(failure: AnswerError) -> None:
    click.echo("  " + click.style(failure.message, fg="red"), err=True)
    if failure.hint:
        click.echo("  " + click.style(f"{'→' if speaks_unicode() else '->'} {failure.hint}", dim=True), err=True)
