"""Access from within a pod, with the service account that the cluster has given it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from springtide.cluster.http.credentials import AccessError, Known, read
from springtide.cluster.http.files import ChangingFile
from springtide.cluster.http.proxies import proxy_for
from springtide.cluster.http.server_access import Access
from springtide.cluster.http.tls import Trust

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet keeps the token fresh."""


def in_cluster(*, folder: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ) -> Access:
    """Give the access of the pod that we run in; token and authority are read again whenever they change."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise AccessError("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is not a pod")
    token, authority = ChangingFile(folder / "token"), ChangingFile(folder / "ca.crt")
    for file in (token, authority):
        if not read(file).strip():
            raise AccessError(f"{file.path} is empty: is automountServiceAccountToken of the pod off?")
    namespace = folder / "namespace"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Access(
        server=server,
        origin=f"the service account in {folder}",
        trust=Trust(authority),
        credentials=Known(token=token),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        proxy=proxy_for(server, environment),
    )


def runs_in_cluster(folder: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether this is a pod with a service account."""
    return bool(environment.get("KUBERNETES_SERVICE_HOST")) and (folder / "token").exists()
