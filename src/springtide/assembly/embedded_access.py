"""What clients of an embedded cluster need: an authority to trust, and a token. Kept with the data, if there are any,
so that a kubeconfig stays good for as long as the cluster does.

The kubeconfig of an embedded cluster, as a file: there once the cluster is ready, and never in place of another's.

People name files here that they care for, such as `~/.kube/config`. What `springtide up` writes begins with a line by
which it is known again; any other file is left as it is.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from springtide.cluster.certificates import CertificatePair, make_authority
from springtide.cluster.certificates.rotation import issued

_AUTHORITY_SECONDS = 3650 * 86_400
_TOKEN, _CERTIFICATE, _KEY = "token", "authority.crt", "authority.key"


class SecretStore(Protocol):
    """Where small things are kept by name, besides objects."""

    def get(self, name: str) -> bytes | None:
        """Give what is kept under a name, if anything is."""
        ...

    def set(self, name: str, value: bytes) -> None:
        """Keep something under a name."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddedCredentials:
    """Whom clients trust, and what they show."""

    authority: CertificatePair
    token: str = field(repr=False)


def load_credentials(kept: SecretStore | None) -> EmbeddedCredentials:
    """Give the credentials that are kept; new ones where there are none, or where nobody would believe them now."""
    now = int(time.time())
    found = _stored(kept) if kept is not None else None
    if found is not None and _is_valid(found.authority, now):
        return found
    authority = make_authority("springtide-embedded", now=now, seconds=_AUTHORITY_SECONDS)
    made = EmbeddedCredentials(authority, secrets.token_urlsafe(32))
    if kept is not None:
        kept.set(_CERTIFICATE, made.authority.certificate)
        kept.set(_KEY, made.authority.key)
        # Last: with it, everything is there.
        kept.set(_TOKEN, made.token.encode())
    return made


def _is_valid(authority: CertificatePair, now: int) -> bool:
    """Tell whether it is good now; the clock may have been wrong when it was made."""
    certificate = issued(authority)
    return certificate.begins <= now < certificate.ends


def _stored(kept: SecretStore) -> EmbeddedCredentials | None:
    certificate, key, token = (kept.get(name) for name in (_CERTIFICATE, _KEY, _TOKEN))
    if certificate is None or key is None or token is None:
        return None
    return EmbeddedCredentials(CertificatePair(certificate, key), token.decode())


_HEADER = "# Written by `springtide up`, which may replace it.\n"


class KubeconfigFile:
    """A file that holds a kubeconfig as soon as there is one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._text: str | None = None

    def write(self, text: str) -> None:
        """Write it so that nobody else can read it, as a whole: whoever waits for it finds it complete."""
        self._text = _HEADER + text
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Under a name that nobody can foresee: the folder may be one in which others write, too.
        number, draft = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        with os.fdopen(number, "w") as file:
            file.write(self._text)
        os.replace(draft, self.path)

    def remove(self) -> None:
        """Remove it, if it was written and nobody has written another since."""
        if self._text is not None and self.path.is_file() and self.path.read_text() == self._text:
            self.path.unlink()


@contextmanager
def kubeconfig_file(asked_for: Path | None, data: Path | None) -> Iterator[KubeconfigFile]:
    """Tell where the kubeconfig goes; it is gone when the block is left, unless it belongs to data that are kept.

    Raises `OSError` where a file is in the way that is not ours.
    """
    with ExitStack() as stack:
        if asked_for is not None:
            _refuse_foreign_file(asked_for)
            file = KubeconfigFile(asked_for)
            stack.callback(file.remove)
        elif data is not None:
            file = KubeconfigFile(data / "kubeconfig")
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="springtide-"))
            file = KubeconfigFile(Path(folder) / "kubeconfig")
        yield file


def _refuse_foreign_file(path: Path) -> None:
    if not path.exists():
        return
    # What is no file, such as a device, is not read: it may have no end.
    text = path.read_text(errors="replace") if path.is_file() else "something"
    if text and not text.startswith(_HEADER):
        msg = f'"{path}" is there already, and `springtide up` has not written it: choose another file for --kubeconfig'
        raise FileExistsError(msg)
