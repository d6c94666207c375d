"""Certificates that Springtide makes for itself: for webhooks on a live cluster, and for the embedded API server."""

from springtide.cluster.certificates.issuance import CertificatePair, make_authority, make_serving

__all__ = ["CertificatePair", "make_authority", "make_serving"]
