"""Names of zones, and hints for those that are none."""

import pytest

from springtide.almanac import UnknownZone, fixed_abbreviation_warning, is_fixed_abbreviation, load_zone
from springtide.almanac.zone_names import known_zones


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("utc", "did you mean UTC?"),
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("Europe/Belrin", "did you mean Europe/Berlin?"),
        ("PST", "did you mean America/Los_Angeles?"),
        ("Berlin", "did you mean Europe/Berlin?"),
        ("new york", "did you mean America/New_York?"),
        ("America/NewYork", "did you mean America/New_York?"),
        ("Local", "a schedule must not depend on the machine that runs it"),
        ("localtime", "a schedule must not depend on the machine that runs it"),
        ("", "leave the field out for UTC, or name a zone"),
        ("GMT+5", "the fixed offset is called Etc/GMT-5"),
        ("UTC-03:00", "the fixed offset is called Etc/GMT+3"),
        ("+05:30", "name a place instead of an offset"),
        ("Mars/Olympus", "names are listed at iana.org/time-zones"),
        ("A/B", "names are listed at iana.org/time-zones"),
        ("../etc/passwd", "names are listed at iana.org/time-zones"),
        ("/etc/localtime", "a schedule must not depend on the machine that runs it"),
        ("Factory", "names are listed at iana.org/time-zones"),
        ("x" * 10_000, "names are listed at iana.org/time-zones"),
    ],
)
def test_unknown_name_has_a_hint(name: str, hint: str) -> None:
    """A name that is no zone gets the nearest one, or words of its own."""
    with pytest.raises(UnknownZone) as caught:
        load_zone(name)

    assert hint in caught.value.hint


@pytest.mark.parametrize("name", ["UTC", "EST", "CET", "Etc/GMT+5", "America/Argentina/Buenos_Aires"])
def test_known_names(name: str) -> None:
    """Names of the database load, and load once."""
    assert load_zone(name) is load_zone(name)
    assert load_zone(name).name == name


def test_machine_dependent_names_are_unknown() -> None:
    """No name stands for whatever a machine is set to."""
    assert known_zones().isdisjoint(("localtime", "posixrules", "Factory"))


@pytest.mark.parametrize("name", ["EST", "MST", "HST"])
def test_abbreviations_that_never_change(name: str) -> None:
    """V11: these load, have one offset today, and deserve a warning."""
    warning = fixed_abbreviation_warning(name)

    assert is_fixed_abbreviation(name)
    assert load_zone(name).transitions(1_700_000_000, 2_000_000_000) == []
    assert warning is not None
    assert warning.startswith(f"{name} never changes for daylight saving; did you mean ")


def test_places_are_no_abbreviations() -> None:
    """A zone that is named by its place needs no warning."""
    assert not is_fixed_abbreviation("America/New_York")
    assert fixed_abbreviation_warning("UTC") is None
