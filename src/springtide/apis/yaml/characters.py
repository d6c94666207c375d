"""Characters that no YAML text may hold, and where they stand."""

from __future__ import annotations

import re
from typing import Final

from springtide.apis.yaml.refusal import RefusedError

LINE_BREAK: Final = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
BYTE_ORDER_MARK: Final = "\ufeff"
_NOT_TEXT: Final = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def check_characters(text: str) -> None:
    """Refuse a text with control characters, halves of characters, or bytes that were no UTF-8."""
    match = _NOT_TEXT.search(text)
    if match is None:
        return
    breaks = list(LINE_BREAK.finditer(text, 0, match.start()))
    column = match.start() - (breaks[-1].end() if breaks else 0)
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        message, hint = f"the byte 0x{code - 0xDC00:02X} is not UTF-8", "save the file as UTF-8"
    elif match[0] == BYTE_ORDER_MARK:
        message, hint = "a byte order mark stands inside the file", "remove it; were two files joined here?"
    else:
        message, hint = f"the character U+{code:04X} cannot stand in YAML", "remove it"
    raise RefusedError(len(breaks), column, message, hint)
