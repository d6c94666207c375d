"""A session with kubectl, as a user has it: what is typed, and what a cluster answers.

The same session is played to a real cluster and to the embedded one; what differs from run to run is masked.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from springtide.cluster.resources import Object

NAMESPACE = "session"


@dataclass(frozen=True, slots=True)
class Step:
    """One command; it must end in the same way and say the same on every cluster."""

    name: str
    arguments: Sequence[str]
    text: str = ""
    """What is typed into it."""
    editor: str = ""
    """What the user's editor is."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a user sees, and a script."""

    code: int
    out: str
    err: str


def play(kubectl: Path, kubeconfig: Path, folder: Path, step: Step) -> Answer:
    """Run one command against a cluster."""
    folder.mkdir(exist_ok=True)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "KUBECONFIG": str(kubeconfig)}
    if step.editor:
        environment["KUBE_EDITOR"] = step.editor
    done = subprocess.run(
        [kubectl, "--namespace", NAMESPACE, *step.arguments],
        input=step.text,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
        env=environment,
    )
    return Answer(done.returncode, masked(done.stdout), masked(done.stderr))


_MASKS = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+\d{4}"), "TIME"),
    (re.compile(r"(\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \S+)"), "TIME"),
    (re.compile(r'(resourceVersion: |Resource Version: +)"?\d+"?'), r"\1VERSION"),
    (re.compile(r"\bweb-[0-9a-z]{8,10}(-[0-9a-z]{5})?\b"), "web-GENERATED"),
    (re.compile(r"\bsums-[0-9a-z]{5}\b"), "sums-GENERATED"),
    (re.compile(r"pod-template-hash=\w+"), "pod-template-hash=GENERATED"),
    (re.compile(r"https://127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r"/tmp/\S+"), "FILE"),
    # Rollouts are printed step by step, and which steps are seen depends on timing.
    (re.compile(r"^Waiting for .*\n", re.MULTILINE), ""),
    (re.compile(r"(?<= )(\d+[smh])+( ago)?(?= *$| {2,})", re.MULTILINE), "AGE"),
    # The real controller-manager tells kubelets how long they may keep secrets; ours have none.
    (re.compile(r"node\.alpha\.kubernetes\.io/ttl: 0\n\s+"), ""),
    # Columns are as wide as what is masked was.
    (re.compile(r"(?<=\S) {2,}"), "  "),
)


def masked(text: str) -> str:
    """Mask what no two runs have in common."""
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text


def _dump(*objects: Object) -> str:
    return yaml.safe_dump_all(objects, sort_keys=False)


def _deployment(replicas: int, image: str) -> Object:
    labels = {"app": "web"}
    quick = {"simulator.springtide.dev/start-seconds": "0"}
    container = {"name": "app", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    template = {
        "metadata": {"labels": labels, "annotations": quick},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {"kubernetes.io/hostname": "desk"},
            "containers": [container],
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


_NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "desk",
        "labels": {"kubernetes.io/hostname": "desk"},
        "annotations": {"simulator.springtide.dev/boot-seconds": "0"},
    },
}
_MAP: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"colour": "blue"}}
_CALENDAR = {
    "apiVersion": "springtide.dev/v1alpha1",
    "kind": "Calendar",
    "metadata": {"name": "desk"},
    "spec": {"timeZone": "Europe/Berlin", "dates": ["2100-01-01"]},
}
_JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "sums"},
    "spec": {
        "template": {
            "metadata": {
                "annotations": {
                    "simulator.springtide.dev/start-seconds": "0",
                    "simulator.springtide.dev/run-seconds": "1",
                }
            },
            "spec": {
                "restartPolicy": "Never",
                "nodeSelector": {"kubernetes.io/hostname": "desk"},
                "containers": [{"name": "sums", "image": "sums:1"}],
            },
        }
    },
}
_BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}


def _step(name: str, arguments: str, *objects: Object, editor: str = "") -> Step:
    return Step(name, arguments.split(), _dump(*objects) if objects else "", editor)


SESSION = (
    _step("a namespace is created", f"create namespace {NAMESPACE}"),
    _step("it is there already", f"create namespace {NAMESPACE}"),
    _step("a node is applied", "apply -f -", _NODE),
    _step("it becomes ready", "wait node/desk --for=condition=Ready --timeout=60s"),
    _step("a deployment is applied", "apply -f -", _deployment(1, "app:1")),
    _step("it is rolled out", "rollout status deployment/web --timeout=60s"),
    _step("it is unchanged", "apply -f -", _deployment(1, "app:1")),
    _step("the last applied is shown", "apply view-last-applied deployment/web"),
    _step("a difference is shown", "diff -f -", _deployment(1, "app:2")),
    _step("it is shown in a table", "get deployment web"),
    _step("and in a wide one", "get deployment web -o wide"),
    _step("its pods are shown", "get pods -l app=web"),
    _step("it is scaled", "scale deployment/web --replicas=2"),
    _step("that is waited for", "wait deployment/web --for=jsonpath={.status.readyReplicas}=2 --timeout=60s"),
    _step("another image is set", "set image deployment/web app=app:2"),
    _step("that is rolled out", "rollout status deployment/web --timeout=60s"),
    _step("its history is shown", "rollout history deployment/web"),
    _step("it is undone", "rollout undo deployment/web"),
    _step("that is rolled out too", "rollout status deployment/web --timeout=60s"),
    _step("it is described", "describe deployment web --show-events=false"),
    _step("its replica sets are shown", "get replicasets -o wide --sort-by={.spec.replicas}"),
    _step("a job is created", "create -f -", _JOB),
    _step("it completes", "wait job/sums --for=condition=Complete --timeout=60s"),
    _step("it is shown with its pods", "get jobs,pods -l job-name=sums"),
    _step("the job is described", "describe job sums --show-events=false"),
    _step("the job is deleted", "delete job sums"),
    _step("it is scaled by load", "autoscale deployment/web --min=2 --max=5 --cpu=80%"),
    _step("the autoscaler is shown", "get hpa"),
    _step("the autoscaler is deleted", "delete hpa web"),
    _step("a budget is created", "create -f -", _BUDGET),
    _step("the budget counts", "wait pdb/web --for=jsonpath={.status.currentHealthy}=2 --timeout=60s"),
    _step("the budget is shown", "get pdb"),
    _step("the budget is described", "describe pdb web"),
    _step("the node is tainted", "taint node desk spot=true:NoSchedule"),
    _step("the node is described", "describe node desk"),
    _step("the taint is removed", "taint node desk spot=true:NoSchedule-"),
    _step("the node is cordoned", "cordon desk"),
    _step("the node is shown", "get node desk"),
    _step("the node is uncordoned", "uncordon desk"),
    _step("a map is applied by the server", "apply --server-side -f -", _MAP),
    _step(
        "another manager is refused",
        "apply --server-side --field-manager=other -f -",
        _MAP | {"data": {"colour": "red"}},
    ),
    _step(
        "unless it insists",
        "apply --server-side --field-manager=other --force-conflicts -f -",
        _MAP | {"data": {"colour": "red"}},
    ),
    _step("the map is described", "describe configmap settings"),
    _step("the map is read", "get configmap settings -o yaml --show-managed-fields"),
    _step("the map is patched", 'patch configmap settings --type=merge -p {"data":{"size":"large"}}'),
    _step("and patched by operations", 'patch configmap settings --type=json -p [{"op":"remove","path":"/data/size"}]'),
    _step(
        "a test fails", 'patch configmap settings --type=json -p [{"op":"test","path":"/data/colour","value":"green"}]'
    ),
    _step("the map is edited", "edit configmap settings", editor="sed -i s/red/green/"),
    _step("the edit shows", "get configmap settings -o jsonpath={.data}"),
    _step("the map is labelled", "label configmap settings tier=front"),
    _step("it is found by the label", "get configmaps -l tier=front -o name"),
    _step("it is annotated", "annotate configmap settings note=seen"),
    _step("it is replaced", "replace -f -", _MAP),
    _step("a dry run changes nothing", "delete configmap settings --dry-run=server"),
    _step("it is deleted", "delete configmap settings"),
    _step("it is not there", "get configmap settings"),
    _step("an unknown field is refused", "create -f -", _MAP | {"dta": {}}),
    _step("an invalid object is refused", "create --validate=false -f -", _MAP | {"metadata": {"name": "Not Good"}}),
    _step("an unknown kind is refused", "get gadgets"),
    _step("an unknown selector is refused", "get pods --field-selector=spec.colour=red"),
    _step("a calendar is applied", "apply -f -", _CALENDAR),
    _step("it is read", "get calendar desk -o jsonpath={.spec}"),
    _step("it is explained", "explain calendar.spec"),
    _step("it is explained as a whole", "explain calendars --recursive"),
    _step(
        "an invalid calendar is refused",
        "create -f -",
        _CALENDAR | {"metadata": {"name": "bad"}, "spec": {"dates": ["soon"]}},
    ),
    _step("our kinds are listed", "api-resources --api-group=springtide.dev"),
    _step("the calendar is deleted", "delete calendar desk"),
    _step("permissions are shown", "auth can-i create deployments"),
    _step("the deployment is deleted", "delete deployment web --cascade=foreground"),
    _step("nothing of it is left", "get deployments,replicasets,pods"),
    _step("the node is deleted", "delete node desk"),
    _step("the namespace is deleted", f"delete namespace {NAMESPACE}"),
    _step("it is gone", f"get namespace {NAMESPACE}"),
)
