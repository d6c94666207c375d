"""The log format: plain lines in a terminal, JSON lines everywhere else.

All code logs with the standard library. The logger `springtide.NAME` is that of a controller (those of modules are
deeper, such as `springtide.cluster.store`); the object that is being reconciled is added to every record, and `extra`
becomes fields. Other libraries log from warnings on.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TextIO

import msgspec

from springtide.apis.redaction import redacted

OURS = "springtide"

_SUBJECT: ContextVar[str] = ContextVar("subject", default="")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
"""What every record has, and a rendering of the message that uvicorn adds; any other attribute came as `extra`."""
_RESET, _DIM = "\x1b[0m", "\x1b[2m"
_COLOURS = {"DEBUG": _DIM, "INFO": "\x1b[32m", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[1;31m"}
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NEEDS_QUOTES = re.compile(r'[\s"=]|^$')


class LogFormat(StrEnum):
    """The format of log records."""

    AUTO = "auto"
    """Text in a terminal, else JSON."""
    TEXT = "text"
    JSON = "json"


def configure(stream: TextIO, level: int | str = logging.INFO, format: LogFormat | str = LogFormat.AUTO) -> None:  # noqa: A002
    """Write all logs of the process to a stream, from a level on; replaces the former configuration."""
    formatter = _formatter(stream, LogFormat(format))
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    threshold = logging.getLevelNamesMapping()[level.upper()] if isinstance(level, str) else level
    root = logging.getLogger()
    for former in root.handlers[:]:
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(max(threshold, logging.WARNING))
    logging.getLogger(OURS).setLevel(threshold)
    logging.captureWarnings(True)


@contextmanager
def log_subject(subject: str) -> Iterator[None]:
    """Add an object to every record that is logged within the block."""
    token = _SUBJECT.set(subject)
    try:
        yield
    finally:
        _SUBJECT.reset(token)


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Format it, with the constant fields first; a stack trace is one field."""
        fields = {"ts": _instant(record), "level": record.levelname.lower(), **_origin(record)}
        fields["message"] = _encodable(record.getMessage())
        if error := _error(self, record):
            fields["error"] = _encodable(error)
        extras = {name: _plain(value) for name, value in _extras(record).items() if name not in fields}
        return msgspec.json.encode({**fields, **extras}).decode()


class TextFormatter(logging.Formatter):
    """Writes a record as one line of text, and its stack trace, if it has one, on lines below."""

    def __init__(self, *, colours: bool) -> None:
        super().__init__()
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """Format it, with time and level in columns, and fields after the message."""
        origin = _origin(record)
        extras = {name: value for name, value in {"object": origin.get("object"), **_extras(record)}.items() if value}
        parts = [
            self._painted(_instant(record), _DIM),
            self._painted(f"{record.levelname:<7}", _COLOURS.get(record.levelname, "")),
            self._painted(f"{origin.get('controller') or record.name.removeprefix(f'{OURS}.')}:", _DIM),
            _printable(record.getMessage()),
            *(self._painted(f"{name}={_quoted(value)}", _DIM) for name, value in extras.items()),
        ]
        line = " ".join(parts)
        error = _error(self, record)
        below = [f"    {_printable(text)}" for text in error.splitlines()] if error else []
        return "\n".join([line, *below])

    def _painted(self, text: str, colour: str) -> str:
        return f"{colour}{text}{_RESET}" if self._colours and colour else text


def _formatter(stream: TextIO, wanted: LogFormat) -> logging.Formatter:
    terminal = stream.isatty()
    if wanted is LogFormat.JSON or (wanted is LogFormat.AUTO and not terminal):
        return JsonFormatter()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return TextFormatter(colours=terminal and not plain)


def _instant(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _origin(record: logging.LogRecord) -> dict[str, Any]:
    """Return the logger, the controller and the object of a record."""
    origin: dict[str, Any] = {"logger": record.name}
    root, _, name = record.name.partition(".")
    if root == OURS and name and "." not in name:
        origin["controller"] = name
    if subject := _SUBJECT.get():
        origin["object"] = subject
    return origin


def _extras(record: logging.LogRecord) -> Mapping[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _error(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    if record.exc_info:
        return formatter.formatException(record.exc_info)
    return formatter.formatStack(record.stack_info) if record.stack_info else ""


def _plain(value: object) -> int | float | bool | str | None:
    return value if value is None or isinstance(value, int | float) else _encodable(str(value))


def _encodable(text: str) -> str:
    """Remove passwords, and escape lone surrogates, which come from undecodable file names and cannot be encoded."""
    return redacted(text).encode("utf-8", "backslashreplace").decode()


def _printable(text: str) -> str:
    """Escape control characters and line breaks: messages quote text of servers and users."""
    return _UNPRINTABLE.sub(lambda found: found.group().encode("unicode_escape").decode(), _encodable(text))


def _quoted(value: object) -> str:
    text = _encodable(str(value))
    return _printable(msgspec.json.encode(text).decode() if _NEEDS_QUOTES.search(text) else text)
