"""The public names of the almanac."""

import springtide.almanac

SURFACE = """
    CalendarError CalendarFilter CalendarMode Cron CronError DayCalendar Days Dialect FiringRule Firings
    LayerOverlap MatchPolicy Occurrence PatternFieldProblem PublicHolidays RuleCoincidence TimePattern
    TimePatternError Timeline TimelineLayer UTC UnknownZone Zone ZoneTransition active_spans allowed always both
    combine constant either first_difference fixed_abbreviation_warning is_fixed_abbreviation known_zones
    level_setters load_zone maximum merged minimum negate never overlaps overlay public_holidays recurring restrict
    same_minute span spans steps tzdata_version windows_after_hits with_lead_time
"""


def test_surface_is_as_agreed() -> None:
    """The public names are exactly the listed ones."""
    assert sorted(springtide.almanac.__all__) == SURFACE.split()


def test_surface_exists() -> None:
    """Every exported name can be imported."""
    assert all(hasattr(springtide.almanac, name) for name in springtide.almanac.__all__)
