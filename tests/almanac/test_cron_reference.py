"""Cron schedules compared with a reference that visits every minute that a clock shows."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.almanac import reference, strategies

from springtide.almanac import Cron, CronError, Dialect, load_zone

_DAY = 86_400


def _expected(text: str, dialect: Dialect, zone: str, a: int, b: int) -> list[int]:
    if dialect is Dialect.RULE and reference.read(text).fixed:
        return reference.fixed_times(text, zone, a, b)
    return reference.follow_clock(text, zone, a, b)


@pytest.mark.parametrize("dialect", Dialect)
@settings(max_examples=250, deadline=None)
@given(data=st.data())
def test_hits_are_those_of_the_wall_clock(dialect: Dialect, data: st.DataObject) -> None:
    """`after`, `at_or_before` and `between` agree with the reference around clock changes."""
    name = data.draw(strategies.zones)
    centre = data.draw(strategies.moments(name))
    text = data.draw(strategies.schedules)
    try:
        cron = Cron.parse(text, dialect)
    except CronError as error:
        assume("never fires" not in error.message)
        raise
    zone = load_zone(name)
    a, b = centre - _DAY, centre + _DAY
    expected = _expected(text, dialect, name, a, b)

    assert list(cron.between(a, b, zone)) == expected

    points = data.draw(st.lists(st.integers(a, b), min_size=2, max_size=4))
    points += strategies.near_changes(name, a, b)
    for t in [centre, *points, *(hit + d for hit in expected[:2] + expected[-2:] for d in (-1, 0, 1))]:
        if not a <= t <= b:
            continue
        ahead, behind = [hit for hit in expected if hit > t], [hit for hit in expected if hit <= t]
        following, latest = cron.after(t, zone), cron.at_or_before(t, zone)
        assert list(cron.between(t, b, zone)) == ahead
        assert following == ahead[0] if ahead else following is None or following > b
        assert latest == behind[-1] if behind else latest is None or latest <= a


@pytest.mark.parametrize("dialect", Dialect)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_walking_by_after_and_back_by_at_or_before_visits_the_same_hits(dialect: Dialect, data: st.DataObject) -> None:
    """`after`, `at_or_before` and `between` agree with each other over a long time, also for rare schedules."""
    name = data.draw(strategies.zones)
    zone = load_zone(name)
    t = data.draw(strategies.moments(name))
    text = data.draw(strategies.schedules)
    try:
        cron = Cron.parse(text, dialect)
    except CronError:
        assume(False)
    walked = [t]
    for _ in range(10):
        following = cron.after(walked[-1], zone)
        assert following is not None
        walked.append(following)

    assert list(cron.between(t, walked[-1], zone)) == walked[1:]
    assert [cron.at_or_before(hit - 1, zone) for hit in walked[2:]] == walked[1:-1]
    assert [cron.at_or_before(hit, zone) for hit in walked[1:]] == walked[1:]
