"""Deletion: at once, with a grace period, with finalizers, and with preconditions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.objects import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DRY,
    JOBS,
    PODS,
    START,
    WRITE,
    config_map,
    deployment,
    key,
    make_server,
    pod,
)

from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import Conflict, Invalid, NotFound
from springtide.cluster.resources import Key, Object, Selection
from springtide.cluster.transport import Patch, Precondition, Propagation

_NOW = [START]


@pytest.fixture
def server() -> ApiServer:
    _NOW[0] = START
    return make_server(now=lambda: _NOW[0])


def _find(server: ApiServer, name: str) -> Object | None:
    return server.find(
        next(identity for identity, _ in server.storage.collections() if identity.plural == "pods"), key(name)
    )


def _running(server: ApiServer, *, phase: str = "Running", **metadata: Any) -> Object:
    server.create(PODS, pod(**metadata), WRITE, namespace="default")
    server.create(PODS, {"target": {"name": "n"}}, WRITE, namespace="default", name="p", subresource="binding")
    return server.patch(PODS, key("p"), Patch.merge({"status": {"phase": phase}}), WRITE, subresource="status")


def test_an_object_without_blockers_is_removed_at_once(server: ApiServer) -> None:
    server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default")
    server.delete(CONFIG_MAPS, key("a"), WRITE)
    with pytest.raises(NotFound):
        server.get(CONFIG_MAPS, key("a"))


def test_finalizers_block_the_removal(server: ApiServer) -> None:
    body = deployment()
    body["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    server.create(DEPLOYMENTS, body, WRITE, namespace="default")
    marked = server.delete(DEPLOYMENTS, key("web"), WRITE)
    assert marked["metadata"]["deletionTimestamp"] == "2027-01-15T08:00:00Z"
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert marked["metadata"]["generation"] == 2
    _NOW[0] += 60
    assert server.delete(DEPLOYMENTS, key("web"), WRITE) is server.get(DEPLOYMENTS, key("web"))
    subscription = server.watch(Selection(DEPLOYMENTS), version=str(server.revision))
    for left in (["example.com/b"], None):
        server.patch(DEPLOYMENTS, key("web"), Patch.merge({"metadata": {"finalizers": left}}), WRITE)
    assert [event.change.value for event in subscription.events] == ["MODIFIED", "DELETED"]
    assert subscription.events[-1].object["metadata"]["finalizers"] == ["example.com/b"]


def test_removing_the_last_finalizer_returns_the_written_object(server: ApiServer) -> None:
    """The returned object was never stored, so it has the version of the stored one."""
    server.create(CONFIG_MAPS, config_map(finalizers=["example.com/a"]), WRITE, namespace="default")
    marked = server.delete(CONFIG_MAPS, key("a"), WRITE)
    last = Patch.merge({"metadata": {"finalizers": None, "labels": {"a": "b"}}, "data": {"k": "w"}})
    answer = server.patch(CONFIG_MAPS, key("a"), last, WRITE)
    assert (answer["data"], answer["metadata"]["labels"]) == ({"k": "w"}, {"a": "b"})
    assert "finalizers" not in answer["metadata"]
    assert answer["metadata"]["resourceVersion"] == marked["metadata"]["resourceVersion"]


def test_a_terminating_object_accepts_no_new_finalizer(server: ApiServer) -> None:
    server.create(CONFIG_MAPS, config_map(finalizers=["example.com/a"]), WRITE, namespace="default")
    server.delete(CONFIG_MAPS, key("a"), WRITE)
    more = Patch.merge({"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})
    with pytest.raises(
        Invalid, match=r'no new finalizers can be added .* found new finalizers \[\]string\{"example\.com/b"'
    ):
        server.patch(CONFIG_MAPS, key("a"), more, WRITE)


_GRACE = [
    pytest.param({}, None, 30, id="grace period of the pod"),
    pytest.param({}, 5, 5, id="requested grace period"),
    pytest.param({}, 0, None, id="no grace period"),
    pytest.param({}, -1, 1, id="negative becomes 1"),
    pytest.param({"phase": "Succeeded"}, 30, None, id="finished"),
    pytest.param({"phase": "Failed"}, None, None, id="failed"),
    pytest.param({"finalizers": ["example.com/a"]}, 0, 0, id="no grace period with finalizer"),
    pytest.param({"finalizers": ["example.com/a"]}, 5, 5, id="finalizer and grace period"),
]


@pytest.mark.parametrize(("state", "asked", "expected"), _GRACE)
def test_grace_of_running_pods(
    server: ApiServer, state: dict[str, Any], asked: int | None, expected: int | None
) -> None:
    _running(server, **state)
    server.delete(PODS, key("p"), WRITE, grace_seconds=asked)
    left = _find(server, "p")
    assert (left["metadata"]["deletionGracePeriodSeconds"] if left else None) == expected
    if left and expected:
        assert left["metadata"]["deletionTimestamp"] == f"2027-01-15T08:00:{expected:02}Z"


_AT_ONCE = [
    pytest.param(None, None, id="without a node"),
    pytest.param("Succeeded", 30, id="finished"),
    pytest.param("Running", 0, id="without grace"),
]


@pytest.mark.parametrize(("phase", "asked"), _AT_ONCE)
def test_a_pod_without_grace_gets_a_timestamp_first(server: ApiServer, phase: str | None, asked: int | None) -> None:
    if phase:
        _running(server, phase=phase)
    else:
        server.create(PODS, pod(), WRITE, namespace="default")
    before = server.revision
    subscription = server.watch(Selection(PODS), version=str(before))
    answer = server.delete(PODS, key("p"), WRITE, grace_seconds=asked)
    events = [(event.change.value, event.object["metadata"]) for event in subscription.events]
    assert [change for change, _ in events] == ["MODIFIED", "DELETED"]
    for _, metadata in events:
        assert metadata["deletionTimestamp"] == "2027-01-15T08:00:00Z"
        assert metadata["deletionGracePeriodSeconds"] == 0
        assert metadata["generation"] == 2
    assert [int(metadata["resourceVersion"]) - before for _, metadata in events] == [1, 2]
    assert answer["metadata"] == events[-1][1]
    assert _find(server, "p") is None


def test_a_dry_run_shows_the_deletion_timestamp(server: ApiServer) -> None:
    made = server.create(PODS, pod(), WRITE, namespace="default")
    assert "deletionTimestamp" in server.delete(PODS, key("p"), DRY)["metadata"]
    assert _find(server, "p") is made


def test_other_objects_get_no_timestamp(server: ApiServer) -> None:
    server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default")
    subscription = server.watch(Selection(CONFIG_MAPS), version=str(server.revision))
    assert "deletionTimestamp" not in server.delete(CONFIG_MAPS, key("a"), WRITE)["metadata"]
    assert [event.change.value for event in subscription.events] == ["DELETED"]


@pytest.mark.parametrize(
    ("after", "asked", "grace", "until"),
    [
        pytest.param(4, 20, 20, "08:00:20", id="shorter"),
        pytest.param(4, 40, 30, "08:00:30", id="longer changes nothing"),
        pytest.param(4, None, 30, "08:00:30", id="again changes nothing"),
        pytest.param(25, 10, 1, "08:00:25", id="shorter than the elapsed time"),
    ],
)
def test_grace_can_only_be_shortened(server: ApiServer, after: int, asked: int | None, grace: int, until: str) -> None:
    _running(server)
    server.delete(PODS, key("p"), WRITE)
    _NOW[0] += after
    before = server.revision
    metadata = server.delete(PODS, key("p"), WRITE, grace_seconds=asked)["metadata"]
    assert (metadata["deletionGracePeriodSeconds"], metadata["deletionTimestamp"][11:19]) == (grace, until)
    assert metadata["generation"] == 2
    assert server.revision == before + (grace != 30)


def test_zero_grace_ends_a_graceful_deletion(server: ApiServer) -> None:
    _running(server)
    server.delete(PODS, key("p"), WRITE)
    subscription = server.watch(Selection(PODS), version=str(server.revision))
    server.delete(PODS, key("p"), WRITE, grace_seconds=0)
    events = [
        (each.change.value, each.object["metadata"]["deletionGracePeriodSeconds"]) for each in subscription.events
    ]
    assert events == [("MODIFIED", 0), ("DELETED", 0)]
    assert _find(server, "p") is None


def test_the_last_finalizer_does_not_cut_grace_short(server: ApiServer) -> None:
    _running(server, finalizers=["example.com/a"])
    server.delete(PODS, key("p"), WRITE)
    server.patch(PODS, key("p"), Patch.merge({"metadata": {"finalizers": None}}), WRITE)
    assert _find(server, "p") is not None
    server.delete(PODS, key("p"), WRITE, grace_seconds=0)
    assert _find(server, "p") is None


@pytest.mark.parametrize(
    ("precondition", "message"),
    [
        pytest.param(Precondition(uid="other"), r"the UID in the precondition \(other\) does not match", id="uid"),
        pytest.param(
            Precondition(version="1"), r"the ResourceVersion in the precondition \(1\) does not", id="version"
        ),
    ],
)
def test_deletes_honour_preconditions(server: ApiServer, precondition: Precondition, message: str) -> None:
    server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default")
    with pytest.raises(Conflict, match=message):
        server.delete(CONFIG_MAPS, key("a"), WRITE, precondition=precondition)
    metadata = server.get(CONFIG_MAPS, key("a"))["metadata"]
    exactly = Precondition(metadata["resourceVersion"], metadata["uid"])
    server.delete(CONFIG_MAPS, key("a"), WRITE, precondition=exactly)


_PROPAGATION = [
    pytest.param([], Propagation.BACKGROUND, None, id="background"),
    pytest.param([], Propagation.FOREGROUND, ["foregroundDeletion"], id="foreground"),
    pytest.param([], Propagation.ORPHAN, ["orphan"], id="orphan"),
    pytest.param([], None, None, id="no policy"),
    pytest.param(["orphan"], None, ["orphan"], id="no policy with an existing finalizer"),
    pytest.param(["orphan"], Propagation.BACKGROUND, None, id="other policy before"),
    pytest.param(["orphan"], Propagation.FOREGROUND, ["foregroundDeletion"], id="changed"),
    pytest.param(["example.com/a"], Propagation.ORPHAN, ["example.com/a", "orphan"], id="with other finalizers"),
]


@pytest.mark.parametrize(("before", "propagation", "after"), _PROPAGATION)
def test_propagation_policies_become_finalizers(
    server: ApiServer, before: list[str], propagation: Propagation | None, after: list[str] | None
) -> None:
    server.create(CONFIG_MAPS, config_map(finalizers=before), WRITE, namespace="default")
    server.delete(CONFIG_MAPS, key("a"), WRITE, propagation=propagation)
    items = server.list(Selection(CONFIG_MAPS)).items
    assert (items[0]["metadata"]["finalizers"] if items else None) == after


def test_a_job_orphans_its_pods_by_default(server: ApiServer) -> None:
    """A delete of a Job without a propagation policy orphans its pods."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app"}]}}
    server.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": template}}, WRITE, namespace="default")
    assert server.delete(JOBS, key("j"), WRITE)["metadata"]["finalizers"] == ["orphan"]


def test_deletecollection_deletes_selected_objects(server: ApiServer) -> None:
    for name in ("a", "b", "c"):
        server.create(CONFIG_MAPS, config_map(name, labels={"n": name}), WRITE, namespace="default")
    gone = server.deletecollection(Selection(CONFIG_MAPS, labels="n notin (b)"), WRITE)
    assert [item["metadata"]["name"] for item in gone] == ["a", "c"]
    assert [Key("default", "b")] == [
        Key("default", item["metadata"]["name"]) for item in server.list(Selection(CONFIG_MAPS)).items
    ]
