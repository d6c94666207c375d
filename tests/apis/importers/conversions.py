"""Conversion of an object in a test, and the effect of the result at an instant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from springtide.almanac import Timeline, load_zone
from springtide.apis.importers import Conversion, ConversionOptions
from springtide.apis.karmada.cron import CronFederatedHPA
from springtide.apis.karmada.rules import firings_of
from springtide.apis.karmada.targets import action_of
from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import LoadedObject, load
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler
from springtide.apis.scheduled.producer import MetricsProducer
from springtide.apis.scheduled.schedule import compile_schedule
from springtide.apis.yaml import dump

NOW = 1_767_571_200  # Monday, 2026-01-05T00:00:00Z
Convert = Callable[[dict[str, Any], ConversionOptions], Conversion | None]


def converted(convert: Convert, value: dict[str, Any], zone: str | None = None) -> Conversion:
    """Convert an object that the importer handles."""
    conversion = convert(value, ConversionOptions(NOW, zone))
    assert conversion is not None
    return conversion


def errors_of(conversion: Conversion) -> list[str]:
    return [problem.message for problem in conversion.problems if problem.severity == "error"]


def warnings_of(conversion: Conversion) -> list[str]:
    return [problem.message for problem in conversion.problems if problem.severity == "warning"]


def views_of(conversion: Conversion) -> list[Any]:
    """Dump and load the new objects, which must have no errors."""
    views: list[Any] = []
    for made in conversion.made:
        (loaded,) = load(dump(made), ValidationContext(now=NOW))
        assert isinstance(loaded, LoadedObject)
        assert loaded.sound, loaded.problems
        views.append(loaded.view)
    return views


def replicas_at(conversion: Conversion) -> Callable[[int], int]:
    """Return the function that gives the replicas of the new autoscaler: the highest schedule within the bounds."""
    assert not errors_of(conversion), conversion.problems
    schedules: list[Timeline[int]] = []
    bounds = None
    for view in views_of(conversion):
        match view:
            case MetricsProducer():
                spec = view.spec.schedule
                assert spec is not None
                schedules.append(compile_schedule(spec, load_zone(spec.timezone or "UTC"), {}))
            case HorizontalAutoscaler():
                bounds = (view.spec.min_replicas, view.spec.max_replicas)
    assert bounds is not None
    low, high = bounds
    return lambda at: min(max(low, *(schedule.at(at) for schedule in schedules)), high)


def applied_at(conversion: Conversion) -> Callable[[int], dict[str, int] | None]:
    """Return the function that gives what the latest firing of the cron rules sets (of several, the last listed)."""
    assert not errors_of(conversion), conversion.problems
    (view,) = (view for view in views_of(conversion) if isinstance(view, CronFederatedHPA))
    kind = view.spec.scale_target_ref.target_kind
    rules = [(firings_of(rule, "UTC", {}), action_of(rule, kind)) for rule in view.spec.rules]

    def applied(at: int) -> dict[str, int] | None:
        latest = [
            (fired, position) for position, (firings, _) in enumerate(rules) if (fired := firings.at_or_before(at))
        ]
        return rules[max(latest)[1]][1] if latest else None

    return applied
