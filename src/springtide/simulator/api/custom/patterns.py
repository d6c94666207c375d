"""Regular expressions as the server reads them: Go's dialect, which has neither look-around nor back-references.

jsonschema-rs brings an engine of the same family, which takes linear time and has ASCII classes. What its front-end
does not take (`\\z`, `(?P<name>…)`) goes to Python's, after the constructs that Go lacks have been refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import jsonschema_rs

LINEAR: Final = jsonschema_rs.RegexOptions()

_NOT_IN_GO: Final = re.compile(r"\(\?(?:=|!|<=|<!|>|P=|\()|\\[1-9]")


class PatternError(ValueError):
    """A text that is not a regular expression of Go's dialect."""


@lru_cache(maxsize=4096)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Give a function that tells whether a text has a match anywhere."""
    if is_linear(pattern):
        judge: Callable[[str], bool] = jsonschema_rs.Draft7Validator(
            {"pattern": pattern}, pattern_options=LINEAR
        ).is_valid
        return judge
    compiled = compile_go(pattern)
    return lambda text: compiled.search(text) is not None


def is_pattern(text: str) -> bool:
    """Tell whether a text is a regular expression of Go's dialect."""
    try:
        return is_linear(text) or compile_go(text) is not None
    except PatternError:
        return False


@lru_cache(maxsize=4096)
def is_linear(pattern: str) -> bool:
    """Tell whether the linear-time engine takes the pattern as it is."""
    try:
        jsonschema_rs.Draft7Validator({"pattern": pattern}, pattern_options=LINEAR)
    except jsonschema_rs.ValidationError:
        return False
    return True


@lru_cache(maxsize=4096)
def compile_go(pattern: str) -> re.Pattern[str]:
    """Compile an expression of Go's dialect with Python's engine."""
    foreign = _NOT_IN_GO.search(re.sub(r"\\\\", "", pattern))
    if foreign is not None:
        raise PatternError(f"error parsing regexp: invalid or unsupported Perl syntax: `{foreign.group()}`")
    translated = pattern.replace("\\z", "\\Z")
    if translated.endswith("$") and not translated.endswith("\\$"):
        translated = translated[:-1] + "\\Z"
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"error parsing regexp: {error}") from None
