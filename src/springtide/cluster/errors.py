"""Errors of requests to a cluster.

    ClusterError
    ├── ApiError                the server answered, and the answer is no
    │   ├── BadRequest          400  the request makes no sense: a selector, a patch, a name
    │   ├── Unauthorized        401  the credentials are missing, wrong or expired
    │   ├── Forbidden           403  not allowed, or not now: a terminating namespace, a full quota
    │   ├── NotFound            404  there is no such object, or no such kind
    │   ├── MethodNotAllowed    405  the kind does not do this
    │   ├── AlreadyExists       409  an object of that name is there already
    │   ├── Conflict            409  the object has changed since it was read
    │   ├── Gone                410  the version asked for is compacted: list again
    │   ├── UnsupportedPatch    415  the kind does not take this kind of patch
    │   ├── Invalid             422  the object breaks the rules of its kind; `causes` say where
    │   ├── TooManyRequests     429  later; an eviction that a disruption budget refuses says it too
    │   └── ServerError         5xx  the server failed; the write may have taken effect
    ├── TransportError          no answer; the write may have taken effect
    │   ├── ConnectionLost           the connection broke, or could not be made
    │   └── RequestTimeout           nothing came back in time
    └── NotSent                 the write was withheld before it was sent: it had no effect
        └── NotLeader                this process does not hold the lease any more

Catch the narrowest one that you can handle. `ClusterError` is for the outermost loop, which retries later.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class StatusCause:
    """One thing that is wrong with an object, as the server's answer lists them."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


@dataclass(frozen=True, slots=True)
class StatusDetails:
    """The object that an answer is about, and its kind or plural, as far as the answer says it."""

    name: str = ""
    group: str = ""
    kind: str = ""


class ClusterError(Exception):
    """The root of all errors of requests to a cluster."""

    retriable: ClassVar[bool] = False
    """Whether the same request, sent again later, may succeed."""
    uncertain: ClassVar[bool] = False
    """Whether a write that ended so may have taken effect."""


class ApiError(ClusterError):
    """The server answered with an error."""

    code: int = 0
    """The HTTP status of the answer; a class has the usual one."""
    reason: ClassVar[str] = "Unknown"

    def __init__(
        self,
        message: str,
        *,
        causes: tuple[StatusCause, ...] = (),
        retry_after: float | None = None,
        reason: str = "",
        about: StatusDetails | None = None,
        code: int = 0,
    ) -> None:
        super().__init__(message)
        if code:
            self.code = code
        self.message = message
        self.causes = causes
        self.retry_after = retry_after
        self.about = about
        self.warnings: tuple[str, ...] = ()
        """Warnings that came along with the answer, for example from admission webhooks."""
        self.answered = reason or type(self).reason
        """The reason as the server wrote it; one class may stand for several."""

    def status(self) -> dict[str, Any]:
        """Write the error as the `Status` object that a server answers with."""
        details: dict[str, Any] = {}
        if self.about is not None:
            details |= {name: value for name, value in asdict(self.about).items() if value}
        if self.causes:
            details["causes"] = [
                {"reason": cause.reason, "message": cause.message} | ({"field": cause.field} if cause.field else {})
                for cause in self.causes
            ]
        if self.retry_after is not None:
            details["retryAfterSeconds"] = int(-(-self.retry_after // 1))
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.answered,
            "code": self.code,
        }
        return status if not details and self.about is None else status | {"details": details}


class BadRequest(ApiError):
    """The request makes no sense."""

    code = 400
    reason = "BadRequest"


class Unauthorized(ApiError):
    """The credentials are missing, wrong or expired."""

    code = 401
    reason = "Unauthorized"


class Forbidden(ApiError):
    """Not allowed, or not now."""

    code = 403
    reason = "Forbidden"


class NotFound(ApiError):
    """There is no such object, or no such kind."""

    code = 404
    reason = "NotFound"


class MethodNotAllowed(ApiError):
    """The kind does not do this."""

    code = 405
    reason = "MethodNotAllowed"


class AlreadyExists(ApiError):
    """An object of that name is there already."""

    code = 409
    reason = "AlreadyExists"


class Conflict(ApiError):
    """The object has changed since it was read: read it again, decide again."""

    code = 409
    reason = "Conflict"


class Gone(ApiError):
    """The requested resourceVersion is compacted: list again."""

    code = 410
    reason = "Expired"


class UnsupportedPatch(ApiError):
    """The kind does not take this kind of patch."""

    code = 415
    reason = "UnsupportedMediaType"


class Invalid(ApiError):
    """The object breaks the rules of its kind."""

    code = 422
    reason = "Invalid"


class TooManyRequests(ApiError):
    """Later: the server is busy, or a disruption budget allows no eviction now."""

    code = 429
    reason = "TooManyRequests"
    retriable = True


class ServerError(ApiError):
    """The server failed, before or after it did what it was asked to."""

    code = 500
    reason = "InternalError"
    retriable = True
    uncertain = True


class TransportError(ClusterError):
    """No answer came."""

    retriable = True
    uncertain = True


class ConnectionLost(TransportError):
    """The connection broke, or could not be made."""


class RequestTimeout(TransportError):
    """Nothing came back in time."""


class NotSent(ClusterError):
    """The write was withheld before it was sent."""


class NotLeader(NotSent):
    """This process does not hold the lease any more, or not for long enough."""
