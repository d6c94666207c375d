"""Records that the controller caches of an object."""

from __future__ import annotations

import pytest
from tests.controllers.cron_federated_hpa.harness import DEPLOYMENT, cron, rule

from springtide.apis.meta.times import parse_instant
from springtide.apis.validation import ANNOTATION as EXTENSIONS
from springtide.cluster.resources import Object
from springtide.controllers.conflicts import BY_TARGET, ScaleTargetKey
from springtide.controllers.cron_federated_hpa.records import ALL_CRONS, BY_CALENDAR, compile_cron, record_of


def stored(**metadata: object) -> Object:
    item = cron(rule("r", "30 8 * * *", 7))
    item["metadata"] |= {
        "namespace": "team",
        "uid": "1",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": "2026-06-01T00:00:00Z",
        **metadata,
    }
    return item


def managed(time: str, **more: object) -> Object:
    return {"manager": "user", "time": time, "fieldsV1": {"f:spec": {}}, **more}


@pytest.mark.parametrize(
    ("fields", "edited"),
    [
        pytest.param([], None, id="no managed fields"),
        pytest.param(
            [managed("2026-06-02T00:00:00Z"), managed("2026-06-03T00:00:00Z")],
            "2026-06-03T00:00:00Z",
            id="latest of two",
        ),
        pytest.param([managed("2026-06-02T00:00:00Z", fieldsV1={"f:metadata": {}})], None, id="metadata only"),
        pytest.param([managed("2026-06-02T00:00:00Z", subresource="status")], None, id="status subresource"),
        pytest.param(
            [managed("2026-06-02T00:00:00Z", fieldsV1={"f:metadata": {"f:annotations": {f"f:{EXTENSIONS}": {}}}})],
            "2026-06-02T00:00:00Z",
            id="extensions annotation",
        ),
        pytest.param(
            [managed("2026-06-02T00:00:00Z", fieldsV1={"f:metadata": {"f:annotations": {".": {}, "f:note": {}}}})],
            None,
            id="another annotation",
        ),
    ],
)
def test_last_change_of_the_spec_is_read_from_managed_fields(fields: list[Object], edited: str | None) -> None:
    """Nothing else of the managed fields is kept."""
    assert record_of(stored(managedFields=fields)).edited == (edited and parse_instant(edited))


def test_equal_specs_are_validated_once() -> None:
    """The names of the objects do not matter."""
    one = record_of(stored())
    other = record_of(stored(name="other", namespace="elsewhere", labels={"a": "b"}))

    assert compile_cron(one, "UTC") is compile_cron(other, "UTC")


def test_extensions_annotation_is_merged_into_the_rules() -> None:
    """Validation and the index by calendar use the merged rules."""
    text = "rules: [{name: r, maxDelaySeconds: 60, calendars: [{name: holidays, mode: Exclude}]}]"
    record = record_of(stored(annotations={EXTENSIONS: text}))

    (sound,) = compile_cron(record, "UTC").rules
    assert sound.view.max_delay_seconds == 60
    assert list(ALL_CRONS.indexes[BY_CALENDAR](record)) == ["holidays"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("rules: [{name: r, calendars: 5}]", id="number as calendars"),
        pytest.param("rules: [{name: r, calendars: [holidays]}]", id="strings as calendars"),
        pytest.param("rules: [{name: [r]}]", id="list as name"),
        pytest.param("rules: 5", id="number as rules"),
        pytest.param("scaleTargetRef: {kind: [Deployment], name: {}}", id="list and object in the target"),
        pytest.param("::: {", id="invalid YAML"),
    ],
)
def test_invalid_extensions_are_reported(text: str) -> None:
    """The API server does not validate annotations, so the controller does."""
    spec = compile_cron(record_of(stored(annotations={EXTENSIONS: text})), "UTC")

    assert spec.errors


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        pytest.param(DEPLOYMENT, ScaleTargetKey("team", "apps", "Deployment", "shop"), id="complete"),
        pytest.param(
            {"kind": "Deployment", "name": "shop"},
            ScaleTargetKey("team", "apps", "Deployment", "shop"),
            id="no version",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "ReplicationController", "name": "a"},
            ScaleTargetKey("team", "", "ReplicationController", "a"),
            id="core group",
        ),
        pytest.param({"kind": "Deployment"}, None, id="missing name"),
        pytest.param("shop", None, id="string as reference"),
        pytest.param(None, None, id="missing reference"),
    ],
)
def test_target_key_has_group_kind_and_name(reference: object, target: ScaleTargetKey | None) -> None:
    """The version of a reference does not matter."""
    item = stored()
    item["spec"]["scaleTargetRef"] = reference

    assert list(ALL_CRONS.indexes[BY_TARGET](record_of(item))) == ([] if target is None else [target])
