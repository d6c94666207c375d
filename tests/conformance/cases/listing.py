"""Lists: their shape, their pages, and the versions that one can ask for."""

from __future__ import annotations

from tests.conformance.case import case, each
from tests.conformance.samples import config_map, deployment
from tests.conformance.session import Session

_MAPS = "v1/configmaps"
_NAMES = ("a", "b", "c", "d", "e")


def _some(play: Session) -> None:
    for name in _NAMES:
        play.prepare(_MAPS, config_map(name, labels={"odd": str(name in "ace").lower()}))


@case
def of_nothing(play: Session) -> None:
    play.get(_MAPS)
    play.get("apps/v1/deployments")


@case
def of_some(play: Session) -> None:
    for name in ("b", "a"):
        play.prepare(_MAPS, config_map(name))
    play.get(_MAPS)


@case
def of_another_group(play: Session) -> None:
    play.prepare("apps/v1/deployments", deployment())
    play.get("apps/v1/deployments")


@case
def page_by_page(play: Session) -> None:
    _some(play)
    page = play.get(_MAPS, limit=2)
    while token := page["metadata"].get("continue"):
        page = play.get(_MAPS, limit=2, **{"continue": token})


@case
def page_of_exactly_all(play: Session) -> None:
    _some(play)
    play.get(_MAPS, limit=5)
    play.get(_MAPS, limit=500)


@case
def pages_of_a_selection_do_not_tell_what_remains(play: Session) -> None:
    _some(play)
    play.get(_MAPS, limit=2, labelSelector="odd=true")


@case
def a_later_page_shows_the_past(play: Session) -> None:
    _some(play)
    page = play.get(_MAPS, limit=4)
    play.delete(f"{_MAPS}/e")
    play.prepare(_MAPS, config_map("f"))
    play.get(_MAPS, limit=4, **{"continue": page["metadata"]["continue"]})


@each(
    {
        "token of nonsense": {"continue": "nonsense"},
        "token and version": {"continue": "nonsense", "resourceVersion": "1"},
        "limit in words": {"limit": "few"},
        "version in words": {"resourceVersion": "new"},
        "match without version": {"resourceVersionMatch": "Exact"},
        "unknown match": {"resourceVersion": "1", "resourceVersionMatch": "Roughly"},
        "exact version of zero": {"resourceVersion": "0", "resourceVersionMatch": "Exact"},
        "initial events without watch": {"sendInitialEvents": "true"},
        "wrong timeout": {"timeoutSeconds": "soon"},
    }
)
def is_refused_with(play: Session, query: dict[str, str]) -> None:
    play.get(_MAPS, **query)


@case
def a_limit_below_zero_is_none(play: Session) -> None:
    _some(play)
    play.get(_MAPS, limit=-1)


@case
def at_any_version(play: Session) -> None:
    made = play.prepare(_MAPS, config_map())
    play.until(lambda answer: len(answer.body["items"]) == 1, _MAPS, resourceVersion="0")
    play.get(_MAPS, resourceVersion="0")
    play.get(_MAPS, resourceVersion=made["metadata"]["resourceVersion"], resourceVersionMatch="NotOlderThan")


@case
def at_an_exact_version(play: Session) -> None:
    made = play.prepare(_MAPS, config_map())
    play.delete(f"{_MAPS}/settings")
    play.get(_MAPS, resourceVersion=made["metadata"]["resourceVersion"], resourceVersionMatch="Exact")
    play.get(_MAPS)


@case
def at_a_version_of_the_future(play: Session) -> None:
    play.get(_MAPS, resourceVersion="99999999999", resourceVersionMatch="Exact", timeoutSeconds=1)


@case
def get_of_one_at_any_version(play: Session) -> None:
    play.prepare(_MAPS, config_map())
    play.until(lambda answer: answer.status == 200, f"{_MAPS}/settings", resourceVersion="0")
    play.get(f"{_MAPS}/settings", resourceVersion="0")
    play.get(f"{_MAPS}/settings", resourceVersion="new")


@case
def in_yaml(play: Session) -> None:
    play.prepare(_MAPS, config_map())
    play.get(f"{_MAPS}/nobody", accept="application/yaml")


@case
def of_metadata_only(play: Session) -> None:
    play.prepare(_MAPS, config_map(labels={"a": "b"}))
    one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    play.get(f"{_MAPS}/settings", accept=one)
    play.get(_MAPS, accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
    play.get(f"{_MAPS}/nobody", accept=one)


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
def accepting(play: Session, accept: str) -> None:
    play.get(_MAPS, accept=accept)
