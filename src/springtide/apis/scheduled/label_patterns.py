"""Regular expressions of PromQL label matchers (`=~` and `!~`), run by RE2.

Users write these patterns, so no pattern may stall the process. RE2 matches in time linear in the length of the value,
whatever the pattern is, and refuses to compile a pattern that needs more memory than it is given. Prometheus runs the
same dialect: a pattern must match the whole value, and `.` matches a newline, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

MAX_MEMORY = 256 * 1024
"""Bytes for the program of one pattern and the states that matching builds."""
_REMEMBERED = 1024
_INSTRUCTIONS_PER_STEP = 10
"""Instructions that RE2 executes in the worst case in about 50 ns."""
_ONE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
_TOO_LARGE = "pattern too large"


class PatternError(ValueError):
    """A pattern that cannot be used; the message says why."""


class OversizedPatternError(PatternError):
    """A valid pattern that needs more memory than a pattern gets here."""


@dataclass(frozen=True, slots=True)
class LabelPattern:
    """A compiled pattern."""

    steps_per_character: int
    """What matching one character of a value costs at most, in steps of about 50 ns."""
    _program: Any = field(repr=False)

    def matches(self, value: str) -> bool:
        """Return whether the pattern matches the whole value."""
        return self._program.fullmatch(value) is not None


@lru_cache(maxsize=_REMEMBERED)
def compile_pattern(pattern: str) -> LabelPattern:
    """Compile a pattern; raises `PatternError`."""
    import re2

    if _ONE_BYTE.search(pattern):
        # RE2 has it, Prometheus' engine does not: it would match a part of a character.
        raise PatternError("invalid escape sequence: \\C")
    options = re2.Options()
    options.dot_nl = True
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    options.never_capture = True
    try:
        program = re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        if reason.startswith(_TOO_LARGE):
            raise OversizedPatternError(f"it needs more than {MAX_MEMORY // 1024} KiB of memory") from error
        raise PatternError(reason) from error
    except UnicodeEncodeError as error:
        raise PatternError("it has a character that is not valid Unicode") from error
    return LabelPattern(1 + program.programsize // _INSTRUCTIONS_PER_STEP, program)
