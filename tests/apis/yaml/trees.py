"""Hypothesis strategies for objects and manifests with ambiguous words and many comments."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TEMPTING_WORDS = (
    *("NO", "yes", "on", "y", "null", "~", "true", "False", "=", "<<", ".inf", "-.INF", ".nan"),
    *("22:00", "2026-12-24", "2026-12-24T00:00:00Z", "010", "08", "0x1F", "0o17", "0b11", "1_000", "1e3", ".5", "1."),
    *("-1", "+1", "500m", "4Gi", "1.2.3", "10.0.0.1", "---", "...", "-", "--", "--flag=x", "?", ":", ":x", "x:", "a:b"),
    *("#c", "a#b", "&a", "*a", "!t", "|", ">", "@daily", "%5", "`", "[a]", "{a}", "a,b", "{{x}}", "é", "😀"),
)
TEMPTING_TEXTS = (
    *TEMPTING_WORDS,
    *("", " ", "* * * * *", "a: b", "a #b", "- x", "? x", " x", "x ", "'q'", '"q"', "it's", 'say "x"', "back\\slash"),
    *(
        "a\nb",
        "a\nb\n",
        "a\n\nb\n\n",
        "\n",
        " a\nb",
        "a \nb",
        "a\n b\n",
        "a\tb",
        "\ta\nb",
        "a\n\tb\n",
        "# a\nb\n",
        "---\na",
    ),
    *("\x00", "\x07", "\x7f", "\x85", "\xa0", "\u2028", "\ufeff", "\ufffe", "\U000e0001", "a\r\nb"),
)

texts = st.sampled_from(TEMPTING_TEXTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)

names = st.sampled_from(["a", "b", "c", "name", "kind", "spec", "on", "22:00"])
simple_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 5) | st.sampled_from(["x", "y z", "NO", "a: b", "one\ntwo\n", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
mappings = st.dictionaries(names, simple_values, min_size=1, max_size=4)


@st.composite
def mutated(draw: st.DrawFn, value: Any) -> Any:
    """Return the value with a part replaced, renamed, removed or added."""
    if isinstance(value, dict) and value and draw(st.integers(0, 3)):
        name = draw(st.sampled_from(sorted(value)))
        match draw(st.sampled_from(["within", "within", "rename", "remove", "add"])):
            case "within":
                return value | {name: draw(mutated(value[name]))}
            case "rename":
                return {("renamed" if key == name else key): item for key, item in value.items()}
            case "remove":
                return {key: item for key, item in value.items() if key != name}
            case _:
                front = draw(st.booleans())
                added = {"added": draw(simple_values)}
                return added | value if front else value | added
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        index = draw(st.integers(0, len(value) - 1))
        match draw(st.sampled_from(["within", "within", "remove", "insert"])):
            case "within":
                return [*value[:index], draw(mutated(value[index])), *value[index + 1 :]]
            case "remove":
                return value[:index] + value[index + 1 :]
            case _:
                return [*value[:index], draw(simple_values), *value[index:]]
    return draw(simple_values)
