"""Decisions: the controllers of Springtide, one module or package for each kind."""

from springtide.cluster.controller import Controller
from springtide.controllers.calendar import CalendarController

CONTROLLERS: tuple[type[Controller], ...] = (CalendarController,)
"""All controllers, in the order in which they are started."""

__all__ = ["CONTROLLERS", "CalendarController"]
