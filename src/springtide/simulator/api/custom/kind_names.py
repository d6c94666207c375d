"""The shape of the names of kinds and versions, which are parts of addresses and may not start with a digit."""

from __future__ import annotations

import re
from functools import lru_cache

_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_MATCHES_LABEL = re.compile(_LABEL).fullmatch
_LONGEST = 63


@lru_cache(maxsize=4096)
def kind_name_problem(text: str) -> str:
    """Tell what is wrong with the name of a kind, in lower case, or of a version."""
    if len(text) > _LONGEST:
        return f"must be no more than {_LONGEST} characters"
    if _MATCHES_LABEL(text):
        return ""
    return (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation "
        f"is '{_LABEL}')"
    )
