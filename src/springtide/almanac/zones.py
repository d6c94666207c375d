"""Time zones as sorted segments of constant offset, and their names.

Every question that a schedule has about a zone is a search in two sorted lists: the offset at an instant, the first
instant at a wall time, the next change of the clock. Zones and their names come from the pinned tzdata package, never
from the machine, so that a manifest means the same everywhere.

A gap is wall time that a clock skips, a fold is wall time that it repeats. One definition covers both: a wall time maps
to the *first instant at which the clock shows it or a later time*. In a gap that is the end of the gap, in a fold the
first pass, and the mapping is monotonic.
"""

import difflib
import re
import unicodedata
import zoneinfo
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from threading import Lock

from springtide.almanac.civil import BEGINNING, DAY, END, LAST_DAY, date_of
from springtide.almanac.zone_files import PosixRule, read_zone_file, zone_names

#: Entries of the package that are no places: they stand for the zone of the machine, or for no zone.
_NOT_A_PLACE = ("Factory", "localtime", "posixrules")

#: Common abbreviations, and a zone that uses each. IST and CST are used elsewhere too: these are hints only.
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

#: Zones that are named like the winter time of a zone with daylight saving, but have none themselves.
_FIXED = {
    "EST": "America/New_York",
    "MST": "America/Denver",
    "HST": "Pacific/Honolulu, which keeps the same time all year, or America/Adak, which does not",
}

#: Large cities that no zone is named after, and the zone of each.
_CITIES = {
    "Africa/Cairo": "alexandria giza",
    "Africa/Casablanca": "marrakesh rabat",
    "Africa/Johannesburg": "cape_town durban pretoria",
    "Africa/Lagos": "abuja",
    "Africa/Nairobi": "mombasa",
    "America/Bogota": "cali medellin",
    "America/Chicago": "austin dallas houston kansas_city memphis milwaukee minneapolis nashville new_orleans"
    " san_antonio st_louis",
    "America/Denver": "albuquerque salt_lake_city",
    "America/Edmonton": "calgary",
    "America/Los_Angeles": "las_vegas mountain_view oakland palo_alto portland sacramento san_diego san_francisco"
    " san_jose seattle silicon_valley",
    "America/Mexico_City": "guadalajara puebla",
    "America/New_York": "atlanta baltimore boston charlotte cleveland miami orlando philadelphia pittsburgh tampa"
    " washington",
    "America/Sao_Paulo": "brasilia rio_de_janeiro",
    "America/Toronto": "ottawa quebec",
    "Asia/Dubai": "abu_dhabi",
    "Asia/Ho_Chi_Minh": "hanoi",
    "Asia/Jakarta": "bandung surabaya",
    "Asia/Karachi": "islamabad lahore",
    "Asia/Kolkata": "bangalore bengaluru chennai delhi hyderabad mumbai new_delhi pune",
    "Asia/Kuala_Lumpur": "penang",
    "Asia/Manila": "cebu",
    "Asia/Riyadh": "jeddah mecca",
    "Asia/Seoul": "busan incheon",
    "Asia/Shanghai": "beijing chengdu guangzhou hangzhou nanjing shenzhen wuhan",
    "Asia/Tokyo": "fukuoka kyoto nagoya osaka sapporo yokohama",
    "Europe/Amsterdam": "eindhoven rotterdam the_hague utrecht",
    "Europe/Athens": "thessaloniki",
    "Europe/Berlin": "bonn cologne dresden dusseldorf duesseldorf essen frankfurt hamburg hannover karlsruhe koeln koln"
    " leipzig muenchen munchen munich nuremberg nurnberg stuttgart",
    "Europe/Brussels": "antwerp ghent",
    "Europe/Bucharest": "cluj",
    "Europe/Copenhagen": "aarhus",
    "Europe/Dublin": "cork",
    "Europe/Helsinki": "espoo tampere",
    "Europe/Istanbul": "ankara izmir",
    "Europe/Lisbon": "porto",
    "Europe/London": "birmingham bristol cambridge cardiff edinburgh glasgow leeds liverpool manchester oxford",
    "Europe/Madrid": "barcelona bilbao seville valencia",
    "Europe/Moscow": "st_petersburg",
    "Europe/Oslo": "bergen",
    "Europe/Paris": "bordeaux lille lyon marseille nice strasbourg toulouse",
    "Europe/Prague": "brno",
    "Europe/Rome": "bologna florence milan naples turin venice",
    "Europe/Stockholm": "gothenburg malmo",
    "Europe/Vienna": "graz linz salzburg",
    "Europe/Warsaw": "gdansk krakow lodz poznan wroclaw",
    "Europe/Zurich": "basel bern geneva lausanne",
    "Pacific/Auckland": "christchurch wellington",
}

_LONGEST_NAME = 64

_SIGNED = re.compile(r"(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?", re.IGNORECASE)


class UnknownZone(ValueError):
    """No zone has this name. `hint` names the zone that was probably meant."""

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
    """Return whether a zone has no daylight saving although its name suggests a zone that has."""
    return name in _FIXED


def fixed_abbreviation_warning(name: str) -> str | None:
    """Return a warning for a zone like EST, which is probably not the one that was meant, or None."""
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
    if meant:
        return f"did you mean {meant}?"
    return "zones have the names of large cities, such as Asia/Tokyo; names are listed at iana.org/time-zones"


def _offset_hint(signed: re.Match[str]) -> str:
    hours = int(signed["hours"])
    place = "name a place instead of an offset, so that daylight saving is followed"
    # These names count westwards: UTC+2 is called Etc/GMT-2.
    name = f"Etc/GMT{'-' if signed['sign'] == '+' else '+'}{hours}"
    if int(signed["minutes"] or 0) or name not in known_zones():
        return place
    return f"{place}; the fixed offset is called {name} (its sign is turned round)"


def _meant(name: str) -> str | None:
    if len(name) > _LONGEST_NAME:
        return None
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter))
    wanted = re.sub(r"[\s-]+", "_", plain.strip()).lower()
    by_lower = {known.lower(): known for known in sorted(known_zones())}
    if wanted in by_lower:
        return by_lower[wanted]
    if wanted.upper() in _ABBREVIATIONS:
        return _ABBREVIATIONS[wanted.upper()]
    cities = {city: zone for zone, listed in _CITIES.items() for city in listed.split()}
    cities |= {lower.rsplit("/", 1)[-1]: known for lower, known in by_lower.items() if "/" in lower}
    city = wanted.rsplit("/", 1)[-1]
    if city in cities:
        return cities[city]
    # Cities are compared without their regions, which many names share.
    for word, choices in ((city, cities), (wanted, by_lower if "/" not in wanted else {})):
        if near := difflib.get_close_matches(word, choices, n=1, cutoff=0.75):
            return choices[near[0]]
    return None


# Other users of zoneinfo in this process read the same database.
zoneinfo.reset_tzpath(to=())

_LAST_YEAR = 9999
_FIRST_COVERED_YEAR = 2045
_YEARS_AHEAD = 60


def tzdata_version() -> str:
    """Return the release of the time zone database in use, such as `2026a`."""
    return str(import_module("tzdata").IANA_VERSION)


@dataclass(frozen=True, slots=True)
class ZoneTransition:
    """A change of a clock: the first instant of the new offset, the offset before and the one after."""

    at: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class OffsetSegments:
    """The segments of a zone, exact for instants and wall seconds before `until`.

    Segment `i` lasts from `starts[i]` to `starts[i + 1]` at `offsets[i]`. `ceilings[i]` is the running maximum of the
    wall seconds at which the segments up to `i` end.
    """

    starts: tuple[int, ...]
    offsets: tuple[int, ...]
    ceilings: tuple[int, ...]
    until: int


class Zone:
    """A named time zone."""

    __slots__ = ("_changes", "_first_offset", "_growth", "_rule", "_segments", "name")

    def __init__(self, name: str, first_offset: int, changes: tuple[tuple[int, int], ...], footer: str) -> None:
        self.name = name
        self._first_offset = first_offset
        self._changes = changes
        self._rule = PosixRule.parse(footer) if footer else None
        self._growth = Lock()
        self._segments = self._covering(_FIRST_COVERED_YEAR)

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    @property
    def never_changes(self) -> bool:
        """Whether the clock has had one offset for all time, as UTC's has."""
        return len(self._segments.starts) == 1 and self._segments.until == END

    def through(self, t: int) -> OffsetSegments:
        """Return the segments, computed at least up to the instant or wall second `t`."""
        segments = self._segments
        return segments if t < segments.until else self._grown(t)

    def offset_at(self, t: int) -> int:
        """Return the offset from UTC in seconds at an instant, positive to the east."""
        segments = self.through(t)
        return segments.offsets[bisect_right(segments.starts, t) - 1]

    def local(self, t: int) -> int:
        """Return the wall second that the clock shows at an instant."""
        return t + self.offset_at(t)

    def latest_wall(self, t: int) -> int:
        """Return the latest wall second shown up to an instant; in a second pass that is not `local`."""
        segments = self.through(t)
        i = bisect_right(segments.starts, t) - 1
        wall = t + segments.offsets[i]
        if i and segments.ceilings[i - 1] > wall:
            return segments.ceilings[i - 1] - 1
        return wall

    def instant(self, wall: int) -> int:
        """Return the first instant that shows a wall second, or, in a gap, the first one after the gap."""
        segments = self.through(wall)
        i = bisect_right(segments.ceilings, wall)
        t = wall - segments.offsets[i]
        start = segments.starts[i]
        if t < start:
            return start
        return t

    def day_start(self, day: int) -> int:
        """Return the first instant of a local day (of the day after it, where the whole day is skipped)."""
        return self.instant(day * DAY)

    def stretches(self, wall: int, wall_end: int) -> Iterator[tuple[int, int]]:
        """Yield the disjoint half-open stretches of instants at which the clock shows [wall, wall_end)."""
        segments = self.through(wall_end + 2 * DAY)
        starts, offsets = segments.starts, segments.offsets
        i = bisect_right(starts, wall - 2 * DAY) - 1
        opened = closed = BEGINNING
        while i < len(starts) and starts[i] < wall_end + 2 * DAY:
            offset = offsets[i]
            begins = max(wall - offset, starts[i])
            ends = min(wall_end - offset, starts[i + 1]) if i + 1 < len(starts) else wall_end - offset
            i += 1
            if begins >= ends:
                continue
            if begins > closed:
                if opened < closed:
                    yield opened, closed
                opened = begins
            closed = ends
        if opened < closed:
            yield opened, closed

    def transitions(self, a: int, b: int) -> list[ZoneTransition]:
        """Return the changes of the clock in (a, b]."""
        segments = self.through(b)
        starts, offsets = segments.starts, segments.offsets
        found = range(max(bisect_right(starts, a), 1), bisect_right(starts, b))
        return [ZoneTransition(starts[i], offsets[i - 1], offsets[i]) for i in found]

    def _grown(self, t: int) -> OffsetSegments:
        with self._growth:
            if t >= self._segments.until:
                year = date_of(min(t // DAY, LAST_DAY)).year
                self._segments = self._covering(year + _YEARS_AHEAD)
            return self._segments

    def _covering(self, year: int) -> OffsetSegments:
        """Compute the segments of the listed changes, and of the rule up to the end of a year."""
        starts, offsets, ceilings = [BEGINNING], [self._first_offset], list[int]()
        until = END
        for at, offset in self._all_changes(year):
            # Many listed changes affect only the abbreviation or the daylight saving flag.
            if offset == offsets[-1]:
                continue
            ceilings.append(max(at + offsets[-1], ceilings[-1] if ceilings else BEGINNING))
            starts.append(at)
            offsets.append(offset)
        if self._rule is not None and self._rule.begins is not None and year < _LAST_YEAR:
            # Two days before the last change, so that wall times near the edge are exact too.
            until = starts[-1] - 2 * DAY
        return OffsetSegments(tuple(starts), tuple(offsets), tuple(ceilings), until)

    def _all_changes(self, year: int) -> Iterator[tuple[int, int]]:
        yield from self._changes
        if self._rule is None:
            return
        last = self._changes[-1][0] if self._changes else BEGINNING
        first_year = date_of(last // DAY).year if self._changes else 1
        for following in range(first_year, min(year, _LAST_YEAR) + 1):
            for at, offset in self._rule.changes(following):
                if at > last:
                    yield at, offset


@cache
def load_zone(name: str) -> Zone:
    """Return the zone of an IANA name; raises `UnknownZone`."""
    if name not in known_zones():
        raise UnknownZone(name)
    file = read_zone_file(name)
    return Zone(name, file.first_offset, file.changes, file.footer)


UTC = load_zone("UTC")
