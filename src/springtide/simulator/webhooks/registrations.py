"""Which webhooks there are: the stored configurations, read once and in the order in which webhooks are called."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from springtide.cluster.resources import Object
from springtide.simulator.api.selectors import LabelSelector, selector_of
from springtide.simulator.api.server import ApiServer
from springtide.simulator.api.storage import CollectionId

GROUP = "admissionregistration.k8s.io"
_MUTATING = CollectionId(GROUP, "mutatingwebhookconfigurations")
_VALIDATING = CollectionId(GROUP, "validatingwebhookconfigurations")


@dataclass(frozen=True, slots=True)
class Rule:
    """Which requests a webhook is for."""

    operations: tuple[str, ...]
    groups: tuple[str, ...]
    versions: tuple[str, ...]
    resources: tuple[str, ...]
    scope: str


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of a configuration."""

    uid: str
    """What tells it from all others: names may come up in several configurations."""
    name: str
    client: Object
    """Its `clientConfig`."""
    rules: tuple[Rule, ...]
    namespaces: LabelSelector
    objects: LabelSelector
    conditions: dict[str, str]
    equivalent: bool
    """Whether it also wants requests that are made in another version of its resources."""
    ignores_failures: bool
    dry_run: bool
    """Whether it may be called for a request that is to have no effect."""
    reinvoked: bool
    """Whether it wants to see what others have changed after it."""
    timeout: int
    review_versions: tuple[str, ...]


@dataclass(slots=True)
class _Reading:
    seen: tuple[Any, ...] = ()
    webhooks: tuple[Webhook, ...] = ()


@dataclass(slots=True)
class Registrations:
    """The webhooks that are registered now."""

    server: ApiServer
    _mutating: _Reading = field(default_factory=_Reading)
    _validating: _Reading = field(default_factory=_Reading)

    def any(self) -> bool:
        """Tell whether there is any configuration at all."""
        collection = self.server.storage.collection
        return bool(collection(_MUTATING).live or collection(_VALIDATING).live)

    def mutating(self) -> tuple[Webhook, ...]:
        """Give the webhooks that may change objects."""
        return self._read(_MUTATING, self._mutating)

    def validating(self) -> tuple[Webhook, ...]:
        """Give the webhooks that may refuse objects."""
        return self._read(_VALIDATING, self._validating)

    def _read(self, identity: CollectionId, reading: _Reading) -> tuple[Webhook, ...]:
        found = [item for _, item in self.server.objects(identity)]
        seen = tuple((item["metadata"]["uid"], item["metadata"]["resourceVersion"]) for item in found)
        if seen != reading.seen:
            reading.seen = seen
            reading.webhooks = tuple(webhook for item in found for webhook in webhooks_of(item))
        return reading.webhooks


def webhooks_of(configuration: Object) -> tuple[Webhook, ...]:
    """Read a stored configuration, which has its defaults."""
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


def _rule(rule: Object) -> Rule:
    fields = ("operations", "apiGroups", "apiVersions", "resources")
    operations, groups, versions, resources = (tuple(rule.get(name) or ()) for name in fields)
    return Rule(operations, groups, versions, resources, rule.get("scope", "*"))
