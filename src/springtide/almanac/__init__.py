"""Time: everything that knows cron, zones, daylight saving and calendars.

What users write becomes one of two things. A `Timeline` says which value holds at an instant and when that
changes: windows between patterns (`recurring`), windows that open at the hits of a schedule (`hits_for`),
one-off windows (`span`), and their combinations. `Firings` say when something is done. All instants are
whole seconds since the Unix epoch, in UTC.
"""

from springtide.almanac.calendars import Calendar, CalendarMode, CalendarReference, allowed, restrict
from springtide.almanac.collisions import Coincidence, Layer, Overlap, Rule, overlaps, same_minute
from springtide.almanac.combining import (
    both,
    combine,
    either,
    led_by,
    maximum,
    merged,
    minimum,
    negate,
    overlay,
)
from springtide.almanac.cron import Cron
from springtide.almanac.cron_grammar import CronError, Dialect
from springtide.almanac.days import Days
from springtide.almanac.firings import Firings
from springtide.almanac.hit_windows import hits_for
from springtide.almanac.pattern import Occurrence, Pattern, PatternError
from springtide.almanac.pattern_fields import FieldProblem
from springtide.almanac.public_holidays import CalendarError, PublicHolidays, public_holidays
from springtide.almanac.timeline import Timeline, active_spans, always, constant, never, spans, steps
from springtide.almanac.windows import MatchPolicy, first_difference, recurring, span
from springtide.almanac.zone_names import (
    UnknownZone,
    fixed_abbreviation_warning,
    is_fixed_abbreviation,
    known_zones,
)
from springtide.almanac.zones import UTC, Transition, Zone, load_zone, tzdata_version

__all__ = [
    "UTC",
    "Calendar",
    "CalendarError",
    "CalendarMode",
    "CalendarReference",
    "Coincidence",
    "Cron",
    "CronError",
    "Days",
    "Dialect",
    "FieldProblem",
    "Firings",
    "Layer",
    "MatchPolicy",
    "Occurrence",
    "Overlap",
    "Pattern",
    "PatternError",
    "PublicHolidays",
    "Rule",
    "Timeline",
    "Transition",
    "UnknownZone",
    "Zone",
    "active_spans",
    "allowed",
    "always",
    "both",
    "combine",
    "constant",
    "either",
    "first_difference",
    "fixed_abbreviation_warning",
    "hits_for",
    "is_fixed_abbreviation",
    "known_zones",
    "led_by",
    "load_zone",
    "maximum",
    "merged",
    "minimum",
    "negate",
    "never",
    "overlaps",
    "overlay",
    "public_holidays",
    "recurring",
    "restrict",
    "same_minute",
    "span",
    "spans",
    "steps",
    "tzdata_version",
]
