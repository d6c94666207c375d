"""Validation of the volumes of pods: one source each, with what the source needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from springtide.apiserver.builtin.validation import entries
from springtide.apiserver.field_errors import duplicate, forbidden, invalid, required
from springtide.apiserver.names import label_problem
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object

_MAX_MODE = 0o777
_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_REQUIRED = {"secret": "secretName", "configMap": "name", "persistentVolumeClaim": "claimName", "hostPath": "path"}
"""The field that a source needs."""


def volumes(spec: Object, path: str) -> tuple[list[StatusCause], set[str]]:
    """Validate the volumes of a pod spec; returns the causes and the names of valid volumes, which can be mounted."""
    causes: list[StatusCause] = []
    names: set[str] = set()
    for index, volume in entries(spec, "volumes"):
        found = [*_source(volume, f"{path}.volumes[{index}]"), *_name(volume, names, f"{path}.volumes[{index}].name")]
        causes += found
        if not found:
            names.add(volume.get("name") or "")
    return causes, names


def _name(volume: Object, names: set[str], path: str) -> Iterator[StatusCause]:
    name = volume.get("name") or ""
    if not name:
        yield required(path)
    elif problem := label_problem(name):
        yield invalid(path, name, problem)
    if name in names:
        yield duplicate(path, name)


def _source(volume: Object, path: str) -> Iterator[StatusCause]:
    sources = [name for name, part in volume.items() if name != "name" and part is not None]
    # The API server looks at sources in the order of their declaration, which begins with `emptyDir`.
    sources.sort(key=lambda name: name != "emptyDir")
    for name in sources[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 volume type")
    for name in sources[:1]:
        yield from _details(volume[name], name, f"{path}.{name}")


def _details(source: Any, name: str, path: str) -> Iterator[StatusCause]:
    field = _REQUIRED.get(name)
    if field is None or not isinstance(source, dict):
        return
    given = source.get(field)
    if not given:
        yield required(f"{path}.{field}")
    elif name == "hostPath":
        yield from no_backsteps(given, f"{path}.{field}")
    mode = source.get("defaultMode")
    if mode is not None and not 0 <= mode <= _MAX_MODE:
        yield invalid(f"{path}.defaultMode", mode, _MODE)


def no_backsteps(text: str, path: str) -> Iterator[StatusCause]:
    """Reject a path of a file system that goes up."""
    if ".." in text.split("/"):
        yield invalid(path, text, "must not contain '..'")
