"""Who is who in a real control plane: authorities, certificates of clients, keys of service accounts, kubeconfigs."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.hazmat.primitives.serialization import load_pem_private_key as load_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from springtide.cluster.certificates import CertificatePair, make_authority, make_serving

LIFETIME = 2 * 86_400
"""Seconds for which everything here is valid: longer than any run of tests."""
PROXY = "front-proxy-client"
"""The user that kube-apiserver has towards aggregated servers."""
_SERVER_NAMES = ("localhost", "127.0.0.1", "kubernetes.default.svc", "10.0.0.1")


@dataclass(frozen=True, slots=True)
class Files:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Identities:
    """All certificates and keys of one control plane, in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self._folder = folder
        now = int(time.time())
        self._authority = make_authority("e2e", now=now, seconds=LIFETIME)
        front_proxy = make_authority("e2e-front-proxy", now=now, seconds=LIFETIME)
        self.authority = self._written("ca", self._authority)
        self.server = self._written("server", make_serving(self._authority, _SERVER_NAMES, now=now, seconds=LIFETIME))
        self.front_proxy_authority = self._written("front-proxy-ca", front_proxy)
        self.front_proxy = self._written("front-proxy", make_client(front_proxy, PROXY))
        self.service_accounts = self._signing_key()

    def client(self, user: str, groups: Sequence[str] = ()) -> CertificatePair:
        """Make a certificate by which kube-apiserver knows a user."""
        return make_client(self._authority, user, groups)

    def kubeconfig(self, url: str, user: dict[str, Any], *, namespace: str = "default") -> dict[str, Any]:
        """Make a kubeconfig for the server at a URL; `user` is what kubeconfigs have under that name."""
        cluster = {"server": url, "certificate-authority-data": _text(self._authority.certificate)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": cluster}],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "user", "namespace": namespace}}],
            "current-context": "e2e",
        }

    def _written(self, name: str, pair: CertificatePair) -> Files:
        files = Files(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        files.certificate.write_bytes(pair.certificate)
        write_private(files.key, pair.key)
        return files

    def _signing_key(self) -> Files:
        key = ec.generate_private_key(ec.SECP256R1())
        files = Files(self._folder / "service-accounts.pub", self._folder / "service-accounts.key")
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        files.certificate.write_bytes(public)
        write_private(files.key, _private(key))
        return files


def make_client(
    authority: CertificatePair, user: str, groups: Sequence[str] = (), *, dns_names: Sequence[str] = ()
) -> CertificatePair:
    """Make a certificate of a client: its common name is the user, its organisations are the groups."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signer = load_key(authority.key, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    named = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    now = datetime.now(UTC)
    if user:
        named.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(named))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(seconds=LIFETIME))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    )
    if dns_names:
        alternative = x509.SubjectAlternativeName([x509.DNSName(name) for name in dns_names])
        builder = builder.add_extension(alternative, critical=False)
    certificate = builder.sign(signer, hashes.SHA256())
    return CertificatePair(certificate.public_bytes(Encoding.PEM), _private(key))


def by_certificate(pair: CertificatePair) -> dict[str, Any]:
    """Say in a kubeconfig that a user has a certificate."""
    return {"client-certificate-data": _text(pair.certificate), "client-key-data": _text(pair.key)}


def by_token(token: str) -> dict[str, Any]:
    """Say in a kubeconfig that a user has a token."""
    return {"token": token}


def write_kubeconfig(path: Path, config: dict[str, Any]) -> Path:
    """Write a kubeconfig that only its owner can read; JSON is YAML."""
    write_private(path, json.dumps(config, indent=2).encode())
    return path


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read."""
    path.touch(0o600)
    path.write_bytes(content)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _text(content: bytes) -> str:
    return b64encode(content).decode()
