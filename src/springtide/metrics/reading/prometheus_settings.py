"""Where Prometheus is, and how we prove to it who we are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """A server with the HTTP API of Prometheus. What cannot work is refused with a `ValueError`.

    Secrets stand in files, which are read again when they change, or in headers; neither is ever shown.
    """

    url: str
    """Where it is, up to and without `/api/v1`."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every query, such as `X-Scope-OrgID`."""
    bearer_token_file: Path | None = None
    """A file with a token, such as that of a service account."""
    username: str = ""
    """For basic authentication, together with `password_file`."""
    password_file: Path | None = None
    """A file with the password."""
    ca_file: Path | None = None
    """Certificates of authorities, in PEM; without it, those that the machine trusts."""
    client_certificate_file: Path | None = None
    """A certificate to show, in PEM, together with `client_key_file`."""
    client_key_file: Path | None = None
    """The key of that certificate."""
    server_name: str = ""
    """The name that the server's certificate must be for, where it is not that of the URL."""
    timeout: float = 10.0
    """Seconds for a query and its answer."""
    largest: int = 1024 * 1024
    """Bytes of an answer beyond which it is refused: the answer is to be one sample."""
    connections: int = 16
    """How many queries are asked side by side at most."""

    def __post_init__(self) -> None:
        _check_url(self.url)
        if bool(self.username) != (self.password_file is not None):
            raise ValueError("a user name for Prometheus and a file with its password go together: give both or none")
        if (self.client_certificate_file is None) != (self.client_key_file is None):
            raise ValueError("a client certificate for Prometheus and its key go together: give both files or none")
        proofs = [self.bearer_token_file is not None, bool(self.username), _names(self.headers, "authorization")]
        if sum(proofs) > 1:
            raise ValueError("give one of a bearer token, a user name and an Authorization header for Prometheus")
        if self.timeout <= 0 or self.largest <= 0 or self.connections <= 0:
            raise ValueError("timeout, size and connections of Prometheus must be positive")
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a header")
            if not value.isprintable():
                raise ValueError(f"the header {name} has characters that no header has")

    @property
    def address(self) -> str:
        """The URL that queries are sent below, as Grants name it."""
        return self.url.rstrip("/") + "/"


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        # Not shown: whatever was meant, it may have a password in it.
        raise ValueError("the URL of Prometheus must begin with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "the URL of Prometheus must not hold a password: give a user name and a file with the password"
        )
    if parts.query or parts.fragment:
        raise ValueError("the URL of Prometheus must end with its path: give what follows a `?` as headers")


def _names(headers: Mapping[str, str], wanted: str) -> bool:
    return any(name.lower() == wanted for name in headers)
