"""The Grant controller: whether a Grant is in force, and the message of its condition."""

from __future__ import annotations

from typing import Any

import pytest

from springtide.apis.springtide.grants import GrantedResource, is_granted
from springtide.cluster.conditions import ConditionStatus
from springtide.controllers.grant import GrantController
from springtide.controllers.grant.decide import decide
from springtide.controllers.grant.state import ALL_GRANTS, GRANTS
from springtide.simulator.scenario import Scenario, delete, edit

QUEUE = "arn:aws:sqs:*:*:team-a-*"


def grant(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Grant",
        "metadata": {"name": "team-a"},
        "spec": {"namespaces": ["team-a"], **spec},
    }


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(
            grant(queues=[QUEUE], urls=["https://prom.example.com/"], nodeGroups=["a", "b"]),
            (
                ConditionStatus.TRUE,
                "InForce",
                "objects of team-a may reach what it lists: 2 node groups, 1 queue, 1 address",
            ),
            id="in-force",
        ),
        pytest.param(
            grant(namespaces=["a", "b-*"], nodeGroups=["*"]),
            (ConditionStatus.TRUE, "InForce", "objects of a, b-* may reach what it lists: 1 node group"),
            id="several-namespaces",
        ),
        pytest.param(
            grant(), (ConditionStatus.TRUE, "InForce", "objects of team-a may reach nothing by it"), id="no resources"
        ),
        pytest.param(
            grant(urls=["ftp://example.com/"]),
            (
                ConditionStatus.FALSE,
                "Invalid",
                'nothing is allowed by a grant with errors: spec.urls[0]: "ftp://example.com/" must begin with http:// '
                "or https:// and a host (write https://prom.example.com/)",
            ),
            id="invalid",
        ),
    ],
)
def test_message_of_ready(item: dict[str, Any], expected: tuple[ConditionStatus, str, str]) -> None:
    """The message of `Ready` counts what the Grant allows, or lists its errors."""
    (ready,) = decide(item, now=0).conditions

    assert expected == (ready.status, ready.reason, ready.message)


def extended(extensions: str, **spec: Any) -> dict[str, Any]:
    item = grant(**spec)
    item["metadata"]["annotations"] = {"springtide.dev/extensions": extensions}
    return item


HERE, THERE = "https://prom.example.com/", "https://mimir.example.com/"


@pytest.mark.parametrize(
    ("item", "reachable"),
    [
        pytest.param(grant(urls=[HERE]), [HERE], id="in-force"),
        pytest.param(grant(urls=[HERE, "ftp://example.com/"]), [], id="one invalid entry"),
        pytest.param(grant(urls=[HERE], urs=[THERE]), [], id="unknown-field"),
        pytest.param(grant(namespaces=[], urls=[HERE]), [], id="no-namespaces"),
        pytest.param(extended(f"urls: ['{HERE}']"), [HERE], id="extensions"),
        pytest.param(extended(f"urls: ['{THERE}']", urls=[HERE]), [THERE], id="extensions-replace-the-spec"),
        pytest.param(extended("urls: [", urls=[HERE]), [], id="extensions-with-errors"),
    ],
)
def test_enforced_grants_agree_with_the_status(item: dict[str, Any], reachable: list[str]) -> None:
    """A Grant with errors allows nothing; fields in the extensions annotation count for both."""
    granted = ALL_GRANTS.record(item).spec
    specs = [] if granted is None else [granted]

    assert [url for url in (HERE, THERE) if is_granted(specs, "team-a", GrantedResource.URL, url)] == reachable
    (ready,) = decide(item, now=0).conditions
    assert ready.status == (ConditionStatus.TRUE if reachable else ConditionStatus.FALSE)


def test_status_is_written_when_the_grant_changes() -> None:
    """It is written at no other time; errors have an event."""
    outcome = (
        Scenario("a grant")
        .given(grant(queues=[QUEUE]))
        .running(GrantController)
        .at("1h", edit("Grant", "team-a", {"spec": {"urls": ["https://h/../x"]}}))
        .at("2h", edit("Grant", "team-a", {"spec": {"urls": None}}))
        .run("1d")
    )

    written = [entry.at - outcome.world.clock.start for entry in outcome.trace if entry.actor == "springtide-grant"]
    (ready,) = outcome.object("Grant", "team-a")["status"]["conditions"]
    (event,) = outcome.objects("Event")
    assert [at for at in written if at] == [3600, 3600, 7200]
    assert (ready["status"], ready["reason"], ready["observedGeneration"]) == ("True", "InForce", 3)
    assert (event["type"], event["reason"]) == ("Warning", "Invalid")


def test_deleted_grant_is_not_written() -> None:
    """Nothing is written any more."""
    outcome = Scenario("a grant").given(grant()).running(GrantController).at("1h", delete("Grant", "team-a")).run("2h")

    assert outcome.objects("Grant") == []


def test_controller_reads_grants_and_writes_their_status() -> None:
    """It has no other permissions."""
    assert {
        (permission.resource, verb, permission.subresource)
        for permission in GrantController.permissions
        for verb in permission.verbs
    } == {(GRANTS, "get", ""), (GRANTS, "list", ""), (GRANTS, "watch", ""), (GRANTS, "patch", "status")}
