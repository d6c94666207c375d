"""Webhook configurations, and which webhooks match a request.

Rules, object selectors and namespace selectors are matched here; match conditions are evaluated later. A webhook whose
rules name another version of the resource is called with that version, unless its match policy is `Exact`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from springtide.apiserver.admission import AdmissionAttributes, AdmissionOperation, AdmissionRequest
from springtide.apiserver.selectors import LabelSelector, selector_of
from springtide.apiserver.server import ApiServer
from springtide.apiserver.storage import CollectionId
from springtide.cluster.resources import Object, Resource

GROUP = "admissionregistration.k8s.io"
_MUTATING = CollectionId(GROUP, "mutatingwebhookconfigurations")
_VALIDATING = CollectionId(GROUP, "validatingwebhookconfigurations")

_NAMESPACES = ("", "v1", "namespaces")
_EXEMPT = (
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
)

NamespaceLabels = Callable[[str], Mapping[str, str]]
"""Returns the labels of a namespace; raises `NotFound` where there is none."""
ServedVersions = Callable[[Resource], Iterable[Resource]]
"""Returns a resource in all served versions."""


@dataclass(frozen=True, slots=True)
class WebhookRule:
    """A rule: which requests a webhook handles."""

    operations: tuple[str, ...]
    groups: tuple[str, ...]
    versions: tuple[str, ...]
    resources: tuple[str, ...]
    scope: str


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of a configuration."""

    uid: str
    """Unique; names may occur in several configurations."""
    name: str
    client: Object
    """Its `clientConfig`."""
    rules: tuple[WebhookRule, ...]
    namespaces: LabelSelector
    objects: LabelSelector
    conditions: dict[str, str]
    equivalent: bool
    """Whether the match policy is `Equivalent`: requests in other versions of its resources match, too."""
    ignores_failures: bool
    dry_run: bool
    """Whether it may be called for dry runs."""
    reinvoked: bool
    """Whether the reinvocation policy is `IfNeeded`."""
    timeout: int
    review_versions: tuple[str, ...]


@dataclass(slots=True)
class _Cached:
    seen: tuple[Any, ...] = ()
    webhooks: tuple[Webhook, ...] = ()


@dataclass(slots=True)
class WebhookConfigurations:
    """The registered webhooks."""

    server: ApiServer
    _mutating: _Cached = field(default_factory=_Cached)
    _validating: _Cached = field(default_factory=_Cached)

    def any(self) -> bool:
        """Return whether any configuration exists."""
        collection = self.server.storage.collection
        return bool(collection(_MUTATING).live or collection(_VALIDATING).live)

    def mutating(self) -> tuple[Webhook, ...]:
        """Return the mutating webhooks."""
        return self._read(_MUTATING, self._mutating)

    def validating(self) -> tuple[Webhook, ...]:
        """Return the validating webhooks."""
        return self._read(_VALIDATING, self._validating)

    def _read(self, identity: CollectionId, cached: _Cached) -> tuple[Webhook, ...]:
        found = [item for _, item in self.server.objects(identity)]
        seen = tuple((item["metadata"]["uid"], item["metadata"]["resourceVersion"]) for item in found)
        if seen != cached.seen:
            cached.seen = seen
            cached.webhooks = tuple(webhook for item in found for webhook in webhooks_of(item))
        return cached.webhooks


def webhooks_of(configuration: Object) -> tuple[Webhook, ...]:
    """Parse a stored configuration, which has its defaults."""
    uid = configuration["metadata"]["uid"]
    return tuple(
        Webhook(
            uid=f"{uid}/{hook['name']}",
            name=hook["name"],
            client=hook["clientConfig"],
            rules=tuple(_rule(rule) for rule in hook.get("rules") or ()),
            namespaces=selector_of(hook.get("namespaceSelector", {})),
            objects=selector_of(hook.get("objectSelector", {})),
            conditions={each["name"]: each["expression"].strip() for each in hook.get("matchConditions") or ()},
            equivalent=hook.get("matchPolicy") == "Equivalent",
            ignores_failures=hook.get("failurePolicy") == "Ignore",
            dry_run=hook.get("sideEffects") in ("None", "NoneOnDryRun"),
            reinvoked=hook.get("reinvocationPolicy") == "IfNeeded",
            timeout=hook.get("timeoutSeconds", 10),
            review_versions=tuple(hook.get("admissionReviewVersions") or ()),
        )
        for hook in configuration.get("webhooks") or ()
    )


def _rule(rule: Object) -> WebhookRule:
    fields = ("operations", "apiGroups", "apiVersions", "resources")
    operations, groups, versions, resources = (tuple(rule.get(name) or ()) for name in fields)
    return WebhookRule(operations, groups, versions, resources, rule.get("scope", "*"))


@dataclass(frozen=True, slots=True)
class WebhookInvocation:
    """A webhook to call, and the version of the resource that it receives."""

    webhook: Webhook
    resource: Resource


def is_exempt(resource: Resource) -> bool:
    """Return whether no webhook is called for a resource: a broken one must not block its own removal."""
    return resource.group == GROUP and resource.kind in _EXEMPT


def namespace_of(attributes: AdmissionAttributes) -> str:
    """Return the namespace of a request; a Namespace object is in itself."""
    return attributes.key.name if _is_namespaces(attributes.resource) else attributes.key.namespace


def invocation(
    webhook: Webhook, review: AdmissionRequest, versions: ServedVersions, labels: NamespaceLabels
) -> WebhookInvocation | None:
    """Return how a webhook is called for a request; None where it does not match."""
    rules = [rule for rule in webhook.rules if _rule_matches(rule, review.attributes)]
    if not rules or not _object_matches(webhook.objects, review):
        return None
    sent = _sent_version(webhook, rules, review.attributes.resource, versions)
    if sent is None or not _namespace_matches(webhook.namespaces, review, labels):
        return None
    return WebhookInvocation(webhook, sent)


def _sent_version(
    webhook: Webhook, rules: Iterable[WebhookRule], asked: Resource, versions: ServedVersions
) -> Resource | None:
    """Return the version that a webhook receives: that of the request, if its rules name it."""
    if any(_includes(rule.versions, asked.version) for rule in rules):
        return asked
    if not webhook.equivalent:
        return None
    others = [each for each in versions(asked) if each != asked]
    return next((other for rule in rules for other in others if _includes(rule.versions, other.version)), None)


def _rule_matches(rule: WebhookRule, attributes: AdmissionAttributes) -> bool:
    """Return whether a rule matches a request, ignoring the version."""
    return (
        _scope_matches(rule.scope, attributes)
        and _includes(rule.operations, attributes.operation)
        and _includes(rule.groups, attributes.resource.group)
        and any(_resource_matches(each, attributes.resource.plural, attributes.subresource) for each in rule.resources)
    )


def _scope_matches(scope: str, attributes: AdmissionAttributes) -> bool:
    in_a_namespace = bool(attributes.key.namespace) and not _is_namespaces(attributes.resource)
    return scope == "*" or (scope == "Namespaced") == in_a_namespace


def _includes(names: tuple[str, ...], name: str) -> bool:
    return "*" in names or name in names


def _resource_matches(pattern: str, plural: str, subresource: str) -> bool:
    resource, _, part = pattern.partition("/")
    return resource in ("*", plural) and part in ("*", subresource)


def _is_namespaces(resource: Resource) -> bool:
    return (resource.group, resource.version, resource.plural) == _NAMESPACES


def _object_matches(selector: LabelSelector, review: AdmissionRequest) -> bool:
    if _selects_everything(selector):
        return True
    return any(item is not None and selector.matches(_labels(item)) for item in (review.new, review.old))


def _namespace_matches(selector: LabelSelector, review: AdmissionRequest, labels: NamespaceLabels) -> bool:
    attributes = review.attributes
    namespace = namespace_of(attributes)
    if _selects_everything(selector) or (not namespace and attributes.resource.plural != "namespaces"):
        return True
    if (
        review.new is not None
        and attributes.resource.plural == "namespaces"
        and not attributes.subresource
        and attributes.operation is not AdmissionOperation.DELETE
    ):
        return selector.matches(_labels(review.new))
    return selector.matches(labels(namespace))


def _selects_everything(selector: LabelSelector) -> bool:
    return not selector.requirements and not selector.nothing


def _labels(item: Object) -> Mapping[str, str]:
    labels = (item.get("metadata") or {}).get("labels")
    # The body of a binding or an eviction is not validated before admission.
    return labels if isinstance(labels, dict) else {}
