"""CRDs: structural as the API server demands, never stale, and in agreement with our own validation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft4Validator
from tests.apis.crd_server import admit, plain_schema, schemas

from springtide.apis.crds import Flavour, all_crds, crd_files
from springtide.apis.meta.times import parse_instant
from springtide.apis.meta.types import PAUSED_ANNOTATION
from springtide.apis.yaml import Document, read
from springtide.apiserver import builtin
from springtide.apiserver.http.tables.cells import AgeFormatter
from springtide.apiserver.http.tables.custom import custom_layout

ROOT = Path(__file__).parents[2]
KEYWORDS = {
    "additionalProperties", "anyOf", "default", "description", "enum", "format", "items", "maxItems", "maxLength",
    "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "pattern", "properties",
    "required", "type", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
}  # fmt: skip


def places(flavour: Flavour) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every place of every schema."""

    def walk(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        yield path, schema
        for name, part in schema.get("properties", {}).items():
            yield from walk(part, f"{path}.{name}")
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                yield from walk(schema[key], f"{path}[]")

    for (api_version, kind), schema in schemas(flavour).items():
        yield from walk(schema, f"{api_version}/{kind}")


@pytest.mark.parametrize("flavour", list(Flavour))
def test_schemas_are_structural(flavour: Flavour) -> None:
    for path, schema in places(flavour):
        assert set(schema) <= KEYWORDS, path
        untyped = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
        assert "type" in schema or untyped, path


@pytest.mark.parametrize("flavour", list(Flavour))
def test_keys_of_lists_are_required_or_have_defaults(flavour: Flavour) -> None:
    for path, schema in places(flavour):
        for key in schema.get("x-kubernetes-list-map-keys", []):
            entry = schema["items"]
            assert key in entry.get("required", []) or "default" in entry["properties"][key], path


@pytest.mark.parametrize("flavour", list(Flavour))
def test_patterns_are_understood_by_go_as_by_python(flavour: Flavour) -> None:
    """Go's expressions have neither look-around nor back-references."""
    for path, schema in places(flavour):
        if "pattern" in schema:
            re.compile(schema["pattern"])
            assert not re.search(r"\(\?[=!<]|\\[1-9]", schema["pattern"]), path


@pytest.mark.parametrize("flavour", list(Flavour))
def test_defaults_satisfy_their_own_schema(flavour: Flavour) -> None:
    for path, schema in places(flavour):
        if "default" in schema:
            assert Draft4Validator(plain_schema(schema)).is_valid(schema["default"]), path


def named(flavour: Flavour) -> dict[str, tuple[list[str], list[str]]]:
    """Return the short names and the categories of each kind."""
    found = ((crd["spec"]["group"], crd["spec"]["names"]) for crd in all_crds(flavour))
    return {
        f"{names['kind']}.{group}": (names.get("shortNames", []), names.get("categories", [])) for group, names in found
    }


def test_every_kind_has_a_short_name_and_the_category() -> None:
    """No short name is the name of another kind, also of Kubernetes itself."""
    known = {kind.resource.plural for kind in builtin.kinds()} | {kind.singular for kind in builtin.kinds()}
    known |= {name for kind in builtin.kinds() for name in kind.short_names}
    for crd in all_crds(Flavour.EXTENDED):
        names = crd["spec"]["names"]
        own = {names["plural"], names["singular"], *names["shortNames"]}
        assert "springtide" in names["categories"]
        assert len(own) == 2 + len(names["shortNames"])
        assert not own & known, names
        assert all(len(name) < len(names["singular"]) for name in names["shortNames"])
        known |= own


def test_stock_crds_have_the_names_of_upstream() -> None:
    """Springtide's own group has one flavour only."""
    stock = {kind: names for kind, names in named(Flavour.STOCK).items() if not kind.endswith(".springtide.dev")}

    assert stock == {
        "CronFederatedHPA.autoscaling.karmada.io": (["cronfhpa"], ["karmada-io"]),
        "FederatedHPA.autoscaling.karmada.io": (["fhpa"], ["karmada-io"]),
        "HorizontalAutoscaler.autoscaling.karpenter.sh": ([], []),
        "MetricsProducer.autoscaling.karpenter.sh": ([], []),
        "ScalableNodeGroup.autoscaling.karpenter.sh": ([], []),
        "CapacityBuffer.autoscaling.x-k8s.io": (["cb"], []),
        "ProvisioningClass.autoscaling.x-k8s.io": ([], []),
        "ProvisioningRequest.autoscaling.x-k8s.io": (["provreq", "provreqs"], []),
        "NodeClaim.karpenter.sh": ([], ["karpenter"]),
        "NodePool.karpenter.sh": ([], ["karpenter"]),
    }


CRON = {
    "metadata": {"name": "shop-peak", "creationTimestamp": "2026-06-05T07:00:00Z"},
    "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "shop"}},
    "status": {
        "nextExecutionTime": "2026-06-05T18:00:00Z",
        "lastExecutionTime": "2026-06-05T07:30:00Z",
        "conditions": [
            {"type": "Ready", "status": "True", "message": "rules in force: 2"},
            {"type": "Unopposed", "status": "False", "message": "HorizontalPodAutoscaler `shop` scales it too"},
        ],
    },
}


@pytest.mark.parametrize(
    ("kind", "flavour", "item", "row"),
    [
        pytest.param(
            "CronFederatedHPA",
            Flavour.EXTENDED,
            CRON,
            {
                "REFERENCE-KIND": "Deployment",
                "REFERENCE-NAME": "shop",
                "NEXT": "2026-06-05T18:00:00Z",
                "LAST": "30m",
                "READY": "True",
                "Paused": None,
                "AGE": "60m",
                "Message": "HorizontalPodAutoscaler `shop` scales it too",
            },
            id="cron-rules",
        ),
        pytest.param(
            "CronFederatedHPA",
            Flavour.STOCK,
            CRON,
            {"REFERENCE-KIND": "Deployment", "REFERENCE-NAME": "shop", "AGE": "60m"},
            id="cron-rules-with-the-columns-of-upstream",
        ),
        pytest.param(
            "Calendar",
            Flavour.EXTENDED,
            {
                "metadata": {"name": "freeze"},
                "spec": {"timeZone": "Europe/Berlin"},
                "status": {
                    "nextDates": ["2026-12-18"],
                    "conditions": [
                        {"type": "Ready", "status": "True", "message": "days begin at midnight"},
                        {"type": "Active", "status": "False", "message": "the next day is 2026-12-18"},
                    ],
                },
            },
            {
                "Zone": "Europe/Berlin",
                "Next": "2026-12-18",
                "Ready": "True",
                "Active": "False",
                "Paused": None,
                "Age": None,
                "Message": None,
            },
            id="a-calendar-on-an-ordinary-day",
        ),
        pytest.param(
            "Calendar",
            Flavour.EXTENDED,
            {
                "metadata": {"name": "freeze"},
                "status": {
                    "conditions": [
                        {"type": "Ready", "status": "False", "message": "no zone Moon/Base"},
                        {"type": "Active", "status": "Unknown", "message": "not known: no zone Moon/Base"},
                    ],
                },
            },
            {
                "Zone": None,
                "Next": None,
                "Ready": "False",
                "Active": "Unknown",
                "Paused": None,
                "Age": None,
                "Message": "not known: no zone Moon/Base",
            },
            id="a-calendar-with-an-error",
        ),
        pytest.param(
            "Grant",
            Flavour.EXTENDED,
            {
                "metadata": {"name": "team-a"},
                "status": {"conditions": [{"type": "Ready", "status": "False", "message": "urls[0]: not a URL"}]},
            },
            {"Namespaces": None, "Ready": "False", "Paused": None, "Age": None, "Message": "urls[0]: not a URL"},
            id="a-grant-with-an-error",
        ),
        pytest.param(
            "Grant",
            Flavour.EXTENDED,
            {"metadata": {"name": "team-a", "annotations": {PAUSED_ANNOTATION: "true"}}},
            {"Namespaces": None, "Ready": None, "Paused": "true", "Age": None, "Message": None},
            id="a-paused-object",
        ),
    ],
)
def test_kubectl_get_shows(kind: str, flavour: Flavour, item: dict[str, Any], row: dict[str, Any]) -> None:
    (definition,) = (crd for crd in all_crds(flavour) if crd["spec"]["names"]["kind"] == kind)
    layout = custom_layout(definition, "v1alpha1")
    cells = layout.cells(item, AgeFormatter(lambda: parse_instant("2026-06-05T08:00:00Z")))

    assert dict(zip([column.name for column in layout.columns][1:], cells[1:], strict=True)) == row


def test_exactly_one_version_of_each_kind_is_stored() -> None:
    for crd in all_crds(Flavour.EXTENDED):
        versions = crd["spec"]["versions"]
        assert sum(version["storage"] for version in versions) == 1, crd["metadata"]["name"]


def test_v1beta1_of_nodepool_is_not_served_where_nothing_converts() -> None:
    (pool,) = (crd for crd in all_crds(Flavour.EXTENDED) if crd["spec"]["names"]["kind"] == "NodePool")
    assert {version["name"]: version["served"] for version in pool["spec"]["versions"]} == {
        "v1": True,
        "v1beta1": False,
    }


def test_the_chart_has_the_crds_of_the_types() -> None:
    """`make crds` writes them anew."""
    folder = ROOT / "charts" / "springtide" / "files" / "crds"
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.yaml")}
    assert written == crd_files(Flavour.EXTENDED)


def test_stock_has_no_extension_fields() -> None:
    names = {path for path, _ in places(Flavour.STOCK)}
    extended = {path for path, _ in places(Flavour.EXTENDED)}
    assert names < extended
    for field in ("timeZone", "mode", "calendars", "maxPer", "budgetDefault", "disruptAfter", "repair"):
        assert not [path for path in names if path.startswith("karpenter.sh") and path.endswith(f".{field}")]


def documents(folder: str) -> Iterator[Any]:
    """Return every example of a kind that has a CRD."""
    for path in sorted((ROOT / folder).glob("*.yaml")):
        for number, document in enumerate(read(path.read_text(encoding="utf-8"))):
            assert isinstance(document, Document)
            if (document.value["apiVersion"], document.value["kind"]) in schemas(Flavour.EXTENDED):
                yield pytest.param(document.value, id=f"{path.stem}-{number}")


@pytest.mark.parametrize("value", [*documents("examples")])
def test_a_server_stores_every_example(value: dict[str, Any]) -> None:
    assert admit(value) == []


@pytest.mark.parametrize(
    ("kind", "path", "most"),
    [
        ("MetricsProducer", ("spec", "schedule", "behaviors"), 512),
        ("HorizontalAutoscaler", ("spec", "metrics"), 32),
        ("HorizontalAutoscaler", ("spec", "behavior", "scaleUp", "policies"), 32),
        # Upstream's has no limit, and what a rule costs does not depend on the number of others.
        ("CronFederatedHPA", ("spec", "rules"), None),
    ],
)
def test_lists_that_upstream_does_not_bound_are_bound_only_by_us(
    kind: str, path: tuple[str, ...], most: int | None
) -> None:
    """What one object costs those who judge it has an end; but upstream's schema is upstream's."""
    for flavour, bound in ((Flavour.EXTENDED, most), (Flavour.STOCK, None)):
        (crd,) = [one for one in all_crds(flavour) if one["spec"]["names"]["kind"] == kind]
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for step in path:
            schema = schema["properties"][step]
        assert schema.get("maxItems") == bound
