"""Files of instance types: their schema, their checks, and what they become."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta

from springtide.apis.core.resources import is_known, is_qualified, meant_resource
from springtide.apis.kinds import Count, Quantity, ValidationContext, View, at_most, by_key, doc, text_format
from springtide.apis.problems import Problem, error, has_errors
from springtide.apis.schema import nearest
from springtide.apis.structural_validation import check_structure, shorten
from springtide.apis.yaml import Document, PlacedProblem, Position, UnreadableDocument, read_repaired
from springtide.packing.catalogue import (
    ARCH_LABEL,
    CAPACITY_TYPE_LABEL,
    CAPACITY_TYPES,
    CPU,
    HOSTNAME_LABEL,
    HUGE_PAGES,
    INSTANCE_TYPE_LABEL,
    MEMORY,
    NANO_PER_DOLLAR,
    NODEPOOL_LABEL,
    OS_LABEL,
    PODS,
    STABLE_LABELS,
    ZONE_LABEL,
    InstanceType,
    Offering,
    TypesError,
    in_resource_order,
    relabelled,
)
from springtide.quantity import AmountError
from springtide.quantity import Quantity as Amount

MAX_PRICE: Final = 100_000
"""Dollars per hour. With this bound, sums over all nodes of a cluster stay within 64 bits."""
MAX_AMOUNT: Final = 2**53
"""The largest amount of a resource, in the units of the packer's columns: bytes, thousandths of a CPU, whole units."""

_NAME: Final = Meta(min_length=1)
_MOST_OFFERINGS: Final = 1000
_PRICE: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_MAX_PRICE_LENGTH: Final = 60
_EXACT: Final = Context(prec=100, rounding=ROUND_HALF_EVEN)
_ATTACHABLE_VOLUMES: Final = "attachable-volumes-"
_REQUIRED: Final = (CPU, MEMORY)
_OWNED_LABELS: Final = {
    ZONE_LABEL: "write `zone` in each offering",
    CAPACITY_TYPE_LABEL: "write `capacityType` in each offering",
    HOSTNAME_LABEL: "remove it: every node has its own",
    NODEPOOL_LABEL: "remove it: every node has that of its pool",
}
_DEFAULT_LABELS: Final = {ARCH_LABEL: "amd64", OS_LABEL: "linux"}
_DEFAULT_PODS: Final = Amount(110 * 10**9)
_BUILT_IN_HINT: Final = "`springtide plan --print-types` writes the built-in types as an example"


class PriceError(ValueError):
    """A value that is not a price: what is wrong with it, and a fix if one can be guessed."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def parse_price(value: str | int | float) -> int:
    """Parse dollars per hour; return nano-dollars. Digits beyond those are rounded, half to even.

    A float, as YAML parsers return it, is parsed by its shortest text, which is what the user wrote.
    """
    text = str(value).strip()
    if text.startswith("-") and _PRICE.fullmatch(text[1:]):
        raise PriceError(f"must not be negative, is {shorten(text)}")
    if len(text) > _MAX_PRICE_LENGTH or not _PRICE.fullmatch(text):
        numbers = _NUMBER.findall(text[:_MAX_PRICE_LENGTH])
        hint = f"write only the number: {numbers[0]}" if len(numbers) == 1 else "write dollars per hour, such as 0.096"
        raise PriceError(f'"{shorten(text)}" is not a price', hint)
    dollars = Decimal(text)
    if dollars > MAX_PRICE:
        raise PriceError(
            f"must be at most {MAX_PRICE} dollars per hour, is {shorten(text)}", "write the price of one node"
        )
    return int(_EXACT.to_integral_value(_EXACT.multiply(dollars, Decimal(NANO_PER_DOLLAR))))


class OfferingView(View, kw_only=True):
    """A place and a capacity type in which the type can be bought."""

    __mistaken__: ClassVar[dict[str, str]] = {
        "pricePerHour": "write `price`; it is in dollars per hour",
        "cost": "write `price`; it is in dollars per hour",
        "type": "write `capacityType`",
        "requirements": "write `zone` and `capacityType`",
    }

    zone: Annotated[str, _NAME, text_format("label-value"), doc("The zone of its nodes.")]
    capacity_type: Annotated[Literal["on-demand", "spot", "reserved"], doc("How its nodes are bought.")]
    price: Annotated[str | int | float, doc("Dollars per hour.")]
    available: Annotated[bool, doc("Whether new nodes may be created from it.")] = True
    count: Annotated[Count | None, doc("How many nodes are left, of a reserved offering.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find prices that are none, and counts without a reservation."""
        try:
            parse_price(self.price)
        except PriceError as failure:
            yield error(("price",), failure.message, failure.hint)
        if self.capacity_type == "reserved" and self.count is None:
            yield error(("count",), "is missing", "write how many nodes of the reservation are left")
        elif self.capacity_type != "reserved" and self.count is not None:
            yield error(("count",), f"an offering that is {self.capacity_type} has no count", "remove it")


class TypeView(View, kw_only=True):
    """An instance type."""

    __mistaken__: ClassVar[dict[str, str]] = {
        "resources": "write `capacity`",
        "allocatable": "write `capacity`, and in `overhead` what is reserved of it",
        "architecture": f"write the label `{ARCH_LABEL}`",
        "operatingSystems": f"write the label `{OS_LABEL}`",
        "requirements": "write `labels`",
    }

    name: Annotated[str, _NAME, text_format("label-value"), doc("The name of the type.")]
    labels: Annotated[Annotated[dict[str, str], text_format("labels")] | None, doc("Labels of its nodes.")] = None
    capacity: Annotated[dict[str, Quantity], doc("What a node has: at least cpu and memory.")]
    overhead: Annotated[dict[str, Quantity] | None, doc("What is reserved of the capacity.")] = None
    offerings: Annotated[
        Annotated[tuple[OfferingView, ...], at_most(_MOST_OFFERINGS)],
        by_key("zone", "capacityType"),
        doc("Where it can be bought."),
    ]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find labels that a type cannot have, and amounts that no node can have."""
        yield from (problem.under("labels") for problem in _label_problems(self.labels or {}, self.name))
        capacity = {PODS: _DEFAULT_PODS, **_parsed(self.capacity)}
        overhead = _parsed(self.overhead or {})
        yield from (problem.under("capacity") for problem in _capacity_problems(self.capacity, capacity))
        yield from (problem.under("overhead") for problem in _overhead_problems(overhead, capacity, self.capacity))
        yield from _memory_problems(overhead, capacity)


def read(text: str, *, name: str) -> tuple[InstanceType, ...]:
    """Read the types of a file, sorted by name; raises `TypesError` with all problems."""
    problems: list[PlacedProblem] = []
    views: list[TypeView] = []
    unreadable = False
    results = read_repaired(text)
    first: dict[str, tuple[int, int]] = {}
    for result in results:
        if isinstance(result, UnreadableDocument):
            unreadable = True
            place = Position(result.line, result.column)
            problems.append(PlacedProblem(error((), result.message, result.hint), place))
            continue
        found = [*_document_problems(result, views), *_repeated_names(result, first)]
        problems += result.problems
        problems += (PlacedProblem(problem, result.position(problem.path)) for problem in found)
    if not problems and not views:
        place = results[0].position(()) if results and isinstance(results[0], Document) else Position(1, 1)
        problems.append(PlacedProblem(error((), "there are no instance types in this file", _BUILT_IN_HINT), place))
    if has_errors(placed.problem for placed in problems):
        in_order = sorted(problems, key=lambda placed: placed.position)
        raise TypesError(name, in_order, unreadable=unreadable)
    return tuple(sorted(map(_made, views), key=lambda each: each.name))


def _document_problems(document: Document, views: list[TypeView]) -> Iterator[Problem]:
    """Yield the problems of the types of one document, and add their views."""
    if not isinstance(document.value, list):
        what, hint = "a single value", _BUILT_IN_HINT
        if isinstance(document.value, dict):
            what, hint = "a mapping", "start each type with `- `"
            holder = next((key for key in ("types", "items") if isinstance(document.value.get(key), list)), None)
            if holder is not None:
                hint = f"write only the list under `{holder}`"
        yield error((), f"instance types must be a list, is {what}", hint)
        return
    context = ValidationContext(now=0)
    for position, value in enumerate(document.value):
        result = check_structure(value, TypeView, context)
        yield from (problem.under(position) for problem in result.problems)
        if isinstance(result.view, TypeView):
            views.append(result.view)


def _repeated_names(document: Document, first: dict[str, tuple[int, int]]) -> Iterator[Problem]:
    """Find names that an earlier type has; `first` has the place of each name, over all documents."""
    for position, value in enumerate(document.value if isinstance(document.value, list) else ()):
        name = value.get("name") if isinstance(value, dict) else None
        if not isinstance(name, str) or not name:
            continue
        if name in first:
            line = first[name][0]
            yield error(
                (position, "name"), f'"{shorten(name)}" is listed twice, first on line {line}', "each must be unique"
            )
        else:
            first[name] = document.position((position, "name"))


def _label_problems(labels: Mapping[str, str], name: str) -> Iterator[Problem]:
    for key, value in labels.items():
        stable = STABLE_LABELS.get(key, key)
        if stable in _OWNED_LABELS:
            yield error((key,), f"`{key}` is not a label of an instance type", _OWNED_LABELS[stable])
        elif stable == INSTANCE_TYPE_LABEL and value != name:
            yield error(
                (key,), f'must be the name of the type, "{name}", is "{value}"', "remove it: it follows from `name`"
            )


def _parsed(amounts: Mapping[str, str | int | float]) -> dict[str, Amount]:
    """Parse amounts without those that are malformed, which the structural validation reports."""
    parsed: dict[str, Amount] = {}
    for name, amount in amounts.items():
        try:
            parsed[name] = Amount.parse(amount)
        except AmountError:
            continue
    return parsed


def _capacity_problems(written: Mapping[str, Any], amounts: Mapping[str, Amount]) -> Iterator[Problem]:
    mentioned: set[str] = set()
    for name in written:
        if not (is_known(name) or name == PODS or name.startswith(_ATTACHABLE_VOLUMES)):
            guess = meant_resource(name) or nearest(name, (PODS,))
            mentioned.add(guess or "")
            hint = f"did you mean `{guess}`?" if guess else "name it with its domain, such as `example.com/widget`"
            yield error((name,), f"`{name}` is not a resource of a node", hint)
    for name in _REQUIRED:
        if name not in written and name not in mentioned:
            yield error((name,), "is missing", f"write `{name}`: how much of it a node has")
        elif name in amounts and not amounts[name].sign:
            yield error((name,), "must be more than 0")
    for name, amount in amounts.items():
        yield from _amount_problems(name, amount)


def _overhead_problems(
    overhead: Mapping[str, Amount], capacity: Mapping[str, Amount], written: Mapping[str, Any]
) -> Iterator[Problem]:
    for name, amount in overhead.items():
        if name not in written and name not in capacity:
            guess = nearest(name, written)
            hint = f"did you mean `{guess}`?" if guess else "add it to `capacity`, or remove it"
            yield error((name,), f"`{name}` is not in the capacity", hint)
            continue
        yield from _amount_problems(name, amount)
        if name in capacity and amount > capacity[name] and capacity[name].sign >= 0:
            yield error(
                (name,), f"is {amount}, more than the capacity of {capacity[name]}", "write what is reserved of it"
            )


def _amount_problems(name: str, amount: Amount) -> Iterator[Problem]:
    if amount.sign < 0:
        yield error((name,), f"must not be negative, is {amount}")
    elif (amount.milli if name == CPU else amount.units) > MAX_AMOUNT:
        yield error((name,), f"is {shorten(amount)}, more than any node has", "check the suffix")
    elif (is_qualified(name) or name == PODS) and amount.milli % 1000:
        yield error((name,), f"comes in whole units only, is {amount}", f"write {amount.units}")


def _memory_problems(overhead: Mapping[str, Amount], capacity: Mapping[str, Amount]) -> Iterator[Problem]:
    """Find memory that is smaller than what huge pages and the overhead take of it."""
    pages = sum((amount for name, amount in capacity.items() if name.startswith(HUGE_PAGES)), Amount(0))
    memory, reserved = capacity.get(MEMORY), overhead.get(MEMORY, Amount(0))
    if memory is not None and pages.sign > 0 and reserved <= memory < pages + reserved:
        message = f"is {memory}, less than {pages} of huge pages and {reserved} of overhead"
        yield error(("capacity", MEMORY), message, "huge pages are a part of the memory")


def _made(view: TypeView) -> InstanceType:
    labels = {**_DEFAULT_LABELS, **relabelled(view.labels or {}), INSTANCE_TYPE_LABEL: view.name}
    capacity = {PODS: _DEFAULT_PODS, **_parsed(view.capacity)}
    offerings = sorted(
        (
            Offering(each.zone, each.capacity_type, parse_price(each.price), each.available, each.count)
            for each in view.offerings
        ),
        key=lambda each: (each.zone, CAPACITY_TYPES.index(each.capacity_type)),
    )
    return InstanceType(
        view.name,
        relabelled(labels),
        in_resource_order(capacity),
        in_resource_order(_parsed(view.overhead or {})),
        tuple(offerings),
    )
