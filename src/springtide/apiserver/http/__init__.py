"""The API server on HTTP, for kubectl, client libraries and Springtide's own transport."""

from springtide.apiserver.http.app import ApiApp
from springtide.apiserver.http.auth import TokenAuthenticator, kubeconfig

__all__ = ["ApiApp", "TokenAuthenticator", "kubeconfig"]
