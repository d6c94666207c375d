"""The rotation of certificates, as pure functions: the state in a Secret, the step that is due, the state after it.

One Secret has the whole state, so that all replicas agree: the signing authority, its successor, the certificates of
retired authorities, and the serving certificate. A Secret that was edited into something invalid is replaced, with a
warning.

An authority is replaced in four steps. Each is one write, which any replica may make:

1. prepare: issue a successor; its certificate joins the CA bundle, and it signs nothing yet;
2. announce: the bundle with the successor has been published; record when;
3. promote: once every API server has certainly read the bundle, the successor signs, and the old authority retires;
4. forget: drop a retired authority from the bundle when the last certificate that it signed has expired.

So every certificate that some replica may still serve is signed by an authority in the published bundle.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from springtide.cluster.certificates.issuance import CertificatePair, make_authority, make_serving
from springtide.cluster.resources import Object


class InvalidSecret(ValueError):
    """A Secret that does not contain a valid state; the message says what is wrong, and contains no secrets."""


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A certificate with its key, and its validity."""

    pair: CertificatePair
    begins: int
    ends: int


@dataclass(frozen=True, slots=True)
class RetiredAuthority:
    """The certificate of an authority that no longer signs, but whose certificates may still be served."""

    certificate: bytes
    until: int
    """When the last certificate that it signed expires."""


@dataclass(frozen=True, slots=True)
class CertificateState:
    """The certificates of a server, shared by all replicas."""

    authority: IssuedCertificate
    serving: IssuedCertificate
    """Signed by `authority`."""
    names: tuple[str, ...]
    """The names that the serving certificate is for."""
    signed_until: int
    """When the last certificate expires that `authority` signed."""
    successor: IssuedCertificate | None = None
    """The authority that will sign next; it is in the bundle already."""
    announced: int | None = None
    """Since when the bundle with the successor is published; None: API servers may not know the successor yet."""
    former: tuple[RetiredAuthority, ...] = ()

    @property
    def bundle(self) -> bytes:
        """The CA bundle: the certificates that API servers trust."""
        successors = () if self.successor is None else (self.successor.pair.certificate,)
        return b"".join((self.authority.pair.certificate, *successors, *(old.certificate for old in self.former)))


class _RotationRecord(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The part of the state that the certificates do not contain."""

    signed_until: int
    announced: int | None = None
    former_until: tuple[int, ...] = ()


_RECORD = "rotation.json"


def secret_data(state: CertificateState) -> dict[str, str]:
    """Encode a state as the `data` of a Secret."""
    notes = _RotationRecord(
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
        _RECORD: msgspec.json.encode(notes),
    }
    if state.successor is not None:
        parts |= {"next-ca.crt": state.successor.pair.certificate, "next-ca.key": state.successor.pair.key}
    return {name: base64.b64encode(part).decode() for name, part in parts.items()}


def read_secret(secret: Object) -> CertificateState:
    """Decode the state in a Secret; raises `InvalidSecret`."""
    data = secret.get("data")
    if not isinstance(data, dict):
        raise InvalidSecret("it has no data")
    try:
        state = _state(data)
    except Exception as failure:
        # Keys and certificates can be malformed in many ways, for which libraries raise many types of exceptions.
        raise InvalidSecret(str(failure) or type(failure).__name__) from failure
    return state


def issued(pair: CertificatePair) -> IssuedCertificate:
    """Read the validity of a certificate."""
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    return IssuedCertificate(
        pair, int(certificate.not_valid_before_utc.timestamp()), int(certificate.not_valid_after_utc.timestamp())
    )


def authorities(bundle: bytes) -> tuple[tuple[bytes, int], ...]:
    """Return the distinct certificates of a bundle and when they expire; nothing if it cannot be decoded."""
    try:
        found = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return ()
    ends = {each.public_bytes(Encoding.PEM): int(each.not_valid_after_utc.timestamp()) for each in found}
    return tuple(ends.items())


def _state(data: Mapping[str, Any]) -> CertificateState:
    notes = msgspec.json.decode(_decoded(data, _RECORD), type=_RotationRecord)
    authority, serving = _matching_pair(data, "ca"), _matching_pair(data, "tls")
    _certificate(serving).verify_directly_issued_by(_certificate(authority))
    former = _decoded(data, "former.crt")
    certificates = x509.load_pem_x509_certificates(former) if former else []
    names = _certificate(serving).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return CertificateState(
        authority=authority,
        serving=serving,
        names=tuple(str(name.value) for name in names),
        signed_until=notes.signed_until,
        successor=_matching_pair(data, "next-ca") if "next-ca.crt" in data else None,
        announced=notes.announced,
        former=tuple(
            RetiredAuthority(certificate.public_bytes(Encoding.PEM), until)
            for certificate, until in zip(certificates, notes.former_until, strict=True)
        ),
    )


def _matching_pair(data: Mapping[str, Any], name: str) -> IssuedCertificate:
    """Decode a certificate and its key, and check that they belong together."""
    found = issued(CertificatePair(_decoded(data, f"{name}.crt"), _decoded(data, f"{name}.key")))
    key = load_pem_private_key(found.pair.key, None)
    if not isinstance(key, EllipticCurvePrivateKey):
        raise InvalidSecret(f"{name}.key is not a key on an elliptic curve")
    if key.public_key() != _certificate(found).public_key():
        raise InvalidSecret(f"{name}.key is not the key of {name}.crt")
    return found


def _certificate(found: IssuedCertificate) -> x509.Certificate:
    return x509.load_pem_x509_certificate(found.pair.certificate)


def _decoded(data: Mapping[str, Any], name: str) -> bytes:
    if name not in data:
        raise InvalidSecret(f"{name} is missing")
    return base64.b64decode(data[name], validate=True)


_DAY = 86_400
_AUTHORITY_NAME = "springtide-webhooks"
_MOST_FORMER = 8
"""How many authorities of a bundle published before are kept; normally it has one or two."""


@dataclass(frozen=True, slots=True)
class CertificateLifetimes:
    """Lifetimes, in seconds. Certificates are renewed when two thirds of their lifetime have passed."""

    authority: int = 365 * _DAY
    serving: int = 30 * _DAY
    propagation: int = 3600
    """How long after its publication every API server has certainly read a bundle."""


class RotationStep(StrEnum):
    """A step of the rotation."""

    BEGIN = "begin"
    PREPARE = "prepare"
    ANNOUNCE = "announce"
    PROMOTE = "promote"
    RENEW = "renew"
    FORGET = "forget"
    WAIT = "wait"


def next_step(
    state: CertificateState | None, now: int, names: Sequence[str], terms: CertificateLifetimes
) -> RotationStep:
    """Return the step that is due; the bundle of the state must be published already."""
    if state is None:
        return RotationStep.BEGIN
    successor = state.successor
    if not _usable(state.authority, now):
        return RotationStep.PROMOTE if successor is not None and _usable(successor, now) else RotationStep.BEGIN
    if successor is None:
        if _is_due(state.authority, now):
            return RotationStep.PREPARE
    elif not _usable(successor, now):
        return RotationStep.PREPARE
    elif state.announced is None or state.announced > now:
        return RotationStep.ANNOUNCE
    elif state.announced + terms.propagation <= now:
        return RotationStep.PROMOTE
    if _must_renew(state, now, names):
        return RotationStep.RENEW
    if any(old.until <= now for old in state.former):
        return RotationStep.FORGET
    return RotationStep.WAIT


def initial_state(
    now: int, names: Sequence[str], terms: CertificateLifetimes, published: bytes = b""
) -> CertificateState:
    """Issue new certificates; published authorities stay in the bundle while their certificates may be served."""
    authority = issued(make_authority(_AUTHORITY_NAME, now=now, seconds=terms.authority))
    serving = _serving(authority, names, now, terms)
    former = tuple(
        RetiredAuthority(certificate, min(ends, now + terms.serving))
        for certificate, ends in authorities(published)[:_MOST_FORMER]
        if ends > now
    )
    return CertificateState(authority, serving, tuple(names), serving.ends, former=former)


def after_step(
    step: RotationStep, state: CertificateState, now: int, names: Sequence[str], terms: CertificateLifetimes
) -> CertificateState:
    """Return the state after a step."""
    match step:
        case RotationStep.PREPARE:
            successor = issued(make_authority(_AUTHORITY_NAME, now=now, seconds=terms.authority))
            return replace(state, successor=successor, announced=None)
        case RotationStep.ANNOUNCE:
            return replace(state, announced=now)
        case RotationStep.PROMOTE:
            return _promoted(state, now, names, terms)
        case RotationStep.RENEW:
            # During an upgrade, replicas may want different names: keep the names that the others want.
            wanted = tuple(names) if set(names) <= set(state.names) else tuple(dict.fromkeys((*names, *state.names)))
            serving = _serving(state.authority, wanted, now, terms)
            return replace(state, serving=serving, names=wanted, signed_until=max(state.signed_until, serving.ends))
        case RotationStep.FORGET:
            return replace(state, former=tuple(old for old in state.former if old.until > now))
        case _:
            return state


def _promoted(state: CertificateState, now: int, names: Sequence[str], terms: CertificateLifetimes) -> CertificateState:
    assert state.successor is not None  # noqa: S101 - PROMOTE is due only with a successor
    serving = _serving(state.successor, names, now, terms)
    former = RetiredAuthority(state.authority.pair.certificate, state.signed_until)
    return CertificateState(state.successor, serving, tuple(names), serving.ends, former=(*state.former, former))


def _serving(
    authority: IssuedCertificate, names: Sequence[str], now: int, terms: CertificateLifetimes
) -> IssuedCertificate:
    seconds = min(terms.serving, authority.ends - now)
    return issued(make_serving(authority.pair, names, now=now, seconds=seconds))


def _must_renew(state: CertificateState, now: int, names: Sequence[str]) -> bool:
    serving = state.serving
    if not _usable(serving, now) or not set(names) <= set(state.names):
        return True
    # A certificate that expires with its authority cannot be renewed for longer.
    return _is_due(serving, now) and serving.ends < state.authority.ends


def _usable(certificate: IssuedCertificate, now: int) -> bool:
    """Return whether a certificate is valid now; the clock may have been wrong when it was issued."""
    return certificate.begins <= now < certificate.ends


def _is_due(certificate: IssuedCertificate, now: int) -> bool:
    return 3 * (now - certificate.begins) >= 2 * (certificate.ends - certificate.begins)
