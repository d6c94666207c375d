"""The embedded API server on HTTP: what kubectl, client libraries and our own transport talk to."""

from springtide.simulator.http.app import ApiApp
from springtide.simulator.http.kubeconfig import kubeconfig
from springtide.simulator.http.tokens import Tokens

__all__ = ["ApiApp", "Tokens", "kubeconfig"]
