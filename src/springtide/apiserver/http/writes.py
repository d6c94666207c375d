"""The writing verbs: parses the request, calls the API server, and builds the response."""

from __future__ import annotations

from dataclasses import replace

from springtide.apiserver.admission import User, WriteExecutor
from springtide.apiserver.deletion import is_deletion_blocked
from springtide.apiserver.http.bodies import BodyDecoder, decoded, from_patch, from_yaml, media_of
from springtide.apiserver.http.field_validation import Checked, check_apply, check_object, check_patch
from springtide.apiserver.http.list_watch import selection_of
from springtide.apiserver.http.requests import (
    DeleteOptions,
    HttpApiRequest,
    delete_options,
    field_validation,
    force_option,
    list_options,
    write_of,
)
from springtide.apiserver.http.responses import (
    Response,
    UnsupportedMedia,
    json_response,
    unsupported_media,
    warning_headers,
)
from springtide.apiserver.http.routes import RequestTarget, wrong_method
from springtide.apiserver.http.views import CLOSING, ObjectView
from springtide.apiserver.kinds import collection_id
from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import StatusDetails
from springtide.cluster.resources import Object
from springtide.cluster.transport import ListPage, Patch, PatchType

_SUCCESS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
_RETURN_OBJECT = frozenset(
    (
        "CSINode",
        "Namespace",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodTemplate",
        "ResourceQuota",
        "Service",
        "ServiceAccount",
        "StorageClass",
        "VolumeAttachment",
    )
)
"""Built-in kinds whose deletion returns the object; others return a success status."""

_CREATE_ONLY = ("binding", "eviction")
"""Subresources that support create only."""
_OBJECT_SUBRESOURCES = ("", "status", "finalize")
"""Subresources whose body has the kind of the object."""
_EXPECTED = {"scale": "Scale", "eviction": "Eviction", "binding": "Binding"}


class WriteHandlers:
    """Calls the API server for writing requests."""

    def __init__(self, server: ApiServer, executor: WriteExecutor, bodies: BodyDecoder) -> None:
        self._server = server
        self._executor = executor
        self._bodies = bodies

    async def write(self, request: HttpApiRequest, target: RequestTarget, user: User, view: ObjectView) -> Response:
        """Handle a writing request."""
        verbs = target.kind.verbs
        match request.method:
            case "POST" if target.subresource in _CREATE_ONLY or (not target.name and "create" in verbs):
                return await self._create(request, target, user, view)
            case "PUT" if target.name and target.subresource not in _CREATE_ONLY and "update" in verbs:
                return await self._update(request, target, user, view)
            case "PATCH" if target.name and target.subresource not in _CREATE_ONLY and "patch" in verbs:
                return await self._patch(request, target, user, view)
            case "DELETE" if target.name and not target.subresource and "delete" in verbs:
                return await self._delete(request, target, user, view)
            case "DELETE" if not target.name and "deletecollection" in verbs:
                return await self._delete_all(request, target, user, view)
            case _:
                raise wrong_method()

    async def _create(self, request: HttpApiRequest, target: RequestTarget, user: User, view: ObjectView) -> Response:
        write = write_of(request, "Create")
        body, warnings = await self._object(request, target, "Create")
        result = await self._executor(
            lambda: self._server.create(
                target.kind.resource,
                body,
                write,
                namespace=target.namespace,
                name=target.name,
                subresource=target.subresource,
            ),
            user,
        )
        return _answer(result.value, view, target, warnings + result.warnings, 201)

    async def _update(self, request: HttpApiRequest, target: RequestTarget, user: User, view: ObjectView) -> Response:
        write = write_of(request, "Update")
        body, warnings = await self._object(request, target, "Update")
        server, resource, key = self._server, target.kind.resource, target.key

        def call() -> tuple[Object, bool]:
            new = server.find(collection_id(resource), key) is None
            return server.update(resource, key, body, write, subresource=target.subresource), new

        result = await self._executor(call, user)
        item, new = result.value
        return _answer(item, view, target, warnings + result.warnings, 201 if new else 200)

    async def _patch(self, request: HttpApiRequest, target: RequestTarget, user: User, view: ObjectView) -> Response:
        type_ = _patch_type(target, request.header("content-type"))
        write = write_of(request, "Patch", required=type_ is PatchType.APPLY)
        force = force_option(request, apply=type_ is PatchType.APPLY)
        validation = field_validation(request, "Patch")
        server, resource, key = self._server, target.kind.resource, target.key
        raw = await request.body()
        warnings: tuple[str, ...] = ()
        if type_ is PatchType.APPLY:
            read = await self._bodies.run(lambda body: from_yaml(body, resource.kind), raw)
            value = read.value
            if target.subresource in _OBJECT_SUBRESOURCES:
                check_apply(target.kind, target.name, read)
        else:
            read = await self._bodies.run(lambda body: from_patch(body, strategic=type_ is PatchType.STRATEGIC), raw)
            value = read.value
            if target.subresource in _OBJECT_SUBRESOURCES:
                live = server.find(collection_id(resource), key) if validation == "Strict" else None
                value, warnings = check_patch(target.kind, type_, read, validation, live)
        patch = Patch(type_, value, force)

        def call() -> tuple[Object, bool]:
            new = type_ is PatchType.APPLY and server.find(collection_id(resource), key) is None
            return server.patch(resource, key, patch, write, subresource=target.subresource), new

        result = await self._executor(call, user)
        item, new = result.value
        return _answer(item, view, target, warnings + result.warnings, 201 if new else 200)

    async def _delete(self, request: HttpApiRequest, target: RequestTarget, user: User, view: ObjectView) -> Response:
        options = await self._delete_options(request)
        write = replace(write_of(request, "Delete"), dry_run=options.dry_run)
        result = await self._executor(
            lambda: self._server.delete(
                target.kind.resource,
                target.key,
                write,
                precondition=options.precondition,
                propagation=options.propagation,
                grace_seconds=options.grace_seconds,
            ),
            user,
        )
        item = result.value
        if is_deletion_blocked(item) or (target.kind.strategic and target.kind.resource.kind in _RETURN_OBJECT):
            return _answer(item, view, target, result.warnings)
        resource = target.kind.resource
        details = {
            "name": target.name,
            "group": resource.group,
            "kind": resource.plural,
            "uid": item["metadata"]["uid"],
        }
        status = _SUCCESS | {"details": {name: value for name, value in details.items() if value}}
        return _answer(status, view, target, result.warnings)

    async def _delete_all(
        self, request: HttpApiRequest, target: RequestTarget, user: User, view: ObjectView
    ) -> Response:
        options = await self._delete_options(request)
        write = replace(write_of(request, "Delete"), dry_run=options.dry_run)
        selection = selection_of(target, list_options(request))
        server = self._server

        def call() -> ListPage:
            before = server.list(selection)
            server.deletecollection(
                selection, write, propagation=options.propagation, grace_seconds=options.grace_seconds
            )
            return before

        result = await self._executor(call, user)
        page = result.value
        whole = view.opening(page) + b",".join(map(view.entry, page.items)) + CLOSING
        return Response(whole, headers=warning_headers(result.warnings))

    async def _object(self, request: HttpApiRequest, target: RequestTarget, verb: str) -> Checked:
        """Decode and validate the object in the body."""
        validation = field_validation(request, verb)
        expected = _EXPECTED.get(target.subresource, target.kind.resource.kind)
        media = request.header("content-type")
        body = await self._bodies.run(lambda raw: decoded(raw, media, expected), await request.body())
        return (
            check_object(target.kind, body, validation)
            if target.subresource in _OBJECT_SUBRESOURCES
            else (body.value, ())
        )

    async def _delete_options(self, request: HttpApiRequest) -> DeleteOptions:
        media = request.header("content-type")
        if not (raw := await request.body()):
            return delete_options(request, None)
        body = await self._bodies.run(lambda raw: decoded(raw, media, "DeleteOptions"), raw)
        return delete_options(request, body.value)


def _answer(
    item: Object, view: ObjectView, target: RequestTarget, warnings: tuple[str, ...], code: int = 200
) -> Response:
    """Return the response to a write; objects of another kind, such as a Status, are returned as JSON."""
    if item.get("kind") != target.kind.resource.kind:
        body = item | {"code": code} if target.subresource in _CREATE_ONLY else item
        return json_response(body, code, headers=warning_headers(warnings))
    return Response(view.single(item), code, headers=warning_headers(warnings))


def _patch_type(target: RequestTarget, content_type: str) -> PatchType:
    media = media_of(content_type)
    if media not in list(PatchType):
        raise UnsupportedMedia("415: Unsupported Media Type", about=StatusDetails())
    type_ = PatchType(media)
    if type_ is PatchType.STRATEGIC and not target.kind.strategic:
        raise unsupported_media(PatchType.JSON.value, PatchType.MERGE.value, PatchType.APPLY.value)
    return type_
