"""Whether a webhook wants to hear of a request, by its rules and selectors; match conditions come after these.

A webhook whose rules name another version of the same resource is asked in that version, unless it says `Exact`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from springtide.cluster.resources import Object, Resource
from springtide.simulator.api.reviews import Matter, Operation, Review
from springtide.simulator.api.selectors import LabelSelector
from springtide.simulator.webhooks.registrations import GROUP, Rule, Webhook

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
"""Gives the labels of a namespace; raises `NotFound` where there is none."""
Versions = Callable[[Resource], Iterable[Resource]]
"""Gives a resource in all versions in which it is served."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """A webhook that is to be called, and the version of the resource in which it is told."""

    webhook: Webhook
    resource: Resource


def is_exempt(resource: Resource) -> bool:
    """Tell whether no webhook hears of a resource: a broken one must not keep people from removing it."""
    return resource.group == GROUP and resource.kind in _EXEMPT


def namespace_of(matter: Matter) -> str:
    """Give the namespace of a request; a namespace is in itself."""
    return matter.key.name if _is_namespaces(matter.resource) else matter.key.namespace


def invocation(webhook: Webhook, review: Review, versions: Versions, labels: NamespaceLabels) -> Invocation | None:
    """Tell whether a webhook wants to hear of a request, and how."""
    rules = [rule for rule in webhook.rules if _rule_matches(rule, review.matter)]
    if not rules or not _object_matches(webhook.objects, review):
        return None
    told = _told(webhook, rules, review.matter.resource, versions)
    if told is None or not _namespace_matches(webhook.namespaces, review, labels):
        return None
    return Invocation(webhook, told)


def _told(webhook: Webhook, rules: Iterable[Rule], asked: Resource, versions: Versions) -> Resource | None:
    """Choose the version in which a webhook is told of a request: the one of the request, if its rules have that."""
    if any(_named(rule.versions, asked.version) for rule in rules):
        return asked
    if not webhook.equivalent:
        return None
    others = [each for each in versions(asked) if each != asked]
    return next((other for rule in rules for other in others if _named(rule.versions, other.version)), None)


def _rule_matches(rule: Rule, matter: Matter) -> bool:
    """Tell whether a rule is about a request, whatever its version."""
    return (
        _scope_matches(rule.scope, matter)
        and _named(rule.operations, matter.operation)
        and _named(rule.groups, matter.resource.group)
        and any(_resource_matches(each, matter.resource.plural, matter.subresource) for each in rule.resources)
    )


def _scope_matches(scope: str, matter: Matter) -> bool:
    in_a_namespace = bool(matter.key.namespace) and not _is_namespaces(matter.resource)
    return scope == "*" or (scope == "Namespaced") == in_a_namespace


def _named(names: tuple[str, ...], name: str) -> bool:
    return "*" in names or name in names


def _resource_matches(pattern: str, plural: str, subresource: str) -> bool:
    resource, _, part = pattern.partition("/")
    return resource in ("*", plural) and part in ("*", subresource)


def _is_namespaces(resource: Resource) -> bool:
    return (resource.group, resource.version, resource.plural) == _NAMESPACES


def _object_matches(selector: LabelSelector, review: Review) -> bool:
    if _selects_everything(selector):
        return True
    return any(item is not None and selector.matches(_labels(item)) for item in (review.new, review.old))


def _namespace_matches(selector: LabelSelector, review: Review, labels: NamespaceLabels) -> bool:
    matter = review.matter
    namespace = namespace_of(matter)
    if _selects_everything(selector) or (not namespace and matter.resource.plural != "namespaces"):
        return True
    if (
        review.new is not None
        and matter.resource.plural == "namespaces"
        and not matter.subresource
        and matter.operation is not Operation.DELETE
    ):
        return selector.matches(_labels(review.new))
    return selector.matches(labels(namespace))


def _selects_everything(selector: LabelSelector) -> bool:
    return not selector.requirements and not selector.nothing


def _labels(item: Object) -> Mapping[str, str]:
    labels = (item.get("metadata") or {}).get("labels")
    # The body of a binding or an eviction is not judged before it is reviewed.
    return labels if isinstance(labels, dict) else {}
