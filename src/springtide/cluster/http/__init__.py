"""Clusters over HTTP: the transport, how a server is found, and who we are to it."""

from springtide.cluster.http.credentials import AccessError, Credentials, Given, Known, Proof
from springtide.cluster.http.finding import access
from springtide.cluster.http.in_cluster import in_cluster
from springtide.cluster.http.kubeconfig import load_kubeconfig
from springtide.cluster.http.server_access import Access
from springtide.cluster.http.settings import HttpSettings, Retries
from springtide.cluster.http.tls import Trust
from springtide.cluster.http.transport import HttpTransport

__all__ = [
    "Access",
    "AccessError",
    "Credentials",
    "Given",
    "HttpSettings",
    "HttpTransport",
    "Known",
    "Proof",
    "Retries",
    "Trust",
    "access",
    "in_cluster",
    "load_kubeconfig",
]
