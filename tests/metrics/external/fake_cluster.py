"""A transport to a few objects that are read and patched by name, and a front proxy."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from typing import Any, cast

from tests.e2e.identities import make_client

from springtide.cluster.certificates import CertificatePair, make_authority
from springtide.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.transport import UNCONDITIONAL, ListPage, Patch, PatchType, Precondition, Transport, Write
from springtide.metrics.external.app import REVIEWS
from springtide.metrics.external.request_header import CONFIG_MAPS, SOURCE

NOW = int(time.time())
AUTHORITY = make_authority("front-proxy", now=NOW, seconds=86_400)
PROXY = make_client(AUTHORITY, "front-proxy-client")


def told_by(authority: CertificatePair = AUTHORITY, **changed: str | None) -> Object:
    """Make the ConfigMap with the request header settings; underscores in names are dashes."""
    data: dict[str, str | None] = {
        "requestheader-client-ca-file": authority.certificate.decode(),
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        **{name.replace("_", "-"): value for name, value in changed.items()},
    }
    return {
        "metadata": {"name": SOURCE.name, "namespace": SOURCE.namespace},
        "data": {name: value for name, value in data.items() if value is not None},
    }


class FakeCluster:
    """A transport to a cluster without controllers."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, Key], Object] = {}
        self.reviews: list[Object] = []
        """The specs of all SubjectAccessReviews."""
        self.verdict: Callable[[Object], Object] = lambda spec: {"allowed": True}
        self.failing: ClusterError | None = None
        """The status of all reviews."""
        self.before_patch: Callable[[], None] = lambda: None
        self._version = 0

    @property
    def transport(self) -> Transport:
        """Return it as a transport: it implements the methods that these tests use."""
        return cast("Transport", self)

    def put(self, resource: Resource, item: Object) -> Object:
        """Add an object."""
        self._version += 1
        made = copy.deepcopy(item)
        made["metadata"]["resourceVersion"] = str(self._version)
        self.objects[resource.plural, _key(made)] = made
        return made

    def tell(self, item: Object) -> None:
        """Add the ConfigMap of the front proxy."""
        self.put(CONFIG_MAPS, item)

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        self._answer()
        found = self.objects.get((resource.plural, key))
        if found is None:
            raise NotFound(f'{resource} "{key.name}" not found')
        return copy.deepcopy(found)

    async def list(self, selection: Selection, **how: Any) -> ListPage:
        self._answer()
        label, _, value = selection.labels.partition("=")
        items = [
            copy.deepcopy(item)
            for (plural, key), item in sorted(self.objects.items())
            if plural == selection.resource.plural
            and key.namespace == selection.namespace
            and (item["metadata"].get("labels") or {}).get(label) == value
        ]
        return ListPage(items, str(self._version))

    async def create(
        self, resource: Resource, body: Object, write: Write, *, namespace: str = "", **how: Any
    ) -> Object:
        self._answer()
        write.permit()
        if resource == REVIEWS:
            self.reviews.append(body["spec"])
            return {**body, "status": self.verdict(body["spec"])}
        if (resource.plural, _key(body)) in self.objects:
            raise AlreadyExists(f'{resource} "{body["metadata"]["name"]}" already exists')
        return self.put(resource, body)

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Patch,
        write: Write,
        *,
        precondition: Precondition = UNCONDITIONAL,
        **how: Any,
    ) -> Object:
        self.before_patch()
        self._answer()
        found = await self.get(resource, key)
        write.permit()
        if precondition.version and precondition.version != found["metadata"]["resourceVersion"]:
            raise Conflict("the object has been modified")
        if patch.type is PatchType.MERGE:
            _merge(found, patch.body)
        else:
            for operation in patch.body:
                *parents, last = operation["path"].strip("/").split("/")
                place = found
                for name in parents:
                    place = place[name]
                place[last] = operation["value"]
        return self.put(resource, json.loads(json.dumps(found)))

    def _answer(self) -> None:
        if self.failing is not None:
            raise self.failing


def _key(item: Object) -> Key:
    return Key(item["metadata"].get("namespace", ""), item["metadata"]["name"])


def _merge(into: Object, body: Object) -> None:
    for name, value in body.items():
        if value is None:
            into.pop(name, None)
        elif isinstance(value, dict):
            _merge(into.setdefault(name, {}), value)
        else:
            into[name] = value
