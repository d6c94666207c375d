"""The chart: generated files match the code, arguments are options of the command, and values are validated."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from tests.cluster.test_rbac import single_rights
from tools.chart import FILES, chart_files, permissions_by_file

from springtide import __version__
from springtide.cli.controller import command
from springtide.cluster.controller import Permission
from springtide.controllers import CONTROLLERS


def test_generated_files_match_the_code() -> None:
    """`make chart` regenerates it."""
    written = {path.relative_to(FILES).as_posix(): path.read_text(encoding="utf-8") for path in FILES.rglob("*.yaml")}
    assert written == chart_files()


@pytest.mark.parametrize("path", permissions_by_file())
def test_roles_have_exactly_the_declared_permissions(path: str) -> None:
    rules = yaml.safe_load((FILES / path).read_text(encoding="utf-8"))
    held = [right for place in ("cluster", "namespace") for rule in rules[place] for right in _rights(rule, place)]
    assert len(held) == len(set(held))
    declared: tuple[Permission, ...] = permissions_by_file()[path]
    assert set(held) == {right for permission in declared for right in single_rights(permission)}


def _rights(rule: dict[str, list[str]], place: str) -> list[tuple[Any, ...]]:
    assert set(rule) <= {"apiGroups", "resources", "resourceNames", "verbs"}
    return [
        (place == "namespace", group, resource, verb, name)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", ["(any)"])
    ]


def test_every_controller_has_its_own_role() -> None:
    """The chart knows controllers by these files: `controllers` in its values is checked against them."""
    files = sorted(path.stem for path in (FILES / "roles" / "controllers").glob("*.yaml"))
    assert files == sorted(kind.name for kind in CONTROLLERS)


def test_no_rule_has_a_wildcard() -> None:
    """Verbs, groups and resources are never wildcards, and Secrets are restricted by name."""
    for path in permissions_by_file():
        text = (FILES / path).read_text(encoding="utf-8")
        assert "*" not in text
        for rule in yaml.safe_load(text)["cluster"]:
            assert "secrets" not in rule["resources"], path


def test_webhooks_may_change_only_objects_with_their_names() -> None:
    rules = yaml.safe_load((FILES / "roles" / "webhooks.yaml").read_text(encoding="utf-8"))
    for rule in [*rules["cluster"], *rules["namespace"]]:
        assert rule.get("resourceNames") or rule["verbs"] == ["create"], rule


def test_the_default_crds_are_those_of_kinds_with_a_controller() -> None:
    """Every one has a file, and kinds without a controller are not among them."""
    acted_on = yaml.safe_load((FILES / "kinds.yaml").read_text(encoding="utf-8"))
    definitions = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in (FILES / "crds").glob("*.yaml")]
    kinds = {definition["spec"]["names"]["kind"] for definition in definitions}

    assert sorted(acted_on) == sorted(kind.name for kind in CONTROLLERS)
    assert {kind for listed in acted_on.values() for kind in listed} == {
        "Calendar",
        "CronFederatedHPA",
        "Grant",
        "HorizontalAutoscaler",
        "MetricsProducer",
        "ScalableNodeGroup",
    }
    assert {"NodePool", "FederatedHPA", "CapacityBuffer"} < kinds


TEMPLATE = Path(__file__).parents[2] / "charts" / "springtide" / "templates" / "deployment.yaml"
_ONLY_BY_HAND = {"--kubeconfig", "--context"}
"""In a pod, the service account selects the cluster."""
_IN_EXTRA_ARGS = {
    f"--prometheus-{name}"
    for name in ("username", "password-file", "header", "client-cert", "client-key", "server-name", "timeout")
}
"""Options without a value of their own; `extraArgs` can set them."""


def test_arguments_are_options_of_the_command() -> None:
    """All options of the command are set, so that a release does not depend on defaults of the image."""
    arguments = TEMPLATE.read_text(encoding="utf-8").split("args:")[1].split("ports:")[0]
    # `--{{ … ternary "a" "b" }}` is one of two options.
    arguments = re.sub(r'--{{.*?ternary "([\w-]+)" "([\w-]+)" }}', r"--\1 --\2", arguments)
    written = set(re.findall(r"--[a-z][a-z-]*", arguments))
    options = {name for option in command.params for name in (*option.opts, *option.secondary_opts) if name[1] == "-"}
    assert written == options - _ONLY_BY_HAND - _IN_EXTRA_ARGS


CHART = Path(__file__).parents[2] / "charts" / "springtide"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA = jsonschema_rs.validator_for(json.loads((CHART / "values.schema.json").read_text(encoding="utf-8")))
TEMPLATES = {path.name: path.read_text(encoding="utf-8") for path in sorted((CHART / "templates").iterdir())}
_FREE = ("resources", "podSecurityContext", "securityContext", "affinity")
"""Values that templates use as they are."""


def test_the_defaults_are_valid() -> None:
    assert list(SCHEMA.iter_errors(VALUES)) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("mode", "acting", id="unknown mode"),
        pytest.param("controllers", "calendar", id="controllers not a list"),
        pytest.param("controllers", ["Calendar"], id="invalid controller name"),
        pytest.param("controllers", ["calendar", "calendar"], id="a controller twice"),
        pytest.param("replicas", "2", id="a number in quotes"),
        pytest.param("replicas", -1, id="negative"),
        pytest.param("metrics.port", 70000, id="a port that is too high"),
        pytest.param("webhooks.url", "http://localhost:9443", id="webhooks without TLS"),
        pytest.param("webhooks.url", "https://localhost:9443/validate", id="a URL with a path"),
        pytest.param("webhooks.timeoutSeconds", 31, id="longer than the API server allows"),
        pytest.param("webhooks.failurePolicy", "fail", id="a policy in lower case"),
        pytest.param("webhooks.clientCaFile", "ca.pem", id="a relative path"),
        pytest.param("webhooks.clientNames", "kube-apiserver", id="names that are no list"),
        pytest.param("networkPolicy.apiServers", ["10.0.0.1"], id="an address instead of a block"),
        pytest.param("networkPolicy.apiServers", ["kubernetes.default.svc/32"], id="a name instead of a block"),
        pytest.param("networkPolicy.metricsFrom", ["monitoring"], id="a namespace instead of a peer"),
        pytest.param("networkPolicy.metricsFrom", [{}], id="a peer that selects nothing"),
        pytest.param("networkPolicy.metricsFrom", [{"namespace": "monitoring"}], id="an unknown selector of peers"),
        pytest.param("terminationGracePeriodSeconds", 30, id="too short for a shutdown"),
        pytest.param("log.level", "trace", id="unknown log level"),
        pytest.param("image.digest", "abc", id="invalid digest"),
        pytest.param("image.repository", "", id="no image"),
        pytest.param("webhook.enabled", True, id="unknown value"),
        pytest.param("crds.kinds", "Calendar", id="kinds that are no list"),
        pytest.param("crds.kinds", ["calendars"], id="a plural instead of a kind"),
        pytest.param("extraVolumes", [{"emptyDir": {}}], id="a volume without a name"),
        pytest.param("metrics.serviceMonitor.every", "30s", id="unknown nested value"),
    ],
)
def test_an_invalid_value_is_refused(path: str, value: Any) -> None:
    assert not SCHEMA.is_valid(_changed(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("controllers", ["calendar"], id="only one"),
        pytest.param("controllers", ["-calendar"], id="all but one"),
        pytest.param("webhooks.url", "https://localhost:9443", id="a URL"),
        pytest.param("webhooks.clientCaFile", "/clients/ca.crt", id="authorities of clients"),
        pytest.param("webhooks.clientNames", ["kube-apiserver"], id="names of clients"),
        pytest.param("networkPolicy.apiServers", ["10.0.0.0/28", "fd00::1/128"], id="blocks of addresses"),
        pytest.param("networkPolicy.metricsFrom", [{"namespaceSelector": {}}], id="a peer"),
        pytest.param("image.digest", f"sha256:{'0' * 64}", id="a digest"),
        pytest.param("crds.kinds", ["NodePool"], id="kinds of CRDs"),
        pytest.param("crds.annotations", {"argocd.argoproj.io/sync-options": "Prune=false"}, id="annotations of CRDs"),
        pytest.param("extraVolumes", [{"name": "ca", "secret": {"secretName": "ca"}}], id="a volume"),
        pytest.param("extraVolumeMounts", [{"name": "ca", "mountPath": "/ca"}], id="a mount"),
        pytest.param("global", {"anything": True}, id="global values of a parent chart"),
    ],
)
def test_a_valid_value_is_accepted(path: str, value: Any) -> None:
    assert list(SCHEMA.iter_errors(_changed(path, value))) == []


def _changed(path: str, value: Any) -> Any:
    values = json.loads(json.dumps(VALUES))
    *above, last = path.split(".")
    place = values
    for name in above:
        place = place.setdefault(name, {})
    place[last] = value
    return values


def _leaves(values: Any, above: str = "") -> list[str]:
    return [
        leaf
        for name, value in values.items()
        for leaf in (
            _leaves(value, f"{above}{name}.")
            if isinstance(value, dict) and value and f"{above}{name}" not in _FREE
            else [f"{above}{name}"]
        )
    ]


def _mentioned() -> set[str]:
    """Collect the values that templates read, also within `with .Values.x` and after `$x := .Values.x`."""
    found = set()
    for text in TEMPLATES.values():
        found |= set(re.findall(r"\.Values\.([\w.]+)", text))
        for above, block in re.findall(r"with \.Values\.([\w.]+) -?}}(.*)", text, re.DOTALL):
            found |= {f"{above}.{name}" for name in re.findall(r"[ (]\.([\w.]+)", block)}
        for variable, above in re.findall(r"(\$\w+) := \.Values\.([\w.]+)", text):
            found |= {f"{above}.{name}" for name in re.findall(rf"{re.escape(variable)}\.([\w.]+)", text)}
    return found


def test_every_value_has_an_effect() -> None:
    mentioned = _mentioned()
    assert [leaf for leaf in _leaves(VALUES) if leaf not in mentioned] == []


def test_templates_read_only_existing_values() -> None:
    """A misspelled value is silently empty in a template."""
    read = {path for text in TEMPLATES.values() for path in re.findall(r"\.Values\.([\w.]+)", text)}
    for path in sorted(read):
        place = VALUES
        for name in path.split("."):
            assert name in place, path
            place = place[name]


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
