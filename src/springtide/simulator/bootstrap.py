"""Bootstraps a fresh cluster: installs our namespace and CRDs, then creates the user's objects.

Simulations and dry runs share this code, so a cluster accepts exactly what a dry run accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from springtide.apis.crds import Flavour, all_crds
from springtide.apiserver.conversion import convert
from springtide.apiserver.kinds import collection_id
from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import ApiError, NotFound
from springtide.cluster.manager import NAMESPACE
from springtide.cluster.resources import Key, Object, Resource, key_of
from springtide.cluster.transport import Patch, Write

USER = "user"
DEFAULT_NAMESPACE = "default"

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_SETUP = Write("setup", "the cluster is made")


def install(server: ApiServer) -> None:
    """Install our namespace and our CRDs; CRDs restored from a journal are updated."""
    if not _exists(server, NAMESPACE):
        server.create(_NAMESPACES, {"metadata": {"name": NAMESPACE}}, _SETUP)
    for definition in all_crds(Flavour.EXTENDED):
        present = server.find(collection_id(_CRDS), key_of(definition))
        if present is None:
            server.create(_CRDS, definition, _SETUP)
        else:
            # The conversion webhook is configured by the running cluster, unless the CRD itself configures one.
            spec = {"conversion": present["spec"]["conversion"]} | definition["spec"]
            replacement = {"op": "replace", "path": "/spec", "value": spec}
            server.patch(_CRDS, key_of(definition), Patch.json(replacement), _SETUP)


def resource_of(server: ApiServer, kind: str, api_version: str = "") -> Resource:
    """Find the resource of a kind; `api_version` decides where several groups have the kind."""
    catalogue = server.catalogue
    if api_version:
        served = catalogue.of_kind(api_version, kind)
        found = [] if served is None else [served]
    else:
        found = [served for served in catalogue.stored() if served.resource.kind == kind]
    if not found:
        msg = f'no matches for kind "{kind}"' + (f' in version "{api_version}"' if api_version else "")
        raise NotFound(msg)
    return found[0].resource


def create_as_user(server: ApiServer, item: Object, because: str = "") -> None:
    """Create an object as the user would, creating its namespace if that is missing.

    An existing namespace, such as `default`, gets the labels and annotations of the manifest.
    """
    write = Write(USER, because)
    resource = resource_of(server, item["kind"], item["apiVersion"])
    metadata = item["metadata"]
    namespace = (metadata.get("namespace") or DEFAULT_NAMESPACE) if resource.namespaced else ""
    if namespace and not _exists(server, namespace):
        server.create(_NAMESPACES, {"metadata": {"name": namespace}}, write)
    if resource == _NAMESPACES and _exists(server, metadata.get("name", "")):
        wanted = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
        server.patch(resource, Key("", metadata["name"]), Patch.merge({"metadata": wanted}), write)
    else:
        server.create(resource, item, write, namespace=namespace)


def dry_run_refusals(objects: Iterable[Object], now: int) -> list[tuple[Object, ApiError]]:
    """Create the objects in a throw-away API server; return those that it refuses, each with its error."""
    server = ApiServer(now=lambda: now, random=Random(0), converter=convert)  # noqa: S311 - no secret
    install(server)
    refused = []
    for item in objects:
        try:
            create_as_user(server, item)
        except ApiError as answer:
            refused.append((item, answer))
    return refused


def _exists(server: ApiServer, namespace: str) -> bool:
    return server.find(collection_id(_NAMESPACES), Key("", namespace)) is not None
