"""The aggregated API as an ASGI application: authentication, authorization, label selectors, discovery and values.

Requests are authenticated by the headers of the API server, and authorized by SubjectAccessReviews, whose results are
cached for some seconds, because autoscalers repeat their requests. While no review is possible, requests fail.
`/healthz`, `/livez` and `/readyz` need no authentication, and return nothing but the state of the server.

Every replica serves discovery. Only the leader has values: the others answer 503, so that autoscalers keep their
replicas and retry. Label selectors are `name=shop` or `name in (shop,depot),namespace!=test`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from springtide.cluster.certificates.clients import certificate_of
from springtide.cluster.clock import Clock
from springtide.cluster.controller import Permission
from springtide.cluster.errors import (
    ApiError,
    BadRequest,
    ClusterError,
    Forbidden,
    MethodNotAllowed,
    NotFound,
    ServerError,
)
from springtide.cluster.resources import Object, Resource
from springtide.cluster.transport import Transport, Write
from springtide.metrics.external.documents import GROUP, PATH, VERSION, group, group_list, resource_list, value_list
from springtide.metrics.external.request_header import Caller, FrontProxy
from springtide.metrics.series import SeriesStore

_LABEL = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_ONE_VALUE = re.compile(_VALUE)
_REQUIREMENT = re.compile(
    rf"""\s*+(?:
        (?P<absent>!)\s*+(?P<missing>{_LABEL})
      | (?P<listed>{_LABEL})\s++(?P<word>in|notin)\s*+\((?P<values>[^()]*+)\)
      | (?P<compared>{_LABEL})\s*+(?P<sign>==|=|!=)\s*+(?P<value>{_VALUE})
      | (?P<present>{_LABEL})
    )\s*+(?:(?P<comma>,)|$)""",
    re.VERBOSE,
)
_LONGEST_SELECTOR = 4096
"""The maximum length of a label selector, which is parsed on the event loop."""
REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
PERMISSIONS = (Permission(REVIEWS, ("create",)),)
_REMEMBERED_SECONDS = 10.0
_MOST_REMEMBERED = 1024
_WRITE = Write("springtide-external-metrics", "authorize a request for external metrics")
_DISCOVERY: dict[str, Callable[[], Object]] = {
    "/apis": group_list,
    f"/apis/{GROUP}": group,
    PATH: resource_list,
}


@dataclass(frozen=True, slots=True)
class RequestAttributes:
    """What a request is for: a metric of a namespace, or a path that is not a resource."""

    path: str
    namespace: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""

    def review_attributes(self) -> dict[str, Any]:
        """Return the attributes for a review; reading a metric is the verb `list`, as it has several values."""
        if not self.resource:
            return {"nonResourceAttributes": {"path": self.path, "verb": "get"}}
        return {
            "resourceAttributes": {
                "namespace": self.namespace,
                "verb": "list",
                "group": self.group,
                "version": self.version,
                "resource": self.resource,
            }
        }

    def __str__(self) -> str:
        if not self.resource:
            return f'get path "{self.path}"'
        return f'list resource "{self.resource}" in API group "{self.group}" in the namespace "{self.namespace}"'


class ExternalMetricsApp:
    """Answers requests from a store of series."""

    def __init__(
        self,
        store: SeriesStore,
        clock: Clock,
        access: AccessReviewer,
        *,
        front_proxy: Callable[[], FrontProxy | None],
        leading: Callable[[], bool],
        problem: Callable[[], str],
    ) -> None:
        self._store = store
        self._clock = clock
        self._access = access
        self._front_proxy = front_proxy
        self._leading = leading
        self._problem = problem

    def asgi(self) -> Starlette:
        """Make the application."""
        return Starlette(
            routes=[
                Route("/healthz", self._alive),
                Route("/livez", self._alive),
                Route("/readyz", self._ready),
                Route("/{path:path}", self._guarded, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
            ]
        )

    async def _alive(self, request: Request) -> Response:  # noqa: ARG002
        return PlainTextResponse("ok")

    async def _ready(self, request: Request) -> Response:  # noqa: ARG002
        problem = self._problem()
        return PlainTextResponse(problem or "ok", 503 if problem else 200)

    async def _guarded(self, request: Request) -> Response:
        """Authenticate, authorize and answer a request; errors are Status objects."""
        try:
            attributes = _attributes(request.scope["path"])
            await self._access.check(self._caller(request), attributes)
            if request.method not in ("GET", "HEAD") or request.query_params.get("watch", "") in ("1", "true"):
                raise MethodNotAllowed(f"external metrics can only be read, one request at a time: no {request.method}")
            return JSONResponse(self._answer(request, attributes))
        except ApiError as failure:
            later = {} if failure.retry_after is None else {"Retry-After": str(int(failure.retry_after))}
            return JSONResponse(failure.status(), failure.code, headers=later)

    def _caller(self, request: Request) -> Caller:
        front_proxy = self._front_proxy()
        if front_proxy is None:
            raise _unavailable("the request header settings of the cluster have not been read yet")
        # User names are not always ASCII, and ASGI servers pass header values on as bytes.
        headers = [
            (name, value.encode("latin-1").decode("utf-8", "replace")) for name, value in request.headers.items()
        ]
        return front_proxy.caller(certificate_of(request.scope), headers, self._clock.now())

    def _answer(self, request: Request, attributes: RequestAttributes) -> Object:
        if attributes.resource:
            if not self._leading():
                raise _unavailable(
                    "this replica does not lead and has no values; the Service should lead to the leader"
                )
            selector = SeriesSelector.parse(request.query_params.get("labelSelector", ""))
            now = self._clock.now()
            return value_list(self._store, attributes.resource, attributes.namespace, selector.matches, now)
        document = _DISCOVERY.get(attributes.path)
        if document is None:
            raise NotFound("the server could not find the requested resource")
        return document()


class AccessReviewer:
    """Authorizes requests by SubjectAccessReviews, and caches the results."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._remembered: dict[tuple[Caller, RequestAttributes], tuple[float, str | None]] = {}

    async def check(self, caller: Caller, attributes: RequestAttributes) -> None:
        """Authorize a request; raises `Forbidden`, or `ServerError` if the review is not possible."""
        now = self._clock.monotonic()
        until, refusal = self._remembered.get((caller, attributes), (now, None))
        if until <= now:
            refusal = await self._review(caller, attributes)
            self._remember(caller, attributes, refusal)
        if refusal is not None:
            raise Forbidden(refusal)

    async def _review(self, caller: Caller, attributes: RequestAttributes) -> str | None:
        """Create a review; return the message of a refusal, or None."""
        body = {
            "apiVersion": REVIEWS.api_version,
            "kind": REVIEWS.kind,
            "spec": {
                "user": caller.user,
                **({"uid": caller.uid} if caller.uid else {}),
                "groups": list(caller.groups),
                "extra": {name: list(values) for name, values in caller.extra},
                **attributes.review_attributes(),
            },
        }
        try:
            status = (await self._transport.create(REVIEWS, body, _WRITE)).get("status") or {}
        except ClusterError as failure:
            message = f"the access of {caller.user} could not be reviewed ({attributes}): {failure}"
            raise ServerError(message, code=503, reason="ServiceUnavailable", retry_after=1) from failure
        if status.get("allowed") is True and not status.get("denied"):
            return None
        why = f": {status['reason']}" if status.get("reason") else ""
        return f'User "{caller.user}" cannot {attributes}{why}'

    def _remember(self, caller: Caller, attributes: RequestAttributes, refusal: str | None) -> None:
        while len(self._remembered) >= _MOST_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        # Insertion order is by age: the oldest entry is dropped first.
        self._remembered.pop((caller, attributes), None)
        self._remembered[caller, attributes] = (self._clock.monotonic() + _REMEMBERED_SECONDS, refusal)


@dataclass(frozen=True, slots=True)
class SeriesRequirement:
    """One requirement of a selector."""

    label: str
    values: frozenset[str] | None
    """None: any value."""
    wanted: bool = True
    """Whether the label must have one of the values, or must not; a missing label has none of them."""

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet the requirement."""
        value = labels.get(self.label)
        found = value is not None and (self.values is None or value in self.values)
        return found is self.wanted


@dataclass(frozen=True, slots=True)
class SeriesSelector:
    """Requirements that must all be met; none: everything is selected."""

    requirements: tuple[SeriesRequirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> SeriesSelector:
        """Parse a selector; raises `BadRequest` with the part that is not a requirement."""
        if len(text) > _LONGEST_SELECTOR:
            raise BadRequest(f"labelSelector has {len(text)} characters, expected at most {_LONGEST_SELECTOR}")
        requirements: list[SeriesRequirement] = []
        position, more = 0, bool(text.strip())
        while more:
            match = _REQUIREMENT.match(text, position)
            if match is None or not all(_ONE_VALUE.fullmatch(value) for value in _listed(match)):
                rest = text[position:].strip()
                raise BadRequest(
                    f"labelSelector {text!r}: {rest!r} is not a requirement,"
                    " expected such as name=shop, name!=shop, name in (shop,depot), name or !name"
                )
            requirements.append(_requirement(match))
            position, more = match.end(), match["comma"] is not None
        return cls(tuple(requirements))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether a series with these labels is selected."""
        return all(requirement.holds(labels) for requirement in self.requirements)


def _listed(match: re.Match[str]) -> list[str]:
    """Return the values in parentheses, if any.

    They are split here, because a pattern with optional spaces around each value could backtrack exponentially.
    """
    return [value.strip() for value in match["values"].split(",")] if match["listed"] else []


def _requirement(match: re.Match[str]) -> SeriesRequirement:
    if match["absent"]:
        return SeriesRequirement(match["missing"], None, wanted=False)
    if match["present"]:
        return SeriesRequirement(match["present"], None)
    if match["listed"]:
        return SeriesRequirement(match["listed"], frozenset(_listed(match)), wanted=match["word"] == "in")
    return SeriesRequirement(match["compared"], frozenset((match["value"],)), wanted=match["sign"] != "!=")


def _attributes(path: str) -> RequestAttributes:
    """Parse a path."""
    path = path.rstrip("/") or "/"
    match path.removeprefix(f"{PATH}/").split("/"):
        case ["namespaces", namespace, metric] if path.startswith(f"{PATH}/") and namespace and metric:
            return RequestAttributes(path, namespace, GROUP, VERSION, metric)
        case _:
            return RequestAttributes(path)


def _unavailable(message: str) -> ServerError:
    return ServerError(message, code=503, reason="ServiceUnavailable", retry_after=1)
