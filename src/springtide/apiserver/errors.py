"""The errors of the API, with the messages of a kube-apiserver.

People search for these messages and some programs match on them, so they are verbatim.
"""

from __future__ import annotations

from collections.abc import Iterable

from springtide.cluster.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    MethodNotAllowed,
    NotFound,
    ServerError,
    StatusCause,
    StatusDetails,
)
from springtide.cluster.resources import Resource

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
NO_SUCH_RESOURCE = "the server could not find the requested resource"

EXPIRED_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You must start a new list without the continue parameter."
)
EXPIRED_LIST = "The resourceVersion for the provided list is too old."


class TooLargeResourceVersion(ServerError):
    """The requested resource version is newer than the server's."""

    code = 504
    reason = "Timeout"


def no_such_resource() -> NotFound:
    """The path is not served."""
    return NotFound(NO_SUCH_RESOURCE, about=StatusDetails())


def not_found(resource: Resource | str, name: str) -> NotFound:
    """The object does not exist."""
    return NotFound(f'{resource} "{name}" not found', about=_about(resource, name))


def already_exists(resource: Resource, name: str) -> AlreadyExists:
    """An object with this name exists."""
    return AlreadyExists(f'{resource} "{name}" already exists', about=_about(resource, name))


def conflict(resource: Resource | str, name: str, why: str = MODIFIED) -> Conflict:
    """The object was modified, or a precondition failed."""
    return Conflict(f'Operation cannot be fulfilled on {resource} "{name}": {why}', about=_about(resource, name))


def forbidden(resource: Resource | str, name: str, why: str, causes: tuple[StatusCause, ...] = ()) -> Forbidden:
    """The request is not allowed."""
    return Forbidden(f'{resource} "{name}" is forbidden: {why}', causes=causes, about=_about(resource, name))


def method_not_allowed(resource: Resource, verb: str) -> MethodNotAllowed:
    """The resource does not support the verb."""
    return MethodNotAllowed(f'{verb} is not supported on resources of kind "{resource}"', about=_about(resource, ""))


def invalid(resource: Resource, name: str, causes: Iterable[StatusCause]) -> Invalid:
    """The object is invalid; all causes are reported."""
    listed = tuple(causes)
    messages = [f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in listed]
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    text = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
    about = StatusDetails(name, resource.group, resource.kind)
    return Invalid(f'{kind} "{name}" is invalid: {text}', causes=listed, about=about)


def too_large_resource_version(asked: int, present: int) -> TooLargeResourceVersion:
    """The requested version is newer than the current one."""
    cause = StatusCause("", "Too large resource version", "ResourceVersionTooLarge")
    return TooLargeResourceVersion(
        f"Timeout: Too large resource version: {asked}, current: {present}", causes=(cause,), retry_after=1
    )


def too_old_resource_version(asked: int, oldest: int) -> Gone:
    """The requested version is compacted."""
    return Gone(f"too old resource version: {asked} ({oldest})")


def _about(resource: Resource | str, name: str) -> StatusDetails:
    """Return the object that an error is about; a text is the plural, with the group after a dot."""
    if isinstance(resource, Resource):
        return StatusDetails(name, resource.group, resource.plural)
    plural, _, group = resource.partition(".")
    return StatusDetails(name, group, plural)
