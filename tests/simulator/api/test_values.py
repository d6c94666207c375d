"""JSON values: what a copy shares with another value, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.simulator.api.values import copied, copied_beside

HELD: dict[str, Any] = {"labels": {"app": "web"}, "owners": [{"uid": "1"}, {"uid": "2"}], "name": "web"}

TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from("abc"), parts, max_size=3),
    max_leaves=12,
)


def containers(value: Any) -> list[Any]:
    """Give all lists and objects of a value, itself included."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [inner for part in parts for inner in containers(part)]
    return [value, *found] if isinstance(value, dict | list) else found


@pytest.mark.parametrize(
    ("value", "shared"),
    [
        pytest.param(HELD, [HELD], id="the-same"),
        pytest.param({**HELD, "name": "api"}, [HELD["labels"], HELD["owners"]], id="another-field"),
        pytest.param({**HELD, "labels": {"app": "web"}}, [HELD["owners"]], id="equal-is-not-the-same"),
        pytest.param({"owners": [HELD["owners"][0], {"uid": "3"}]}, [HELD["owners"][0]], id="an-entry"),
        pytest.param({"owners": [*HELD["owners"], {"uid": "3"}]}, HELD["owners"], id="one-entry-more"),
        pytest.param({"owners": HELD["owners"][:1]}, HELD["owners"][:1], id="one-entry-less"),
        pytest.param({"labels": HELD["owners"]}, [], id="another-place"),
        pytest.param([HELD["owners"]], [], id="another-shape"),
    ],
)
def test_what_a_copy_shares(value: Any, shared: list[Any]) -> None:
    """It is the very same objects at the very same places, and nothing else."""
    copy = copied_beside(value, HELD)

    kept = {id(part) for top in shared for part in containers(top)}
    own = {id(part) for part in containers(value)}
    assert copy == value
    assert {id(part) for part in containers(copy)} & own == kept


@given(value=TREES, held=TREES)
def test_a_copy_beside_a_stranger_shares_nothing(value: Any, held: Any) -> None:
    """It is then what any copy is."""
    copy = copied_beside(value, held)

    assert copy == copied(value) == value
    assert not {id(part) for part in containers(copy)} & {id(part) for part in containers(value)}
