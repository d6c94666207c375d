"""Access to API servers over HTTP: the transport, kubeconfig and in-cluster loading, credentials."""

from springtide.cluster.http.access import ClusterAccess
from springtide.cluster.http.connections import ServerTrust
from springtide.cluster.http.credentials import (
    AccessError,
    Authentication,
    ClusterCredentials,
    InlineContent,
    StaticCredentials,
)
from springtide.cluster.http.loading import find_access, in_cluster, load_kubeconfig
from springtide.cluster.http.settings import HttpSettings, RetrySettings
from springtide.cluster.http.transport import HttpTransport

__all__ = [
    "AccessError",
    "Authentication",
    "ClusterAccess",
    "ClusterCredentials",
    "HttpSettings",
    "HttpTransport",
    "InlineContent",
    "RetrySettings",
    "ServerTrust",
    "StaticCredentials",
    "find_access",
    "in_cluster",
    "load_kubeconfig",
]
