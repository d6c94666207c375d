"""Updates without a stored object: some kinds are created, others are not found."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.objects import BUDGETS, CONFIG_MAPS, DRY, SERVICES, WRITE, key, make_server
from tests.apiserver.patches.samples import owners

from springtide.cluster.errors import BadRequest, Conflict, Invalid, NotFound
from springtide.cluster.resources import Key, Object, Resource

_LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
_EVENTS = Resource("", "v1", "events", "Event")
_LIMITS = Resource("", "v1", "limitranges", "LimitRange")
_SPEC = {"holderIdentity": "me"}


def _body(spec: Any = None, **metadata: Any) -> Object:
    return {"metadata": {"name": "a", **metadata}} | ({} if spec is None else {"spec": spec})


@pytest.mark.parametrize(
    ("resource", "body"),
    [
        pytest.param(_LEASES, _body(_SPEC), id="lease"),
        pytest.param(_LEASES, _body(_SPEC, resourceVersion="5"), id="lease with a version"),
        pytest.param(_LIMITS, _body({"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}), id="limit range"),
        pytest.param(SERVICES, _body({"ports": [{"port": 80}]}), id="service"),
        pytest.param(
            _EVENTS, _body() | {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}}, id="event"
        ),
    ],
)
def test_creates(resource: Resource, body: Object) -> None:
    server = make_server()
    before = server.revision

    made = server.update(resource, key("a"), body, WRITE)

    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == ("a", "default")
    assert int(made["metadata"]["resourceVersion"]) == server.revision == before + 1
    assert server.get(resource, key("a")) is made
    assert list(owners(made)) == ["tester Update"]


def test_a_dry_run_creates_nothing() -> None:
    server = make_server()
    before = server.revision

    assert server.update(_LEASES, key("a"), _body(_SPEC), DRY)["spec"] == _SPEC
    assert server.revision == before


@pytest.mark.parametrize(
    ("resource", "place", "body", "error", "message"),
    [
        pytest.param(CONFIG_MAPS, key("a"), _body(), NotFound, 'configmaps "a" not found', id="another kind"),
        pytest.param(BUDGETS, key("a"), _body({}), NotFound, 'budgets.policy "a" not found', id="custom kind"),
        pytest.param(_LEASES, Key("nowhere", "a"), _body(_SPEC), NotFound, 'namespaces "nowhere"', id="no namespace"),
        pytest.param(
            _LEASES,
            key("a"),
            _body(_SPEC, uid="u"),
            Conflict,
            "Precondition failed: UID in precondition: u, UID in object meta: $",
            id="another uid",
        ),
        pytest.param(_LEASES, key("b"), _body(_SPEC), BadRequest, r"\(a\) does not match the name", id="another name"),
        pytest.param(CONFIG_MAPS, key("b"), _body(), BadRequest, r"\(a\) does not match the name", id="generated name"),
        pytest.param(_LEASES, key("a"), {"spec": _SPEC}, BadRequest, "name must be provided", id="no name"),
        pytest.param(
            _LEASES, key("a"), _body({"leaseDurationSeconds": -1}), Invalid, "must be greater than 0", id="config map"
        ),
    ],
)
def test_refuses(resource: Resource, place: Key, body: Object, error: type[Exception], message: str) -> None:
    server = make_server()
    before = server.revision

    with pytest.raises(error, match=message):
        server.update(resource, place, body, WRITE)

    assert server.revision == before


def test_an_update_of_the_status_creates_nothing() -> None:
    with pytest.raises(NotFound, match='services "a" not found'):
        make_server().update(SERVICES, key("a"), _body({"ports": [{"port": 80}]}), WRITE, subresource="status")
