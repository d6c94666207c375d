"""What is kept of an object: what is needed, and little of it."""

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
    return {"manager": "somebody", "time": time, "fieldsV1": {"f:spec": {}}, **more}


@pytest.mark.parametrize(
    ("fields", "edited"),
    [
        pytest.param([], None, id="nothing-tells"),
        pytest.param(
            [managed("2026-06-02T00:00:00Z"), managed("2026-06-03T00:00:00Z")], "2026-06-03T00:00:00Z", id="two"
        ),
        pytest.param([managed("2026-06-02T00:00:00Z", fieldsV1={"f:metadata": {}})], None, id="no-matter-of-the-spec"),
        pytest.param([managed("2026-06-02T00:00:00Z", subresource="status")], None, id="the-status"),
        pytest.param(
            [managed("2026-06-02T00:00:00Z", fieldsV1={"f:metadata": {"f:annotations": {f"f:{EXTENSIONS}": {}}}})],
            "2026-06-02T00:00:00Z",
            id="the-extensions",
        ),
        pytest.param(
            [managed("2026-06-02T00:00:00Z", fieldsV1={"f:metadata": {"f:annotations": {".": {}, "f:note": {}}}})],
            None,
            id="another-annotation",
        ),
    ],
)
def test_when_the_spec_was_last_changed(fields: list[Object], edited: str | None) -> None:
    """The managed fields tell, and nothing else of them is kept."""
    assert record_of(stored(managedFields=fields)).edited == (edited and parse_instant(edited))


def test_objects_that_say_the_same_are_judged_once() -> None:
    """Whatever they are called."""
    one = record_of(stored())
    other = record_of(stored(name="other", namespace="elsewhere", labels={"a": "b"}))

    assert compile_cron(one, "UTC") is compile_cron(other, "UTC")


def test_extensions_of_stock_clusters_count() -> None:
    """Rules are judged, and found by their calendars, with what the annotation adds."""
    text = "rules: [{name: r, maxDelaySeconds: 60, calendars: [{name: holidays, mode: Exclude}]}]"
    record = record_of(stored(annotations={EXTENSIONS: text}))

    (sound,) = compile_cron(record, "UTC").rules
    assert sound.view.max_delay_seconds == 60
    assert list(ALL_CRONS.indexes[BY_CALENDAR](record)) == ["holidays"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("rules: [{name: r, calendars: 5}]", id="calendars-of-a-number"),
        pytest.param("rules: [{name: r, calendars: [holidays]}]", id="calendars-of-texts"),
        pytest.param("rules: [{name: [r]}]", id="a-name-that-is-a-list"),
        pytest.param("rules: 5", id="rules-of-a-number"),
        pytest.param("scaleTargetRef: {kind: [Deployment], name: {}}", id="a-target-of-lists"),
        pytest.param("::: {", id="no-yaml"),
    ],
)
def test_extensions_that_are_wrong_are_told(text: str) -> None:
    """The API server does not validate annotations; the errors are reported."""
    spec = compile_cron(record_of(stored(annotations={EXTENSIONS: text})), "UTC")

    assert spec.errors


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        pytest.param(DEPLOYMENT, ScaleTargetKey("team", "apps", "Deployment", "shop"), id="written-out"),
        pytest.param(
            {"kind": "Deployment", "name": "shop"},
            ScaleTargetKey("team", "apps", "Deployment", "shop"),
            id="no-version",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "ReplicationController", "name": "a"},
            ScaleTargetKey("team", "", "ReplicationController", "a"),
            id="core",
        ),
        pytest.param({"kind": "Deployment"}, None, id="no-name"),
        pytest.param("shop", None, id="no-reference"),
        pytest.param(None, None, id="none"),
    ],
)
def test_targets_are_found_by_group_kind_and_name(reference: object, target: ScaleTargetKey | None) -> None:
    """Whatever version a reference names."""
    item = stored()
    item["spec"]["scaleTargetRef"] = reference

    assert list(ALL_CRONS.indexes[BY_TARGET](record_of(item))) == ([] if target is None else [target])
