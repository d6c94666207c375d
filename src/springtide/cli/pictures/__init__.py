"""Pictures of time: a forecast as a terminal drawing, an SVG, a page or a calendar file.

Every renderer takes forecasts and gives one string; none knows what a schedule, a rule or a budget is.
Import only the renderer that is needed: the others cost start-up time for nothing.
"""
