"""Issues certificate authorities and serving certificates: short-lived, with P-256 keys, for the given names only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LEEWAY = timedelta(hours=1)
"""Certificates are valid from a little before they are issued: the clocks of clients may be slow."""
_PROVISIONAL_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A certificate and its private key, in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)

    def valid_until(self) -> int:
        """Return the instant at which the certificate expires."""
        return int(x509.load_pem_x509_certificate(self.certificate).not_valid_after_utc.timestamp())


def make_authority(name: str, *, now: int, seconds: int) -> CertificatePair:
    """Make a certificate authority that can sign serving certificates and nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _named(name)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        _begun(subject, subject, key.public_key(), now, seconds)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(identifier, critical=False)
    )
    return _signed(builder, key, key)


def make_serving(authority: CertificatePair, names: Sequence[str], *, now: int, seconds: int) -> CertificatePair:
    """Make a certificate for a server that is reached under these names and addresses."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signer = load_pem_private_key(authority.key, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)  # noqa: S101 - we made it
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        _begun(_named(names[0]), issuer.subject, key.public_key(), now, seconds)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
    )
    return _signed(builder, signer, key)


def make_provisional(host: str, *, now: int) -> CertificatePair:
    """Make a certificate to serve until the real one exists; no client trusts it."""
    authority = make_authority("springtide-provisional", now=now, seconds=_PROVISIONAL_SECONDS)
    return make_serving(authority, (host,), now=now, seconds=_PROVISIONAL_SECONDS)


def _begun(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, now: int, seconds: int
) -> x509.CertificateBuilder:
    begins = datetime.fromtimestamp(now, UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins - _LEEWAY)
        .not_valid_after(begins + timedelta(seconds=seconds))
    )


def _signed(
    builder: x509.CertificateBuilder, signer: ec.EllipticCurvePrivateKey, key: ec.EllipticCurvePrivateKey
) -> CertificatePair:
    certificate = builder.sign(signer, hashes.SHA256())
    return CertificatePair(
        certificate.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def _named(name: str) -> x509.Name:
    # A common name has 64 characters at most; what counts are the alternative names.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
