"""Reading objects: what they are, what they mean, and what is said of those that are not ours."""

from __future__ import annotations

from typing import Any

import pytest

from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import LoadedObject, UnknownObject, is_skipped, load
from springtide.apis.problems import format_path
from springtide.apis.yaml import UnreadableDocument

CONTEXT = ValidationContext(now=1_780_000_000)
PRODUCER = """\
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata:
  name: a
spec:
  schedule:
    defaultReplicas: 1
    behaviors: []
"""


def problems(text: str) -> list[tuple[int, int, str, str]]:
    """Read a text and give (line, column, path, hint) of everything that is wrong."""
    found: list[tuple[int, int, str, str]] = []
    for item in load(text, CONTEXT):
        if isinstance(item, UnreadableDocument):
            found.append((item.line, item.column, "", item.hint))
        else:
            found += ((*item.place(each), format_path(each.path), each.hint) for each in item.problems)
    return sorted(found)


def test_an_object_is_read_with_its_view() -> None:
    (loaded,) = load(PRODUCER, CONTEXT)
    assert isinstance(loaded, LoadedObject)
    assert loaded.sound
    assert (loaded.api_version, loaded.name, loaded.namespace) == ("autoscaling.karpenter.sh/v1alpha1", "a", "default")


def test_members_of_a_list_are_objects_with_their_own_places() -> None:
    member = "\n".join(
        f"    {line}" for line in PRODUCER.replace("defaultReplicas: 1", "defaultReplicas: -1").splitlines()
    )
    text = f"apiVersion: v1\nkind: List\nitems:\n  - {member.strip()}\n"
    (loaded,) = load(text, CONTEXT)
    assert isinstance(loaded, LoadedObject)
    assert [(loaded.place(problem).line, format_path(problem.path)) for problem in loaded.problems] == [
        (10, "spec.schedule.defaultReplicas")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            PRODUCER.replace("apiVersion", "apiversion"),
            [(1, 1, "apiversion", "did you mean `apiVersion`?")],
            id="apiversion",
        ),
        pytest.param(
            PRODUCER.replace("kind: MetricsProducer", "kind: Metricsproducer"),
            [(2, 1, "kind", "did you mean MetricsProducer?")],
            id="kind in another case",
        ),
        pytest.param(
            PRODUCER.replace("v1alpha1", "v1beta1"),
            [(1, 1, "apiVersion", "write autoscaling.karpenter.sh/v1alpha1")],
            id="a version that does not exist",
        ),
        pytest.param(
            PRODUCER.replace("autoscaling.karpenter.sh", "springtide.dev"),
            [(1, 1, "apiVersion", "write autoscaling.karpenter.sh/v1alpha1")],
            id="another group of ours",
        ),
        pytest.param(
            "apiVersion: example.com/v1\nkind: NodePool\nmetadata: {name: a}\n",
            [(1, 1, "apiVersion", "write karpenter.sh/v1 or karpenter.sh/v1beta1")],
            id="a group that no project is known to have",
        ),
        pytest.param(
            "apiVersion: autoscaling/v2\nkind: CapacityBuffer\nmetadata: {name: a}\n",
            [(1, 1, "apiVersion", "write autoscaling.x-k8s.io/v1beta1 or autoscaling.x-k8s.io/v1alpha1")],
            id="a group of Kubernetes",
        ),
        pytest.param(
            PRODUCER.replace("  name: a", "  labels: {}"),
            [(3, 1, "metadata.name", "every object needs a name")],
            id="no name",
        ),
        pytest.param(
            PRODUCER.replace("name: a", "name: My_Producer"),
            [(4, 3, "metadata.name", "write `my-producer`")],
            id="a name that no server takes",
        ),
        pytest.param(
            "spec: {}\n",
            [
                (1, 1, "apiVersion", "every object needs `apiVersion` and `kind`"),
                (1, 1, "kind", "every object needs `apiVersion` and `kind`"),
            ],
            id="says not what it is",
        ),
        pytest.param("- a\n- b\n", [(1, 1, "", "")], id="a list is no object"),
        pytest.param(
            "apiVersion: springtide.dev/v1alpha1\nkind: NodeClass\nmetadata:\n  name: a\n  namespace: b\nspec:\n"
            "  provider: simulated\n",
            [(5, 3, "metadata.namespace", "remove `metadata.namespace`")],
            id="a namespace where there is none",
        ),
    ],
)
def test_what_is_wrong_with_the_object_as_a_whole(text: str, expected: list[Any]) -> None:
    assert problems(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n", id="kind of another project"),
        pytest.param(
            "apiVersion: policy.example.com/v1\nkind: Job\nmetadata: {name: a}\n", id="same name, other group"
        ),
        *(
            pytest.param(f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n", id=f"{kind} of {project}")
            for project, api_version, kind in (
                ("HyperShift", "hypershift.openshift.io/v1beta1", "NodePool"),
                ("GKE", "container.gke.io/v1", "NodePool"),
                ("EKS", "eks.amazonaws.com/v1", "NodeClass"),
                ("Crossplane", "postgresql.sql.crossplane.io/v1alpha1", "Grant"),
                ("MariaDB", "k8s.mariadb.com/v1alpha1", "Grant"),
                ("O-RAN", "o2ims.provisioning.oran.org/v1alpha1", "ProvisioningRequest"),
                ("Longhorn", "longhorn.io/v1beta2", "Node"),
            )
        ),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", id="a built-in kind that we do not read"
        ),
    ],
)
def test_other_peoples_objects_are_skipped(text: str) -> None:
    (stray,) = load(text, CONTEXT)
    assert isinstance(stray, UnknownObject)
    assert is_skipped(stray)
    assert stray.problems == ()


def test_an_unreadable_document_hides_no_other() -> None:
    first, second = load(f"a: [\n---\n{PRODUCER}", CONTEXT)
    assert isinstance(first, UnreadableDocument)
    assert isinstance(second, LoadedObject)
    assert second.sound


def test_slips_that_keep_a_text_from_being_read_hide_nothing_that_comes_after_them() -> None:
    text = PRODUCER.replace("  schedule:", "  // office hours\n  schedule:").replace("Replicas: 1", "Replicas: -1")
    assert [(line, path) for line, _, path, _ in problems(text)] == [(6, ""), (8, "spec.schedule.defaultReplicas")]


def test_two_objects_without_a_line_between_them_are_both_validated() -> None:
    other = (
        PRODUCER.replace("apiVersion", "apiversion").replace("name: a", "name: b").replace("Replicas: 1", "Replicas: x")
    )
    found = problems(f"{PRODUCER}\n{other}")
    assert [(line, path) for line, _, path, _ in found] == [
        (10, ""),
        (10, "apiversion"),
        (16, "spec.schedule.defaultReplicas"),
    ]
    assert found[0][3] == "write `---` on a line of its own before it"


def test_typed_lists_are_lists_too() -> None:
    member = "\n".join(f"    {line}" for line in PRODUCER.splitlines()).strip()
    text = f"apiVersion: autoscaling.karpenter.sh/v1alpha1\nkind: MetricsProducerList\nitems:\n  - {member}\n"
    (loaded,) = load(text, CONTEXT)
    assert isinstance(loaded, LoadedObject)
    assert loaded.sound


@pytest.mark.parametrize(
    ("kind", "item", "found"),
    [
        pytest.param("ConfigMapList", "metadata: {name: a}", [("v1", "ConfigMap", 0)], id="items-without-a-type"),
        pytest.param("ConfigMapList", "kind: Secret", [("", "Secret", 1)], id="an-item-with-its-own-kind"),
        pytest.param("ConfigMapList", "apiVersion: apps/v1", [("apps/v1", "", 1)], id="an-item-with-its-own-version"),
        pytest.param("ConfigMapList", "just text", [("", "", 1)], id="an-item-that-is-no-object"),
        pytest.param("List", "metadata: {name: a}", [("", "", 2)], id="a-list-of-any-kind"),
    ],
)
def test_items_of_a_typed_list_inherit_its_type(kind: str, item: str, found: list[tuple[str, str, int]]) -> None:
    """As for kubectl: an item that has neither field is of the kind of its list."""
    read = load(f"apiVersion: v1\nkind: {kind}\nitems:\n- {item}\n", CONTEXT)
    assert [(one.api_version, one.kind, len(one.problems)) for one in read if isinstance(one, UnknownObject)] == found


def test_the_type_of_a_list_is_that_of_its_items_for_checks() -> None:
    text = """
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducerList
items:
- metadata: {name: peak}
  spec: {schedule: {defaultReplicas: many, behaviors: []}}
"""
    (producer,) = load(text, CONTEXT)
    assert isinstance(producer, LoadedObject)
    assert [problem.path for problem in producer.problems] == [("spec", "schedule", "defaultReplicas")]


def test_a_comment_that_became_a_part_of_a_value_is_named() -> None:
    found = problems(PRODUCER.replace("defaultReplicas: 1", "defaultReplicas: 1 // one"))
    assert (7, 22, "spec.schedule.defaultReplicas", "write `#` instead, or quote the value") in found


def test_a_name_of_any_length_is_answered_at_once() -> None:
    (stray,) = load(f"apiVersion: v1\nkind: {'x' * 2_000_000}\n", CONTEXT)
    assert isinstance(stray, UnknownObject)
