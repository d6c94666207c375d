"""Watches: from where they begin, what they tell, and how objects come into and fall out of what is watched."""

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


def _now(play: Session) -> str:
    """Give the version up to which everything has happened."""
    return str(play.quietly("GET", _MAPS).body["metadata"]["resourceVersion"])


@case
def from_a_version_tells_what_came_after(play: Session) -> None:
    play.prepare(_MAPS, config_map("before"))
    version = _now(play)
    play.create(_MAPS, config_map())
    play.patch(_PATH, {"data": {"a": "2"}})
    play.delete(_PATH)
    play.watch(_MAPS, 3, resourceVersion=version)


@case
def without_a_version_begins_with_what_is_there(play: Session) -> None:
    for name in ("b", "a"):
        play.prepare(_MAPS, config_map(name))
    with play.watching(_MAPS) as read:
        read(2)
        play.create(_MAPS, config_map("c"))
        read(1)


@case
def from_zero_begins_with_what_is_there(play: Session) -> None:
    play.prepare(_MAPS, config_map())
    play.until(lambda answer: len(answer.body["items"]) == 1, _MAPS, resourceVersion="0")
    play.watch(_MAPS, 1, resourceVersion="0")


@case
def a_write_is_told_while_it_happens(play: Session) -> None:
    with play.watching(_MAPS, resourceVersion=_now(play)) as read:
        play.create(_MAPS, config_map())
        read(1)
        play.patch(_PATH, {"data": {"a": "2"}})
        read(1)
        play.delete(_PATH)
        read(1)


@case
def a_write_that_changes_nothing_is_not_told(play: Session) -> None:
    play.prepare(_MAPS, config_map())
    version = _now(play)
    play.patch(_PATH, {"data": {"a": "1"}})
    play.patch(_PATH, {"data": {"a": "2"}})
    play.watch(_MAPS, 1, resourceVersion=version)


@case
def a_trial_is_not_told(play: Session) -> None:
    version = _now(play)
    play.create(_MAPS, config_map("trial"), dryRun="All")
    play.create(_MAPS, config_map())
    play.watch(_MAPS, 1, resourceVersion=version)


@case
def an_object_enters_and_leaves_a_selection(play: Session) -> None:
    version = _now(play)
    play.create(_MAPS, config_map(labels={"tier": "back"}))
    for tier in ("front", "front", "back"):
        play.patch(_PATH, {"metadata": {"labels": {"tier": tier, "step": f"to-{tier}-{len(play.steps)}"}}})
    play.delete(_PATH)
    play.create(_MAPS, config_map("last", labels={"tier": "front"}))
    play.watch(_MAPS, 4, resourceVersion=version, labelSelector="tier=front")


@case
def a_pod_enters_the_view_of_its_node(play: Session) -> None:
    version = _now(play)
    play.prepare("v1/pods", pod("other"))
    play.prepare("v1/pods", pod())
    binding = {"target": {"kind": "Node", "name": "machine"}}
    play.create("v1/pods/web/binding", binding | {"metadata": {"name": "web"}})
    play.watch("v1/pods", 1, resourceVersion=version, fieldSelector="spec.nodeName=machine")


@case
def one_object_is_watched_by_its_name(play: Session) -> None:
    version = _now(play)
    for name in ("other", "settings"):
        play.prepare(_MAPS, config_map(name))
    play.watch(_MAPS, 1, resourceVersion=version, fieldSelector="metadata.name=settings")


@case
def the_path_of_an_object_watches_it_too(play: Session) -> None:
    play.prepare(_MAPS, config_map())
    play.prepare(_MAPS, config_map("tail"))
    play.watch(_PATH, 1)


@case
def a_deletion_that_waits_is_a_change_first(play: Session) -> None:
    play.prepare(_MAPS, config_map(finalizers=["example.com/hold"]))
    version = _now(play)
    play.delete(_PATH)
    play.patch(_PATH, {"metadata": {"finalizers": None}})
    play.watch(_MAPS, 2, resourceVersion=version)


@case
def initial_events_end_with_a_bookmark(play: Session) -> None:
    for name in ("b", "a"):
        play.prepare(_MAPS, config_map(name))
    play.watch(_MAPS, 3, **_INITIAL)


@case
def initial_events_of_nothing_are_a_bookmark(play: Session) -> None:
    play.watch("apps/v1/deployments", 1, **_INITIAL)


@case
def initial_events_and_what_follows(play: Session) -> None:
    play.prepare(_MAPS, config_map("first", labels={"x": "y"}))
    with play.watching(_MAPS, labelSelector="x=y", **_INITIAL) as read:
        read(2)
        play.create(_MAPS, config_map("second", labels={"x": "y"}))
        read(1)


@case
def ends_after_its_time(play: Session) -> None:
    play.prepare(_MAPS, config_map())
    play.watch(_MAPS, 2, timeoutSeconds=1)


@case
def another_group_is_watched_alike(play: Session) -> None:
    version = _now(play)
    play.create("apps/v1/deployments", deployment())
    play.patch("apps/v1/deployments/web/scale", {"spec": {"replicas": 2}})
    play.patch("apps/v1/deployments/web/status", {"status": {"replicas": 2}})
    play.watch("apps/v1/deployments", 3, resourceVersion=version)


@case
def as_a_table(play: Session) -> None:
    version = _now(play)
    for name in ("a", "b"):
        play.prepare(_MAPS, config_map(name))
    play.watch(_MAPS, 2, resourceVersion=version, accept=TABLE)


@case
def of_metadata_only(play: Session) -> None:
    version = _now(play)
    play.prepare(_MAPS, config_map())
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    play.watch(_MAPS, 1, resourceVersion=version, accept=accept)


@each(
    {
        "a version in words": {"resourceVersion": "new"},
        "initial events without match": {"sendInitialEvents": True, "allowWatchBookmarks": True},
        "match without initial events": {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
        "exact match": _INITIAL | {"resourceVersionMatch": "Exact"},
        "a broken selector": {"labelSelector": "a b"},
        "an unknown field": {"fieldSelector": "spec.colour=red"},
    }
)
def is_refused_with(play: Session, query: dict[str, Any]) -> None:
    play.get(_MAPS, watch=True, timeoutSeconds=1, **query)


@case
def of_a_kind_that_does_not_exist(play: Session) -> None:
    play.get("example.com/v1/nothings", watch=True, timeoutSeconds=1)


@case
def of_a_selection_by_a_namespace_that_does_not_exist_is_silent(play: Session) -> None:
    play.watch("/api/v1/namespaces/no-such-namespace/configmaps", 1, timeoutSeconds=1)
