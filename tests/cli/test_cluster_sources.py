"""`springtide check` and `springtide preview` of objects in a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.api_server import served_objects
from tests.cli.conftest import Run

from springtide.assembly import cluster_reader as connecting
from springtide.assembly.cluster_reader import as_written
from springtide.cluster.errors import Forbidden, Unauthorized
from springtide.cluster.http import HttpTransport
from springtide.cluster.resources import Selection
from springtide.cluster.transport import ListPage

Write = Callable[[str, str], Path]

OBJECTS = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Namespace
metadata: {name: quiet}
---
apiVersion: springtide.dev/v1alpha1
kind: Calendar
metadata: {name: closed}
spec: {timeZone: UTC, dates: ["2026-11-18"]}
---
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: peak, namespace: shop}
spec:
  schedule:
    defaultReplicas: 2
    behaviors:
    - {name: day, replicas: 6, start: {hours: 9}, end: {hours: 18}, calendars: [{name: closed}]}
status: {scheduledCapacity: {currentValue: 6}}
---
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: peak, namespace: quiet}
spec: {schedule: {defaultReplicas: 1, behaviors: []}}
---
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: HorizontalAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 8
  metrics:
  - prometheus: {query: 'karpenter_scheduled_capacity{name="peak"}', target: {type: AverageValue, value: 1}}
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata: {name: nightly, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  rules:
  - {name: broken, schedule: "0 24 * * *", targetReplicas: 10}
  - {name: down, schedule: "0 20 * * *", targetReplicas: 2, calendars: [{name: gone}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
"""
NIGHTLY = "cluster:shop/cronfederatedhpa/nightly"


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with served_objects(tmp_path_factory.mktemp("cluster"), OBJECTS) as path:
        yield path


@pytest.fixture
def ask(run: Run, kubeconfig: Path) -> Run:
    """Run a command on the cluster."""
    return lambda *arguments: run(*arguments, "--kubeconfig", kubeconfig)


def problems(output: str) -> list[dict[str, Any]]:
    found = json.loads(output)["problems"]
    assert isinstance(found, list)
    return found


def test_a_problem_names_the_object_and_has_no_line(ask: Run) -> None:
    result = ask("check", "-n", "shop", "cronfhpa/nightly", "-o", "json")
    assert result.exit_code == 1
    (error,) = (one for one in problems(result.stdout) if one["severity"] == "error")
    assert {**error, "message": "", "hint": ""} == {
        "file": NIGHTLY,
        "line": None,
        "column": None,
        "apiVersion": "autoscaling.karmada.io/v1alpha1",
        "kind": "CronFederatedHPA",
        "namespace": "shop",
        "name": "nightly",
        "path": "spec.rules[0].schedule",
        "message": "",
        "hint": "",
        "severity": "error",
    }


def test_objects_are_checked_together_with_related_ones(ask: Run) -> None:
    found = problems(ask("check", "-n", "shop", "cronfhpa/nightly", "-o", "json").stdout)
    messages = [one["message"] for one in found if one["severity"] == "warning"]
    assert messages == [
        "Calendar `gone` is not in the cluster",
        "Deployment `web` is also scaled by HorizontalAutoscaler `web`, which will undo what the rules set",
    ]
    assert {one["file"] for one in found} == {NIGHTLY}


def test_text_names_the_object_once(ask: Run) -> None:
    result = ask("check", "-n", "shop")
    assert f"{NIGHTLY}: error: spec.rules[0].schedule: " in result.stdout
    assert "3 objects checked: 1 error, 2 warnings." in result.stderr


@pytest.mark.parametrize(
    ("arguments", "checked"),
    [
        pytest.param(["-n", "shop"], 3, id="a namespace"),
        pytest.param(["-n", "empty"], 0, id="an empty namespace"),
        pytest.param([], 0, id="the namespace of the kubeconfig"),
        pytest.param(["-A"], 5, id="everything, cluster-scoped kinds included"),
        pytest.param(["-n", "shop", "metricsproducers"], 1, id="all of a kind, by its plural"),
        pytest.param(["-n", "shop", "MetricsProducer,ha"], 1, id="kinds, one of them without objects"),
        pytest.param(["-n", "shop", "metricsproducer,horizontalautoscalers"], 2, id="two kinds"),
        pytest.param(["-n", "shop", "metricsproducer/peak", "metricsproducers"], 1, id="one that is named twice"),
        pytest.param(["-n", "shop", "metricsproducers.autoscaling.karpenter.sh/peak"], 1, id="with its group"),
        pytest.param(["-n", "shop", "deploy/web", "calendar/closed"], 2, id="built-in and cluster-scoped kinds"),
        pytest.param(["-A", "metricsproducer/peak"], 2, id="one name in all namespaces"),
    ],
)
def test_named_objects_are_checked(ask: Run, arguments: list[str], checked: int) -> None:
    result = ask("check", *arguments)
    assert f"{checked} object{'' if checked == 1 else 's'} checked" in result.stderr


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        pytest.param(
            "metricproducer/peak", 'knows no kind "metricproducer"', "did you mean metricsproducer", id="kind"
        ),
        pytest.param("cronfhp/x", 'knows no kind "cronfhp"', "did you mean cronfhpa?", id="short name"),
        pytest.param(
            "metricsproducer/peek", "no MetricsProducer `peek` in namespace shop", "did you mean peak?", id="name"
        ),
        pytest.param("calendar/opened", "there is no Calendar `opened`", "", id="cluster-scoped"),
        pytest.param("fhpa/x", "no FederatedHPA `x` in namespace shop", "there is none in namespace shop", id="none"),
        pytest.param("metricsproducer/", '"metricsproducer/" is not KIND/NAME or KIND', "write such as", id="no name"),
        pytest.param("metricsproducer/a/b", "is not KIND/NAME or KIND", "write such as", id="too many parts"),
        pytest.param("configmaps", "configmaps (v1) is not a kind that Springtide checks", "", id="unknown kind"),
    ],
)
def test_unknown_names_suggest_similar_ones(ask: Run, name: str, message: str, hint: str) -> None:
    result = ask("check", "-n", "shop", name, "metricsproducer/peak", "-o", "json")
    assert result.exit_code == 2
    (problem,) = problems(result.stdout)
    assert (problem["file"], problem["kind"]) == ("cluster", None)
    assert message in problem["message"]
    assert hint in problem["hint"]


def test_an_object_of_another_namespace_is_found(ask: Run) -> None:
    result = ask("check", "-n", "quiet", "horizontalautoscaler/web", "-o", "json")
    assert result.exit_code == 2
    (problem,) = problems(result.stdout)
    assert problem["message"] == "there is no HorizontalAutoscaler `web` in namespace quiet"
    assert problem["hint"] == "namespace shop has one: add `-n shop`"


def test_kind_and_name_as_two_arguments_suggest_the_slash(ask: Run) -> None:
    output = ask("preview", "-n", "shop", "metricsproducer", "peak").stderr
    assert "write kind and name with a slash: metricsproducer/peak" in output


def test_named_objects_that_do_not_depend_on_time_are_noted(ask: Run) -> None:
    assert "note: Deployment `web` does not depend on time" in ask("preview", "-n", "shop", "deployment").stderr


def test_refused_credentials_are_reported_with_their_origin(
    ask: Run, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(transport: HttpTransport) -> Any:
        raise Unauthorized("Unauthorized")

    monkeypatch.setattr(connecting, "discover", refused)
    output = ask("check", "-n", "shop").stdout
    assert "https://127.0.0.1:" in output
    assert "does not accept the credentials of the context" in output
    assert str(kubeconfig) in output


def test_a_file_beside_a_cluster_is_refused(ask: Run, write: Write) -> None:
    result = ask("check", write("x.yaml", "a: 1"))
    assert result.exit_code == 2
    assert "files and a cluster do not mix" in result.stderr
    folder = ask("check", write("folder/x.yaml", "a: 1").parent)
    assert folder.exit_code == 2
    assert "files and a cluster do not mix" in folder.stdout


def test_one_namespace_and_all_of_them_exclude_each_other(ask: Run) -> None:
    assert "leave one out" in ask("check", "-A", "-n", "shop").stderr


def test_a_name_without_a_cluster_suggests_the_option(run: Run) -> None:
    result = run("check", "metricsproducer/peak")
    assert result.exit_code == 2
    assert "`--cluster metricsproducer/peak` reads it from a cluster" in result.stdout
    assert "name files or folders" in run("check").stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(None, "No such file or directory", id="no kubeconfig"),
        pytest.param(
            "{clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], contexts: [{name: a, context:"
            " {cluster: a}}], current-context: a}",
            "cannot connect: connection refused",
            id="connection refused",
        ),
    ],
)
def test_a_cluster_that_cannot_be_reached_is_unreadable(run: Run, write: Write, text: str | None, words: str) -> None:
    path = write("config", text) if text is not None else Path("/nonexistent/config")
    result = run("check", "--kubeconfig", path, "-o", "json")
    assert result.exit_code == 2
    (problem,) = problems(result.stdout)
    assert words.lower() in problem["message"].lower()


@pytest.fixture
def forbidding(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let the server refuse all requests for a kind."""
    listing, getting = HttpTransport.list, HttpTransport.get

    def forbid(kind: str) -> None:
        async def list_(transport: HttpTransport, selection: Selection, **options: Any) -> Any:
            if selection.resource.kind == kind:
                raise Forbidden(f"{selection.resource} is forbidden: you cannot list it")
            return await listing(transport, selection, **options)

        async def get(transport: HttpTransport, resource: Any, key: Any, **options: Any) -> Any:
            if resource.kind == kind:
                raise Forbidden(f"{resource} is forbidden: you cannot get it")
            return await getting(transport, resource, key, **options)

        monkeypatch.setattr(HttpTransport, "list", list_)
        monkeypatch.setattr(HttpTransport, "get", get)

    return forbid


def test_forbidden_kinds_are_reported_beside_the_others(ask: Run, forbidding: Callable[[str], None]) -> None:
    forbidding("MetricsProducer")
    result = ask("check", "-n", "shop")
    assert result.exit_code == 2
    assert "cluster: error: metricsproducers.autoscaling.karpenter.sh is forbidden" in result.stdout
    assert f"{NIGHTLY}: error" in result.stdout


def test_a_forbidden_reference_is_not_reported_as_missing(ask: Run, forbidding: Callable[[str], None]) -> None:
    forbidding("Calendar")
    result = ask("check", "-n", "shop", "cronfhpa")
    assert "Calendar `gone`" not in result.stdout
    assert "note: cannot tell whether Calendar `gone` exists" in result.stderr


def test_forbidden_kinds_that_may_scale_the_same_target_are_noted(ask: Run, forbidding: Callable[[str], None]) -> None:
    forbidding("HorizontalAutoscaler")
    result = ask("check", "-n", "shop", "cronfhpa")
    assert "also scaled by" not in result.stdout
    assert "note: cannot tell whether a HorizontalAutoscaler scales the same target" in result.stderr


def test_items_of_a_list_can_lack_their_kind(ask: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = HttpTransport.list

    async def nameless(transport: HttpTransport, selection: Selection, **options: Any) -> ListPage:
        page = await listing(transport, selection, **options)
        return ListPage([{"metadata": item["metadata"], "spec": item["spec"]} for item in page.items], page.version)

    monkeypatch.setattr(HttpTransport, "list", nameless)
    assert "1 object checked, no problems." in ask("check", "-n", "shop", "deploy").stderr


def test_all_pages_of_a_list_are_read(ask: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springtide.assembly.cluster_reader._PAGE", 1)
    assert "2 objects checked" in ask("check", "-A", "metricsproducers").stderr


@pytest.mark.parametrize("command", ["check", "preview"])
def test_a_missing_namespace_is_an_error(ask: Run, command: str) -> None:
    result = ask(command, "-n", "shopp")
    assert result.exit_code == 2
    assert "there is no namespace `shopp`" in result.output
    assert "did you mean shop?" in result.output


def test_an_empty_namespace_is_noted(ask: Run) -> None:
    result = ask("check", "-n", "quiet", "cronfhpa")
    assert result.exit_code == 0
    assert "note: no such objects in namespace quiet; -A reads all namespaces" in result.stderr


def test_status_and_managed_fields_are_not_checked() -> None:
    metadata = {"name": "peak", "managedFields": [{}]}
    item = {"apiVersion": "v1", "kind": "X", "metadata": metadata, "spec": {}, "status": {"nonsense": 1}}
    assert as_written(item) == {"apiVersion": "v1", "kind": "X", "metadata": {"name": "peak"}, "spec": {}}


def test_a_preview_uses_calendars_of_the_cluster(ask: Run) -> None:
    result = ask("preview", "-n", "shop", "metricsproducer/peak", "--from", "2026-11-17", "--for", "3d", "-o", "json")
    (shown,) = json.loads(result.stdout)["objects"]
    (lane,) = shown["lanes"]
    assert [change["at"] for change in lane["changes"]] == [
        "2026-11-17T09:00:00Z",
        "2026-11-17T18:00:00Z",
        "2026-11-19T09:00:00Z",
        "2026-11-19T18:00:00Z",
    ]
    assert (shown["namespace"], shown["problems"]) == ("shop", [])


def test_a_preview_of_a_namespace_shows_what_depends_on_time(ask: Run) -> None:
    result = ask("preview", "-n", "shop")
    assert "MetricsProducer/peak in namespace shop" in result.stdout
    assert "CronFederatedHPA/nightly in namespace shop" in result.stdout
    assert "note:" not in result.stderr
    named = ask("preview", "-n", "shop", "deployment/web")
    assert "note: Deployment `web` does not depend on time" in named.stderr


def test_a_named_autoscaler_is_drawn_by_its_schedule(ask: Run) -> None:
    result = ask(
        "preview", "-n", "shop", "horizontalautoscaler/web", "--from", "2026-11-17", "--for", "1d", "-o", "json"
    )
    (shown,) = json.loads(result.stdout)["objects"]
    (lane,) = shown["lanes"]
    assert (shown["kind"], lane["lane"], [change["value"] for change in lane["changes"]]) == (
        "HorizontalAutoscaler",
        "replicas",
        [6, 2],
    )


def test_a_calendar_of_a_named_autoscaler_has_its_entries(ask: Run) -> None:
    day = ("--from", "2026-11-17", "--for", "1d", "-o", "ics")
    shown = ask("preview", "-n", "shop", "horizontalautoscaler/web", *day)
    assert "HorizontalAutoscaler/web" in shown.stdout.replace("\r\n ", "")
    assert shown.stdout.count("BEGIN:VEVENT") == 3
    empty = ask("preview", "-n", "shop", "deployment/web", *day)
    assert "BEGIN:VEVENT" not in empty.stdout
    assert "note: Deployment `web` does not depend on time" in empty.stderr


POD_AUTOSCALER = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: kiosk, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: kiosk}
  maxReplicas: 5
  metrics:
  - type: External
    external:
      metric: {name: karpenter_scheduled_capacity, selector: {matchLabels: {name: web}}}
      target: {type: AverageValue, averageValue: "1"}
"""
CAPPED = (Path(__file__).parents[1] / "fixtures" / "black-friday-capped.yaml").read_text(encoding="utf-8")
CAPPED = CAPPED.replace("\n  name: web\n", "\n  name: web\n  namespace: default\n")


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with served_objects(tmp_path_factory.mktemp("capped"), f"{CAPPED}---{POD_AUTOSCALER}") as path:
        yield path


@pytest.mark.parametrize(
    ("names", "files"),
    [
        pytest.param([], ["horizontalautoscaler/web", "horizontalpodautoscaler/kiosk"], id="a-namespace"),
        pytest.param(
            ["metricsproducer/web"], ["horizontalautoscaler/web", "horizontalpodautoscaler/kiosk"], id="the-schedule"
        ),
        pytest.param(["horizontalautoscaler/web"], ["horizontalautoscaler/web"], id="the-autoscaler"),
        pytest.param(["hpa/kiosk"], ["horizontalpodautoscaler/kiosk"], id="the-pod-autoscaler"),
    ],
)
def test_a_schedule_beyond_the_bounds_of_a_follower_is_found(
    run: Run, capped: Path, names: list[str], files: list[str]
) -> None:
    result = run("check", "-n", "default", *names, "--kubeconfig", capped, "-o", "json")
    found = [one for one in problems(result.stdout) if one["path"] == "spec.maxReplicas"]
    assert [one["file"] for one in found] == [f"cluster:default/{file}" for file in files]
    assert all("behaviour `black-friday` of MetricsProducer `web` asks for 20" in one["message"] for one in found)


def test_a_preview_of_a_namespace_draws_its_autoscalers(run: Run, capped: Path) -> None:
    picture = ("preview", "-n", "default", "--kubeconfig", capped, "--from", "2026-11-26", "--for", "3d", "-o", "json")
    shown = json.loads(run(*picture).stdout)["objects"]
    values = {
        item["kind"]: [[change["value"] for change in lane["changes"]] for lane in item["lanes"]] for item in shown
    }
    assert values == {
        "MetricsProducer": [[20, 2]],
        "HorizontalAutoscaler": [[3, 2], [20, 2]],
        "HorizontalPodAutoscaler": [[5, 2], [20, 2]],
    }
    assert all(len(item["problems"]) == (item["kind"] != "MetricsProducer") for item in shown)
    named = json.loads(run(*picture, "metricsproducer/web").stdout)["objects"]
    assert [item["kind"] for item in named] == ["MetricsProducer"]


SCALERS = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: springtide.dev/v1alpha1
kind: Calendar
metadata: {name: always}
spec: {ranges: [{from: 2020-01-01, until: 2090-01-01}]}
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata: {name: asked, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  rules: [{name: up, schedule: "0 8 * * *", targetReplicas: 4}]
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata: {name: another, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  rules:
  - {name: never, schedule: "0 8 * * *", targetReplicas: 5, calendars: [{name: always}]}
  - {name: daily, schedule: "0 8 * * *", targetReplicas: 5, calendars: [{name: gone}]}
"""


def test_conflicts_are_found_with_calendars_applied(run: Run, tmp_path: Path) -> None:
    """A calendar in the cluster removes firings of rules; a missing one removes none."""
    with served_objects(tmp_path, SCALERS) as kubeconfig:
        found = problems(run("check", "-n", "shop", "cronfhpa/asked", "-o", "json", "--kubeconfig", kubeconfig).stdout)

    contradictions = [one["message"] for one in found if "different values" in one["message"]]
    assert ["rules `another/daily` and `asked/up`" in message for message in contradictions] == [True]


PAIRS = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Namespace
metadata: {name: bank}
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: FederatedHPA
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 5
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata: {name: bounds, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, name: web}
  rules: [{name: up, schedule: "0 8 * * *", targetMinReplicas: 9}]
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata: {name: first, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: api}
  rules: [{name: up, schedule: "0 8 * * *", targetReplicas: 4}]
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata: {name: second, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: api}
  rules: [{name: up, schedule: "0 8 * * *", targetReplicas: 5}]
---
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: ScalableNodeGroup
metadata: {name: spot, namespace: shop}
spec: {type: Simulated, id: pool, replicas: 1}
---
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: ScalableNodeGroup
metadata: {name: spot, namespace: bank}
spec: {type: Simulated, id: pool, replicas: 2}
"""


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with served_objects(tmp_path_factory.mktemp("pairs"), PAIRS) as path:
        yield path


@pytest.mark.parametrize(
    ("name", "file", "words"),
    [
        pytest.param("fhpa/web", "cronfederatedhpa/bounds", "is greater than the maximum", id="bounds-of-the-target"),
        pytest.param("cronfhpa/first", "cronfederatedhpa/second", "to different values", id="rules-of-a-later-name"),
        pytest.param(
            "cronfhpa/second", "cronfederatedhpa/second", "to different values", id="rules-of-an-earlier-name"
        ),
        pytest.param(
            "scalablenodegroup/spot", "scalablenodegroup/spot", "this is also the node group", id="node-group"
        ),
    ],
)
def test_a_conflict_of_a_named_object_is_found_on_the_other_object_too(
    run: Run, pairs: Path, name: str, file: str, words: str
) -> None:
    """A conflict has two sides: naming either of them shows it."""
    found = problems(run("check", "-n", "shop", name, "-o", "json", "--kubeconfig", pairs).stdout)
    conflicts = [(one["file"], one["line"], one["severity"]) for one in found if words in one["message"]]
    assert conflicts == [(f"cluster:shop/{file}", None, "warning")]


def test_problems_of_other_objects_with_each_other_are_not_shown(run: Run, pairs: Path) -> None:
    found = problems(run("check", "-n", "shop", "fhpa/web", "-o", "json", "--kubeconfig", pairs).stdout)
    assert [one["file"] for one in found if "different values" in one["message"]] == []
