"""Forecasts of objects that were read together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from springtide.almanac import Calendar, CalendarError
from springtide.apis.forecast import Forecast, Outlook, Question
from springtide.apis.objects import LoadedObject
from springtide.apis.springtide.calendars import compile_calendar
from springtide.apis.springtide.types import Calendar as CalendarKind


def calendars_among(objects: Iterable[LoadedObject]) -> dict[str, Calendar]:
    """Compile the calendars among these objects, by name; one with errors counts as absent."""
    compiled: dict[str, Calendar] = {}
    for loaded in objects:
        if isinstance(loaded.view, CalendarKind) and loaded.sound:
            try:
                compiled[loaded.name] = compile_calendar(loaded.view.spec)
            except CalendarError:
                continue  # reported as a problem of the calendar
    return compiled


def forecast_of(loaded: LoadedObject, question: Question) -> Forecast | None:
    """Look ahead for one object: none for kinds that do not depend on time, no lanes for one with errors."""
    forecaster = loaded.version.forecaster
    if forecaster is None:
        return None
    outlook = forecaster(loaded.view, question) if loaded.sound else Outlook(zones=(question.default_zone,), lanes=())
    return Forecast(
        api_version=loaded.api_version,
        kind=loaded.kind.kind,
        namespace=loaded.namespace,
        name=loaded.name,
        start=question.start,
        until=question.until,
        zones=outlook.zones,
        lanes=outlook.lanes,
        collisions=outlook.collisions,
        problems=loaded.problems,
    )


def with_calendars(question: Question, objects: Iterable[LoadedObject]) -> Question:
    """Let a question know the calendars among the objects it will be asked of."""
    return replace(question, calendars=calendars_among(objects))
