"""Conversion between versions: all objects or none, in a form that the API server accepts."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.karpenter.samples import beta_pool, node_pool
from tests.apis.karpenter.test_conversion import objects
from tests.cluster.admission.review_requests import conversion_review, response_of

from springtide.apis.karpenter.conversion import V1, V1_FIELDS, V1BETA1, V1BETA1_FIELDS
from springtide.apis.scheme import ConversionError, convert
from springtide.cluster.admission.handlers import convert_all


def converted(version: str, *items: Any) -> dict[str, Any]:
    return response_of(convert_all(conversion_review(version, *items)))


def test_objects_are_converted_in_order() -> None:
    """Objects that have the version already are not changed."""
    response = converted(V1, beta_pool(), node_pool(), beta_pool({"expireAfter": "1h"}))

    assert response["result"] == {"status": "Success"}
    made = response["convertedObjects"]
    assert [item["apiVersion"] for item in made] == [V1] * 3
    assert made[1] == node_pool()
    assert made[2]["spec"]["template"]["spec"]["expireAfter"] == "1h"


@pytest.mark.parametrize(
    ("item", "version", "words"),
    [
        pytest.param(
            {**node_pool(), "kind": "Thing"}, V1BETA1, "Thing default: there is no conversion of a Thing", id="kind"
        ),
        pytest.param(node_pool(), "karpenter.sh/v2", "NodePool default: there is no conversion", id="version"),
        pytest.param(node_pool(), "", "NodePool default: there is no conversion", id="no version"),
        pytest.param({"spec": 1}, V1, "objects[1]: an object needs `apiVersion` and `kind`", id="no head"),
        pytest.param({"apiVersion": V1BETA1, "kind": 5}, V1, "objects[1]: an object needs", id="strange head"),
    ],
)
def test_an_object_that_cannot_be_converted_is_named(item: Any, version: str, words: str) -> None:
    """Then the response has no objects: the API server requires all or none."""
    first = {"apiVersion": version, "kind": "NodePool", "metadata": {}}

    response = converted(version, first, item)

    assert (response["result"]["status"], response["convertedObjects"]) == ("Failure", [])
    assert response["result"]["message"].startswith(words)


def text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@pytest.mark.parametrize(("here", "there"), [("v1beta1", V1), ("v1", V1BETA1)])
def test_round_trips_lose_nothing(here: str, there: str) -> None:
    """Byte for byte, whatever an object contains."""

    @given(objects(here))
    def there_and_back(item: dict[str, Any]) -> None:
        item = {"metadata": {}, **item}
        before = copy.deepcopy(item)

        (made,) = converted(there, item)["convertedObjects"]
        (back,) = converted(item["apiVersion"], made)["convertedObjects"]

        assert text(item) == text(back)
        assert text(before) == text(item)

    there_and_back()


NOTES = st.lists(
    st.fixed_dictionaries(
        {"path": st.lists(st.sampled_from(["metadata", "name", "uid", "annotations", "x y", "kind", "apiVersion"]))},
        optional={"given": st.sampled_from(["default", "karpenter.sh/v1", "NodePool", None]), "stood": st.integers()},
    ),
    min_size=1,
)


@given(st.booleans(), NOTES, st.sampled_from([V1_FIELDS, V1BETA1_FIELDS]))
def test_no_annotation_makes_an_object_another(up: bool, notes: Any, annotation: str) -> None:
    """Users can edit the annotation of a conversion; a bad one must not make all lists of the kind fail."""
    item = beta_pool() if up else node_pool()
    item["metadata"] |= {"uid": "1", "annotations": {annotation: json.dumps(notes), "team": "a"}}

    (made,) = converted(V1 if up else V1BETA1, item)["convertedObjects"]

    assert (made["apiVersion"], made["kind"]) == (V1 if up else V1BETA1, "NodePool")
    assert (made["metadata"]["name"], made["metadata"]["uid"]) == ("default", "1")
    assert made["metadata"]["annotations"].keys() <= {"team", V1_FIELDS, V1BETA1_FIELDS}
    assert all(isinstance(each, str) for each in made["metadata"]["annotations"].values())


def test_kinds_whose_versions_differ_in_name_only_are_renamed() -> None:
    buffer = {"apiVersion": "autoscaling.x-k8s.io/v1alpha1", "kind": "CapacityBuffer", "spec": {"replicas": 1}}

    assert convert(buffer, "autoscaling.x-k8s.io/v1beta1") == {**buffer, "apiVersion": "autoscaling.x-k8s.io/v1beta1"}


def test_there_is_no_way_between_groups() -> None:
    with pytest.raises(ConversionError, match="there is no conversion of a NodePool"):
        convert(node_pool(), "autoscaling.x-k8s.io/v1")
