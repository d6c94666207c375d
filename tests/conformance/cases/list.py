"""Lists: pages, versions and media types."""

from __future__ import annotations

from tests.conformance.case import case, each
from tests.conformance.samples import config_map, deployment
from tests.conformance.session import Session

_MAPS = "v1/configmaps"
_NAMES = ("a", "b", "c", "d", "e")


def _some(session: Session) -> None:
    for name in _NAMES:
        session.prepare(_MAPS, config_map(name, labels={"odd": str(name in "ace").lower()}))


@case
def empty(session: Session) -> None:
    session.get(_MAPS)
    session.get("apps/v1/deployments")


@case
def some_objects(session: Session) -> None:
    for name in ("b", "a"):
        session.prepare(_MAPS, config_map(name))
    session.get(_MAPS)


@case
def of_another_group(session: Session) -> None:
    session.prepare("apps/v1/deployments", deployment())
    session.get("apps/v1/deployments")


@case
def pages(session: Session) -> None:
    _some(session)
    page = session.get(_MAPS, limit=2)
    while token := page["metadata"].get("continue"):
        page = session.get(_MAPS, limit=2, **{"continue": token})


@case
def page_of_exactly_all_objects(session: Session) -> None:
    _some(session)
    session.get(_MAPS, limit=5)
    session.get(_MAPS, limit=500)


@case
def pages_of_a_selection_have_no_remaining_count(session: Session) -> None:
    _some(session)
    session.get(_MAPS, limit=2, labelSelector="odd=true")


@case
def pages_are_consistent(session: Session) -> None:
    _some(session)
    page = session.get(_MAPS, limit=4)
    session.delete(f"{_MAPS}/e")
    session.prepare(_MAPS, config_map("f"))
    session.get(_MAPS, limit=4, **{"continue": page["metadata"]["continue"]})


@each(
    {
        "invalid continue token": {"continue": "nonsense"},
        "token and version": {"continue": "nonsense", "resourceVersion": "1"},
        "limit of a wrong type": {"limit": "few"},
        "version of a wrong type": {"resourceVersion": "new"},
        "match without version": {"resourceVersionMatch": "Exact"},
        "unknown match": {"resourceVersion": "1", "resourceVersionMatch": "Roughly"},
        "exact version of zero": {"resourceVersion": "0", "resourceVersionMatch": "Exact"},
        "initial events without watch": {"sendInitialEvents": "true"},
        "wrong timeout": {"timeoutSeconds": "soon"},
    }
)
def is_rejected_with(session: Session, query: dict[str, str]) -> None:
    session.get(_MAPS, **query)


@case
def a_negative_limit_is_ignored(session: Session) -> None:
    _some(session)
    session.get(_MAPS, limit=-1)


@case
def at_any_version(session: Session) -> None:
    made = session.prepare(_MAPS, config_map())
    session.until(lambda answer: len(answer.body["items"]) == 1, _MAPS, resourceVersion="0")
    session.get(_MAPS, resourceVersion="0")
    session.get(_MAPS, resourceVersion=made["metadata"]["resourceVersion"], resourceVersionMatch="NotOlderThan")


@case
def at_an_exact_version(session: Session) -> None:
    made = session.prepare(_MAPS, config_map())
    session.delete(f"{_MAPS}/settings")
    session.get(_MAPS, resourceVersion=made["metadata"]["resourceVersion"], resourceVersionMatch="Exact")
    session.get(_MAPS)


@case
def at_a_future_version(session: Session) -> None:
    session.get(_MAPS, resourceVersion="99999999999", resourceVersionMatch="Exact", timeoutSeconds=1)


@case
def get_of_one_at_any_version(session: Session) -> None:
    session.prepare(_MAPS, config_map())
    session.until(lambda answer: answer.status == 200, f"{_MAPS}/settings", resourceVersion="0")
    session.get(f"{_MAPS}/settings", resourceVersion="0")
    session.get(f"{_MAPS}/settings", resourceVersion="new")


@case
def in_yaml(session: Session) -> None:
    session.prepare(_MAPS, config_map())
    session.get(f"{_MAPS}/nobody", accept="application/yaml")


@case
def of_metadata_only(session: Session) -> None:
    session.prepare(_MAPS, config_map(labels={"a": "b"}))
    one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    session.get(f"{_MAPS}/settings", accept=one)
    session.get(_MAPS, accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
    session.get(f"{_MAPS}/nobody", accept=one)


@each(
    {
        "unknown type": "application/toml",
        "unknown form": "application/json;as=Poem;g=meta.k8s.io;v=v1",
        "second choice": "application/toml, application/json",
        "anything": "*/*",
        "any application": "application/*",
        "form of an unknown group": "application/json;as=Table;g=example.com;v=v1",
    }
)
def accepted_media_type(session: Session, accept: str) -> None:
    session.get(_MAPS, accept=accept)
