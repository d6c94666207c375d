"""Replaces what differs between two runs of a case, so that the answers of equal servers are equal.

Versions, uids and generated names become symbols: equal ones stay equal, and `rv#1` is older than `rv#2`. The versions
of lists and bookmarks are hidden, because any write in the cluster changes them. Times that a case writes are before
2020 and stay; later ones are hidden.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NOW = re.compile(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_VERSION_IN_WORDS = re.compile(r"(?<=ResourceVersion in precondition: )\d+|(?<=ResourceVersion in object meta: )\d+")
_VERSION_IN_BRACKETS = re.compile(
    r"(?<=ResourceVersion in the precondition \()\d+|(?<=ResourceVersion in record \()\d+"
)
_CURRENT_VERSION = re.compile(r"(?<=, current: )\d+|(?<=resource version: )\d+(?= \()|(?<=\()\d+(?=\)$)")
_QUOTED_VERSION = re.compile(r'(resourceVersion\\*":\\*")\d+')
_MANAGER = ("manager", "operation", "apiVersion", "subresource")
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+")


def in_symbols(steps: list[Any], names: dict[str, str]) -> list[Any]:
    """Return the answers of a run in symbols; `names` are the names of this run and their symbols."""
    symbols = _Symbols(steps, names)
    return _shortened([symbols.rewritten(step) for step in steps])


class _Symbols:
    def __init__(self, steps: list[Any], names: dict[str, str]) -> None:
        self._names = names
        self._uids: dict[str, str] = {}
        metas = [meta for meta in _metas(steps) if _of_object(meta)]
        versions = sorted({int(meta["resourceVersion"]) for meta in metas if meta.get("resourceVersion")})
        self._versions = {str(version): f"rv#{place}" for place, version in enumerate(versions, 1)}
        self._generated: dict[str, str] = {}
        for meta in metas:
            prefix, name = meta.get("generateName"), meta.get("name")
            if prefix and name and name.startswith(prefix[:58]):
                self._generated.setdefault(name, f"{prefix[:58]}<{len(name) - len(prefix[:58])}>")

    def rewritten(self, value: Any) -> Any:
        if isinstance(value, dict):
            # Symbols are numbered in order of occurrence, which must not depend on the order of fields.
            return {self._text(key): self._member(key, value[key]) for key in sorted(value)}
        if isinstance(value, list):
            return [self.rewritten(each) for each in value]
        return self._text(value) if isinstance(value, str) else value

    def _member(self, key: str, value: Any) -> Any:
        if key in _SPECIAL:
            return _SPECIAL[key](self, value)
        return self.rewritten(value)

    def _text(self, text: str) -> str:
        for name, symbol in self._names.items():
            text = text.replace(name, symbol)
        text = _UID.sub(lambda match: self._uids.setdefault(match[0], f"uid#{len(self._uids) + 1}"), text)
        text = _NOW.sub("<now>", text)
        text = _VERSION_IN_WORDS.sub(lambda match: self._versions.get(match[0], match[0]), text)
        text = _VERSION_IN_BRACKETS.sub(lambda match: self._versions.get(match[0], match[0]), text)
        text = _CURRENT_VERSION.sub("<version>", text)
        text = _QUOTED_VERSION.sub(r"\1<version>", text)
        for name, symbol in self._generated.items():
            text = text.replace(name, symbol)
        return text

    def _metadata(self, meta: Any) -> Any:
        if not isinstance(meta, dict):
            return self.rewritten(meta)
        out = self.rewritten(meta)
        if version := meta.get("resourceVersion"):
            out["resourceVersion"] = self._versions.get(version, version) if _of_object(meta) else "<version>"
        if meta.get("continue"):
            out["continue"] = "<continue>"
        return out

    def _managers(self, entries: Any) -> Any:
        if not isinstance(entries, list):
            return entries
        return {
            self._text(" ".join(str(entry[key]) for key in _MANAGER if key in entry)): [
                self._text(path) for path in _paths(entry.get("fieldsV1", {}))
            ]
            for entry in entries
        }

    def _status(self, body: dict[str, Any]) -> dict[str, Any]:
        """Sort the causes of an error, which a server may report in any order."""
        out: dict[str, Any] = self.rewritten(body)
        causes = (out.get("details") or {}).get("causes") or ()
        if len(causes) > 1:
            out["details"]["causes"] = sorted(causes, key=lambda cause: json.dumps(cause, sort_keys=True))
            out["message"] = re.sub(r"is invalid: \[.*\]", "is invalid: [<causes>]", out["message"], flags=re.DOTALL)
        return out

    def _body(self, body: Any) -> Any:
        return self._status(body) if isinstance(body, dict) and body.get("kind") == "Status" else self.rewritten(body)

    def _columns(self, columns: Any) -> Any:
        """Drop the descriptions of columns, which are prose."""
        if not isinstance(columns, list):
            return columns
        return [{key: value for key, value in each.items() if key != "description"} for each in columns]

    def _events(self, events: Any) -> Any:
        """Keep only the metadata of bookmarks: some servers fill in empty values."""
        for event in events:
            if event and event.get("type") == "BOOKMARK":
                event["object"] = {key: event["object"][key] for key in ("apiVersion", "kind", "metadata")}
        return self.rewritten(events)

    def _address(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._address(each) for each in value]
        return "<address>" if isinstance(value, str) and _ADDRESS.fullmatch(value) else value


_SPECIAL: dict[str, Callable[[_Symbols, Any], Any]] = {
    "metadata": _Symbols._metadata,
    "managedFields": _Symbols._managers,
    "body": _Symbols._body,
    "columnDefinitions": _Symbols._columns,
    "events": _Symbols._events,
    "clusterIP": _Symbols._address,
    "clusterIPs": _Symbols._address,
    "nodePort": lambda _, port: "<node port>" if port else port,
}


def _shortened(steps: list[Any]) -> list[Any]:
    """Replace a body that equals an earlier one by the number of that step."""
    first: list[Any] = []
    for place, step in enumerate(steps, 1):
        if isinstance(body := step.get("body"), dict):
            if body in (seen for _, seen in first):
                step["body"] = {"as in step": next(earlier for earlier, seen in first if seen == body)}
            else:
                first.append((place, body))
    return steps


def _of_object(meta: dict[str, Any]) -> bool:
    return "uid" in meta


def _metas(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            if key == "metadata" and isinstance(each, dict):
                yield each
            yield from _metas(each)
    elif isinstance(value, list):
        for each in value:
            yield from _metas(each)


def _paths(fields: dict[str, Any], before: str = "") -> Iterator[str]:
    """Yield the fields of a manager as paths, leaves only."""
    for key, under in sorted(fields.items()):
        path = f"{before} {key}".strip()
        if under:
            yield from _paths(under, path)
        else:
            yield path
