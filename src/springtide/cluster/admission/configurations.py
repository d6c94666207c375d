"""Webhook configurations and the conversion of CRDs, as pure functions from a target: a Service or a URL.

Their rules and match conditions select owned objects, and only writes that change the spec or the extensions. So
writes of other objects never call the webhooks, and an object can be labelled, deleted or released from a finalizer
even when no replica is available.
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
    """A Service of the cluster; the default."""

    namespace: str
    name: str
    port: int = 443

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a certificate must have; API servers use the first."""
        within = f"{self.name}.{self.namespace}.svc"
        return within, f"{within}.cluster.local", f"{self.name}.{self.namespace}"

    def client_config(self, path: str) -> Object:
        """Return the `clientConfig`, without a CA bundle."""
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
        """Return the `clientConfig`, without a CA bundle."""
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
    """Return the validating and the mutating configuration; a missing bundle is filled in later.

    `failure_policy` applies to validation while no replica is available. Defaulting is always optional.
    """
    validated = [
        kind for kind in KINDS if not kind.builtin and ownership_of(kind.group, kind.kind).expression != "false"
    ]
    defaulted = [kind for kind in validated if any(version.normalizer is not None for version in kind.versions)]
    return (
        _configuration(
            "ValidatingWebhookConfiguration",
            VALIDATING,
            _webhook("validate.springtide.dev", target, VALIDATE_PATH, ca_bundle, validated, failure_policy),
        ),
        _configuration(
            "MutatingWebhookConfiguration",
            MUTATING,
            _webhook("default.springtide.dev", target, DEFAULT_PATH, ca_bundle, defaulted, "Ignore")
            | {"reinvocationPolicy": "IfNeeded"},
        ),
    )


_CONVERTED = {
    f"{kind.plural}.{kind.group}": kind
    for kind in KINDS
    if not kind.builtin and kind.group in CONVERTED_GROUPS and len(kind.versions) > 1
}


def converted_definitions() -> tuple[str, ...]:
    """Return the names of the CRDs whose versions the webhook converts."""
    return tuple(_CONVERTED)


def is_unconverted(definition: Object) -> bool:
    """Return whether a CRD has exactly our versions and no conversion webhook, of Springtide or of another program."""
    spec = definition["spec"]
    versions = {(version["name"], version["storage"]) for version in spec["versions"]}
    ours = {(version.name, version.storage) for version in _CONVERTED[definition["metadata"]["name"]].versions}
    return versions == ours and (spec.get("conversion") or {}).get("strategy", "None") == "None"


def conversion(target: WebhookTarget, ca_bundle: bytes = b"") -> Object:
    """Return the `spec.conversion` of a CRD that the webhook converts."""
    client = _client_config(target, CONVERT_PATH, ca_bundle)
    return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}


def with_conversion(definition: Object, target: WebhookTarget, ca_bundle: bytes = b"") -> Object:
    """Return a CRD with the conversion webhook and with all of its versions served."""
    made = copy.deepcopy(definition)
    made["spec"]["conversion"] = conversion(target, ca_bundle)
    for version in made["spec"]["versions"]:
        version["served"] = True
    return made


def encoded_bundle(ca_bundle: bytes) -> str:
    """Encode a bundle for the field `caBundle`."""
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
    """Return a match condition for every kind of which Springtide owns only some objects."""
    conditions = []
    for kind in kinds:
        expression = ownership_of(kind.group, kind.kind).expression
        if expression != "true":
            other = f"request.kind.group != '{kind.group}' || request.kind.kind != '{kind.kind}'"
            conditions.append({"name": f"owned-{kind.plural}", "expression": f"{other} || {expression}"})
    return conditions
