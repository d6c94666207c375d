"""The kubeconfig with which kubectl finds the embedded cluster."""

from __future__ import annotations

import base64

from springtide.apis.yaml import dump

NAME = "springtide"


def kubeconfig(url: str, ca: bytes, token: str) -> str:
    """Write a kubeconfig with one cluster, one user and one context; it holds a secret, so write it for the owner."""
    authority = base64.b64encode(ca).decode()
    return dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": NAME, "cluster": {"server": url, "certificate-authority-data": authority}}],
            "users": [{"name": NAME, "user": {"token": token}}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
            "current-context": NAME,
        }
    )
