"""Regular expressions in rules: `find` and `findAll`, beside the `matches` that CEL has."""

from __future__ import annotations

import re

from springtide.simulator.api.custom.patterns import PatternError, compile_go
from springtide.simulator.api.custom.rules.library.signatures import Signature


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return compile_go(pattern)
    except PatternError as error:
        raise ValueError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    found = _compiled(pattern).search(text)
    return found.group() if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match.group() for match in _compiled(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


EXPRESSIONS = (
    Signature("find", ("STRING", "STRING"), "STRING", _find),
    Signature("findAll", ("STRING", "STRING"), "LIST", _find_all),
    Signature("findAll", ("STRING", "STRING", "INT"), "LIST", _find_all),
)
