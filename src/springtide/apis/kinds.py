"""What a kind is: its names, its versions, and how it is read leniently and looked ahead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from springtide.apis.fields import View
from springtide.apis.forecast import Outlook, Question
from springtide.apis.problems import Path, Problem


@dataclass(frozen=True, slots=True)
class Reading:
    """An object as it was meant: the canonical tree, what had to be read leniently, and where fields stood before."""

    value: dict[str, Any]
    problems: tuple[Problem, ...] = ()
    origins: dict[Path, Path] = field(default_factory=dict)
    """For parts that moved: their canonical path, and the path in the text they come from."""


Lenient: TypeAlias = Callable[[dict[str, Any]], Reading]
"""Turns aliases and older spellings into the canonical shape; pure, never raises, leaves alone what it cannot read."""

Forecaster: TypeAlias = Callable[[Any, Question], Outlook]
"""Compiles a view (the root object of the kind) to its lanes."""

Salvager: TypeAlias = Callable[[View | None, dict[str, Any], Question], Outlook | None]
"""Compiles what can be told for certain about an object with errors, from its view, if there is one, and its tree."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column that `kubectl get` prints."""

    name: str
    type: Literal["string", "integer", "date", "boolean"]
    json_path: str
    priority: int = 0
    extension: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the scale subresource finds its numbers."""

    spec_path: str
    status_path: str
    selector_path: str | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a kind."""

    name: str
    view: type[View]
    served: bool = True
    storage: bool = False
    deprecated: str | None = None
    """The warning that the server gives to those who still use it."""
    columns: tuple[Column, ...] = ()
    lenient: Lenient | None = None
    to_storage: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Converts a canonical tree to the stored version; none where only the name of the version differs."""
    forecaster: Forecaster | None = None
    salvager: Salvager | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object that users write."""

    group: str
    kind: str
    plural: str
    scope: Literal["Namespaced", "Cluster"]
    versions: tuple[Version, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = True
    scale: Scale | None = None
    builtin: bool = False
    """Part of Kubernetes itself, or of another project: read, but no CRD of ours."""

    def version(self, name: str) -> Version | None:
        """Find a version by its name."""
        return next((version for version in self.versions if version.name == name), None)

    def api_version(self, version: Version) -> str:
        """Write group and version as an object's ``apiVersion``."""
        return f"{self.group}/{version.name}" if self.group else version.name
