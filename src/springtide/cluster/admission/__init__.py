"""Webhooks: what the API server asks us before it stores an object, and between the versions of one.

They are a choice. On a cluster without them the rules of the CRDs and the conditions on objects say the same, later.
"""

from springtide.cluster.admission.configurations import (
    ServiceTarget,
    UrlTarget,
    WebhookTarget,
    conversion,
    webhook_configurations,
    with_conversion,
)
from springtide.cluster.admission.registration import PERMISSIONS as _REGISTRATION
from springtide.cluster.admission.webhooks import Webhooks, webhooks
from springtide.cluster.certificates.manager import PERMISSIONS as _CERTIFICATES
from springtide.cluster.controller import Permission

__all__ = [
    "PERMISSIONS",
    "ServiceTarget",
    "UrlTarget",
    "WebhookTarget",
    "Webhooks",
    "conversion",
    "webhook_configurations",
    "webhooks",
    "with_conversion",
]


PERMISSIONS: tuple[Permission, ...] = (*_CERTIFICATES, *_REGISTRATION)
"""What a replica needs to keep its certificates and to fill in bundles; the Secrets are those of its own namespace."""
