"""The parsers of YAML: libyaml's where it is installed, for it is ten times as fast, else PyYAML's own.

Both must read alike, so the portable one is brought into line here. What is left are oddities inside of unquoted
values, a tab or a lone question mark, which only libyaml takes.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import yaml
from yaml.scanner import ScannerError


class EventSource(Protocol):
    """A parser at work."""

    def check_event(self) -> bool:
        """Tell whether another event follows."""
        ...

    def get_event(self) -> Any:
        """Take the next event."""
        ...


class ParserFactory(Protocol):
    """What makes a parser of a text."""

    def __call__(self, stream: str, /) -> EventSource:
        """Begin to parse."""
        ...


class PortableParser(yaml.SafeLoader):
    """PyYAML's own parser, as lenient and as strict as libyaml."""

    def scan_to_next_token(self) -> None:
        """Skip tabs too, except where they would indent."""
        super().scan_to_next_token()
        while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
            self.forward()
            super().scan_to_next_token()

    def scan_flow_scalar(self, style: str) -> Any:
        """Give an error of YAML for an escape that is no character of Unicode."""
        try:
            return super().scan_flow_scalar(style)
        except (ValueError, OverflowError):
            problem = "found invalid Unicode character escape code"
            raise ScannerError("while parsing a quoted scalar", None, problem, self.get_mark()) from None


fastest_parser: Final[ParserFactory] = getattr(yaml, "CSafeLoader", PortableParser)
