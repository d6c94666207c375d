"""Watches: where they start, what they send, and objects that enter and leave a selector."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import config_map, deployment, pod
from tests.conformance.session import TABLE, Session

_MAPS = "v1/configmaps"
_PATH = f"{_MAPS}/settings"
_INITIAL: dict[str, Any] = {
    "sendInitialEvents": True,
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": True,
}


def _now(session: Session) -> str:
    """Return the current resourceVersion."""
    return str(session.send_unrecorded("GET", _MAPS).body["metadata"]["resourceVersion"])


@case
def from_a_version(session: Session) -> None:
    session.prepare(_MAPS, config_map("before"))
    version = _now(session)
    session.create(_MAPS, config_map())
    session.patch(_PATH, {"data": {"a": "2"}})
    session.delete(_PATH)
    session.watch(_MAPS, 3, resourceVersion=version)


@case
def without_a_version(session: Session) -> None:
    for name in ("b", "a"):
        session.prepare(_MAPS, config_map(name))
    with session.watching(_MAPS) as read:
        read(2)
        session.create(_MAPS, config_map("c"))
        read(1)


@case
def from_zero(session: Session) -> None:
    session.prepare(_MAPS, config_map())
    session.until(lambda answer: len(answer.body["items"]) == 1, _MAPS, resourceVersion="0")
    session.watch(_MAPS, 1, resourceVersion="0")


@case
def a_write_is_streamed(session: Session) -> None:
    with session.watching(_MAPS, resourceVersion=_now(session)) as read:
        session.create(_MAPS, config_map())
        read(1)
        session.patch(_PATH, {"data": {"a": "2"}})
        read(1)
        session.delete(_PATH)
        read(1)


@case
def a_write_without_effect_is_not_sent(session: Session) -> None:
    session.prepare(_MAPS, config_map())
    version = _now(session)
    session.patch(_PATH, {"data": {"a": "1"}})
    session.patch(_PATH, {"data": {"a": "2"}})
    session.watch(_MAPS, 1, resourceVersion=version)


@case
def a_dry_run_is_not_sent(session: Session) -> None:
    version = _now(session)
    session.create(_MAPS, config_map("trial"), dryRun="All")
    session.create(_MAPS, config_map())
    session.watch(_MAPS, 1, resourceVersion=version)


@case
def an_object_enters_and_leaves_a_selector(session: Session) -> None:
    version = _now(session)
    session.create(_MAPS, config_map(labels={"tier": "back"}))
    for tier in ("front", "front", "back"):
        session.patch(_PATH, {"metadata": {"labels": {"tier": tier, "step": f"to-{tier}-{len(session.steps)}"}}})
    session.delete(_PATH)
    session.create(_MAPS, config_map("last", labels={"tier": "front"}))
    session.watch(_MAPS, 4, resourceVersion=version, labelSelector="tier=front")


@case
def a_pod_enters_the_selector_of_its_node(session: Session) -> None:
    version = _now(session)
    session.prepare("v1/pods", pod("other"))
    session.prepare("v1/pods", pod())
    binding = {"target": {"kind": "Node", "name": "machine"}}
    session.create("v1/pods/web/binding", binding | {"metadata": {"name": "web"}})
    session.watch("v1/pods", 1, resourceVersion=version, fieldSelector="spec.nodeName=machine")


@case
def one_object_by_name(session: Session) -> None:
    version = _now(session)
    for name in ("other", "settings"):
        session.prepare(_MAPS, config_map(name))
    session.watch(_MAPS, 1, resourceVersion=version, fieldSelector="metadata.name=settings")


@case
def one_object_by_path(session: Session) -> None:
    session.prepare(_MAPS, config_map())
    session.prepare(_MAPS, config_map("tail"))
    session.watch(_PATH, 1)


@case
def a_pending_deletion_is_a_modification(session: Session) -> None:
    session.prepare(_MAPS, config_map(finalizers=["example.com/hold"]))
    version = _now(session)
    session.delete(_PATH)
    session.patch(_PATH, {"metadata": {"finalizers": None}})
    session.watch(_MAPS, 2, resourceVersion=version)


@case
def initial_events_end_with_a_bookmark(session: Session) -> None:
    for name in ("b", "a"):
        session.prepare(_MAPS, config_map(name))
    session.watch(_MAPS, 3, **_INITIAL)


@case
def initial_events_of_an_empty_list(session: Session) -> None:
    session.watch("apps/v1/deployments", 1, **_INITIAL)


@case
def initial_events_and_later_ones(session: Session) -> None:
    session.prepare(_MAPS, config_map("first", labels={"x": "y"}))
    with session.watching(_MAPS, labelSelector="x=y", **_INITIAL) as read:
        read(2)
        session.create(_MAPS, config_map("second", labels={"x": "y"}))
        read(1)


@case
def ends_after_the_timeout(session: Session) -> None:
    session.prepare(_MAPS, config_map())
    session.watch(_MAPS, 2, timeoutSeconds=1)


@case
def another_group(session: Session) -> None:
    version = _now(session)
    session.create("apps/v1/deployments", deployment())
    session.patch("apps/v1/deployments/web/scale", {"spec": {"replicas": 2}})
    session.patch("apps/v1/deployments/web/status", {"status": {"replicas": 2}})
    session.watch("apps/v1/deployments", 3, resourceVersion=version)


@case
def as_a_table(session: Session) -> None:
    version = _now(session)
    for name in ("a", "b"):
        session.prepare(_MAPS, config_map(name))
    session.watch(_MAPS, 2, resourceVersion=version, accept=TABLE)


@case
def of_metadata_only(session: Session) -> None:
    version = _now(session)
    session.prepare(_MAPS, config_map())
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    session.watch(_MAPS, 1, resourceVersion=version, accept=accept)


@each(
    {
        "a version of a wrong type": {"resourceVersion": "new"},
        "initial events without match": {"sendInitialEvents": True, "allowWatchBookmarks": True},
        "match without initial events": {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
        "exact match": _INITIAL | {"resourceVersionMatch": "Exact"},
        "a broken selector": {"labelSelector": "a b"},
        "an unknown field": {"fieldSelector": "spec.colour=red"},
    }
)
def is_rejected_with(session: Session, query: dict[str, Any]) -> None:
    session.get(_MAPS, watch=True, timeoutSeconds=1, **query)


@case
def of_a_missing_kind(session: Session) -> None:
    session.get("example.com/v1/nothings", watch=True, timeoutSeconds=1)


@case
def of_a_missing_namespace(session: Session) -> None:
    session.watch("/api/v1/namespaces/no-such-namespace/configmaps", 1, timeoutSeconds=1)
