"""Removes passwords and tokens in addresses from texts that other users read: conditions, events, logs and errors.

`user:password@` of a URL and the values of parameters such as `token=` become `…`. URLs that users write are often
malformed, or encoded because they are a parameter of another URL, so this is no parser: in doubt, too much is removed.
A text may be any user's input, so the work is linear in its length.
"""

from __future__ import annotations

import re

REDACTED = "…"

_NEEDED = re.compile(r"[@=:]|%40|%3[AaDd]")
"""What every text has in which there is something to remove."""
_SCHEME_END = re.compile(r"https?(?::|%3a)(?:[/\\]|%2f)*|(?:[/\\]|%2f){2,}", re.IGNORECASE)
"""What precedes a user: `//`, also encoded or misspelt after `http`."""
_TOKEN = re.compile(r"[^\s\"'`<>]*")
"""What can belong to a URL."""
_AUTHORITY = re.compile(r"(?:(?!%2f|%3f|%23)[^/?#\\\s\"'`<>]){0,4096}", re.IGNORECASE)
_USER_END = re.compile(r"@|%40")
_COLON = re.compile(r":|%3a", re.IGNORECASE)
_BRACKETED = re.compile(r"\[[0-9A-Za-z:.%]*\]")
_HOST_AND_PORT = re.compile(r"[^:]*|[^:]*:(?:[0-9]{1,5}|PORT)[\])},.;:!|…*]*", re.ASCII)
"""What stands before a path where there is no user; in messages, punctuation may follow. PORT is a placeholder."""
_LONGEST_USER = 4096
"""How far from the beginning of a URL the end of its user is searched, in characters."""
_PARAMETER = re.compile(
    r"""(?:[?&;]|%3f|%26)(?:
        (?:[a-z_-]{0,40}[_-])?(?:token|secret|password|passwd|passphrase|signature|credential|credentials|apikey)
      | (?:[a-z_-]{0,40}[_-])?(?:api[_-]?key|access[_-]?key|auth)
      | authorization | pwd | pass | sig | sas | jwt | key
    )(?:=|%3d)""",
    re.VERBOSE | re.IGNORECASE,
)
_VALUE = re.compile(r"(?:(?!%26)[^&;#\s\"'`<>])*", re.IGNORECASE)


def redacted(text: str) -> str:
    """Return a text without users, passwords and tokens of the URLs in it."""
    if _NEEDED.search(text) is None:
        return text
    return _without_parameters(_without_users(text))


def redacted_address(address: str) -> str:
    """Return the text of an address without its user, password and tokens, also where it has no scheme."""
    if _SCHEME_END.search(address) is not None:
        return redacted(address)
    return redacted(f"//{address}").removeprefix("//")


def _without_users(text: str) -> str:
    parts: list[str] = []
    done = 0
    end_of_token = 0
    while (found := _SCHEME_END.search(text, done)) is not None:
        start = found.end()
        if start >= end_of_token:
            end_of_token = _end_of(_TOKEN, text, start)
        kept, end = _user(text, start, end_of_token)
        parts += (text[done:start], kept)
        done = end
    parts.append(text[done:])
    return "".join(parts)


def _user(text: str, start: int, end_of_token: int) -> tuple[str, int]:
    """Return what replaces the user of a URL whose `//` ends at `start`, and where the user ends."""
    authority = _AUTHORITY.match(text, start)
    assert authority is not None  # noqa: S101 - the pattern also matches nothing
    end_of_user = _last(_USER_END, text, start, min(end_of_token, start + _LONGEST_USER))
    has_host = end_of_user < end_of_token - 1
    if end_of_user >= 0 and has_host and (end_of_user < authority.end() or _COLON.search(text, start, end_of_user)):
        return REDACTED, end_of_user
    if has_host and _HOST_AND_PORT.fullmatch(_BRACKETED.sub("", authority.group(), count=1)):
        return "", start
    # A colon and no port, or no host: a password with a space, a quote or a slash, or an `@` that is missing.
    line = text.find("\n", start, start + _LONGEST_USER)
    end_of_user = _last(_USER_END, text, start, start + _LONGEST_USER if line < 0 else line)
    if end_of_user >= 0:
        return REDACTED, end_of_user
    colon = _COLON.search(text, start, end_of_token)
    if colon is None or colon.end() == end_of_token:
        return "", start
    return text[start : colon.end()] + REDACTED, end_of_token


def _without_parameters(text: str) -> str:
    parts: list[str] = []
    done = 0
    while (found := _PARAMETER.search(text, done)) is not None:
        end = _end_of(_VALUE, text, found.end())
        parts += (text[done : found.end()], REDACTED if end > found.end() else "")
        done = end
    parts.append(text[done:])
    return "".join(parts)


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match is not None else start


def _last(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    last = -1
    for found in pattern.finditer(text, start, end):
        last = found.start()
    return last
