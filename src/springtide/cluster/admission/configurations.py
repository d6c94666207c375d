"""Where the API server reaches the webhooks: through a Service, or at a URL.

How the webhooks are made known to the API server: pure functions from a target to objects.

The API server decides by these whom it asks about what. It asks about objects that are ours, and only where a write
changes what they mean: so nobody else's objects wait for us, and an object can always be labelled, released from a
finalizer or deleted, even when no replica is up.
"""

from __future__ import annotations

import base64
import copy
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from springtide.apis.kinds import Kind
from springtide.apis.scheme import CONVERTED_GROUPS, KINDS, ownership_of
from springtide.apis.validation import ANNOTATION
from springtide.cluster.resources import Object


@dataclass(frozen=True, slots=True)
class ServiceTarget:
    """A Service of the cluster; the usual way."""

    namespace: str
    name: str
    port: int = 443

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a certificate must have; API servers ask for the first."""
        within = f"{self.name}.{self.namespace}.svc"
        return within, f"{within}.cluster.local", f"{self.name}.{self.namespace}"

    def client_config(self, path: str) -> Object:
        """Write it as a `clientConfig`, without the authority to trust."""
        return {"service": {"namespace": self.namespace, "name": self.name, "path": path, "port": self.port}}


@dataclass(frozen=True, slots=True)
class UrlTarget:
    """A server that the API server reaches without a Service: in the same process, or on the same machine."""

    url: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a certificate must have."""
        host = urlsplit(self.url).hostname or ""
        return (host,) if host == "localhost" else (host, "localhost")

    def client_config(self, path: str) -> Object:
        """Write it as a `clientConfig`, without the authority to trust."""
        return {"url": f"{self.url.rstrip('/')}{path}"}


WebhookTarget: TypeAlias = ServiceTarget | UrlTarget


VALIDATING = "springtide-validating"
MUTATING = "springtide-mutating"
VALIDATE_PATH, DEFAULT_PATH, CONVERT_PATH = "/validate", "/default", "/convert"

_TIMEOUT_SECONDS = 5
_LABELS = {"app.kubernetes.io/name": "springtide", "app.kubernetes.io/component": "webhooks"}


def webhook_configurations(
    target: WebhookTarget, ca_bundle: bytes = b"", *, failure_policy: str = "Fail"
) -> tuple[Object, Object]:
    """Give the validating and the mutating configuration; without a bundle, whoever knows one fills it in later.

    `failure_policy` is what becomes of an owned object whose spec changes while no replica can be asked. Defaulting
    is always optional: the schema says what it would have mended.
    """
    judged = [kind for kind in KINDS if not kind.builtin and ownership_of(kind.group, kind.kind).expression != "false"]
    mended = [kind for kind in judged if any(version.normalizer is not None for version in kind.versions)]
    return (
        _configuration(
            "ValidatingWebhookConfiguration",
            VALIDATING,
            _webhook("validate.springtide.dev", target, VALIDATE_PATH, ca_bundle, judged, failure_policy),
        ),
        _configuration(
            "MutatingWebhookConfiguration",
            MUTATING,
            _webhook("default.springtide.dev", target, DEFAULT_PATH, ca_bundle, mended, "Ignore")
            | {"reinvocationPolicy": "IfNeeded"},
        ),
    )


_CONVERTED = {
    f"{kind.plural}.{kind.group}": kind
    for kind in KINDS
    if not kind.builtin and kind.group in CONVERTED_GROUPS and len(kind.versions) > 1
}


def converted_definitions() -> tuple[str, ...]:
    """Name the CRDs whose versions only we can convert."""
    return tuple(_CONVERTED)


def is_unconverted(definition: Object) -> bool:
    """Tell a CRD that has our versions and nobody to convert them from one that somebody else has made or taken on."""
    spec = definition["spec"]
    versions = {(version["name"], version["storage"]) for version in spec["versions"]}
    ours = {(version.name, version.storage) for version in _CONVERTED[definition["metadata"]["name"]].versions}
    return versions == ours and (spec.get("conversion") or {}).get("strategy", "None") == "None"


def conversion(target: WebhookTarget, ca_bundle: bytes = b"") -> Object:
    """Give the `spec.conversion` of a CRD whose versions we convert."""
    client = _client_config(target, CONVERT_PATH, ca_bundle)
    return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}


def with_conversion(definition: Object, target: WebhookTarget, ca_bundle: bytes = b"") -> Object:
    """Give a CRD with all its versions served, as they are where somebody converts them."""
    made = copy.deepcopy(definition)
    made["spec"]["conversion"] = conversion(target, ca_bundle)
    for version in made["spec"]["versions"]:
        version["served"] = True
    return made


def encoded_bundle(ca_bundle: bytes) -> str:
    """Write a bundle as `caBundle` has it."""
    return base64.b64encode(ca_bundle).decode()


def _configuration(kind: str, name: str, webhook: Object) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": dict(_LABELS)},
        "webhooks": [webhook],
    }


def _webhook(
    name: str, target: WebhookTarget, path: str, ca_bundle: bytes, kinds: list[Kind], failure_policy: str
) -> dict[str, Any]:
    return {
        "name": name,
        "clientConfig": _client_config(target, path, ca_bundle),
        "rules": [_rule(kind) for kind in kinds],
        "matchConditions": [*_CHANGED, *_owned(kinds)],
        "matchPolicy": "Equivalent",
        "failurePolicy": failure_policy,
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }


def _client_config(target: WebhookTarget, path: str, ca_bundle: bytes) -> Object:
    return target.client_config(path) | ({"caBundle": encoded_bundle(ca_bundle)} if ca_bundle else {})


def _rule(kind: Kind) -> Object:
    return {
        "apiGroups": [kind.group],
        "apiVersions": [version.name for version in kind.versions],
        "operations": ["CREATE", "UPDATE"],
        "resources": [kind.plural],
        "scope": kind.scope,
    }


_EXTENSIONS = f"metadata.?annotations[?'{ANNOTATION}'].orValue('')"
_CHANGED = (
    {"name": "not-being-deleted", "expression": "!has(object.metadata.deletionTimestamp)"},
    {
        "name": "changed",
        "expression": "request.operation == 'CREATE' || !has(object.spec) || !has(oldObject.spec)"
        f" || object.spec != oldObject.spec || object.{_EXTENSIONS} != oldObject.{_EXTENSIONS}",
    },
)


def _owned(kinds: list[Kind]) -> list[Object]:
    """Say for every kind that we share with others which of its objects are ours."""
    conditions = []
    for kind in kinds:
        expression = ownership_of(kind.group, kind.kind).expression
        if expression != "true":
            other = f"request.kind.group != '{kind.group}' || request.kind.kind != '{kind.kind}'"
            conditions.append({"name": f"owned-{kind.plural}", "expression": f"{other} || {expression}"})
    return conditions
