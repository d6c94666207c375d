"""Peers' objects with anything in any place: converted to something sound or refused, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.peers.converting import NOW

from springtide.apis.fields import Context
from springtide.apis.objects import LoadedObject, load
from springtide.apis.peers import Setting, replace_peers
from springtide.apis.yaml import Document, read

EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "peers").glob("*.yaml"))
MADE = ("MetricsProducer", "HorizontalAutoscaler", "CronFederatedHPA", "Calendar")
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(["@every -1h", "@date", "* * * * * *", "Mon-Mon 24:00-24:00 UTC", "0 0 31 2 *", "-", "²", "1e3"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


def with_junk(value: Any, path: tuple[str | int, ...], junk: Any) -> Any:
    if not path:
        return junk
    copy: Any = value.copy()
    copy[path[0]] = with_junk(value[path[0]], path[1:], junk)
    return copy


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
@given(data=st.data())
def test_anything_anywhere(example: Path, data: st.DataObject) -> None:
    document, *_ = read(example.read_text(encoding="utf-8"))
    assert isinstance(document, Document)
    value = document.value
    for _ in range(data.draw(st.integers(1, 2))):
        value = with_junk(value, data.draw(st.sampled_from(list(places(value)))), data.draw(JUNK))
    text = json.dumps(value)
    replaced = replace_peers(text, Setting(NOW, data.draw(st.sampled_from([None, "Europe/Berlin"]))))
    assert replaced.changes or replaced.text == text
    for item in load(replaced.text, Context(now=NOW)) if replaced.changes else ():
        if isinstance(item, LoadedObject) and item.kind.kind in MADE:
            assert item.sound, item.problems
