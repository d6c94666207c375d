"""Self-made certificates: for webhooks and aggregated APIs on live clusters, and for the embedded API server."""

from springtide.cluster.certificates.issuance import CertificatePair, make_authority, make_serving

__all__ = ["CertificatePair", "make_authority", "make_serving"]
