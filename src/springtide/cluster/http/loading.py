"""Loading rules for cluster access: a kubeconfig file and context as with kubectl, or the service account of a pod."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, urlsplit

from springtide.apis.redaction import redacted_address
from springtide.cluster.http.access import ClusterAccess, checked_proxy, is_http_url, proxy_for
from springtide.cluster.http.connections import ServerTrust
from springtide.cluster.http.credentials import (
    AccessError,
    ChangingFile,
    ClusterCredentials,
    ContentSource,
    InlineContent,
    StaticCredentials,
    read_content,
)
from springtide.cluster.http.exec_plugin import ExecCredentials, ExecPlugin
from springtide.cluster.http.kubeconfig_file import (
    ClusterEntry,
    ExecEntry,
    FoundEntry,
    Kubeconfig,
    UserEntry,
    read_files,
)

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts and rotates the token."""


def in_cluster(*, folder: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ) -> ClusterAccess:
    """Return the access of the pod that this process runs in; token and authority are read again when they change."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise AccessError("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is not a pod")
    token, authority = ChangingFile(folder / "token"), ChangingFile(folder / "ca.crt")
    for file in (token, authority):
        if not read_content(file).strip():
            raise AccessError(f"{file.path} is empty: is automountServiceAccountToken of the pod off?")
    namespace = folder / "namespace"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return ClusterAccess(
        server=server,
        origin=f"the service account in {folder}",
        trust=ServerTrust(authority),
        credentials=StaticCredentials(token=token),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        proxy=proxy_for(server, environment),
    )


def runs_in_cluster(folder: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process runs in a pod with a service account."""
    return bool(environment.get("KUBERNETES_SERVICE_HOST")) and (folder / "token").exists()


EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"


def load_kubeconfig(
    path: Path | None = None, *, context: str | None = None, environment: Mapping[str, str] = os.environ
) -> ClusterAccess:
    """Load a file, else the files in KUBECONFIG, else ~/.kube/config; the given context, else the current one."""
    files = [path] if path is not None else kubeconfig_files(environment)
    if not files:
        raise AccessError("KUBECONFIG names no file that exists, and there is no ~/.kube/config: name one")
    return access_in(read_files(files), files, context, environment)


def kubeconfig_files(environment: Mapping[str, str]) -> list[Path]:
    """Return the default files that exist, in order of precedence."""
    named = environment.get("KUBECONFIG", "")
    places = [Path(part) for part in named.split(os.pathsep) if part] if named else [default_file(environment)]
    return [place for place in dict.fromkeys(places) if place.exists()]


def default_file(environment: Mapping[str, str]) -> Path:
    """Return the path of ~/.kube/config."""
    home = environment.get("HOME")
    return (Path(home) if home else Path.home()) / ".kube" / "config"


def access_in(
    config: Kubeconfig, files: Sequence[Path], context: str | None, environment: Mapping[str, str]
) -> ClusterAccess:
    """Resolve a context to its cluster and user."""
    read = ", ".join(map(str, files))
    name = context or config.current_context
    if not name:
        raise AccessError(f"{read}: no current-context is set: set one, or name a context ({_names(config.contexts)})")
    found = config.contexts.get(name)
    if found is None:
        raise AccessError(f"{read}: there is no context {name!r}: there are {_names(config.contexts)}")
    chosen = found.entry
    cluster = config.clusters.get(chosen.cluster)
    if cluster is None:
        raise AccessError(
            f"{found.file}: contexts[{name}].cluster: there is no cluster {chosen.cluster!r}:"
            f" there are {_names(config.clusters)}"
        )
    user = config.users.get(chosen.user)
    if user is None and chosen.user:
        raise AccessError(
            f"{found.file}: contexts[{name}].user: there is no user {chosen.user!r}: there are {_names(config.users)}"
        )
    place = f"{cluster.file}: clusters[{chosen.cluster}]"
    server = _server(cluster.entry, place)
    trust = _trust(cluster, place)
    proxy = checked_proxy(cluster.entry.proxy_url, f"{place}.proxy-url") or proxy_for(server, environment)
    return ClusterAccess(
        server=server,
        origin=f"the context {name} of {read}",
        trust=trust,
        credentials=StaticCredentials()
        if user is None
        else _credentials(user, chosen.user, cluster.entry, server, trust),
        namespace=chosen.namespace or "default",
        proxy=proxy,
        compress=not cluster.entry.disable_compression,
        headers=() if user is None else _impersonation(user, chosen.user),
    )


def _names(entries: Mapping[str, object]) -> str:
    return ", ".join(sorted(entries)) or "none"


def _server(cluster: ClusterEntry, place: str) -> str:
    if not cluster.server:
        raise AccessError(f"{place}.server: it is not set: give the URL of the API server")
    url = cluster.server
    if "://" not in url:
        secured = cluster.certificate_authority or cluster.certificate_authority_data
        url = f"https://{url}" if secured or cluster.insecure_skip_tls_verify else f"http://{url}"
    if not is_http_url(url):
        raise AccessError(
            f"{place}.server: {redacted_address(cluster.server)!r} is not the URL of a server: give one with https://"
        )
    if "@" in urlsplit(url).netloc:
        raise AccessError(f"{place}.server: a URL with a user in it is not supported: name the user under users")
    return url.rstrip("/")


def _trust(cluster: FoundEntry[ClusterEntry], place: str) -> ServerTrust:
    entry = cluster.entry
    given = entry.certificate_authority or entry.certificate_authority_data
    if entry.insecure_skip_tls_verify and given:
        raise AccessError(
            f"{place}: insecure-skip-tls-verify and a certificate authority exclude each other: leave one of them out"
        )
    authority = _content(
        entry.certificate_authority, entry.certificate_authority_data, cluster.file, place, "certificate-authority"
    )
    return ServerTrust(authority, entry.insecure_skip_tls_verify, entry.tls_server_name)


def _credentials(
    user: FoundEntry[UserEntry], name: str, cluster: ClusterEntry, server: str, trust: ServerTrust
) -> ClusterCredentials:
    entry = user.entry
    place = f"{user.file}: users[{name}]"
    if entry.auth_provider is not None:
        kind = entry.auth_provider.get("name", "")
        raise AccessError(
            f"{place}.auth-provider: {kind!r} is not supported, and kubectl has removed it, too:"
            " use an exec plugin of your provider"
        )
    certificate = _content(
        entry.client_certificate, entry.client_certificate_data, user.file, place, "client-certificate"
    )
    key = _content(entry.client_key, entry.client_key_data, user.file, place, "client-key")
    if (certificate is None) != (key is None):
        missing = "client-certificate" if certificate is None else "client-key"
        raise AccessError(f"{place}.{missing}: it is not set: a client certificate and its key go together")
    if entry.exec_ is not None:
        return ExecCredentials(_plugin(entry.exec_, user.file, place, cluster, server, trust))
    token = _content(entry.token_file, "", user.file, place, "tokenFile")
    if token is None and entry.token:
        token = InlineContent(entry.token.encode())
    pair = None if certificate is None or key is None else (certificate, key)
    password = (entry.username, entry.password) if entry.username else None
    return StaticCredentials(token=token, password=password, certificate=pair)


def _plugin(
    entry: ExecEntry, file: Path, place: str, cluster: ClusterEntry, server: str, trust: ServerTrust
) -> ExecPlugin:
    if not entry.command:
        raise AccessError(f"{place}.exec.command: it is not set: name the program that gives the credentials")
    if entry.api_version not in EXEC_VERSIONS:
        raise AccessError(f"{place}.exec.apiVersion: {entry.api_version!r} is none of {', '.join(EXEC_VERSIONS)}")
    if not entry.interactive_mode and entry.api_version == EXEC_VERSIONS[0]:
        raise AccessError(f"{place}.exec.interactiveMode: it is not set: say Never, IfAvailable or Always")
    return ExecPlugin(
        source=place,
        api_version=entry.api_version,
        command=entry.command,
        arguments=tuple(entry.args),
        environment={variable.name: variable.value for variable in entry.env},
        folder=file.parent,
        install_hint=entry.install_hint,
        interactive=entry.interactive_mode or "IfAvailable",
        cluster=_exec_cluster_info(cluster, server, trust) if entry.provide_cluster_info else None,
    )


def _exec_cluster_info(cluster: ClusterEntry, server: str, trust: ServerTrust) -> dict[str, object]:
    """Return the cluster as an exec plugin sees it in KUBERNETES_EXEC_INFO."""
    info: dict[str, object] = {
        "server": server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
    }
    if trust.authority is not None:
        info["certificate-authority-data"] = base64.b64encode(read_content(trust.authority)).decode()
    config = [extension.extension for extension in cluster.extensions if extension.name == _EXEC_EXTENSION]
    return {name: value for name, value in info.items() if value} | ({"config": config[0]} if config else {})


def _content(path: str, data: str, file: Path, place: str, name: str) -> ContentSource | None:
    """Return inline data, else the content of a file; data takes precedence over a path, as with kubectl."""
    if data:
        try:
            return InlineContent(base64.b64decode(data, validate=True))
        except binascii.Error as failure:
            raise AccessError(f"{place}.{name}-data: it is not in base64: {failure}") from failure
    if not path:
        return None
    content = ChangingFile(file.parent / path)
    try:
        content.read()
    except OSError as failure:
        raise AccessError(f"{place}.{name}: cannot read {content.path}: {failure.strerror}") from failure
    return content


def _impersonation(user: FoundEntry[UserEntry], name: str) -> tuple[tuple[str, str], ...]:
    """Return the impersonation headers."""
    entry = user.entry
    others = entry.as_uid or entry.as_groups or entry.as_user_extra
    if others and not entry.as_:
        raise AccessError(f"{user.file}: users[{name}].as: it is not set: groups, uid and extra need a user")
    headers = [("Impersonate-User", entry.as_)] if entry.as_ else []
    headers += [("Impersonate-Uid", entry.as_uid)] if entry.as_uid else []
    headers += [("Impersonate-Group", group) for group in entry.as_groups]
    headers += [
        (f"Impersonate-Extra-{quote(key, safe='')}", value)
        for key, values in entry.as_user_extra.items()
        for value in values
    ]
    if not all(part.isprintable() for header in headers for part in header):
        raise AccessError(f"{user.file}: users[{name}].as: a name has a line break or another control character")
    return tuple(headers)


def find_access(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> ClusterAccess:
    """Load what is given, else KUBECONFIG, else the service account of the pod, else ~/.kube/config.

    A context is always one of a kubeconfig file. `origin` of the result says what was used.
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
