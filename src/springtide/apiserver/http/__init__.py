"""The embedded API server on HTTP: what kubectl, client libraries and our own transport talk to."""

from springtide.apiserver.http.app import ApiApp
from springtide.apiserver.http.auth import TokenAuthenticator, kubeconfig

__all__ = ["ApiApp", "TokenAuthenticator", "kubeconfig"]
