"""Requests: query, headers, a bounded body, and the options of verbs, with the error messages of a kube-apiserver."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from springtide.apiserver.errors import invalid
from springtide.cluster.errors import ApiError, BadRequest, StatusCause
from springtide.cluster.resources import Resource
from springtide.cluster.transport import UNCONDITIONAL, Precondition, Propagation, Write

if TYPE_CHECKING:
    from starlette.types import Receive, Scope


MAX_BYTES = 3 * 1024 * 1024
"""The largest accepted body, as in a kube-apiserver."""
_MAX_PARAMETERS = 200

_EXACT, _NOT_OLDER = "Exact", "NotOlderThan"
_FALSE = ("false", "0")
_MAX_MANAGER_BYTES = 128
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


class ClientDisconnected(Exception):
    """The client disconnected before the request was complete; no response is possible."""


class TooLarge(ApiError):
    """The body exceeds the limit."""

    code = 413
    reason = "RequestEntityTooLarge"


class HttpApiRequest:
    """An HTTP request."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._scope = scope
        self._receive = receive
        self._query: Mapping[str, Sequence[str]] | None = None

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        """The query parameters, each with all its values."""
        if self._query is None:
            try:
                self._query = _parameters(self._scope.get("query_string", b""))
            except ValueError as error:
                raise BadRequest(f"the query of the request cannot be read: {error}") from error
        return self._query

    def parameter(self, name: str) -> str:
        """Return the first value of a parameter; empty where there is none."""
        values = self.query.get(name)
        return values[0] if values else ""

    def header(self, name: str) -> str:
        """Return a header, with repeated ones joined by commas; empty where there is none."""
        wanted = name.encode()
        return ",".join(value.decode("latin-1") for given, value in self._scope["headers"] if given == wanted)

    async def body(self) -> bytes:
        """Read the whole body."""
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > MAX_BYTES:
                raise TooLarge(f"Request entity too large: limit is {MAX_BYTES}")
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)

    async def disconnected(self) -> None:
        """Wait until the client disconnects."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


@lru_cache(maxsize=64)
def _parameters(query: bytes) -> Mapping[str, Sequence[str]]:
    """Parse a query; the same queries recur for many objects."""
    text = query.decode("latin-1")
    return parse_qs(text, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS, errors="replace")


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The options of a list or a watch."""

    labels: str
    fields: str
    limit: int
    continue_: str
    version: str
    match: str
    watch: bool
    bookmarks: bool
    initial_events: bool | None
    timeout: int | None

    @property
    def exact(self) -> bool:
        """Whether the list must show exactly this version; paged lists of a version always do."""
        return self.match == _EXACT or (not self.match and bool(self.limit) and self.version not in ("", "0"))


def list_options(request: HttpApiRequest) -> ListOptions:
    """Parse the options of a list or a watch."""
    options = ListOptions(
        labels=request.parameter("labelSelector"),
        fields=request.parameter("fieldSelector"),
        limit=max(_number(request, "limit") or 0, 0),
        continue_=request.parameter("continue"),
        version=request.parameter("resourceVersion"),
        match=request.parameter("resourceVersionMatch"),
        watch=bool(flag(request, "watch")),
        bookmarks=bool(flag(request, "allowWatchBookmarks")),
        initial_events=flag(request, "sendInitialEvents"),
        timeout=_number(request, "timeoutSeconds"),
    )
    causes = _watch_problems(options) if options.watch else _list_problems(options)
    if causes:
        raise _invalid("ListOptions", *causes)
    return options


def flag(request: HttpApiRequest, name: str) -> bool | None:
    """Parse a boolean parameter as Go does: anything but `false` and `0` is true; None where it is absent."""
    values = request.query.get(name)
    return None if not values else values[0].lower() not in _FALSE


def write_of(request: HttpApiRequest, verb: str, *, required: bool = False) -> Write:
    """Parse the field manager and the dry run option of a write."""
    manager = request.parameter("fieldManager")
    if not manager and required:
        why = StatusCause("fieldManager", "Required value: is required for apply patch", "FieldValueRequired")
        raise _invalid("PatchOptions", why)
    return Write(
        manager or _default_manager(request.header("user-agent")), dry_run=_dry_run(request.query.get("dryRun"), verb)
    )


def force_option(request: HttpApiRequest, *, apply: bool) -> bool:
    """Parse `force`, which only an apply accepts."""
    force = flag(request, "force")
    if force is not None and not apply:
        raise _invalid("PatchOptions", _forbidden("may not be specified for non-apply patch", "force"))
    return bool(force)


def field_validation(request: HttpApiRequest, verb: str) -> str:
    """Parse `fieldValidation`: Ignore, Warn or Strict."""
    chosen = request.parameter("fieldValidation")
    if chosen not in _VALIDATIONS:
        raise _invalid(f"{verb}Options", _unsupported("fieldValidation", chosen, _VALIDATIONS))
    return chosen or "Warn"


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a delete."""

    precondition: Precondition = UNCONDITIONAL
    propagation: Propagation | None = None
    grace_seconds: int | None = None
    dry_run: bool = False


def delete_options(request: HttpApiRequest, body: Any) -> DeleteOptions:
    """Parse the options of a delete from the body, or without one from the query."""
    given = body if isinstance(body, dict) else _query_options(request)
    if (body is not None and not isinstance(body, dict)) or given.get("kind", "DeleteOptions") != "DeleteOptions":
        raise BadRequest("decoded object cannot be converted to DeleteOptions")
    policy, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
    if policy is not None and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        raise _invalid("DeleteOptions", StatusCause("propagationPolicy", f"Invalid value: {json.dumps(policy)}: {why}"))
    if policy is not None and policy not in list(Propagation):
        choices = [Propagation.FOREGROUND.value, Propagation.BACKGROUND.value, Propagation.ORPHAN.value, "nil"]
        raise _invalid("DeleteOptions", _unsupported("propagationPolicy", policy, choices))
    if orphan is not None:
        policy = Propagation.ORPHAN if orphan else Propagation.BACKGROUND
    conditions = given.get("preconditions")
    conditions = conditions if isinstance(conditions, dict) else {}
    return DeleteOptions(
        precondition=Precondition(_text(conditions, "resourceVersion"), _text(conditions, "uid")),
        propagation=None if policy is None else Propagation(policy),
        grace_seconds=_integer(given, "gracePeriodSeconds"),
        dry_run=_dry_run(given.get("dryRun"), "Delete"),
    )


def _query_options(request: HttpApiRequest) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if policy := request.parameter("propagationPolicy"):
        given["propagationPolicy"] = policy
    if (orphan := flag(request, "orphanDependents")) is not None:
        given["orphanDependents"] = orphan
    if (grace := _number(request, "gracePeriodSeconds")) is not None:
        given["gracePeriodSeconds"] = grace
    if dry_run := request.query.get("dryRun"):
        given["dryRun"] = dry_run
    return given


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    raise _wrong_type(value, f"Preconditions.{name}", "string")


def _integer(given: dict[str, Any], name: str) -> int | None:
    value = given.get(name)
    if value is None or (type(value) is int and -(2**63) <= value < 2**63):
        return value
    raise _wrong_type(value, f"DeleteOptions.{name}", "int64")


def _wrong_type(value: Any, field: str, expected: str) -> BadRequest:
    shown = {bool: "bool", dict: "object", list: "array", str: "string"}.get(type(value), f"number {value}")
    return BadRequest(f"json: cannot unmarshal {shown} into Go struct field {field} of type {expected}")


def _number(request: HttpApiRequest, name: str) -> int | None:
    text = request.parameter(name)
    if not text:
        return None
    try:
        number = int(text) if text.isascii() and "_" not in text and len(text) < 40 and text == text.strip() else None
    except ValueError:
        number = None
    if number is None:
        raise BadRequest(f"strconv.ParseInt: parsing {json.dumps(text)}: invalid syntax")
    if not -(2**63) <= number < 2**63:
        raise BadRequest(f"strconv.ParseInt: parsing {json.dumps(text)}: value out of range")
    return number


def _dry_run(given: Any, verb: str) -> bool:
    if not given:
        return False
    if not isinstance(given, list) or any(each != "All" for each in given):
        shown = json.dumps(given, ensure_ascii=False)
        cause = StatusCause("dryRun", f'Unsupported value: {shown}: supported values: "All"', "FieldValueNotSupported")
        raise _invalid(f"{verb}Options", cause)
    return True


def _default_manager(agent: str) -> str:
    """Return the default field manager: the user agent up to the first slash, without unprintable characters."""
    name = "".join(letter for letter in agent.partition("/")[0] if letter.isprintable())
    return name.encode()[:_MAX_MANAGER_BYTES].decode(errors="ignore")


def _list_problems(options: ListOptions) -> list[StatusCause]:
    causes = []
    if options.match:
        if not options.version:
            causes.append(_forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.continue_:
            causes.append(_forbidden("resourceVersionMatch is forbidden when continue is provided"))
        if options.match not in (_EXACT, _NOT_OLDER):
            causes.append(_unsupported("resourceVersionMatch", options.match, (_EXACT, _NOT_OLDER, "")))
        if options.match == _EXACT and options.version == "0":
            causes.append(_forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.initial_events is not None:
        causes.append(_forbidden("sendInitialEvents is forbidden for list", "sendInitialEvents"))
    return causes


def _watch_problems(options: ListOptions) -> list[StatusCause]:
    causes = []
    if options.initial_events is not None and options.match != _NOT_OLDER:
        causes.append(_forbidden(f"sendInitialEvents requires setting resourceVersionMatch to {_NOT_OLDER}"))
    if options.match:
        if options.initial_events is None:
            why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            causes.append(_forbidden(why))
        if options.match != _NOT_OLDER:
            causes.append(_unsupported("resourceVersionMatch", options.match, (_NOT_OLDER,)))
        if options.continue_:
            causes.append(_forbidden("resourceVersionMatch is forbidden when continue is provided"))
    return causes


def _forbidden(why: str, field: str = "resourceVersionMatch") -> StatusCause:
    return StatusCause(field, f"Forbidden: {why}", "FieldValueForbidden")


def _unsupported(field: str, value: Any, supported: Any) -> StatusCause:
    choices = ", ".join(f'"{each}"' for each in supported)
    shown = json.dumps(value, ensure_ascii=False)
    return StatusCause(field, f"Unsupported value: {shown}: supported values: {choices}", "FieldValueNotSupported")


def _invalid(kind: str, *causes: StatusCause) -> Exception:
    return invalid(Resource("meta.k8s.io", "v1", "", kind), "", causes)
