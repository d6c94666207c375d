"""Staging: which objects of a folder are applied to a new cluster, in which order and form."""

from __future__ import annotations

from springtide.apis.kinds import ValidationContext
from springtide.assembly.manifests import ManifestSource, check_sources
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
    sources = [ManifestSource(f"{number}.yaml", text) for number, text in enumerate(texts)]
    return stage(check_sources(sources, [], ValidationContext(now=1_780_000_000)))


def _labels(staging: StagedManifests) -> list[str]:
    return [staged.label for staged in staging.objects]


def test_kinds_that_others_depend_on_come_first_and_the_rest_keeps_its_order() -> None:
    staging = _staged(
        "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}",
        "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: later}}",
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 7}",
        "{apiVersion: v1, kind: Namespace, metadata: {name: later}}",
        WIDGETS,
    )

    assert _labels(staging) == [
        "CustomResourceDefinition widgets.example.com",
        "Namespace later",
        "PriorityClass high",
        "Widget w",
        "Pod p",
    ]


def test_kinds_that_the_cluster_does_not_serve_are_listed_apart() -> None:
    staging = _staged(
        "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}}",
        "{apiVersion: example.com/v1beta1, kind: Widget, metadata: {name: old}}",
        WIDGETS,
    )

    assert [(staged.label, staged.file, staged.line) for staged in staging.unknown] == [
        ("Ingress i", "0.yaml", 1),
        ("Widget old", "1.yaml", 1),
    ]


def test_of_two_objects_with_the_same_name_the_last_one_is_used() -> None:
    staging = _staged(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: first}}",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}, data: {a: second}}",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}, data: {a: third}}",
    )

    assert [staged.value["data"]["a"] for staged in staging.objects] == ["second", "third"]


def test_objects_with_a_generate_name_are_all_staged() -> None:
    job = "{apiVersion: batch/v1, kind: Job, metadata: {generateName: j-}}"

    assert len(_staged(job, job).objects) == 2


def test_metadata_of_another_api_server_is_removed() -> None:
    staging = _staged(
        "{apiVersion: v1, kind: Node, metadata: {name: n, uid: u, resourceVersion: '7', generation: 2,"
        " creationTimestamp: 2026-01-01T00:00:00Z, managedFields: [], labels: {a: b}}, status: {capacity: {cpu: '4'}}}"
    )

    (node,) = staging.objects
    assert node.value["metadata"] == {"name": "n", "labels": {"a": "b"}}
    assert node.value["status"] == {"capacity": {"cpu": "4"}}


def test_items_of_lists_are_staged_one_by_one() -> None:
    item = "{apiVersion: v1, kind: %s, metadata: {name: %s}}"
    staging = _staged(
        f"{{apiVersion: v1, kind: List, items: [{item % ('Secret', 's')}]}}",
        f"{{apiVersion: v1, kind: ConfigMapList, items: [{item % ('ConfigMap', 'a')}, {item % ('ConfigMap', 'b')}]}}",
    )

    assert _labels(staging) == ["Secret s", "ConfigMap a", "ConfigMap b"]


def test_crds_of_springtide_are_installed_already() -> None:
    crd = WIDGETS.replace("widgets.example.com", "calendars.springtide.dev")

    assert _staged(crd) == StagedManifests((), ())


def test_objects_are_staged_in_canonical_form_with_the_line_they_were_read_from() -> None:
    staging = _staged(
        "# a comment\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\n"
        "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: p}\n"
        "spec: {template: {spec: {requirements: [],\n"
        "  nodeClassRef: {group: springtide.dev, kind: NodeClass, name: c}}}}\n"
    )

    assert [(staged.kind[0], staged.line) for staged in staging.objects] == [("v1", 3), ("karpenter.sh/v1", 7)]
