"""The refusal of a text that the grammar of YAML allows, or that no parser should see."""

from __future__ import annotations


class RefusedError(Exception):
    """What is wrong with a text, where (counted from zero), and what to do about it."""

    def __init__(self, line: int, column: int, message: str, hint: str) -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.message = message
        self.hint = hint
