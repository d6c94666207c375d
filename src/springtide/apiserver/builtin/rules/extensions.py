"""Validation of the kinds that extend the API server: CustomResourceDefinitions and webhook configurations.

Webhook configurations are checked as far as the server depends on it to call the webhooks. The rest of what a
kube-apiserver checks (forms of names, labels and paths, overlapping resources) is left to real servers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from springtide.apiserver.builtin.rules.selectors import label_selector
from springtide.apiserver.builtin.validation import IMMUTABLE, field_of
from springtide.apiserver.field_errors import duplicate, format_value, invalid, required, unsupported
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object

_FIXED_ONCE_SERVED = ("spec.scope", "spec.names.kind")
_FIXED_BY_THE_NAME = ("spec.group", "spec.names.plural")


def immutable_definition_fields(item: Object, old: Object | None) -> Iterator[StatusCause]:
    """Reject changes of the fields under which the objects of a definition are stored."""
    if old is None:
        return
    conditions = field_of(old, "status.conditions") or ()
    established = any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)
    for path in (*(_FIXED_ONCE_SERVED if established else ()), *_FIXED_BY_THE_NAME):
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
_MAX_TIMEOUT_SECONDS = 30


def webhooks(item: Object, old: Object | None) -> Iterator[StatusCause]:  # noqa: ARG001
    """Check the webhooks of a configuration, as far as calling them depends on it."""
    names: set[str] = set()
    for index, hook in enumerate(item.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", hook.get("name") or ""
        for position, rule in enumerate(hook.get("rules") or ()):
            yield from _webhook_rule(rule, f"{path}.rules[{position}]")
        yield from _settings(hook, path, _CHOICES[item["kind"]])
        for selector in ("namespaceSelector", "objectSelector"):
            yield from label_selector(hook.get(selector), f"{path}.{selector}")
        yield from _client_config(hook.get("clientConfig") or {}, f"{path}.clientConfig")
        yield from _match_conditions(hook.get("matchConditions") or (), f"{path}.matchConditions")
        versions = hook.get("admissionReviewVersions") or ()
        if not versions:
            yield required(f"{path}.admissionReviewVersions", f"must specify one of {', '.join(_REVIEW_VERSIONS)}")
        elif not any(version in _REVIEW_VERSIONS for version in versions):
            message = f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"
            yield invalid(f"{path}.admissionReviewVersions", versions, message)
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)


def _webhook_rule(rule: Object, path: str) -> Iterator[StatusCause]:
    for name in ("operations", "apiGroups", "apiVersions", "resources"):
        if not rule.get(name):
            yield required(f"{path}.{name}")
    for index, operation in enumerate(rule.get("operations") or ()):
        if operation not in _OPERATIONS:
            yield unsupported(f"{path}.operations[{index}]", operation, *_OPERATIONS)
    if rule.get("scope", "*") not in _SCOPES:
        yield unsupported(f"{path}.scope", rule["scope"], *_SCOPES)


def _settings(hook: Object, path: str, settings: Mapping[str, tuple[str, ...]]) -> Iterator[StatusCause]:
    for name, choices in settings.items():
        if name in hook and hook[name] not in choices:
            yield unsupported(f"{path}.{name}", hook[name], *choices)
    if not hook.get("sideEffects"):
        yield required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    seconds = hook.get("timeoutSeconds", 1)
    if not 1 <= seconds <= _MAX_TIMEOUT_SECONDS:
        yield invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")


def _client_config(client: Object, path: str) -> Iterator[StatusCause]:
    url = client.get("url")
    if (url is None) == (client.get("service") is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(url, f"{path}.url")


def _url(url: str, path: str) -> Iterator[StatusCause]:
    desired = "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - an invalid port raises
    except ValueError as error:
        yield required(path, f"url must be a valid URL: parse {format_value(url)}: {error}{desired}")
        return
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{desired}")
    if not parts.netloc.rpartition("@")[2]:
        yield invalid(path, "", f"host must be specified{desired}")


def _match_conditions(conditions: Sequence[Any], path: str) -> Iterator[StatusCause]:
    # Imported late: `springtide check` uses the rules of other kinds, and works without an engine for CEL.
    from springtide.apiserver import match_conditions

    names: set[str] = set()
    for index, condition in enumerate(conditions):
        expression, name = (condition.get("expression") or "").strip(), condition.get("name") or ""
        if not expression:
            yield required(f"{path}[{index}].expression")
        elif problem := match_conditions.condition_problem(expression):
            yield invalid(f"{path}[{index}].expression", expression, problem)
        if name in names:
            yield duplicate(f"{path}[{index}].name", name)
        names.add(name)
