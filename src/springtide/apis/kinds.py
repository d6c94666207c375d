"""How kinds are declared: their fields, names, versions, aliases and forecasts.

A kind is a tree of `View` classes. From this one declaration come the typed view, the structural validation of what
users write, the defaults, and the CRD. Declare a field as::

    replicas: Annotated[Count, doc("How many.")]
    priority: Annotated[Int32 | None, doc("The higher wins."), extension] = None

* Bounds go on the plain type (``Annotated[int, int32(1, 32)] | None``), never around an optional one.
* A field without a default is required. ``None`` means optional; any other scalar default is also the API's default.
* Names are written in snake case and become camel case in JSON; `json_name` lists the exceptions.
* `extension` marks fields that upstream's schema does not have: the `stock` CRDs leave them out. `stock_required` marks
  fields that upstream requires and that an extension can replace.
* `text_format("cron-rule")` names a check of `springtide.apis.formats`.
* ``__rules__`` are CEL rules for the CRD; ``problems`` checks the same and more in Python.
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
    """Return the JSON name of a Python attribute: camel case, except for a few that Kubernetes spells otherwise."""
    if name in _IRREGULAR:
        return _IRREGULAR[name]
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


class ValidationContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a check knows besides the object: the current time, and the time zone of objects that set none."""

    now: int
    default_zone: str = "UTC"
    entries_left: dict[str, tuple[int, ...]] = {}
    """For each list of the view from which invalid entries were removed: the original positions of the others."""

    replaced: frozenset[str] = frozenset()
    """Fields of the view that hold a placeholder, because their value is invalid."""

    deep_search: bool = True
    """Whether to search years of time for conflicts. They are warnings only, so controllers skip the search."""

    def position(self, name: str, number: int) -> int:
        """Return the position that an entry of a list of the view has in the manifest."""
        positions = self.entries_left.get(name)
        return number if positions is None else positions[number]


class CelRule(msgspec.Struct, frozen=True):
    """A CEL rule of a CRD, and the message if it does not hold."""

    rule: str
    message: str
    extension: bool = False


# Without this, type checkers do not know that subclasses inherit being frozen.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class View(msgspec.Struct, frozen=True, rename=json_name):
    """A typed, read-only view of a part of an object: the fields that Springtide reads."""

    __rules__: ClassVar[tuple[CelRule, ...]] = ()
    __mistaken__: ClassVar[dict[str, str]] = {}
    """Wrong names that users write for a field, each with a hint."""
    __opaque__: ClassVar[tuple[str, ...]] = ()
    """Fields that exist and that Springtide does not read."""

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find problems beyond the structure of single fields; paths are relative to this view."""
        yield from ()


def doc(description: str) -> Meta:
    """Describe a field, for CRDs and `kubectl explain`."""
    return Meta(description=description)


def schema(**keywords: Any) -> Meta:
    """Add OpenAPI keywords; an underscore stands for a dash (``x_kubernetes_list_type="map"``)."""
    return Meta(extra_json_schema={key.replace("_", "-"): value for key, value in keywords.items()})


def default(value: Any) -> Meta:
    """Return a default to a field whose Python default cannot say it: a list or an object."""
    return Meta(extra={"default": value})


def text_format(name: str) -> Meta:
    """Check the value with the format of this name."""
    return Meta(extra={"format": name})


def rules(*listed: CelRule) -> Meta:
    """Put CEL rules on a single field."""
    return Meta(extra={"rules": listed})


def stock(**keywords: Any) -> Meta:
    """Replace the whole schema of this field in the `stock` CRDs."""
    return Meta(extra={"stock": {key.replace("_", "-"): value for key, value in keywords.items()}})


def at_most(length: int) -> Meta:
    """Limit a list or text that upstream does not limit, so that validating one object takes bounded time."""
    return Meta(max_length=length, extra={"own_bound": True})


def by_key(*keys: str) -> Meta:
    """Make a list an associative list with these keys; two entries with the same keys are an error."""
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
MAX_SCHEDULE = 1000
"""The maximum length of a cron schedule, and of a list in a time pattern: every value of every field needs less."""
Schedule = Annotated[str, Meta(min_length=1), at_most(MAX_SCHEDULE)]
Quantity = Annotated[str | int | float, text_format("quantity")]
Zone = Annotated[str, Meta(min_length=1), at_most(100), text_format("zone")]
Time = Annotated[str, schema(format="date-time"), text_format("time")]
ZonedTime = Annotated[str, schema(format="date-time"), text_format("zoned-time")]
"""A time that users may write without an offset; `springtide.apis.local_times` adds it before validation."""
DnsName = Annotated[str, Meta(min_length=1, max_length=253), text_format("dns-subdomain")]


@dataclass(frozen=True, slots=True)
class NormalizedTree:
    """An object with aliases resolved: its canonical tree, the warnings, and the original paths of moved fields."""

    value: dict[str, Any]
    problems: tuple[Problem, ...] = ()
    origins: dict[Path, Path] = field(default_factory=dict)
    """The original path of each moved part, by its canonical path."""


Normalizer: TypeAlias = Callable[[dict[str, Any]], NormalizedTree]
"""Turns aliases and older spellings into the canonical form; pure, never raises, leaves alone what it does not know."""

Forecaster: TypeAlias = Callable[[Any, ForecastQuery], Outlook]
"""Forecasts an object from the view of its root."""

PartialForecaster: TypeAlias = Callable[[View | None, dict[str, Any], ForecastQuery], Outlook | None]
"""Forecasts the valid parts of an object with errors, from its view, if there is one, and its tree."""


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column that `kubectl get` prints."""

    name: str
    type: Literal["string", "integer", "date", "boolean"]
    json_path: str
    priority: int = 0
    extension: bool = False


MESSAGE = PrinterColumn("Message", "string", '.status.conditions[?(@.status!="True")].message', extension=True)
"""The message of the first condition that is not True, for kinds whose conditions are True where all is well."""
PAUSED = PrinterColumn("Paused", "string", r".metadata.annotations.springtide\.dev/paused", extension=True)
"""Whether users have paused an object. A controller writes nothing to such an object, not even a condition."""


@dataclass(frozen=True, slots=True)
class ScaleSubresource:
    """The JSON paths of the scale subresource."""

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
    """The deprecation warning of the API server."""
    columns: tuple[PrinterColumn, ...] = ()
    normalizer: Normalizer | None = None
    to_storage: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Converts a canonical tree to the storage version; None if only the `apiVersion` differs."""
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
    """Short names of upstream's CRD."""
    own_short_names: tuple[str, ...] = ()
    """Further short names, of the extended CRD only."""
    categories: tuple[str, ...] = ()
    """Categories of upstream's CRD; the extended CRD is in the category `springtide` as well."""
    status: bool = True
    scale: ScaleSubresource | None = None
    builtin: bool = False
    """Whether Kubernetes or another project defines it: Springtide only reads it."""

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names by which users refer to the kind: singular, plural and short names."""
        return (self.kind.lower(), self.plural, *self.short_names, *self.own_short_names)

    def version(self, name: str) -> KindVersion | None:
        """Find a version by its name."""
        return next((version for version in self.versions if version.name == name), None)

    def api_version(self, version: KindVersion) -> str:
        """Write group and version as an object's ``apiVersion``."""
        return f"{self.group}/{version.name}" if self.group else version.name
