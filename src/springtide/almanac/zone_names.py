"""Names of time zones: which exist, and what a person meant who wrote another one.

Only names of the pinned tzdata package count, so that a manifest means the same on every machine.
"""

import difflib
import re
from functools import lru_cache

from springtide.almanac.tzif import zone_names

#: Entries of the package that stand for "whatever this machine uses" or for nothing at all.
_NOT_A_PLACE = ("Factory", "localtime", "posixrules")

#: What people abbreviate, and the place whose clock shows it. IST and CST have other owners too: these are
#: hints.
_ABBREVIATIONS = {
    "ACST": "Australia/Adelaide",
    "AEDT": "Australia/Sydney",
    "AEST": "Australia/Sydney",
    "AKST": "America/Anchorage",
    "AST": "America/Halifax",
    "AWST": "Australia/Perth",
    "BRT": "America/Sao_Paulo",
    "BST": "Europe/London",
    "CAT": "Africa/Maputo",
    "CDT": "America/Chicago",
    "CEST": "Europe/Berlin",
    "CST": "America/Chicago",
    "CT": "America/Chicago",
    "EAT": "Africa/Nairobi",
    "EDT": "America/New_York",
    "EEST": "Europe/Helsinki",
    "ET": "America/New_York",
    "HKT": "Asia/Hong_Kong",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    "MDT": "America/Denver",
    "MSK": "Europe/Moscow",
    "MT": "America/Denver",
    "NZDT": "Pacific/Auckland",
    "NZST": "Pacific/Auckland",
    "PDT": "America/Los_Angeles",
    "PST": "America/Los_Angeles",
    "PT": "America/Los_Angeles",
    "SAST": "Africa/Johannesburg",
    "SGT": "Asia/Singapore",
    "WAT": "Africa/Lagos",
    "WEST": "Europe/Lisbon",
    "Z": "UTC",
}

#: Zones named like one half of a clock that changes: their own clock never does.
_FIXED = {
    "EST": "America/New_York",
    "MST": "America/Denver",
    "HST": "Pacific/Honolulu, which keeps the same time all year, or America/Adak, which does not",
}

_SIGNED = re.compile(r"(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?", re.IGNORECASE)


class UnknownZone(ValueError):
    """No zone has this name. `hint` says what may have been meant."""

    def __init__(self, name: str) -> None:
        if name == "":
            self.message = "time zone is empty, expected an IANA name such as Europe/Berlin"
        else:
            self.message = f"time zone {name!r} is unknown, expected an IANA name such as Europe/Berlin"
        self.hint = _hint(name)
        super().__init__(self.message)


@lru_cache(maxsize=1)
def known_zones() -> frozenset[str]:
    """Return the names that a schedule may use."""
    return frozenset(zone_names()).difference(_NOT_A_PLACE)


def is_fixed_abbreviation(name: str) -> bool:
    """Tell whether a zone has no daylight saving although its name is taken for one that has."""
    return name in _FIXED


def fixed_abbreviation_warning(name: str) -> str | None:
    """Say why a zone like EST is likely not what was meant, or None for any other zone."""
    if name not in _FIXED:
        return None
    return f"{name} never changes for daylight saving; did you mean {_FIXED[name]}?"


def _hint(name: str) -> str:
    if name == "":
        return "leave the field out for UTC, or name a zone"
    if name.lower().rsplit("/", 1)[-1] in ("local", "localtime"):
        return "a schedule must not depend on the machine that runs it: name the zone, such as Europe/Berlin"
    if (signed := _SIGNED.fullmatch(name)) is not None:
        return _offset_hint(signed)
    meant = _meant(name)
    return f"did you mean {meant}?" if meant else "names are listed at iana.org/time-zones, such as Asia/Tokyo"


def _offset_hint(signed: re.Match[str]) -> str:
    hours = int(signed["hours"])
    place = "name a place instead of an offset, so that daylight saving is followed"
    # These names count westwards: UTC+2 is called Etc/GMT-2.
    name = f"Etc/GMT{'-' if signed['sign'] == '+' else '+'}{hours}"
    if int(signed["minutes"] or 0) or name not in known_zones():
        return place
    return f"{place}; the fixed offset is called {name} (its sign is turned round)"


def _meant(name: str) -> str | None:
    wanted = re.sub(r"[\s-]+", "_", name.strip()).lower()
    by_lower = {known.lower(): known for known in sorted(known_zones())}
    if wanted in by_lower:
        return by_lower[wanted]
    if wanted.upper() in _ABBREVIATIONS:
        return _ABBREVIATIONS[wanted.upper()]
    cities = {lower.rsplit("/", 1)[-1]: known for lower, known in by_lower.items() if "/" in lower}
    city = wanted.rsplit("/", 1)[-1]
    if city in cities:
        return cities[city]
    for choices in (by_lower, cities):
        near = difflib.get_close_matches(wanted, choices, n=1, cutoff=0.75)
        if near:
            return choices[near[0]]
    return None
