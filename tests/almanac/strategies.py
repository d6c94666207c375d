"""Hypothesis strategies: zones, instants near clock changes, and schedules that clock changes affect."""

from hypothesis import strategies as st
from tests.almanac.builders import utc

from springtide.almanac import load_zone

#: Both hemispheres; half-hour jumps; jumps over midnight; offsets with seconds; a skipped day; clocks turned back
#: shortly after midnight; summer time that is two hours, negative or suspended for Ramadan; changed rules.
ZONES = (
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Asia/Beirut",
    "Africa/Monrovia",
    "America/Santiago",
    "America/Havana",
    "Africa/Casablanca",
    "Pacific/Apia",
    "Asia/Kolkata",
    "Europe/Riga",
    "America/Sao_Paulo",
    "Asia/Pyongyang",
    "Antarctica/Troll",
    "America/St_Johns",
    "Europe/Dublin",
    "America/Caracas",
)
START, STOP = utc("1970-01-01"), utc("2037-12-31")

zones = st.sampled_from(ZONES)


@st.composite
def moments(draw: st.DrawFn, zone: str) -> int:
    """Draw an instant of 1970-2037, most often within a day of a change of the zone's clock."""
    changes = [change.at for change in load_zone(zone).transitions(START, STOP)]
    if not changes or draw(st.integers(0, 3)) == 0:
        return draw(st.integers(START, STOP))
    around = draw(st.one_of(st.integers(-7200, 7200), st.integers(-100_000, 100_000), st.sampled_from((-1, 0, 1))))
    return draw(st.sampled_from(changes)) + around


def near_changes(zone: str, a: int, b: int) -> list[int]:
    """Return instants of [a, b] on both sides of changes of a zone's clock, and inside the folds they make."""
    changes = load_zone(zone).transitions(a, b)
    found = [change.at + away for change in changes for away in (-1800, -60, -1, 0, 1, 60, 900, 1800, 3599)]
    return [t for t in found if a <= t <= b]


def _items(low: int, high: int, favourites: tuple[int, ...]) -> st.SearchStrategy[str]:
    value = st.one_of(st.sampled_from(favourites), st.integers(low, high))
    pair = st.tuples(value, value).map(lambda ends: f"{min(ends)}-{max(ends)}")
    step = st.integers(1, 12)
    return st.one_of(
        st.just("*"),
        value.map(str),
        pair,
        step.map(lambda k: f"*/{k}"),
        st.tuples(value, step).map(lambda pair: f"{pair[0]}/{pair[1]}"),
        st.tuples(pair, step).map(lambda pair: f"{pair[0]}/{pair[1]}"),
        st.lists(value, min_size=2, max_size=4).map(lambda values: ",".join(map(str, values))),
        st.tuples(value, st.sampled_from(("*", "?", "*/2"))).map(lambda pair: f"{pair[0]},{pair[1]}"),
    )


minutes = _items(0, 59, (0, 15, 30, 45, 59, 1))
hours = _items(0, 23, (0, 1, 2, 3, 4, 22, 23))
days = st.one_of(st.just("*"), _items(1, 31, (1, 29, 30, 31)))
months = st.one_of(st.just("*"), st.just("*"), _items(1, 12, (3, 4, 10, 11)))
weekdays = st.one_of(st.just("*"), _items(0, 6, (0, 1, 5, 6)), st.sampled_from(("sun", "mon-fri", "SAT,sun", "?")))
schedules = st.one_of(
    st.tuples(minutes, hours, days, months, weekdays).map(" ".join),
    st.tuples(minutes, hours).map(lambda pair: f"{pair[0]} {pair[1]} * * *"),
    st.sampled_from(("@daily", "@hourly", "@weekly", "@monthly", "0 0 * * *", "30 2 * * *", "0 */2 * * *")),
)
