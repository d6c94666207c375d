"""The names that the rest of the project may use."""

import springtide.almanac

SURFACE = """
    Calendar CalendarError CalendarMode CalendarReference Coincidence Cron CronError Days Dialect FieldProblem Firings
    Layer MatchPolicy Occurrence Overlap Pattern PatternError PublicHolidays Rule Timeline Transition UTC UnknownZone
    Zone active_spans allowed always both combine constant either first_difference fixed_abbreviation_warning hits_for
    is_fixed_abbreviation known_zones led_by load_zone maximum merged minimum negate never overlaps overlay
    public_holidays recurring restrict same_minute span spans steps tzdata_version
"""


def test_surface_is_as_agreed() -> None:
    """A name is added or removed here on purpose, never by accident."""
    assert sorted(springtide.almanac.__all__) == SURFACE.split()


def test_surface_exists() -> None:
    """Every exported name can be imported."""
    assert all(hasattr(springtide.almanac, name) for name in springtide.almanac.__all__)
