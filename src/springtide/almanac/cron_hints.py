"""What to say to someone who wrote a schedule in another program's dialect."""

import re

_LAST = re.compile(r"(?P<weekday>\w*)L(?:W|-\d+)?", re.IGNORECASE)
_NTH = re.compile(r"\w+#(?P<nth>[1-5])")
_NEAREST = re.compile(r"(?P<day>\d{1,2})W", re.IGNORECASE)


def foreign_syntax_hint(item: str, field: str, words: tuple[str, ...]) -> str:
    """Return the nearest thing this grammar can say for an item that it does not understand."""
    if _NTH.fullmatch(item):
        return "# (the nth weekday of a month) is not supported; list the dates, or use a Calendar"
    if _NEAREST.fullmatch(item):
        return "W (the nearest working day) is not supported; list the dates, or use a Calendar"
    if _LAST.fullmatch(item):
        if field == "day of month":
            return "L (the last day) is not supported; use 28, or the first day of the next month"
        return "L (the last such weekday) is not supported; list the dates, or use a Calendar"
    if item.startswith("-") or "--" in item:
        return "negative numbers are not allowed; a range has one value on each side, such as 1-5"
    if item.count("-") > 1 or item.count("/") > 1:
        return "a range has one dash and at most one step, such as 1-5/2"
    known = [word for word in words if item.isalpha() and len(item) > 3 and item.lower().startswith(word)]
    if known:
        return f"write the first three letters: {known[0]}"
    if words:
        return f"names have three letters: {', '.join(words)}"
    return "write numbers, ranges such as 1-5, steps such as */2, or lists of these"


def wrapped_range(low: int, high: int, step: int, first: int, last: int) -> list[int]:
    """Return the values that a range meant which runs over the end of its field."""
    size = last - first + 1
    return [first + (low - first + k) % size for k in range(0, (high - low) % size + 1, step)]
