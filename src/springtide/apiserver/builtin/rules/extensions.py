"""Definitions of kinds: what others rely on once a kind is served.

Webhook configurations: who is called, about what, and how.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from springtide.apiserver import match_conditions
from springtide.apiserver.builtin.validation import (
    IMMUTABLE,
    duplicate,
    field_of,
    forbidden,
    format_value,
    invalid,
    required,
    unsupported,
)
from springtide.apiserver.names import label_value_problem, qualified_name_problem, subdomain_problem
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object

_ANNOTATION = "api-approved.kubernetes.io"
_URL = re.compile("[a-zA-Z][-+.a-zA-Z0-9]*://[^/]")
_WHERE_SERVED = ("spec.scope", "spec.names.kind")
_IN_THE_NAME = ("spec.group", "spec.names.plural")


def definition_approval(item: Object, old: Object | None) -> Iterator[StatusCause]:
    """Judge a definition in a group of the Kubernetes community: somebody there has approved of it, or knows."""
    group, approval = field_of(item, "spec.group") or "", _approval(item)
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")) or (old is not None and approval == _approval(old)):
        return
    path, words = (
        f"metadata.annotations[{_ANNOTATION}]",
        f'protected groups must have approval annotation "{_ANNOTATION}"',
    )
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not approval:
        yield required(path, f"{words}, {see}")
    elif not approval.startswith("unapproved") and not _URL.match(approval):
        yield invalid(path, approval, f'{words} with either a URL or a reason starting with "unapproved", {see}')


def _approval(item: Object) -> str:
    return (item["metadata"].get("annotations") or {}).get(_ANNOTATION) or ""


def immutable_definition_fields(item: Object, old: Object | None) -> Iterator[StatusCause]:
    """Judge a change of a definition: objects are stored under what it says of them."""
    if old is None:
        return
    conditions = field_of(old, "status.conditions") or ()
    established = any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)
    for path in (*(_WHERE_SERVED if established else ()), *_IN_THE_NAME):
        value = field_of(item, path)
        if value != field_of(old, path):
            yield invalid(path, value or "", IMMUTABLE)


_REVIEW_VERSIONS = ("v1", "v1beta1")
_SETTINGS = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "sideEffects": ("None", "NoneOnDryRun"),
}
_CHOICES = {
    "MutatingWebhookConfiguration": _SETTINGS | {"reinvocationPolicy": ("IfNeeded", "Never")},
    "ValidatingWebhookConfiguration": _SETTINGS,
}
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_LEAST_SEGMENTS = 3
_LONGEST_TIMEOUT = 30
_MOST_CONDITIONS = 64
_MOST_PORT = 65535
_FORM = "; desired format: https://host[/path]"
_NOT_IN_HOSTS = re.compile(r'[\x00-\x20"<>\\^`{|}]')
_LABEL = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_FORM = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{_LABEL.pattern}')"
)


def webhooks(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Judge the webhooks of a configuration."""
    names: set[str] = set()
    for index, hook in enumerate(item.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", hook.get("name") or ""
        yield from _name(name, f"{path}.name")
        for position, rule in enumerate(hook.get("rules") or ()):
            yield from _rule(rule, f"{path}.rules[{position}]")
        yield from _settings(hook, path, _CHOICES[item["kind"]])
        for selector in ("namespaceSelector", "objectSelector"):
            yield from _selector(hook.get(selector) or {}, f"{path}.{selector}")
        yield from _client(hook.get("clientConfig") or {}, f"{path}.clientConfig")
        yield from _conditions(hook.get("matchConditions") or (), f"{path}.matchConditions")
        yield from _review_versions(hook.get("admissionReviewVersions") or (), f"{path}.admissionReviewVersions")
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)


def _name(name: str, path: str) -> Iterator[StatusCause]:
    if not name:
        return
    if problem := subdomain_problem(name):
        yield invalid(path, name, problem)
    elif len(name.split(".")) < _LEAST_SEGMENTS:
        yield invalid(path, name, "should be a domain with at least three segments separated by dots")


def _rule(rule: Object, path: str) -> Iterator[StatusCause]:
    operations = rule.get("operations") or ()
    yield from _all_or_some(operations, f"{path}.operations", "operations")
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield unsupported(f"{path}.operations[{index}]", operation, *_OPERATIONS)
    yield from _all_or_some(rule.get("apiGroups") or (), f"{path}.apiGroups", "API groups")
    versions = rule.get("apiVersions") or ()
    yield from _all_or_some(versions, f"{path}.apiVersions", "API versions")
    yield from (required(f"{path}.apiVersions[{index}]") for index, version in enumerate(versions) if not version)
    yield from _resources(rule.get("resources") or (), f"{path}.resources")
    if rule.get("scope", "*") not in _SCOPES:
        yield unsupported(f"{path}.scope", rule["scope"], *_SCOPES)


def _all_or_some(names: Sequence[str], path: str, called: str) -> Iterator[StatusCause]:
    if not names:
        yield required(path)
    elif len(names) > 1 and "*" in names:
        yield invalid(path, names, f"if '*' is present, must not specify other {called}")


def _resources(names: Sequence[str], path: str) -> Iterator[StatusCause]:
    if not names:
        yield required(path)
    whole: set[str] = set()
    everywhere: set[str] = set()
    alone = False
    for index, name in enumerate(names):
        resource, slash, part = name.partition("/")
        if not name:
            yield required(f"{path}[{index}]")
        if not slash:
            # As in the server, the last one counts.
            alone = name != "*" if name else alone
            continue
        if resource in whole:
            yield invalid(f"{path}[{index}]", name, f"if '{resource}/*' is present, must not specify {name}")
        if part in everywhere:
            yield invalid(f"{path}[{index}]", name, f"if '*/{part}' is present, must not specify {name}")
        if part == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(part)
    if len(names) > 1 and "*/*" in names:
        yield invalid(path, names, "if '*/*' is present, must not specify other resources")
    if alone and "*" in names:
        yield invalid(path, names, "if '*' is present, must not specify other resources without subresources")


def _settings(hook: Object, path: str, settings: Mapping[str, tuple[str, ...]]) -> Iterator[StatusCause]:
    for name, choices in settings.items():
        if name in hook and hook[name] not in choices:
            yield unsupported(f"{path}.{name}", hook[name], *choices)
    if not hook.get("sideEffects"):
        yield required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    seconds = hook.get("timeoutSeconds", 1)
    if not 1 <= seconds <= _LONGEST_TIMEOUT:
        yield invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")


def _selector(selector: Object, path: str) -> Iterator[StatusCause]:
    for key, value in (selector.get("matchLabels") or {}).items():
        if problem := qualified_name_problem(key):
            yield invalid(f"{path}.matchLabels", key, problem)
        if problem := label_value_problem(value):
            yield invalid(f"{path}.matchLabels", value, problem)
    for index, each in enumerate(selector.get("matchExpressions") or ()):
        yield from _requirement(each, f"{path}.matchExpressions[{index}]")


def _requirement(requirement: Object, path: str) -> Iterator[StatusCause]:
    values = requirement.get("values") or ()
    match requirement.get("operator"):
        case "In" | "NotIn":
            if not values:
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if values:
                yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        case other:
            yield invalid(f"{path}.operator", other or "", "not a valid selector operator")
    key = requirement.get("key") or ""
    if problem := qualified_name_problem(key):
        yield invalid(f"{path}.key", key, problem)
    for index, value in enumerate(values):
        if problem := label_value_problem(value):
            yield invalid(f"{path}.values[{index}]", value, problem)


def _client(client: Object, path: str) -> Iterator[StatusCause]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(url, f"{path}.url")
    elif service is not None:
        yield from _service(service, f"{path}.service")


def _url(url: str, path: str) -> Iterator[StatusCause]:
    if problem := _unparsable(url):
        yield required(path, f"url must be a valid URL: parse {format_value(url)}: {problem}{_FORM}")
        return
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not host:
        yield invalid(path, host, f"host must be specified{_FORM}")
    for part, words in (
        (user, "user information is"),
        (parts.fragment, "fragments are"),
        (parts.query, "query parameters are"),
    ):
        if part:
            yield invalid(path, part, f"{words} not permitted in the URL")


def _unparsable(url: str) -> str:
    """Tell what keeps a text from being a URL."""
    try:
        host = urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return "missing ']' in host"
    if odd := _NOT_IN_HOSTS.search(host):
        return f"invalid character {format_value(odd[0])} in host name"
    _, colon, port = host.rpartition("]")[2].partition(":")
    return f'invalid port ":{port}" after host' if colon and port and not port.isdecimal() else ""


def _service(service: Object, path: str) -> Iterator[StatusCause]:
    port = service.get("port", 1)
    if not 1 <= port <= _MOST_PORT:
        words = f"must be between 1 and {_MOST_PORT}, inclusive"
        yield invalid(f"{path}.port", port, f"port is not valid: {words}")
    called: str = service.get("path") or "/"
    if called == "/":
        return
    if called == "//":
        yield invalid(f"{path}.path", called, "segment[0] may not be empty")
        return
    if not called.startswith("/"):
        yield invalid(f"{path}.path", called, "must start with a '/'")
    for index, segment in enumerate(called[1:].removesuffix("/").split("/")):
        if not segment:
            yield invalid(f"{path}.path", called, f"segment[{index}] may not be empty")
        elif problem := subdomain_problem(segment):
            yield invalid(f"{path}.path", called, f"segment[{index}]: {problem}")


def _conditions(conditions: Sequence[Any], path: str) -> Iterator[StatusCause]:
    if len(conditions) > _MOST_CONDITIONS:
        message = f"Too many: {len(conditions)}: must have at most {_MOST_CONDITIONS} items"
        yield StatusCause(path, message, "FieldValueTooMany")
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        expression, name = (condition.get("expression") or "").strip(), condition.get("name") or ""
        if not expression:
            yield required(f"{path}[{index}].expression")
        elif problem := match_conditions.condition_problem(expression):
            yield invalid(f"{path}[{index}].expression", expression, problem)
        if name and (problem := qualified_name_problem(name)):
            yield invalid(f"{path}[{index}].name", name, problem)
        if name in names:
            yield duplicate(f"{path}[{index}].name", name)
        names.add(name)


def _review_versions(versions: Sequence[str], path: str) -> Iterator[StatusCause]:
    if not versions:
        yield required(path, f"must specify one of {', '.join(_REVIEW_VERSIONS)}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(f"{path}[{index}]", version, "duplicate version")
        elif not _LABEL.fullmatch(version):
            yield invalid(f"{path}[{index}]", version, _LABEL_FORM)
    if not any(version in _REVIEW_VERSIONS for version in versions):
        yield invalid(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")
