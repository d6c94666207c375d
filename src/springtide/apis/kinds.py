"""The words in which the kinds are declared.

A kind is a tree of `View` classes. From this one declaration come the typed view, the structural validation of what
users write, the defaults, and the CRD. Declare a field as::

    replicas: Annotated[Count, doc("How many.")]
    priority: Annotated[Int32 | None, doc("The higher wins."), extension] = None

* Bounds go on the plain type (``Annotated[int, int32(1, 32)] | None``), never around an optional one.
* A field without a default is required. ``None`` means optional; any other scalar default is also the API's default.
* Names are written in snake case and become camel case on the wire; the exceptions stand in `json_name`.
* `extension` marks what upstream's schema does not have: it is left out of the `stock` CRDs. `stock_required` marks
  what upstream requires and an extension can stand in for.
* `text_format("cron-rule")` names a check of `springtide.apis.formats`.
* ``__rules__`` are CEL rules for the CRD; ``problems`` is the same and more in Python, for every reader of problems.

What a kind is: its names, its versions, and how it is read leniently and looked ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, dataclass_transform

import msgspec
from msgspec import Meta

from springtide.apis.forecast import ForecastQuery, Outlook
from springtide.apis.problems import Path, Problem

INT32_MAX = 2**31 - 1

_IRREGULAR = {
    "provider_id": "providerID",
    "image_id": "imageID",
    "cluster_ip": "clusterIP",
    "host_ip": "hostIP",
    "host_pid": "hostPID",
    "host_ipc": "hostIPC",
    "pod_cidr": "podCIDR",
    "from_": "from",
}


def json_name(name: str) -> str:
    """Give the wire's name of a Python attribute: camel case, but for the few that Kubernetes spells otherwise."""
    if name in _IRREGULAR:
        return _IRREGULAR[name]
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


class ValidationContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a check may know besides the object: the time it is made at, and the zone of objects that name none."""

    now: int
    default_zone: str = "UTC"
    entries_left: dict[str, tuple[int, ...]] = {}
    """For lists of the view of which entries were left out, because they have errors: where the others stood."""

    replaced: frozenset[str] = frozenset()
    """Fields of the view in which something stands in for a value that could not be used."""

    deep_search: bool = True
    """Whether years of time may be searched for surprises. They are never errors: who only acts can do without."""

    def position(self, name: str, number: int) -> int:
        """Give the position at which the author of the object finds an entry of a list of the view."""
        positions = self.entries_left.get(name)
        return number if positions is None else positions[number]


class CelRule(msgspec.Struct, frozen=True):
    """A CEL rule of a CRD, and what it says when it does not hold."""

    rule: str
    message: str
    extension: bool = False


# Type checkers take subclasses for mutable unless they are told that being frozen is inherited, as msgspec has it.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class View(msgspec.Struct, frozen=True, rename=json_name):
    """A typed, read-only view of a part of an object: the fields we know; the raw object keeps the rest."""

    __rules__: ClassVar[tuple[CelRule, ...]] = ()
    __mistaken__: ClassVar[dict[str, str]] = {}
    """Names that people write for a field, and the hint that mends it."""
    __opaque__: ClassVar[tuple[str, ...]] = ()
    """Fields that exist but that nothing here reads."""

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find what is wrong beyond the structure of single fields; paths are relative to this view."""
        yield from ()


def doc(description: str) -> Meta:
    """Describe a field, for CRDs and `kubectl explain`."""
    return Meta(description=description)


def schema(**keywords: Any) -> Meta:
    """Add OpenAPI keywords; an underscore stands for a dash (``x_kubernetes_list_type="map"``)."""
    return Meta(extra_json_schema={key.replace("_", "-"): value for key, value in keywords.items()})


def default(value: Any) -> Meta:
    """Give a default to a field whose Python default cannot say it: a list or an object."""
    return Meta(extra={"default": value})


def text_format(name: str) -> Meta:
    """Check the value with the format of this name."""
    return Meta(extra={"format": name})


def rules(*listed: CelRule) -> Meta:
    """Put CEL rules on a single field."""
    return Meta(extra={"rules": listed})


def stock(**keywords: Any) -> Meta:
    """Keywords that replace the whole schema of this field in the `stock` CRDs."""
    return Meta(extra={"stock": {key.replace("_", "-"): value for key, value in keywords.items()}})


def at_most(entries: int) -> Meta:
    """Bound a list that upstream does not bound: what one object costs those who judge it must have an end."""
    return Meta(max_length=entries, extra={"own_bound": True})


def by_key(*keys: str) -> Meta:
    """Make a list one whose entries are told apart by these keys; two entries with the same keys are an error."""
    return Meta(extra={"list_map_keys": keys})


def int32(low: int = -(2**31), high: int = INT32_MAX) -> Meta:
    """Bound an integer of 32 bits."""
    return Meta(ge=low, le=high, extra_json_schema={"format": "int32"})


extension = Meta(extra={"extension": True})
as_set = Meta(extra={"list_set": True})
atomic = schema(x_kubernetes_list_type="atomic")
stock_required = Meta(extra={"stock_required": True})

Int32 = Annotated[int, int32()]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1, extra_json_schema={"format": "int64"})]
Count = Annotated[int, int32(0)]
PositiveCount = Annotated[int, int32(1)]
NonEmpty = Annotated[str, Meta(min_length=1)]
Quantity = Annotated[str | int | float, text_format("quantity")]
Zone = Annotated[str, Meta(min_length=1), text_format("zone")]
Time = Annotated[str, schema(format="date-time"), text_format("time")]
DnsName = Annotated[str, Meta(min_length=1, max_length=253), text_format("dns-subdomain")]


@dataclass(frozen=True, slots=True)
class NormalizedTree:
    """An object as it was meant: the canonical tree, what had to be read leniently, and where fields stood before."""

    value: dict[str, Any]
    problems: tuple[Problem, ...] = ()
    origins: dict[Path, Path] = field(default_factory=dict)
    """For parts that moved: their canonical path, and the path in the text they come from."""


Normalizer: TypeAlias = Callable[[dict[str, Any]], NormalizedTree]
"""Turns aliases and older spellings into the canonical shape; pure, never raises, leaves alone what it cannot read."""

Forecaster: TypeAlias = Callable[[Any, ForecastQuery], Outlook]
"""Compiles a view (the root object of the kind) to its lanes."""

PartialForecaster: TypeAlias = Callable[[View | None, dict[str, Any], ForecastQuery], Outlook | None]
"""Compiles what can be told for certain about an object with errors, from its view, if there is one, and its tree."""


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column that `kubectl get` prints."""

    name: str
    type: Literal["string", "integer", "date", "boolean"]
    json_path: str
    priority: int = 0
    extension: bool = False


@dataclass(frozen=True, slots=True)
class ScaleSubresource:
    """Where the scale subresource finds its numbers."""

    spec_path: str
    status_path: str
    selector_path: str | None = None


@dataclass(frozen=True, slots=True)
class KindVersion:
    """One version of a kind."""

    name: str
    view: type[View]
    served: bool = True
    storage: bool = False
    deprecated: str | None = None
    """The warning that the server gives to those who still use it."""
    columns: tuple[PrinterColumn, ...] = ()
    lenient: Normalizer | None = None
    to_storage: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Converts a canonical tree to the stored version; none where only the name of the version differs."""
    forecaster: Forecaster | None = None
    partial_forecaster: PartialForecaster | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object that users write."""

    group: str
    kind: str
    plural: str
    scope: Literal["Namespaced", "Cluster"]
    versions: tuple[KindVersion, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = True
    scale: ScaleSubresource | None = None
    builtin: bool = False
    """Part of Kubernetes itself, or of another project: read, but no CRD of ours."""

    def version(self, name: str) -> KindVersion | None:
        """Find a version by its name."""
        return next((version for version in self.versions if version.name == name), None)

    def api_version(self, version: KindVersion) -> str:
        """Write group and version as an object's ``apiVersion``."""
        return f"{self.group}/{version.name}" if self.group else version.name
