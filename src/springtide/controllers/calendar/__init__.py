"""Calendars: whether today is one of the days of a calendar, and which come next."""

from springtide.controllers.calendar.controller import CalendarController
from springtide.controllers.calendar.state import CALENDARS

__all__ = ["CALENDARS", "CalendarController"]
