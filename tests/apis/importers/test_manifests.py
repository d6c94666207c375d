"""Importing files: free names for new objects, warnings of other autoscalers, and mutated objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.importers.conversions import NOW

from springtide.apis.importers import ConversionOptions, ImportResult, SiblingObjects, import_objects
from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import LoadedObject, load
from springtide.apis.yaml import Document, dump, read

UPTIME = {"downscaler/uptime": "Mon-Fri 08:00-18:00 UTC"}
KARPENTER = "autoscaling.karpenter.sh/v1alpha1"


def workload(kind: str = "Deployment", namespace: str | None = None, replicas: int = 4) -> dict[str, Any]:
    where = {} if namespace is None else {"namespace": namespace}
    metadata = {"name": "web", **where, "annotations": UPTIME}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"replicas": replicas}}


def schedule(name: str) -> dict[str, Any]:
    spec = {"schedule": {"defaultReplicas": 1, "behaviors": []}}
    return {"apiVersion": KARPENTER, "kind": "MetricsProducer", "metadata": {"name": name}, "spec": spec}


def autoscaler(name: str, target: str) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    spec = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 5}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": spec}


def cronhpa(*excluded: str, jobs: tuple[str, ...] = ("0 0 8 * * *",)) -> dict[str, Any]:
    listed = [{"name": f"j{n}", "schedule": text, "targetSize": 3} for n, text in enumerate(jobs)]
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling.alibabacloud.com/v1beta1",
        "kind": "CronHorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": reference, "excludeDates": list(excluded), "jobs": listed},
    }


def replaced(*values: dict[str, Any]) -> ImportResult:
    return import_objects("---\n".join(dump(value) for value in values), ConversionOptions(NOW, "UTC"))


def names(result: ImportResult, kind: str) -> list[str]:
    return [value["metadata"]["name"] for value in trees(result.text) if value["kind"] == kind]


def trees(text: str) -> list[dict[str, Any]]:
    return [document.value for document in read(text) if isinstance(document, Document)]


def said(result: ImportResult) -> list[str]:
    return [one.problem.message for one in result.notices]


def test_workloads_of_one_name_get_different_schedules() -> None:
    result = replaced(workload(), workload("StatefulSet", replicas=2))
    assert names(result, "MetricsProducer") == ["web", "web-statefulset"]
    assert names(result, "HorizontalAutoscaler") == ["web", "web-statefulset"]
    followers = [value["spec"] for value in trees(result.text) if value["kind"] == "HorizontalAutoscaler"]
    assert [(one["scaleTargetRef"]["kind"], one["metrics"][0]["prometheus"]["query"]) for one in followers] == [
        ("Deployment", 'karpenter_scheduled_capacity{name="web"}'),
        ("StatefulSet", 'karpenter_scheduled_capacity{name="web-statefulset"}'),
    ]
    assert "there is a MetricsProducer `web` already: the new one is `web-statefulset`" in said(result)


@pytest.mark.parametrize(
    ("other", "made"),
    [
        pytest.param(schedule("web"), "web-deployment", id="taken"),
        pytest.param(schedule("other"), "web", id="free"),
        pytest.param(workload("StatefulSet", namespace="shop"), "web", id="another namespace"),
    ],
)
def test_new_names_do_not_collide_with_other_objects(other: dict[str, Any], made: str) -> None:
    result = replaced(workload(), other)
    assert made in names(result, "MetricsProducer")
    assert any("already" in message for message in said(result)) is (made != "web")


def test_new_names_are_free_in_all_files() -> None:
    texts = [dump(workload()), dump(workload("StatefulSet"))]
    siblings = SiblingObjects()
    for text in texts:
        siblings.read(text)
    results = [import_objects(text, ConversionOptions(NOW, "UTC"), siblings) for text in texts]
    assert [names(result, "MetricsProducer") for result in results] == [["web"], ["web-statefulset"]]


def test_rules_refer_to_the_renamed_calendar() -> None:
    taken = {"apiVersion": "springtide.dev/v1alpha1", "kind": "Calendar", "metadata": {"name": "web-excluded"}}
    result = replaced({**taken, "spec": {"dates": ["2026-12-24"]}}, cronhpa("* * * 25 12 *"))
    (cron,) = (value for value in trees(result.text) if value["kind"] == "CronFederatedHPA")
    called = "web-excluded-cronhorizontalpodautoscaler"
    assert names(result, "Calendar") == ["web-excluded", called]
    assert cron["spec"]["rules"][0]["calendars"] == [{"name": called, "mode": "Exclude"}]


@pytest.mark.parametrize(
    ("target", "warned"),
    [
        pytest.param("web", True, id="the same target"),
        pytest.param("other", False, id="another target"),
    ],
)
def test_another_autoscaler_of_the_target_is_a_warning(target: str, warned: bool) -> None:
    expected = (
        "Deployment `web` is also scaled by HorizontalPodAutoscaler `hpa`, which conflicts with the new"
        " HorizontalAutoscaler"
    )
    assert (expected in said(replaced(workload(), autoscaler("hpa", target)))) is warned


@pytest.mark.parametrize(
    ("jobs", "warned"),
    [
        pytest.param(("0 0 8 1 1 *",), True, id="its only day"),
        pytest.param(("@date 2027-01-01 07:00:00",), True, id="its only time"),
        pytest.param(("0 0 8 1 * *",), False, id="one of its days"),
    ],
)
def test_jobs_that_never_run_because_of_excluded_dates_are_a_warning(jobs: tuple[str, ...], warned: bool) -> None:
    result = replaced(cronhpa("* * * 1 1 *", jobs=jobs))
    assert any("rule `j0` never fires: its calendars exclude" in message for message in said(result)) is warned


EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "importers").glob("*.yaml"))
MADE = ("MetricsProducer", "HorizontalAutoscaler", "CronFederatedHPA", "Calendar")
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(["@every -1h", "@date", "* * * * * *", "Mon-Mon 24:00-24:00 UTC", "0 0 31 2 *", "-", "²", "1e3"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


def with_junk(value: Any, path: tuple[str | int, ...], junk: Any) -> Any:
    if not path:
        return junk
    copy: Any = value.copy()
    copy[path[0]] = with_junk(value[path[0]], path[1:], junk)
    return copy


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
@given(data=st.data())
def test_conversion_never_raises(example: Path, data: st.DataObject) -> None:
    document, *_ = read(example.read_text(encoding="utf-8"))
    assert isinstance(document, Document)
    value = document.value
    for _ in range(data.draw(st.integers(1, 2))):
        value = with_junk(value, data.draw(st.sampled_from(list(places(value)))), data.draw(JUNK))
    text = json.dumps(value)
    replaced = import_objects(text, ConversionOptions(NOW, data.draw(st.sampled_from([None, "Europe/Berlin"]))))
    assert replaced.changes or replaced.text == text
    for item in load(replaced.text, ValidationContext(now=NOW)) if replaced.changes else ():
        if isinstance(item, LoadedObject) and item.kind.kind in MADE:
            assert item.sound, item.problems


def deployment(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


@pytest.mark.parametrize(
    ("given", "warned"),
    [
        pytest.param((workload(),), True, id="the-converted-workload"),
        pytest.param((deployment(replicas=3), cronhpa("* * * 25 12 *")), True, id="the-target-of-a-converted-object"),
        pytest.param((cronhpa("* * * 25 12 *"), deployment(replicas=3)), True, id="in-any-order"),
        pytest.param((deployment(), cronhpa("* * * 25 12 *")), False, id="without-replicas"),
        pytest.param(
            ({**deployment(replicas=3), "metadata": {"name": "other"}}, cronhpa("* * * 25 12 *")),
            False,
            id="another-one",
        ),
        pytest.param((deployment(replicas=3),), False, id="nothing-converted"),
    ],
)
def test_replicas_in_the_files_are_a_warning(given: tuple[dict[str, Any], ...], warned: bool) -> None:
    """Applying the workload again would undo what the schedule set."""
    found = [message for message in said(replaced(*given)) if "whatever the schedule says" in message]
    assert len(found) == warned
    assert all(message.startswith("applying Deployment `web` again sets its `replicas: ") for message in found)


@pytest.mark.parametrize("end", ["", "\n"])
def test_new_objects_follow_on_a_line_of_their_own(end: str) -> None:
    """Also where the text before them does not end with a line break."""
    metadata = {"start": "0 8 * * *", "end": "0 18 * * *", "timezone": "UTC", "desiredReplicas": "6"}
    triggers = [{"type": "cpu", "metadata": {"value": "50"}}, {"type": "cron", "metadata": metadata}]
    value = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "shop"},
        "spec": {"scaleTargetRef": {"name": "shop"}, "triggers": triggers},
    }

    result = import_objects(dump(value).rstrip("\n") + end, ConversionOptions(NOW, "UTC"))

    assert [one["kind"] for one in trees(result.text)] == ["ScaledObject", "CronFederatedHPA"]
