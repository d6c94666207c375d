"""Time: cron schedules, patterns, zones, daylight saving and calendars.

What users write becomes one of two things. A `Timeline` says which value holds at an instant and when that
changes: windows between patterns (`recurring`), windows that open at each hit of a schedule (`windows_after_hits`),
one-off windows (`span`), and their combinations. `Firings` say when something is done. All instants are
whole seconds since the Unix epoch, in UTC.
"""

from springtide.almanac.calendars import (
    CalendarError,
    CalendarFilter,
    CalendarMode,
    DayCalendar,
    Days,
    PublicHolidays,
    allowed,
    public_holidays,
    restrict,
)
from springtide.almanac.collisions import (
    FiringRule,
    LayerOverlap,
    RuleCoincidence,
    TimelineLayer,
    overlaps,
    same_minute,
)
from springtide.almanac.combining import (
    both,
    combine,
    either,
    maximum,
    merged,
    minimum,
    negate,
    overlay,
    with_lead_time,
)
from springtide.almanac.cron import Cron
from springtide.almanac.cron_grammar import CronError, Dialect
from springtide.almanac.firings import Firings, level_setters
from springtide.almanac.pattern import Occurrence, PatternFieldProblem, TimePattern, TimePatternError
from springtide.almanac.timeline import Timeline, active_spans, always, constant, never, spans, steps
from springtide.almanac.windows import MatchPolicy, first_difference, recurring, span, windows_after_hits
from springtide.almanac.zones import (
    UTC,
    UnknownZone,
    Zone,
    ZoneTransition,
    fixed_abbreviation_warning,
    is_fixed_abbreviation,
    known_zones,
    load_zone,
    tzdata_version,
)

__all__ = [
    "UTC",
    "CalendarError",
    "CalendarFilter",
    "CalendarMode",
    "Cron",
    "CronError",
    "DayCalendar",
    "Days",
    "Dialect",
    "FiringRule",
    "Firings",
    "LayerOverlap",
    "MatchPolicy",
    "Occurrence",
    "PatternFieldProblem",
    "PublicHolidays",
    "RuleCoincidence",
    "TimePattern",
    "TimePatternError",
    "Timeline",
    "TimelineLayer",
    "UnknownZone",
    "Zone",
    "ZoneTransition",
    "active_spans",
    "allowed",
    "always",
    "both",
    "combine",
    "constant",
    "either",
    "first_difference",
    "fixed_abbreviation_warning",
    "is_fixed_abbreviation",
    "known_zones",
    "level_setters",
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
    "windows_after_hits",
    "with_lead_time",
]
