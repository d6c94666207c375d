"""Admission and conversion webhooks: validation, defaulting and conversion of the kinds that Springtide defines.

They are optional: without them, the rules of the CRDs and the conditions on objects report the same problems, later.
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
from springtide.cluster.admission.webhooks import Webhooks, serve_webhooks
from springtide.cluster.certificates.manager import PERMISSIONS as _CERTIFICATES
from springtide.cluster.controller import Permission

__all__ = [
    "PERMISSIONS",
    "ServiceTarget",
    "UrlTarget",
    "WebhookTarget",
    "Webhooks",
    "conversion",
    "serve_webhooks",
    "webhook_configurations",
    "with_conversion",
]


PERMISSIONS: tuple[Permission, ...] = (*_CERTIFICATES, *_REGISTRATION)
"""What a replica needs to manage certificates and to publish CA bundles; the Secrets are in its own namespace."""
