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
    """Look ahead for one object: none for kinds that do not depend on time.

    Of an object with errors only what is certain all the same has lanes: rules beside a bad one, and budgets, which
    block where they cannot be evaluated.
    """
    forecaster = loaded.version.forecaster
    if forecaster is None:
        return None
    outlook = forecaster(loaded.view, question) if loaded.sound else _salvaged(loaded, question)
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


def _salvaged(loaded: LoadedObject, question: Question) -> Outlook:
    salvager = loaded.version.salvager
    outlook = salvager(loaded.view, loaded.value, question) if salvager is not None else None
    return outlook or Outlook(zones=(question.default_zone,), lanes=())


def with_calendars(question: Question, objects: Iterable[LoadedObject]) -> Question:
    """Let a question know the calendars among the objects it will be asked of."""
    return replace(question, calendars=calendars_among(objects))
