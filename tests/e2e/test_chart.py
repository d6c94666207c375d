"""The chart, installed by a real helm, under RBAC: our processes have exactly the rights that it gives them.

No containers run here. The processes run beside the cluster, with a token of the chart's ServiceAccount.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.assets import Assets
from tests.e2e.control_plane import ControlPlane, running
from tests.e2e.objects import calendar, conditions, read, read_all, remove, restore_crds, told_dates, write
from tests.e2e.processes import Program, free_ports
from tests.e2e.springtide_process import NAMESPACE, springtide, started
from tests.e2e.waiting import eventually

from springtide.apis.crds import Flavour, all_crds, crd_files
from springtide.cluster.admission.configurations import VALIDATING
from springtide.cluster.leader_election import NAME as LEASE
from springtide.cluster.resources import Object

CHART = Path(__file__).parents[2] / "charts" / "springtide"
RELEASE = "springtide"
NAMES = ("charted", "mistaken")
CALENDARS = "calendars.springtide.dev"
GRANTS = "grants.springtide.dev"
NO_SHORT_NAMES = {"op": "remove", "path": "/spec/names/shortNames"}


def install(plane: ControlPlane, *arguments: str, **values: str) -> None:
    """Install the chart, or give the release other values."""
    plane.run(
        "helm",
        "upgrade",
        "--install",
        RELEASE,
        CHART,
        f"--namespace={NAMESPACE}",
        "--create-namespace",
        *arguments,
        *(f"--set={name}={value}" for name, value in values.items()),
    )


@pytest.fixture(scope="module")
def account(plane: ControlPlane, crds: None) -> Iterator[Path]:
    """Have the chart installed, and give the kubeconfig of its ServiceAccount."""
    install(plane)
    token = plane.kubectl("create", "token", RELEASE, "--namespace", NAMESPACE, "--duration=1h").stdout.strip()
    yield plane.kubeconfig_of_token("chart", token, namespace=NAMESPACE)
    plane.run("helm", "uninstall", RELEASE, f"--namespace={NAMESPACE}")


@pytest.fixture
def released(plane: ControlPlane, account: Path) -> Iterator[Path]:
    """Have the release as the chart says it by default, and nothing of earlier tests."""
    remove(plane, "lease", [LEASE, "--namespace", NAMESPACE])
    yield account
    remove(plane, "calendars", NAMES)
    remove(plane, "events", ["--all", "--namespace", "default"])
    # Some tests change what belongs to helm.
    install(plane, "--force-conflicts")


def process(plane: ControlPlane, folder: Path, kubeconfig: Path) -> Program:
    """Prepare what a container of the chart's Deployment would run, on loopback and with the rights of its account."""
    deployment = read(plane, "deployment", RELEASE, NAMESPACE)
    assert deployment is not None
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    here = (
        "--metrics-host=127.0.0.1",
        "--metrics-port=0",
        "--health-host=127.0.0.1",
        "--health-port=0",
        "--webhook-host=127.0.0.1",
        "--log-format=text",
    )
    return springtide("controllers", folder, *container["args"], "--kubeconfig", kubeconfig, *here)


def mistaken() -> Object:
    """Write a calendar that the schema lets pass, and that a condition and an event complain about."""
    return calendar("mistaken", "2100-01-01", zone="Moon/Base")


def test_the_chart_passes_helm_lint_and_template(plane: ControlPlane) -> None:
    done = plane.run("helm", "lint", "--strict", CHART)

    assert "0 chart(s) failed" in done.stdout


@pytest.mark.parametrize(
    ("values", "words"),
    [
        pytest.param({"mode": "watch"}, "mode", id="mode"),
        pytest.param({"controllers[0]": "calender"}, "there is no controller", id="controller"),
        pytest.param({"replica": "3"}, "replica", id="unknown-value"),
    ],
)
def test_invalid_values_are_refused(plane: ControlPlane, values: dict[str, str], words: str) -> None:
    settings = [f"--set={name}={value}" for name, value in values.items()]
    done = plane.run("helm", "template", RELEASE, CHART, *settings, check=False)

    assert done.returncode
    assert words in done.stderr


def test_crds_of_other_origin_are_left_as_they_are(plane: ControlPlane, released: Path) -> None:
    """The tests have installed them by kubectl."""
    owner = plane.kubectl("get", "crd", CALENDARS, "--output=jsonpath={.metadata.annotations}").stdout
    notes = plane.run("helm", "get", "notes", RELEASE, f"--namespace={NAMESPACE}").stdout

    assert "helm" not in owner
    assert "left as they are:\n  cronfederatedhpas.autoscaling.karmada.io\n" in notes
    assert "--set mode=observe" in notes


def test_rendered_crds_are_those_of_the_types(plane: ControlPlane) -> None:
    """Templates keep numbers, texts and orders as they are."""
    kinds = ",".join(definition["spec"]["names"]["kind"] for definition in all_crds(Flavour.EXTENDED))
    text = plane.run(
        "helm", "template", RELEASE, CHART, "--show-only=templates/crds.yaml", f"--set=crds.kinds={{{kinds}}}"
    )
    rendered = {item["metadata"]["name"]: item for item in yaml.safe_load_all(text.stdout)}

    assert {name: item["spec"] for name, item in rendered.items()} == {
        definition["metadata"]["name"]: definition["spec"] for definition in all_crds(Flavour.EXTENDED)
    }
    assert {item["metadata"]["annotations"]["helm.sh/resource-policy"] for item in rendered.values()} == {"keep"}


def crds_of_release(plane: ControlPlane) -> set[str]:
    """Name the CRDs in the cluster that helm has installed."""
    items = json.loads(plane.kubectl("get", "crds", "--output=json").stdout)["items"]
    return {
        item["spec"]["names"]["kind"]
        for item in items
        if (item["metadata"].get("annotations") or {}).get("meta.helm.sh/release-name") == RELEASE
    }


def test_crds_of_the_release_are_upgraded_and_never_removed(assets: Assets, tmp_path: Path) -> None:
    acted_on = {
        kind for kinds in yaml.safe_load((CHART / "files" / "kinds.yaml").read_text()).values() for kind in kinds
    }
    foreign = crd_files(Flavour.STOCK)["autoscaling.karmada.io_cronfederatedhpas.yaml"]
    with running(assets, tmp_path, controllers=False) as plane:
        plane.kubectl("apply", "--server-side", "-f", "-", text=foreign)
        before = read(plane, "crd", "cronfederatedhpas.autoscaling.karmada.io")
        install(plane)
        installed = crds_of_release(plane)
        assert read(plane, "crd", "cronfederatedhpas.autoscaling.karmada.io") == before
        assert installed == acted_on - {"CronFederatedHPA"}

        # Its controller is off now: an upgrade still has the CRD, and brings back what was changed in it.
        plane.kubectl("patch", "crd", GRANTS, "--type=json", "--patch", json.dumps([NO_SHORT_NAMES]))
        install(plane, "--force-conflicts", **{"controllers[0]": "calendar"})
        grants = read(plane, "crd", GRANTS)
        assert grants is not None
        assert grants["spec"]["names"]["shortNames"] == ["grt"]
        assert crds_of_release(plane) == installed

        install(plane, "--force-conflicts", **{"crds.install": "false"})
        assert crds_of_release(plane) == installed
        install(plane, "--force-conflicts", **{"crds.kinds": "{CapacityBuffer}"})
        assert crds_of_release(plane) == installed | {"CapacityBuffer"}

        plane.run("helm", "uninstall", RELEASE, f"--namespace={NAMESPACE}")
        assert crds_of_release(plane) == installed | {"CapacityBuffer"}
        install(plane)
        assert crds_of_release(plane) == installed | {"CapacityBuffer"}


def test_the_chart_roles_are_sufficient(plane: ControlPlane, released: Path, tmp_path: Path) -> None:
    """Status, conditions, events and the lease are all written, and nothing is refused on the way."""
    program = process(plane, tmp_path, released)
    write(plane, calendar("charted", "2100-01-01"), mistaken())
    with started(program):
        eventually(
            "the status is written", lambda: told_dates(read(plane, "calendar", "charted") or {}) == ["2100-01-01"]
        )
        eventually("an error is reported", lambda: conditions(read(plane, "calendar", "mistaken")).get("Ready"))
        (event,) = eventually("an event tells of it", lambda: events(plane))
        lease = read(plane, "lease", LEASE, NAMESPACE)

        assert conditions(read(plane, "calendar", "charted"))["Ready"]["status"] == "True"
        assert conditions(read(plane, "calendar", "mistaken"))["Ready"]["reason"] == "Invalid"
        assert (event["type"], event["reason"]) == ("Warning", "Invalid")
        assert lease is not None
        assert lease["spec"]["holderIdentity"]
        assert program.stop() == 0
    assert "forbidden" not in program.log.read_text()


def test_the_network_policy_opens_only_the_served_ports(plane: ControlPlane, released: Path) -> None:
    """Those of what is enabled; the health port is open to the node in any case."""
    assert read(plane, "networkpolicy", RELEASE, NAMESPACE) is None

    install(plane, **{"networkPolicy.enabled": "true"})
    assert opened(plane) == [({8080}, [{"namespaceSelector": {}}])]

    peer = "networkPolicy.metricsFrom[0].podSelector.matchLabels.app"
    install(plane, **{"networkPolicy.enabled": "true", "webhooks.enabled": "true", peer: "prometheus"})
    assert opened(plane) == [
        ({8080}, [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]),
        ({9443}, None),
    ]

    blocks = {"networkPolicy.apiServers": "{10.0.0.0/28,fd00::/64}", "externalMetrics.enabled": "true"}
    install(plane, **{"networkPolicy.enabled": "true", "webhooks.enabled": "true", **blocks})
    assert opened(plane)[1] == (
        {9443, 6443},
        [{"ipBlock": {"cidr": "10.0.0.0/28"}}, {"ipBlock": {"cidr": "fd00::/64"}}],
    )


def opened(plane: ControlPlane) -> list[tuple[set[int], Any]]:
    """List the ports that the NetworkPolicy opens, with their peers."""
    policy = read(plane, "networkpolicy", RELEASE, NAMESPACE)
    assert policy is not None
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    return [({port["port"] for port in rule["ports"]}, rule.get("from")) for rule in policy["spec"]["ingress"]]


def events(plane: ControlPlane) -> list[Object]:
    """Read the events about the calendar that has a mistake."""
    return read_all(plane, "events", "--field-selector=involvedObject.name=mistaken", "--namespace=default")


SELDOM = {
    ("events", "get"): "an event that was made before, by a process that is gone, is looked at first",
    ("events", "patch"): "an event that happens again is counted up",
    ("calendars", "get"): "by custom: who may list objects can read each of them anyway",
}
"""What a run of a few seconds does not need."""
SIMPLE = {"manager": "manager.yaml", "controller-calendar": "controllers/calendar.yaml"}
"""The roles of a process that runs the simplest controller: no other role has them."""


def verbs() -> list[Any]:
    """List every verb of these roles."""
    cases = []
    for role, file in SIMPLE.items():
        rules = yaml.safe_load((CHART / "files" / "roles" / file).read_text(encoding="utf-8"))
        cases += [
            pytest.param(kind, role, resource, verb, id=f"{verb}-{resource.replace('/', '-')}")
            for scope, kind in (("cluster", "clusterrole"), ("namespace", "role"))
            for rule in rules[scope]
            for resource in rule["resources"]
            for verb in rule["verbs"]
            if (resource, verb) not in SELDOM
        ]
    return cases


@pytest.mark.parametrize(("kind", "role", "resource", "verb"), verbs())
def test_a_missing_verb_is_detected(
    plane: ControlPlane, released: Path, tmp_path: Path, kind: str, role: str, resource: str, verb: str
) -> None:
    """A process that lacks a verb says so and goes on."""
    install(plane, **{"controllers[0]": "calendar"})
    take(plane, kind, f"{RELEASE}-{role}", resource, verb)
    program = process(plane, tmp_path, released)
    write(plane, mistaken())
    with started(program):
        program.wait_until("refused", lambda: "forbidden" in program.log.read_text())

        assert f'cannot {verb} resource "{resource}"' in program.log.read_text()
        assert program.running


def take(plane: ControlPlane, kind: str, name: str, resource: str, verb: str) -> None:
    """Take a verb on a resource out of a role."""
    role = read(plane, kind, name, NAMESPACE)
    assert role is not None
    rules = [
        {**rule, "verbs": [each for each in rule["verbs"] if each != verb or resource not in rule["resources"]]}
        for rule in role["rules"]
    ]
    assert rules != role["rules"]
    kept = [rule for rule in rules if rule["verbs"]]
    where = [] if kind == "clusterrole" else ["--namespace", NAMESPACE]
    plane.kubectl("patch", kind, name, *where, "--type=merge", "--patch", json.dumps({"rules": kept}))


def test_observe_mode_needs_no_write_permission(plane: ControlPlane, released: Path, tmp_path: Path) -> None:
    """The roles of controllers only read, and the process does not even try to write."""
    install(plane, mode="observe")
    role = read(plane, "clusterrole", f"{RELEASE}-controller-calendar")
    program = process(plane, tmp_path, released)
    write(plane, mistaken())
    with started(program):
        eventually("an event tells of the mistake", lambda: events(plane))

    assert role is not None
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert conditions(read(plane, "calendar", "mistaken")) == {}
    assert "forbidden" not in program.log.read_text()


@pytest.fixture
def converted(plane: ControlPlane, released: Path) -> Iterator[Path]:
    """Let webhooks convert between the versions of our CRDs, as long as the test lasts."""
    yield released
    restore_crds(plane)


@pytest.mark.parametrize("through", ["url", "service"])
def test_the_chart_webhooks_are_reachable(plane: ControlPlane, converted: Path, tmp_path: Path, through: str) -> None:
    """At a URL, or through a Service that stands for the machine that the processes run on."""
    (port,) = free_ports(1)
    ports = {"webhooks.port": str(port), "webhooks.service.port": str(port)}
    if through == "url":
        where = {"webhooks.url": f"https://127.0.0.1:{port}"}
    else:
        where = {"webhooks.service.externalName": "localhost"}
    install(plane, **{"webhooks.enabled": "true", **ports, **where})
    program = process(plane, tmp_path, converted)
    with started(program):
        eventually("the mistake is refused", lambda: 'The Calendar "mistaken" is invalid' in tried(plane, mistaken()))

        assert tried(plane, calendar("charted", "2100-01-01")) == ""
        eventually("older versions are served", lambda: plane.answers("/apis/karpenter.sh/v1beta1/nodepools"))
        assert "Error" not in tried(plane, older_pool())
    assert "forbidden" not in program.log.read_text()
    assert "failed calling webhook" in tried(plane, mistaken())


def test_an_upgrade_keeps_the_ca_bundle(plane: ControlPlane, converted: Path, tmp_path: Path) -> None:
    """What the processes fill in is not helm's, so that no write fails after an upgrade."""
    (port,) = free_ports(1)
    values = {"webhooks.enabled": "true", "webhooks.port": str(port), "webhooks.url": f"https://127.0.0.1:{port}"}
    install(plane, **values)
    program = process(plane, tmp_path, converted)
    with started(program):
        before = eventually("the bundle is filled in", lambda: bundle(plane))
        install(plane, **values, replicas="3")

        assert bundle(plane) == before


def bundle(plane: ControlPlane) -> str:
    """Read the CA bundle that the API server trusts."""
    configuration = read(plane, "validatingwebhookconfiguration", VALIDATING)
    assert configuration is not None
    (webhook,) = configuration["webhooks"]
    written: str = webhook["clientConfig"].get("caBundle", "")
    return written


def tried(plane: ControlPlane, item: Object) -> str:
    """Return what kubectl says against an object, if it were created; nothing where it is right."""
    return plane.kubectl("create", "--dry-run=server", "-f", "-", text=json.dumps(item), check=False).stderr


def older_pool() -> Object:
    """Write a NodePool in the version that only we can convert."""
    template = {
        "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
        "nodeClassRef": {"apiVersion": "springtide.dev/v1alpha1", "kind": "NodeClass", "name": "default"},
    }
    return {
        "apiVersion": "karpenter.sh/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": "older"},
        "spec": {"template": {"spec": template}},
    }
