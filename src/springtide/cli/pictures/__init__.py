"""Pictures of time: a forecast as a terminal drawing, an SVG, a page or a calendar file.

Every renderer takes forecasts and returns one string; none knows what a schedule, a rule or a budget is.
Import only the renderer that is needed, for the sake of start-up time.
"""
