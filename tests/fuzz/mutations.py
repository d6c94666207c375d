"""Random mutations of manifests, as texts and as trees, that are reproducible by their seed."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from springtide.apis.yaml import Document, dump, read

_ROOT = Path(__file__).parents[2]
SOURCES = [
    path.read_text(encoding="utf-8")
    for folder in ("examples", "tests/fixtures/designs")
    for path in sorted((_ROOT / folder).glob("*.yaml"))
]
TREES = [found.value for text in SOURCES for found in read(text) if isinstance(found, Document)]

_SCALARS: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 7, 24, 60, 100, 101, 2**31, 2**63, -(2**63), 10**40, 0.5, 1e300, "", " ", "x", "10%",
    "101%", "-5", "Mon-Fri", "Fri,Sat,,Sun", "0 9 * * *", "0 0 30 2 *", "@every 5m", "* * * *", "TZ=UTC 0 9 * * *",
    "61 * * * *", "*/0 * * * *", ",", "Europe/Berlin", "Mars/Olympus", "EST", "../../etc/passwd", "2026-02-30",
    "2026-11-27T06:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-11-27", "02-29", "8h", "1h30s",
    "99999999999999999999h", "Never", "never", "Drifted", "drift", "Empty", "nonsense", "5Gi", "5GB", "1e999", "Ki",
    "ünïcödé", "\u202e", "a" * 300, "\x00", "${x}", "{{ .Values.x }}", "&a", "*a", "!!python/object", "<<", "- a",
)  # fmt: skip
_SNIPPETS = (
    "\t", "  ", "\n", ":", ": ", "- ", "#", "//", "'", '"', "[", "]", "{", "}", ",", "|", ">", "&a ", "*a", "!t ",
    "---\n", "\r\n", "\x00", "\x85", "\u2028", "\ufeff", "%", "@", "`", "0", "null", "~",
    "<<: *a\n", "? ", "kind: NodePool\n",
)  # fmt: skip


def mutated_text(random: Random) -> str:
    """Return an example with a few characters, lines or snippets removed, repeated, moved or added."""
    text = random.choice(SOURCES)
    for _ in range(random.randint(1, 4)):
        text = random.choice((_cut, _insert, _drop_line, _double_line, _swap_lines, _indent, _join))(text, random)
    return text


def mutated_tree(random: Random) -> str:
    """Return an example with a few values replaced and removed, misspelt, moved or repeated fields, as YAML or JSON."""
    tree = json.loads(json.dumps(random.choice(TREES)))
    for _ in range(random.randint(1, 4)):
        places = list(_places(tree))
        holder, key = random.choice(places)
        change = random.randrange(6)
        if change == 0:
            holder[key] = random.choice(_SCALARS)
        elif change == 1:
            del holder[key]
        elif change == 2 and isinstance(holder, dict):
            holder[_misspelt(key, random)] = holder.pop(key)
        elif change == 3:
            other, place = random.choice(places)
            holder[key] = json.loads(json.dumps(other[place], default=str)) if place in _keys(other) else None
        elif change == 4:
            holder[key] = random.choice(({}, [], [None], {"a": {}}, [[]], [holder[key]], {"name": "x"}))
        elif isinstance(holder, list):
            holder.append(holder[key])
        else:
            holder["extra"] = random.choice(_SCALARS)
        if not isinstance(tree, dict) or not tree:
            break
    return json.dumps(tree) if random.random() < 0.2 else dump(tree)


def _keys(holder: Any) -> Any:
    return range(len(holder)) if isinstance(holder, list) else holder


def _places(node: Any) -> Any:
    items = list(enumerate(node)) if isinstance(node, list) else list(node.items())
    for key, value in items:
        yield node, key
        if isinstance(value, dict | list) and value:
            yield from _places(value)


def _misspelt(word: str, random: Random) -> str:
    position = random.randrange(len(word) + 1)
    return random.choice(
        (
            word.lower(),
            word.upper(),
            word[:position] + word[position + 1 :],
            word[:position] + "x" + word[position:],
            "",
        )
    )


def _cut(text: str, random: Random) -> str:
    start = random.randrange(len(text) + 1)
    return text[:start] + text[start + random.randint(1, 12) :]


def _insert(text: str, random: Random) -> str:
    start = random.randrange(len(text) + 1)
    return text[:start] + random.choice(_SNIPPETS) + text[start:]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True) or [""]


def _drop_line(text: str, random: Random) -> str:
    lines = _lines(text)
    del lines[random.randrange(len(lines))]
    return "".join(lines)


def _double_line(text: str, random: Random) -> str:
    lines = _lines(text)
    position = random.randrange(len(lines))
    return "".join([*lines[: position + 1], *lines[position:]])


def _swap_lines(text: str, random: Random) -> str:
    lines = _lines(text)
    a, b = random.randrange(len(lines)), random.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "".join(lines)


def _indent(text: str, random: Random) -> str:
    lines = _lines(text)
    position = random.randrange(len(lines))
    lines[position] = random.choice((" ", "  ", "\t")) + lines[position]
    return "".join(lines)


def _join(text: str, random: Random) -> str:
    return text + random.choice(("", "\n", "---\n")) + random.choice(SOURCES)
