"""Warnings that a server sends along with its answers: a deprecated version, a field that means nothing."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

log = logging.getLogger(__name__)

_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_MOST = 1000
"""So many texts are remembered; a server that makes up new ones with every answer is not listened to for ever."""


class Warnings:
    """Logs every warning once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def hear(self, headers: Iterable[str]) -> None:
        """Take note of the `Warning` headers of an answer."""
        for header in headers:
            for text in _WARNING.findall(header):
                if text not in self._told and len(self._told) < _MOST:
                    self._told.add(text)
                    log.warning("the server warns: %s", re.sub(r"\\(.)", r"\1", text))
