"""When cron rules fire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from springtide.almanac import Calendar, Cron, Dialect, Firings, Zone, load_zone
from springtide.apis.meta.instants import parse_instant
from springtide.apis.meta.windows import known_references

if TYPE_CHECKING:
    from springtide.apis.karmada.types import CronFederatedHPARule


def zone_of(rule: CronFederatedHPARule, default: str) -> Zone:
    """Give the zone that a rule is read in."""
    return load_zone(rule.time_zone or default)


def fires(rule: CronFederatedHPARule) -> bool:
    """Tell whether a rule has times and is not suspended."""
    return not rule.suspend and (rule.schedule is None) != (rule.at is None)


def firings_of(rule: CronFederatedHPARule, default_zone: str, calendars: Mapping[str, Calendar]) -> Firings:
    """Compile a rule without errors to the instants at which it fires while it is not suspended."""
    zone = zone_of(rule, default_zone)
    references = known_references(rule.calendars or (), calendars)
    if rule.at is not None:
        return Firings.once(parse_instant(rule.at), zone, references)
    return Firings.of(Cron.parse(rule.schedule or "", Dialect.RULE), zone, references)
