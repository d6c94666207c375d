"""What is known about the certificates of the webhooks, and how it stands in a Secret.

One Secret holds everything, so that all replicas agree: the authority that signs now, the one that will sign next, the
certificates of authorities that have signed before, and the serving certificate itself. A Secret that somebody has
edited into something else is told apart from one that is not there: it is replaced, with a warning.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from springtide.cluster.certificates.making import Pair
from springtide.cluster.resources import Object


class Unsound(ValueError):
    """A Secret that does not hold what we have put there; the message says what is wrong, and no secrets."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate with its key, and the time it is good for."""

    pair: Pair
    begins: int
    ends: int


@dataclass(frozen=True, slots=True)
class Former:
    """The certificate of an authority that signs no more, but whose certificates may still be shown somewhere."""

    certificate: bytes
    until: int
    """When the last certificate that it has signed ends."""


@dataclass(frozen=True, slots=True)
class State:
    """The certificates of the webhooks, as all replicas see them."""

    authority: Issued
    serving: Issued
    """Signed by `authority`."""
    names: tuple[str, ...]
    """The names that the serving certificate is for."""
    signed_until: int
    """When the last certificate ends that `authority` has signed."""
    successor: Issued | None = None
    """The authority that will sign next; it is trusted already."""
    announced: int | None = None
    """Since when API servers are told to trust the successor; None: they may not know it yet."""
    former: tuple[Former, ...] = ()

    @property
    def bundle(self) -> bytes:
        """The certificates to trust."""
        successors = () if self.successor is None else (self.successor.pair.certificate,)
        return b"".join((self.authority.pair.certificate, *successors, *(old.certificate for old in self.former)))


class _Notes(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What the certificates do not say themselves."""

    signed_until: int
    announced: int | None = None
    former_until: tuple[int, ...] = ()


_NOTES = "rotation.json"


def secret_data(state: State) -> dict[str, str]:
    """Write a state as the `data` of a Secret."""
    notes = _Notes(
        signed_until=state.signed_until,
        announced=state.announced,
        former_until=tuple(old.until for old in state.former),
    )
    parts = {
        "tls.crt": state.serving.pair.certificate,
        "tls.key": state.serving.pair.key,
        "ca.crt": state.authority.pair.certificate,
        "ca.key": state.authority.pair.key,
        "bundle.crt": state.bundle,
        "former.crt": b"".join(old.certificate for old in state.former),
        _NOTES: msgspec.json.encode(notes),
    }
    if state.successor is not None:
        parts |= {"next-ca.crt": state.successor.pair.certificate, "next-ca.key": state.successor.pair.key}
    return {name: base64.b64encode(part).decode() for name, part in parts.items()}


def read_secret(secret: Object) -> State:
    """Read the state from a Secret; raises `Unsound`."""
    data = secret.get("data")
    if not isinstance(data, dict):
        raise Unsound("it has no data")
    try:
        state = _state(data)
    except Exception as failure:
        # Keys and certificates can be broken in many ways, and every library has its own words and types for them.
        raise Unsound(str(failure) or type(failure).__name__) from failure
    return state


def issued(pair: Pair) -> Issued:
    """Read from a certificate how long it is good for."""
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    return Issued(
        pair, int(certificate.not_valid_before_utc.timestamp()), int(certificate.not_valid_after_utc.timestamp())
    )


def authorities(bundle: bytes) -> tuple[tuple[bytes, int], ...]:
    """Give the certificates of a bundle, each once, and when they end; nothing where it cannot be read."""
    try:
        found = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return ()
    ends = {each.public_bytes(Encoding.PEM): int(each.not_valid_after_utc.timestamp()) for each in found}
    return tuple(ends.items())


def _state(data: Mapping[str, Any]) -> State:
    notes = msgspec.json.decode(_decoded(data, _NOTES), type=_Notes)
    authority, serving = _sound_pair(data, "ca"), _sound_pair(data, "tls")
    _certificate(serving).verify_directly_issued_by(_certificate(authority))
    former = _decoded(data, "former.crt")
    certificates = x509.load_pem_x509_certificates(former) if former else []
    names = _certificate(serving).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return State(
        authority=authority,
        serving=serving,
        names=tuple(str(name.value) for name in names),
        signed_until=notes.signed_until,
        successor=_sound_pair(data, "next-ca") if "next-ca.crt" in data else None,
        announced=notes.announced,
        former=tuple(
            Former(certificate.public_bytes(Encoding.PEM), until)
            for certificate, until in zip(certificates, notes.former_until, strict=True)
        ),
    )


def _sound_pair(data: Mapping[str, Any], name: str) -> Issued:
    """Read a certificate and its key, and make sure that they belong together."""
    found = issued(Pair(_decoded(data, f"{name}.crt"), _decoded(data, f"{name}.key")))
    key = load_pem_private_key(found.pair.key, None)
    if not isinstance(key, EllipticCurvePrivateKey):
        raise Unsound(f"{name}.key is not a key on an elliptic curve")
    if key.public_key() != _certificate(found).public_key():
        raise Unsound(f"{name}.key is not the key of {name}.crt")
    return found


def _certificate(found: Issued) -> x509.Certificate:
    return x509.load_pem_x509_certificate(found.pair.certificate)


def _decoded(data: Mapping[str, Any], name: str) -> bytes:
    if name not in data:
        raise Unsound(f"{name} is missing")
    return base64.b64decode(data[name], validate=True)
