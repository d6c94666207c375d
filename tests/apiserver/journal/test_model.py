"""A storage with a journal, closed and killed at any time, behaves like one that was never restarted."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.apiserver.journal.objects import reopened
from tests.apiserver.objects import CONFIG_MAPS

from springtide.apiserver.journal import FileJournal
from springtide.apiserver.list_watch import open_watch
from springtide.apiserver.storage import CollectionId, Storage
from springtide.cluster.errors import Gone
from springtide.cluster.resources import Key, Selection

_COLLECTIONS = (CollectionId("", "configmaps"), CollectionId("example.com", "things"))
_KEYS = (Key("", "a"), Key("one", "a"), Key("one", "b"), Key("two", "a"))
_VALUES = (0, False, None, "", "ü", 2**70, [1], {"k": 1}, {"k": True})

_collections = st.sampled_from(_COLLECTIONS)
_keys = st.sampled_from(_KEYS)
_contents = st.dictionaries(st.sampled_from("xyz"), st.sampled_from(_VALUES), max_size=3)


class RestartMachine(RuleBasedStateMachine):
    """Writes to both storages and restarts one of them; the other only skips the same versions."""

    journal: FileJournal
    kept: Storage
    oracle: Storage

    @initialize(history=st.sampled_from([1, 4, 12, 100_000]))
    def begin(self, history: int) -> None:
        self._place = tempfile.TemporaryDirectory()
        self._folder = Path(self._place.name) / "data"
        self._history = history
        self._versions = [0]
        self._gaps: list[tuple[int, int]] = []
        self.oracle = Storage(history=history)
        self.journal, self.kept = reopened(self._folder, history=history)

    @rule(identity=_collections, key=_keys, content=_contents)
    def put(self, identity: CollectionId, key: Key, content: dict[str, Any]) -> None:
        self._write(identity, key, {"metadata": {"name": key.name, "namespace": key.namespace}, **content})

    @rule(identity=_collections, key=_keys)
    def remove(self, identity: CollectionId, key: Key) -> None:
        if key in self.oracle.collection(identity).live:
            self._write(identity, key, None)

    @rule(back=st.integers(0, 5))
    def compact(self, back: int) -> None:
        for storage in (self.kept, self.oracle):
            storage.compact(storage.revision - back)

    @rule()
    def end_in_order(self) -> None:
        self.journal.close()
        self._reopen()
        assert self.kept.revision == self.oracle.revision

    @rule()
    def crash(self) -> None:
        self.journal.abandon()
        self._reopen()
        assert self.kept.revision > self.oracle.revision
        self._gaps.append((self.oracle.revision, self.kept.revision))
        self.oracle.revision = self.kept.revision
        self.oracle.compact(self.oracle.revision - self._history)
        self._versions.append(self.kept.revision)

    @invariant()
    def both_show_the_same(self) -> None:
        assert (self.kept.revision, self.kept.compacted) == (self.oracle.revision, self.oracle.compacted)
        for version in self._versions[-12:]:
            assert repr(_shown(self.kept, version)) == repr(_shown(self.oracle, version)), version

    @invariant()
    def what_was_skipped_is_gone(self) -> None:
        for after, before in self._gaps:
            for version in (after + 1, before - 1):
                with pytest.raises(Gone):
                    self.kept.check(version)

    def teardown(self) -> None:
        self.journal.close()
        self._place.cleanup()

    def _write(self, identity: CollectionId, key: Key, item: dict[str, Any] | None) -> None:
        for storage in (self.kept, self.oracle):
            storage.write(storage.collection(identity), key, item)
        self._versions.append(self.oracle.revision)

    def _reopen(self) -> None:
        self.journal, self.kept = reopened(self._folder, history=self._history)


def _shown(storage: Storage, version: int) -> Any:
    """Return everything observable at a version: lists, single objects, and watch events."""
    try:
        return [
            (
                list(storage.listed(collection, version)),
                [storage.at(collection, key, version) for key in _KEYS],
                _watched(storage, identity, version),
            )
            for identity in _COLLECTIONS
            for collection in [storage.collection(identity)]
        ]
    except Gone as gone:
        return gone.message


def _watched(storage: Storage, identity: CollectionId, version: int) -> Any:
    """Watch a collection; a watch from version 0 starts with the existing objects."""
    collection = storage.collection(identity)
    watch = open_watch(
        storage, collection, Selection(CONFIG_MAPS), None, None, version=str(version), initial_events=False
    )
    watch.end()
    return [(event.change, event.object) for event in watch.events]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("examples", "steps"),
    [pytest.param(40, 25, id="some"), pytest.param(1000, 60, id="many", marks=pytest.mark.soak)],
)
def test_restarts_are_not_observable(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        RestartMachine, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    )
