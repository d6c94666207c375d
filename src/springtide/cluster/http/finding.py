"""Which cluster is meant, where several answers are possible."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from springtide.cluster.http.credentials import AccessError
from springtide.cluster.http.in_cluster import SERVICE_ACCOUNT, in_cluster, runs_in_cluster
from springtide.cluster.http.kubeconfig import default_file, load_kubeconfig
from springtide.cluster.http.server_access import Access


def access(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """Take what is said, else KUBECONFIG, else the service account of our pod, else ~/.kube/config.

    A context is always one of a kubeconfig file. `origin` of the answer tells what was taken.
    """
    if kubeconfig is not None or context or environment.get("KUBECONFIG"):
        return load_kubeconfig(kubeconfig, context=context, environment=environment)
    if runs_in_cluster(service_account, environment):
        return in_cluster(folder=service_account, environment=environment)
    if default_file(environment).exists():
        return load_kubeconfig(environment=environment)
    raise AccessError(
        "no cluster is named: there is no kubeconfig file given, KUBECONFIG is not set, this is not a pod,"
        f" and there is no {default_file(environment)}"
    )
