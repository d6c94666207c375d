"""What goes into a simulated cluster of the folders that people have."""

from __future__ import annotations

from springtide.assembly.manifests import ManifestSource
from springtide.assembly.staging import StagedManifests, stage

WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
"""


def _staged(*texts: str) -> StagedManifests:
    return stage([ManifestSource(f"{number}.yaml", text) for number, text in enumerate(texts)])


def _told(staging: StagedManifests) -> list[str]:
    return [placed.told for placed in staging.objects]


def test_what_others_lean_on_comes_first_and_the_rest_keeps_its_order() -> None:
    staging = _staged(
        "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}",
        "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: later}}",
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 7}",
        "{apiVersion: v1, kind: Namespace, metadata: {name: later}}",
        WIDGETS,
    )

    assert _told(staging) == [
        "CustomResourceDefinition widgets.example.com",
        "Namespace later",
        "PriorityClass high",
        "Widget w",
        "Pod p",
    ]


def test_kinds_that_the_cluster_does_not_have_are_set_aside() -> None:
    staging = _staged(
        "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}}",
        "{apiVersion: example.com/v1beta1, kind: Widget, metadata: {name: old}}",
        WIDGETS,
    )

    assert [(placed.told, placed.file, placed.line) for placed in staging.unknown] == [
        ("Ingress i", "0.yaml", 1),
        ("Widget old", "1.yaml", 1),
    ]


def test_of_two_objects_with_one_name_the_last_one_counts() -> None:
    staging = _staged(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: first}}",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}, data: {a: second}}",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}, data: {a: third}}",
    )

    assert [placed.value["data"]["a"] for placed in staging.objects] == ["second", "third"]


def test_names_that_are_still_to_be_made_are_all_different() -> None:
    job = "{apiVersion: batch/v1, kind: Job, metadata: {generateName: j-}}"

    assert len(_staged(job, job).objects) == 2


def test_what_only_another_cluster_knows_is_left_out() -> None:
    staging = _staged(
        "{apiVersion: v1, kind: Node, metadata: {name: n, uid: u, resourceVersion: '7', generation: 2,"
        " creationTimestamp: 2026-01-01T00:00:00Z, managedFields: [], labels: {a: b}}, status: {capacity: {cpu: '4'}}}"
    )

    (node,) = staging.objects
    assert node.value["metadata"] == {"name": "n", "labels": {"a": "b"}}
    assert node.value["status"] == {"capacity": {"cpu": "4"}}


def test_lists_are_taken_apart_whatever_they_are_called() -> None:
    staging = _staged(
        "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {name: s}}]}",
        "{apiVersion: v1, kind: ConfigMapList, items: [{metadata: {name: a}}, {metadata: {name: b}}]}",
    )

    assert _told(staging) == ["Secret s", "ConfigMap a", "ConfigMap b"]


def test_our_own_crds_are_there_already() -> None:
    crd = WIDGETS.replace("widgets.example.com", "calendars.springtide.dev")

    assert _staged(crd) == StagedManifests((), ())


def test_objects_are_staged_in_their_canonical_form_at_the_line_where_they_are_written() -> None:
    staging = _staged(
        "# a comment\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\n"
        "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: p}\n"
        "spec: {template: {spec: {requirements: [],\n"
        "  nodeClassRef: {group: springtide.dev, kind: NodeClass, name: c}}}}\n"
    )

    assert [(placed.kind[0], placed.line) for placed in staging.objects] == [("v1", 3), ("karpenter.sh/v1", 7)]
