"""Validation of names and labels with the messages of a kube-apiserver, and generated names."""

from __future__ import annotations

import re
from functools import lru_cache
from random import Random

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_QUALIFIED})?"

_MATCHES_LABEL = re.compile(_LABEL).fullmatch
_MATCHES_SUBDOMAIN = re.compile(_SUBDOMAIN).fullmatch
_MATCHES_QUALIFIED = re.compile(_QUALIFIED).fullmatch
_MATCHES_VALUE = re.compile(_VALUE).fullmatch

_LABEL_LENGTH = 63
_SUBDOMAIN_LENGTH = 253

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels (no words), and no letters that are easily confused."""
_SUFFIX_LENGTH = 5
_GENERATED_BASE = _LABEL_LENGTH - _SUFFIX_LENGTH


def name_suffix(random: Random) -> str:
    """Return a random suffix for `generateName`."""
    return "".join(random.choices(_SUFFIX_LETTERS, k=_SUFFIX_LENGTH))


def generated_name(base: str, suffix: str) -> str:
    """Return a generated name; the base is cut to the maximum length."""
    return base[:_GENERATED_BASE] + suffix


def _too_long(length: int) -> str:
    return f"must be no more than {length} characters"


@lru_cache(maxsize=4096)
def label_problem(text: str) -> str:
    """Return what is wrong with a DNS label, such as the name of a namespace or a service."""
    if len(text) > _LABEL_LENGTH:
        return _too_long(_LABEL_LENGTH)
    if _MATCHES_LABEL(text):
        return ""
    if _MATCHES_SUBDOMAIN(text):
        return "must not contain dots"
    return (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
    )


def subdomain_problem(text: str) -> str:
    """Return what is wrong with a DNS subdomain, such as the names of most objects."""
    if len(text) > _SUBDOMAIN_LENGTH:
        return _too_long(_SUBDOMAIN_LENGTH)
    if _MATCHES_SUBDOMAIN(text):
        return ""
    return (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
        "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        f"'{_SUBDOMAIN}')"
    )


_NAME_SHAPE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)


@lru_cache(maxsize=4096)
def qualified_name_problems(text: str) -> tuple[str, ...]:
    """Return everything that is wrong with a qualified name: a label or annotation key, or a finalizer."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        prefixed = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {_NAME_SHAPE} {prefixed}",)
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash and (problem := subdomain_problem(prefix)):
        problems.append(f"prefix part {problem}")
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > _LABEL_LENGTH:
        problems.append(f"name part must be no more than {_LABEL_LENGTH} bytes")
    if not _MATCHES_QUALIFIED(name):
        problems.append(f"name part {_NAME_SHAPE}")
    return tuple(problems)


def qualified_name_problem(text: str) -> str:
    """Return the first problem of a qualified name."""
    problems = qualified_name_problems(text)
    return problems[0] if problems else ""


def path_segment_problems(text: str) -> tuple[str, ...]:
    """Return everything that keeps a name from being one segment of a path."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{part}'" for part in "/%" if part in text)


@lru_cache(maxsize=4096)
def label_value_problem(text: str) -> str:
    """Return what is wrong with a label value."""
    if len(text) > _LABEL_LENGTH:
        return f"must be no more than {_LABEL_LENGTH} bytes"
    if _MATCHES_VALUE(text):
        return ""
    return (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
        "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    )
