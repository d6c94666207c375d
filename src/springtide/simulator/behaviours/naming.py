"""Names of what controllers make: each follows from what it is for, so that making it twice makes it once.

A create whose answer was lost, or that a former leader sends late, bears the name that its repetition will bear, and
the server refuses the second of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

# Without vowels and look-alike digits no suffix spells a word: the letters that Kubernetes takes for the same reason.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX = 5
_LONGEST = 63


def child_name(owner: Any, number: int, purpose: str = "") -> str:
    """Name the child with a number of an owner, among those for one purpose."""
    metadata = owner["metadata"]
    suffix = letters(f"{metadata['uid']}/{purpose}/{number}", _SUFFIX)
    return f"{metadata['name'][: _LONGEST - _SUFFIX - 1]}-{suffix}"


def free_names(owner: Any, taken: Callable[[str], bool], purpose: str = "") -> Iterator[str]:
    """Name children of an owner, passing over names that are taken; a name may come again when its bearer is gone."""
    number = 0
    while True:
        name = child_name(owner, number, purpose)
        if not taken(name):
            yield name
        number += 1


def template_hash(template: Any, salt: int = 0) -> str:
    """Give the short text that tells pod templates apart."""
    return letters(json.dumps([template, salt], sort_keys=True, separators=(",", ":")), 10)


def letters(text: str, length: int) -> str:
    """Spell a text in a few letters, the same ones every time."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest())
    spelt = []
    for _ in range(length):
        number, letter = divmod(number, len(_LETTERS))
        spelt.append(_LETTERS[letter])
    return "".join(spelt)
