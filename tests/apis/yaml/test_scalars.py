"""Values of unquoted scalars as the Kubernetes tools parse them; `DISPUTED` lists the differences."""

from __future__ import annotations

from typing import Any

import pytest

from springtide.apis.yaml import Document, read, same


def value_of(text: str) -> Any:
    (document,) = read(text)
    assert isinstance(document, Document)
    return document.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("22:00", "22:00"),
        ("1:2", "1:2"),
        ("2026-12-24", "2026-12-24"),
        ("2026-12-24T00:00:00Z", "2026-12-24T00:00:00Z"),
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("false", False),
        ("False", False),
        ("FALSE", False),
        ("tRue", "tRue"),
        ("~", None),
        ("null", None),
        ("Null", None),
        ("NULL", None),
        ("", None),
        ("nULL", "nULL"),
        ("0", 0),
        ("-0", 0),
        ("+5", 5),
        ("00", 0),
        ("010", 8),
        ("-010", -8),
        ("0777", 511),
        ("08", 8),
        ("-08", -8),
        ("0_8", 8),
        ("0o10", 8),
        ("0O10", 8),
        ("0o8", "0o8"),
        ("0x1F", 31),
        ("-0x10", -16),
        ("0x_F", 15),
        ("0x", "0x"),
        ("0b101", 5),
        ("-0b101", -5),
        ("0b2", "0b2"),
        ("1_000", 1000),
        ("1_", 1),
        ("_1", "_1"),
        ("1.5", 1.5),
        ("09.5", 9.5),
        ("1_000.5", 1000.5),
        ("1.", 1.0),
        ("1.0", 1.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("._5", "._5"),
        ("1e3", 1000.0),
        ("1E+3", 1000.0),
        ("12e03", 12000.0),
        ("1e", "1e"),
        ("1e1000", "1e1000"),
        ("0x1p4", "0x1p4"),
        ("1f", "1f"),
        (".", "."),
        ("+", "+"),
        ("18446744073709551616", 18446744073709551616),
        ("-9223372036854775809", -9223372036854775809),
        ("9" * 309, "9" * 309),
        ("0x" + "f" * 5000, "0x" + "f" * 5000),
        ("500m", "500m"),
        ("10%", "10%"),
        ("=", "="),
        ('"1"', "1"),
        ("'true'", "true"),
        ('""', ""),
        ("!!str 5", "5"),
        ("! 5", "5"),
        ("!!int '5'", 5),
        ("!!float 5", 5),
        ("!!bool 'true'", True),
        ("!!null ''", None),
    ],
)
def test_scalars(text: str, value: object) -> None:
    assert same({"a": value}, value_of(f"a: {text}"))


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("1", "1"),
        ("0x10", "16"),
        ("true", "true"),
        ("FALSE", "false"),
        ("1.5", "1.5"),
        ("1.10", "1.1"),
        (".5", "0.5"),
        ("1e3", "1000"),
        ("100000.0", "100000"),
        ("1e6", "1e+06"),
        ("123456789.0", "1.2345679e+08"),
        ("16777217.0", "1.6777216e+07"),
        ("3.14159265", "3.1415927"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-05"),
        ("1e300", "+Inf"),
        ("22:00", "22:00"),
        ("2020-01-01", "2020-01-01"),
        ("!!str 1", "1"),
        ("'1'", "1"),
        ('""', ""),
        ("? a\n", "a"),
    ],
)
def test_keys_become_text(key: str, name: str) -> None:
    assert {name: "v"} == value_of(f"{key}: v")


DISPUTED = ["y", "Y", "yes", "Yes", "YES", "n", "N", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF"]


@pytest.mark.parametrize("word", DISPUTED)
def test_words_that_are_booleans_for_kubectl_are_strings_with_a_warning(word: str) -> None:
    (document,) = read(f"country: {word}\n{word}: x\n'{word}2': '{word}'\n")
    assert isinstance(document, Document)

    assert {"country": word, word: "x", f"{word}2": word} == document.value
    assert [("country",), (word,)] == [found.problem.path for found in document.problems]
    assert {"warning"} == {found.problem.severity for found in document.problems}
    assert [found.position for found in document.problems] == [(1, 10), (2, 1)]
