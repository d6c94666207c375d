"""Certificates for tests: an authority, and what it signs, for servers and for clients."""

from __future__ import annotations

import ssl
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from springtide.cluster.certificates import CertificatePair, make_authority, make_serving
from springtide.cluster.http import InlineContent


class Authority:
    """An authority of a test's own."""

    def __init__(self) -> None:
        self.pair = make_authority("test", now=int(time.time()), seconds=3600)

    @property
    def content(self) -> InlineContent:
        """The certificate, for a client that is to trust it."""
        return InlineContent(self.pair.certificate)

    def serving(self, *names: str, clients: bool = False) -> ssl.SSLContext:
        """Return the context of a server with these names; `clients` must show a certificate of ours."""
        pair = make_serving(self.pair, names, now=int(time.time()), seconds=3600)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pair.pem"
            path.write_bytes(pair.key + pair.certificate)
            context.load_cert_chain(path)
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self.pair.certificate.decode())
        return context

    def client(self, name: str) -> CertificatePair:
        """Make a certificate for a client."""
        signer = load_pem_private_key(self.pair.key, None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.load_pem_x509_certificate(self.pair.certificate).subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(signer, hashes.SHA256())
        )
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return CertificatePair(certificate.public_bytes(Encoding.PEM), private)
