"""The built-in instance types, and files of instance types."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.apis.problems import format_path
from springtide.apis.yaml import dump
from springtide.packing.catalogue import (
    ARCH_LABEL,
    CAPACITY_TYPE_LABEL,
    CAPACITY_TYPES,
    GPU_COUNT_LABEL,
    GPU_MODEL_LABEL,
    INSTANCE_TYPE_LABEL,
    OS_LABEL,
    REGION_LABEL,
    WELL_KNOWN_LABELS,
    ZONE_LABEL,
    ZONES,
    InstanceType,
    Offering,
    TypesError,
    built_in,
    read_types,
    relabelled,
    types_document,
)
from springtide.packing.types_file import MAX_PRICE, PriceError, parse_price
from springtide.quantity import Quantity

BY_NAME = {each.name: each for each in built_in()}


def amounts(**written: str) -> dict[str, Quantity]:
    """Parse quantities."""
    return {name.replace("_", "-"): Quantity.parse(text) for name, text in written.items()}


def on_demand(each: InstanceType, zone: str = "zone-a") -> int:
    """Return the price on demand in a zone."""
    return next(found.price for found in each.offerings if (found.zone, found.capacity_type) == (zone, "on-demand"))


class TestBuiltIn:
    def test_counts(self) -> None:
        """There are at least 400 types, each with a name of its own, and all families have several generations."""
        families = {each.labels["springtide.dev/instance-family"] for each in built_in()}
        generations = Counter(
            family
            for family, _ in {
                (each.labels["springtide.dev/instance-family"], each.labels["springtide.dev/instance-generation"])
                for each in built_in()
            }
        )

        assert (len(built_in()), len(BY_NAME)) == (426, 426)
        assert sorted(families) == ["c", "g", "m", "xl", "xm", "xs"]
        assert min(generations.values()) >= 2

    @pytest.mark.parametrize(
        ("name", "cpu", "memory", "labels"),
        [
            pytest.param("g-4x16", "4", "16Gi", {"instance-family": "g", "instance-generation": "1"}, id="g"),
            pytest.param("g-16x64", "16", "64Gi", {"instance-cpu": "16", "instance-memory-gib": "64"}, id="larger g"),
            pytest.param("g-1x4", "1", "4Gi", {}, id="smallest g"),
            pytest.param("g-96x384", "96", "384Gi", {}, id="largest g"),
            pytest.param("c-8x16", "8", "16Gi", {"instance-family": "c"}, id="c"),
            pytest.param("m-4x32", "4", "32Gi", {"instance-family": "m"}, id="m"),
            pytest.param("g2-4x16", "4", "16Gi", {"instance-generation": "2"}, id="second generation"),
            pytest.param("c4a-96x192", "96", "192Gi", {"instance-generation": "4"}, id="arm64"),
            pytest.param("xs2-8x32", "8", "32Gi", {"instance-gpu-model": "nvidia-l4"}, id="accelerators"),
        ],
    )
    def test_named_types(self, name: str, cpu: str, memory: str, labels: dict[str, str]) -> None:
        """Types have the resources that their names say."""
        found = BY_NAME[name]

        assert found.capacity["cpu"] == Quantity.parse(cpu)
        assert found.capacity["memory"] == Quantity.parse(memory)
        assert found.labels[INSTANCE_TYPE_LABEL] == name
        assert found.labels.items() >= {f"springtide.dev/{key}": value for key, value in labels.items()}.items()

    @pytest.mark.parametrize(("family", "ratio"), [("g", 4), ("c", 2), ("m", 8)])
    def test_ratio(self, family: str, ratio: int) -> None:
        """Families have one ratio of memory to CPUs, sizes from 1 to 96 CPUs, and first generations for amd64 only."""
        members = [each for each in built_in() if each.labels["springtide.dev/instance-family"] == family]
        cpus = [int(each.labels["springtide.dev/instance-cpu"]) for each in members]

        assert {
            int(each.labels["springtide.dev/instance-memory-gib"]) // int(each.labels["springtide.dev/instance-cpu"])
            for each in members
        } == {ratio}
        assert (min(cpus), max(cpus)) == (1, 96)
        first = [each for each in members if each.labels["springtide.dev/instance-generation"] == "1"]
        assert {each.labels[ARCH_LABEL] for each in first} == {"amd64"}
        assert {each.labels[ARCH_LABEL] for each in members} == {"amd64", "arm64"}
        for each in first:
            cpu, gib = (each.labels[f"springtide.dev/instance-{part}"] for part in ("cpu", "memory-gib"))
            assert each.name == f"{family}-{cpu}x{gib}"

    def test_allocatable(self) -> None:
        """At most 400m and 1 GiB are reserved, and at most 5 % of types with more than 8 CPUs; 110 pods are allowed."""
        gib = Quantity.parse("1Gi")
        for each in built_in():
            left = each.allocatable
            cpu = each.capacity["cpu"] - left["cpu"]
            memory = each.capacity["memory"] - left["memory"]
            assert Quantity(0) < cpu <= Quantity.parse("400m"), each.name
            assert Quantity(0) < memory <= gib, each.name
            if each.capacity["cpu"] > Quantity.parse(8):
                assert cpu * 20 <= each.capacity["cpu"], each.name
                assert memory * 20 <= each.capacity["memory"], each.name
            assert left["pods"] == Quantity.parse(110), each.name

    def test_labels(self) -> None:
        """All labels are well known, numeric ones are plain whole numbers."""
        for each in built_in():
            assert set(each.labels) <= set(WELL_KNOWN_LABELS), each.name
            assert each.labels[OS_LABEL] == "linux", each.name
            numeric = ("generation", "cpu", "memory-gib", "gpu-count", "gpu-memory-gib")
            for label in (f"springtide.dev/instance-{part}" for part in numeric):
                value = each.labels.get(label)
                assert value is None or value == str(int(value)), each.name

    def test_accelerators(self) -> None:
        """Accelerators come as 1, 2, 4 and 8, with their number and model as labels."""
        equipped = [each for each in built_in() if "nvidia.com/gpu" in each.capacity]

        assert {str(each.capacity["nvidia.com/gpu"]) for each in equipped} == {"1", "2", "4", "8"}
        assert all(each.labels[GPU_COUNT_LABEL] == str(each.capacity["nvidia.com/gpu"]) for each in equipped)
        assert len({each.labels[GPU_MODEL_LABEL] for each in equipped}) == 6
        assert not any(GPU_MODEL_LABEL in each.labels for each in built_in() if each not in equipped)

    def test_offerings(self) -> None:
        """Every type is on demand and spot in three zones; spot costs 30 to 40 % and differs between zones."""
        for each in built_in():
            pairs = [(offering.zone, offering.capacity_type) for offering in each.offerings]
            assert pairs == [(zone, kind) for zone in ZONES for kind in CAPACITY_TYPES[:2]], each.name
            spot = [offering.price for offering in each.offerings if offering.capacity_type == "spot"]
            for price, zone in zip(spot, ZONES, strict=True):
                assert 0 < on_demand(each, zone) * 299 // 1000 <= price <= on_demand(each, zone) * 400 // 1000, (
                    each.name
                )
            assert len(set(spot)) == 3, each.name
            assert all(type(offering.price) is int and offering.available for offering in each.offerings), each.name

    @pytest.mark.parametrize(
        ("cheaper", "dearer"),
        [
            pytest.param("g-4x16", "g-16x64", id="size"),
            pytest.param("g2-4x16", "g-4x16", id="generation"),
            pytest.param("g4-4x16", "g3-4x16", id="later generation"),
            pytest.param("g2a-4x16", "g2-4x16", id="arm64"),
            pytest.param("c-4x8", "g-4x16", id="less memory"),
            pytest.param("g-4x16", "m-4x32", id="more memory"),
            pytest.param("g-4x16", "xs-4x16", id="accelerator"),
            pytest.param("xs-4x16", "xl-4x32", id="larger accelerator"),
        ],
    )
    def test_price_order(self, cheaper: str, dearer: str) -> None:
        """Prices follow the formula."""
        assert on_demand(BY_NAME[cheaper]) < on_demand(BY_NAME[dearer])

    @pytest.mark.parametrize(
        ("name", "zone", "nano"),
        [
            ("g-4x16", "zone-a", 192_000_000),
            ("g-4x16", "zone-c", 193_920_000),
            ("c-8x16", "zone-a", 340_000_000),
            ("m2-4x32", "zone-a", 239_400_000),
            ("g3a-16x64", "zone-b", 561_899_520),
            ("xs-4x16", "zone-a", 542_000_000),
        ],
    )
    def test_prices(self, name: str, zone: str, nano: int) -> None:
        """Prices do not change from release to release without notice."""
        assert on_demand(BY_NAME[name], zone) == nano

    def test_order(self) -> None:
        """Types are sorted by name, and made once."""
        assert [each.name for each in built_in()] == sorted(BY_NAME)
        assert built_in() is built_in()


class TestInstanceType:
    @pytest.mark.parametrize(
        ("capacity", "overhead", "expected"),
        [
            pytest.param(amounts(cpu="4", memory="16Gi"), {}, amounts(cpu="4", memory="16Gi"), id="without overhead"),
            pytest.param(
                amounts(cpu="4", memory="16Gi"),
                amounts(cpu="100m", memory="1Gi"),
                amounts(cpu="3900m", memory="15Gi"),
                id="overhead",
            ),
            pytest.param(amounts(cpu="1"), amounts(cpu="2"), amounts(cpu="0"), id="never negative"),
            pytest.param(amounts(cpu="1"), amounts(memory="2"), amounts(cpu="1"), id="overhead of what is not there"),
            pytest.param(
                amounts(memory="16Gi", hugepages_2Mi="2Gi", hugepages_1Gi="4Gi"),
                amounts(memory="1Gi"),
                amounts(memory="9Gi", hugepages_2Mi="2Gi", hugepages_1Gi="4Gi"),
                id="huge pages take memory",
            ),
            pytest.param(
                amounts(memory="1Gi", hugepages_1Gi="2Gi"),
                {},
                amounts(memory="0", hugepages_1Gi="2Gi"),
                id="more huge pages than memory",
            ),
        ],
    )
    def test_allocatable(
        self, capacity: dict[str, Quantity], overhead: dict[str, Quantity], expected: dict[str, Quantity]
    ) -> None:
        assert InstanceType("t", {}, capacity, overhead, ()).allocatable == expected

    def test_read_only(self) -> None:
        """A change of the mapping that a type was made of, or of the type's own, changes no type."""
        labels = {"a": "b"}
        made = InstanceType("t", labels, {}, {}, ())
        labels["a"] = "c"

        assert made.labels == {"a": "b"}
        with pytest.raises(TypeError):
            made.labels["a"] = "c"  # type: ignore[index]

    def test_pickle(self) -> None:
        """Types can be sent to other processes, compared and used as keys."""
        copied = pickle.loads(pickle.dumps(built_in()))

        assert copied == built_in()
        assert {copied[0]: 1}[built_in()[0]] == 1

    def test_relabelled(self) -> None:
        """Renamed labels get their present names; the value under the present name wins."""
        labels = {
            "beta.kubernetes.io/os": "linux",
            "failure-domain.beta.kubernetes.io/region": "r",
            "kubernetes.io/arch": "arm64",
            "beta.kubernetes.io/arch": "amd64",
            "own": "1",
        }

        assert list(relabelled(labels).items()) == [
            ("kubernetes.io/arch", "arm64"),
            ("kubernetes.io/os", "linux"),
            ("own", "1"),
            (REGION_LABEL, "r"),
        ]
        assert (ZONE_LABEL, CAPACITY_TYPE_LABEL) == ("topology.kubernetes.io/zone", "karpenter.sh/capacity-type")


SMALLEST = """\
- name: small
  capacity: {cpu: 4, memory: 16Gi}
  offerings:
  - {zone: a, capacityType: on-demand, price: 0.1}
"""


def typed(**changes: str) -> str:
    """Write a type on several lines; a change replaces the text of a field, an empty one removes its line."""
    fields = {
        "name": "small",
        "capacity": "{cpu: 4, memory: 16Gi}",
        "offerings": "[{zone: a, capacityType: spot, price: 1}]",
        **changes,
    }
    lines = [f"{name}: {value}" for name, value in fields.items() if value]
    return "- " + "\n  ".join(lines) + "\n"


def offered(**changes: str) -> str:
    """Write a type with one offering, one field to a line."""
    fields = {"zone": "a", "capacityType": "spot", "price": "1", **changes}
    lines = "".join(f"\n    {name}: {value}" for name, value in fields.items() if value)
    return typed(offerings="") + "  offerings:\n  -" + lines[4:] + "\n"


def problems_of(text: str) -> list[tuple[str, str, str, str]]:
    """Return (place, path, message, hint) of every error of a file."""
    with pytest.raises(TypesError) as caught:
        read_types(text, name="types.yaml")
    return [
        (f"{place.line}:{place.column}", format_path(found.path), found.message, found.hint)
        for found, place in caught.value.problems
        if found.severity == "error"
    ]


class TestReading:
    def test_smallest(self) -> None:
        """What is not written has its default."""
        expected = InstanceType(
            "small",
            {ARCH_LABEL: "amd64", OS_LABEL: "linux", INSTANCE_TYPE_LABEL: "small"},
            amounts(cpu="4", memory="16Gi", pods="110"),
            {},
            (Offering("a", "on-demand", 100_000_000, available=True, count=None),),
        )

        assert read_types(SMALLEST, name="f") == (expected,)

    def test_all_fields(self) -> None:
        """Everything that is written is kept, in a fixed order."""
        text = """
- name: z
  labels: {beta.kubernetes.io/arch: arm64, topology.kubernetes.io/region: r, own: "1"}
  capacity: {nvidia.com/gpu: 2, pods: 30, memory: 16Gi, cpu: 3500m, attachable-volumes-csi: 5}
  overhead: {memory: 1Gi, cpu: 100m, pods: 1}
  offerings:
  - {zone: b, capacityType: reserved, price: 0, count: 3}
  - {zone: b, capacityType: on-demand, price: "0.25", available: false}
  - {zone: a, capacityType: spot, price: 1.000000001}
---
- {name: b, capacity: {cpu: 1, memory: 1Gi}, offerings: []}
"""
        b, z = read_types(text, name="f")

        assert (b.name, b.offerings) == ("b", ())
        assert z.labels == {
            ARCH_LABEL: "arm64",
            OS_LABEL: "linux",
            INSTANCE_TYPE_LABEL: "z",
            REGION_LABEL: "r",
            "own": "1",
        }
        assert list(z.capacity) == ["cpu", "memory", "pods", "attachable-volumes-csi", "nvidia.com/gpu"]
        assert list(z.overhead) == ["cpu", "memory", "pods"]
        assert z.allocatable["pods"] == Quantity.parse(29)
        assert z.offerings == (
            Offering("a", "spot", 1_000_000_001),
            Offering("b", "on-demand", 250_000_000, available=False),
            Offering("b", "reserved", 0, count=3),
        )

    def test_order_of_input(self) -> None:
        """The order of types, fields and offerings in the file changes nothing."""
        document = types_document(built_in()[:20])
        turned = [
            {key: list(reversed(value)) if key == "offerings" else value for key, value in reversed(each.items())}
            for each in reversed(document)
        ]

        assert read_types(json.dumps(turned), name="f") == built_in()[:20]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param(
                "",
                (
                    "1:1",
                    "",
                    "there are no instance types in this file",
                    "`springtide plan --print-types` writes the built-in types as an example",
                ),
                id="empty file",
            ),
            pytest.param(
                "\n[]",
                (
                    "2:1",
                    "",
                    "there are no instance types in this file",
                    "`springtide plan --print-types` writes the built-in types as an example",
                ),
                id="empty list",
            ),
            pytest.param(
                "name: a\n",
                ("1:1", "", "instance types must be a list, is a mapping", "start each type with `- `"),
                id="mapping",
            ),
            pytest.param(
                "types: []\n",
                ("1:1", "", "instance types must be a list, is a mapping", "write only the list under `types`"),
                id="wrapped list",
            ),
            pytest.param(
                "- 7\n",
                (
                    "1:3",
                    "[0]",
                    "must be a mapping, is 7",
                    "write a mapping, with keys of name, labels, capacity, overhead, offerings",
                ),
                id="type is no mapping",
            ),
            pytest.param(
                typed(name=""), ("1:3", "[0].name", "is missing", "write `name`: the name of the type"), id="no name"
            ),
            pytest.param(
                typed(name="a b"),
                (
                    "1:3",
                    "[0].name",
                    '"a b" is not a legal label value',
                    "up to 63 letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit",
                ),
                id="name is no label value",
            ),
            pytest.param(
                typed() + typed(),
                ("4:3", "[1].name", '"small" is listed twice, first on line 1', "each must be unique"),
                id="repeated name",
            ),
            pytest.param(
                typed() + "---\n" + typed(),
                ("5:3", "[0].name", '"small" is listed twice, first on line 1', "each must be unique"),
                id="repeated name in another document",
            ),
            pytest.param(
                typed(capacity="", capacty="{cpu: 4, memory: 1Gi}"),
                ("3:3", "[0].capacty", "unknown field `capacty`", "did you mean `capacity`?"),
                id="misspelt field",
            ),
            pytest.param(
                typed(zone="a"),
                ("4:3", "[0].zone", "unknown field `zone`", "`zone` belongs under `offerings[]`"),
                id="misplaced field",
            ),
            pytest.param(
                typed(architecture="arm64"),
                ("4:3", "[0].architecture", "unknown field `architecture`", "write the label `kubernetes.io/arch`"),
                id="field of another tool",
            ),
            pytest.param(
                typed(capacity="{cpu: 4}"),
                ("2:3", "[0].capacity.memory", "is missing", "write `memory`: how much of it a node has"),
                id="no memory",
            ),
            pytest.param(
                typed(capacity="{cpu: 0, memory: 1Gi}"),
                ("2:14", "[0].capacity.cpu", "must be more than 0", ""),
                id="no cpu",
            ),
            pytest.param(
                typed(capacity="{cpu: 4, mem: 1Gi}"),
                ("2:22", "[0].capacity.mem", "`mem` is not a resource of a node", "did you mean `memory`?"),
                id="abbreviated resource",
            ),
            pytest.param(
                typed(capacity="{cpu: 4, memory: 1Gi, widget: 1}"),
                (
                    "2:35",
                    "[0].capacity.widget",
                    "`widget` is not a resource of a node",
                    "name it with its domain, such as `example.com/widget`",
                ),
                id="resource without domain",
            ),
            pytest.param(
                typed(capacity="{cpu: 4, memory: 16GB}"),
                ("2:22", "[0].capacity.memory", '"16GB" is not a quantity', "did you mean 16G or 16Gi?"),
                id="no quantity",
            ),
            pytest.param(
                typed(capacity="{cpu: -4, memory: 1Gi}"),
                ("2:14", "[0].capacity.cpu", "must not be negative, is -4", ""),
                id="negative amount",
            ),
            pytest.param(
                typed(capacity="{cpu: 4, memory: 1Gi, nvidia.com/gpu: 500m}"),
                ("2:35", "[0].capacity[nvidia.com/gpu]", "comes in whole units only, is 500m", "write 1"),
                id="part of an accelerator",
            ),
            pytest.param(
                typed(capacity="{cpu: 4, memory: 16Ei}"),
                (
                    "2:22",
                    "[0].capacity.memory",
                    "is 9223372036854775807, more than any node has",
                    "check the suffix",
                ),
                id="too large",
            ),
            pytest.param(
                typed(overhead="{cpu: 5}"),
                ("4:14", "[0].overhead.cpu", "is 5, more than the capacity of 4", "write what is reserved of it"),
                id="overhead above capacity",
            ),
            pytest.param(
                typed(overhead="{memroy: 1Gi}"),
                ("4:14", "[0].overhead.memroy", "`memroy` is not in the capacity", "did you mean `memory`?"),
                id="misspelt overhead",
            ),
            pytest.param(
                typed(capacity="{cpu: 4, memory: 2Gi, hugepages-1Gi: 2Gi}", overhead="{memory: 1Gi}"),
                (
                    "2:22",
                    "[0].capacity.memory",
                    "is 2Gi, less than 2Gi of huge pages and 1Gi of overhead",
                    "huge pages are a part of the memory",
                ),
                id="huge pages above memory",
            ),
            pytest.param(
                typed(labels="{size: 4}"),
                ("4:12", "[0].labels.size", "must be a string, is 4", 'put it in quotes: "4"'),
                id="number as label",
            ),
            pytest.param(
                typed(labels="{failure-domain.beta.kubernetes.io/zone: z}"),
                (
                    "4:12",
                    "[0].labels[failure-domain.beta.kubernetes.io/zone]",
                    "`failure-domain.beta.kubernetes.io/zone` is not a label of an instance type",
                    "write `zone` in each offering",
                ),
                id="zone as label",
            ),
            pytest.param(
                typed(labels="{node.kubernetes.io/instance-type: large}"),
                (
                    "4:12",
                    "[0].labels[node.kubernetes.io/instance-type]",
                    'must be the name of the type, "small", is "large"',
                    "remove it: it follows from `name`",
                ),
                id="another name as label",
            ),
            pytest.param(
                typed(offerings="{zone: a}"),
                ("3:3", "[0].offerings", "must be a list, is a mapping", "start the entry with `- `"),
                id="offerings without dash",
            ),
            pytest.param(
                offered(capacityType="Spot"),
                (
                    "5:5",
                    "[0].offerings[0].capacityType",
                    'must be one of on-demand, reserved, spot, is "Spot"',
                    "did you mean spot?",
                ),
                id="capacity type",
            ),
            pytest.param(
                offered(capacityType="reserved"),
                (
                    "4:5",
                    "[0].offerings[0].count",
                    "is missing",
                    "write how many nodes of the reservation are left",
                ),
                id="reserved without count",
            ),
            pytest.param(
                offered(count="4"),
                ("7:5", "[0].offerings[0].count", "an offering that is spot has no count", "remove it"),
                id="count without reservation",
            ),
            pytest.param(
                offered(price=""),
                ("4:5", "[0].offerings[0].price", "is missing", "write `price`: dollars per hour"),
                id="no price",
            ),
            pytest.param(
                offered(price="-0.1"),
                ("6:5", "[0].offerings[0].price", "must not be negative, is -0.1", ""),
                id="negative price",
            ),
            pytest.param(
                offered(price="$0.10"),
                ("6:5", "[0].offerings[0].price", '"$0.10" is not a price', "write only the number: 0.10"),
                id="price with a currency",
            ),
            pytest.param(
                offered(available='"yes"'),
                ("7:5", "[0].offerings[0].available", 'must be true or false, is the string "yes"', ""),
                id="available",
            ),
            pytest.param(
                typed(offerings="[{zone: a, capacityType: spot, price: 1}, {zone: a, capacityType: spot, price: 2}]"),
                (
                    "3:57",
                    "[0].offerings[1].zone",
                    '"a, spot" is listed twice, first at position 0',
                    "each must be unique",
                ),
                id="repeated offering",
            ),
            pytest.param(
                typed(name="small\n  name: large"),
                ("2:3", "[0].name", "`name` is repeated in this mapping, first on line 1", "keep one of them"),
                id="repeated key",
            ),
        ],
    )
    def test_one_problem(self, text: str, expected: tuple[str, str, str, str]) -> None:
        """Every mistake is reported at its place, with the fix."""
        assert problems_of(text) == [expected]

    def test_all_problems(self) -> None:
        """All mistakes of all types are reported at once, in the order of the file."""
        text = (
            typed(capacity="{cpu: x, memory: 1Gi}") + "- {}\n" + offered(price="free") + typed(name="other", extra="1")
        )

        assert [(place, path) for place, path, *_ in problems_of(text)] == [
            ("2:14", "[0].capacity.cpu"),
            ("4:3", "[1].name"),
            ("4:3", "[1].capacity"),
            ("4:3", "[1].offerings"),
            ("5:3", "[2].name"),
            ("10:5", "[2].offerings[0].price"),
            ("14:3", "[3].extra"),
        ]

    def test_unreadable(self) -> None:
        """A document that is not YAML hides no problems of the others."""
        with pytest.raises(TypesError) as caught:
            read_types("- name: [\n---\n- 7\n", name="types.yaml")

        assert caught.value.unreadable
        assert str(caught.value).splitlines() == [
            "types.yaml:1:9: the `[` that opens here is not closed; write `]` where it ends",
            "types.yaml:3:3: [0]: must be a mapping, is 7; "
            "write a mapping, with keys of name, labels, capacity, overhead, offerings",
        ]

    def test_places_in_json(self) -> None:
        """JSON has places too."""
        text = json.dumps([{"name": "a", "capacity": {"cpu": 1, "memory": 1}, "offerings": 5}], indent=1)

        assert problems_of(text) == [("8:3", "[0].offerings", "must be a list, is 5", "write a list: [5]")]


class TestPrices:
    @pytest.mark.parametrize(
        ("written", "nano"),
        [
            (0, 0),
            (3, 3_000_000_000),
            (0.1, 100_000_000),
            ("0.1", 100_000_000),
            (" 0.096 ", 96_000_000),
            (".5", 500_000_000),
            ("1e-3", 1_000_000),
            (1e-9, 1),
            ("0.0000000005", 0),
            ("0.0000000015", 2),
            (0.1 + 0.2, 300_000_000),
            ("99999.999999999", 99_999_999_999_999),
            (MAX_PRICE, MAX_PRICE * 10**9),
        ],
    )
    def test_read(self, written: str | float, nano: int) -> None:
        """Prices are exact to the nano-dollar, half to even beyond."""
        assert parse_price(written) == nano

    @pytest.mark.parametrize(
        "written", ["", "free", "1,5", "1_0", "0x10", "inf", "nan", "1e9999", "100000.1", "-1", "9" * 100, "٣"]
    )
    def test_refused(self, written: str) -> None:
        """What is not a price is refused, also where Python would read a number."""
        with pytest.raises(PriceError):
            parse_price(written)

    @given(st.integers(0, MAX_PRICE * 10**9))
    def test_round_trip(self, nano: int) -> None:
        """A price that was written is read as the same one."""
        document = types_document([InstanceType("t", {}, {}, {}, (Offering("z", "spot", nano),))])

        assert parse_price(document[0]["offerings"][0]["price"]) == nano


class TestRoundTrip:
    @pytest.mark.parametrize("write", [dump, json.dumps], ids=["yaml", "json"])
    def test_built_in(self, write: Any) -> None:
        """The built-in catalogue that is written as a file is read as the same types."""
        assert read_types(write(types_document(built_in())), name="f") == built_in()

    def test_every_field(self) -> None:
        """So are types with everything that a file can say."""
        made = InstanceType(
            "t",
            {ARCH_LABEL: "riscv64", OS_LABEL: "windows", INSTANCE_TYPE_LABEL: "t", "on": "yes", "n": "007"},
            amounts(cpu="1500m", memory="3G", pods="7", hugepages_2Mi="64Mi"),
            amounts(memory="1", pods="2"),
            (Offering("NO", "on-demand", 1, available=False), Offering("NO", "reserved", 10**14, count=0)),
        )

        assert read_types(dump(types_document([made])), name="f") == (made,)
