"""Access to an embedded cluster: a certificate authority, a bearer token, and the kubeconfig file with both.

The credentials are stored with the cluster's data, if it has a data folder, so that a kubeconfig stays valid across
restarts. A kubeconfig that `springtide up` writes begins with a header line; a file without it, such as the user's own
`~/.kube/config`, is never overwritten.
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
    """Stores small values by name."""

    def get(self, name: str) -> bytes | None:
        """Return the value under a name, if there is one."""
        ...

    def set(self, name: str, value: bytes) -> None:
        """Store a value under a name."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddedCredentials:
    """The certificate authority that clients trust, and the token that they send."""

    authority: CertificatePair
    token: str = field(repr=False)


def load_credentials(store: SecretStore | None) -> EmbeddedCredentials:
    """Load the stored credentials; create new ones where there are none or the certificate is not valid now."""
    now = int(time.time())
    found = _stored(store) if store is not None else None
    if found is not None and _is_valid(found.authority, now):
        return found
    authority = make_authority("springtide-embedded", now=now, seconds=_AUTHORITY_SECONDS)
    made = EmbeddedCredentials(authority, secrets.token_urlsafe(32))
    if store is not None:
        store.set(_CERTIFICATE, made.authority.certificate)
        store.set(_KEY, made.authority.key)
        # The token comes last: where it is stored, the other two are.
        store.set(_TOKEN, made.token.encode())
    return made


def _is_valid(authority: CertificatePair, now: int) -> bool:
    """Return whether the certificate is valid now; the clock may have been wrong when it was issued."""
    certificate = issued(authority)
    return certificate.begins <= now < certificate.ends


def _stored(store: SecretStore) -> EmbeddedCredentials | None:
    certificate, key, token = (store.get(name) for name in (_CERTIFICATE, _KEY, _TOKEN))
    if certificate is None or key is None or token is None:
        return None
    return EmbeddedCredentials(CertificatePair(certificate, key), token.decode())


_HEADER = "# Written by `springtide up`, which may replace it.\n"


class KubeconfigFile:
    """A kubeconfig file that is written once the cluster is ready."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._text: str | None = None

    def write(self, text: str) -> None:
        """Write the file atomically, readable by its owner only."""
        self._text = _HEADER + text
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The temporary name is random: other users may be able to write to the folder.
        number, draft = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        with os.fdopen(number, "w") as file:
            file.write(self._text)
        os.replace(draft, self.path)

    def remove(self) -> None:
        """Remove the file if it still has the content that `write` gave it."""
        if self._text is not None and self.path.is_file() and self.path.read_text() == self._text:
            self.path.unlink()


@contextmanager
def kubeconfig_file(requested: Path | None, data: Path | None) -> Iterator[KubeconfigFile]:
    """Choose the path of the kubeconfig; the file is removed at the end, unless it is in the data folder.

    Raises `OSError` where the requested path has a file that `springtide up` has not written.
    """
    with ExitStack() as stack:
        if requested is not None:
            _refuse_foreign_file(requested)
            file = KubeconfigFile(requested)
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
    # Only regular files are read: a device may have no end.
    text = path.read_text(errors="replace") if path.is_file() else "not a regular file"
    if text and not text.startswith(_HEADER):
        msg = f'"{path}" already exists and was not written by `springtide up`: choose another file for --kubeconfig'
        raise FileExistsError(msg)
