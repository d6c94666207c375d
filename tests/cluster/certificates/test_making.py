"""Certificates that are made here: what they show of themselves."""

from __future__ import annotations

from springtide.cluster.certificates import make_authority


def test_a_key_is_shown_to_nobody_who_prints_its_pair() -> None:
    pair = make_authority("test", now=1_800_000_000, seconds=3600)

    assert b"PRIVATE KEY" in pair.key
    assert "PRIVATE KEY" not in repr(pair)
    assert repr(pair.key) not in repr(pair)
