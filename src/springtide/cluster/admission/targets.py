"""Where the API server reaches the webhooks: through a Service, or at a URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit

from springtide.cluster.resources import Object


@dataclass(frozen=True, slots=True)
class ServiceTarget:
    """A Service of the cluster; the usual way."""

    namespace: str
    name: str
    port: int = 443

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a certificate must have; API servers ask for the first."""
        within = f"{self.name}.{self.namespace}.svc"
        return within, f"{within}.cluster.local", f"{self.name}.{self.namespace}"

    def client_config(self, path: str) -> Object:
        """Write it as a `clientConfig`, without the authority to trust."""
        return {"service": {"namespace": self.namespace, "name": self.name, "path": path, "port": self.port}}


@dataclass(frozen=True, slots=True)
class UrlTarget:
    """A server that the API server reaches without a Service: in the same process, or on the same machine."""

    url: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a certificate must have."""
        host = urlsplit(self.url).hostname or ""
        return (host,) if host == "localhost" else (host, "localhost")

    def client_config(self, path: str) -> Object:
        """Write it as a `clientConfig`, without the authority to trust."""
        return {"url": f"{self.url.rstrip('/')}{path}"}


Target: TypeAlias = ServiceTarget | UrlTarget
