"""What clients of an embedded cluster need: an authority to trust, and a token. Kept with the data, if there are any,
so that a kubeconfig stays good for as long as the cluster does.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Protocol

from springtide.cluster.certificates import Pair, make_authority
from springtide.cluster.certificates.state import issued

_AUTHORITY_SECONDS = 3650 * 86_400
_TOKEN, _CERTIFICATE, _KEY = "token", "authority.crt", "authority.key"


class Keeping(Protocol):
    """Where small things are kept by name, besides objects."""

    def get(self, name: str) -> bytes | None:
        """Give what is kept under a name, if anything is."""
        ...

    def set(self, name: str, value: bytes) -> None:
        """Keep something under a name."""
        ...


@dataclass(frozen=True, slots=True)
class Credentials:
    """Whom clients trust, and what they show."""

    authority: Pair
    token: str = field(repr=False)


def credentials(kept: Keeping | None) -> Credentials:
    """Give the credentials that are kept; new ones where there are none, or where nobody would believe them now."""
    now = int(time.time())
    found = _kept(kept) if kept is not None else None
    if found is not None and _is_believed(found.authority, now):
        return found
    authority = make_authority("springtide-embedded", now=now, seconds=_AUTHORITY_SECONDS)
    made = Credentials(authority, secrets.token_urlsafe(32))
    if kept is not None:
        kept.set(_CERTIFICATE, made.authority.certificate)
        kept.set(_KEY, made.authority.key)
        # Last: with it, everything is there.
        kept.set(_TOKEN, made.token.encode())
    return made


def _is_believed(authority: Pair, now: int) -> bool:
    """Tell whether it is good now; the clock may have been wrong when it was made."""
    certificate = issued(authority)
    return certificate.begins <= now < certificate.ends


def _kept(kept: Keeping) -> Credentials | None:
    certificate, key, token = (kept.get(name) for name in (_CERTIFICATE, _KEY, _TOKEN))
    if certificate is None or key is None or token is None:
        return None
    return Credentials(Pair(certificate, key), token.decode())
