"""The format of kubeconfig files: the fields that say how to access a cluster, and how several files are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec

from springtide.apis import yaml
from springtide.cluster.http.credentials import AccessError

T = TypeVar("T")


class ClusterExtension(msgspec.Struct):
    """Extra data of a cluster entry, for the program that wrote it."""

    name: str
    extension: Any = None


class ClusterEntry(msgspec.Struct, rename="kebab"):
    """Where a server is."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[ClusterExtension] = []


class ExecVariable(msgspec.Struct):
    """A variable of an exec plugin's environment."""

    name: str
    value: str = ""


class ExecEntry(msgspec.Struct, rename="camel"):
    """A program that gives credentials."""

    command: str = ""
    args: list[str] = []
    env: list[ExecVariable] = []
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: Literal["Never", "IfAvailable", "Always", ""] = ""


class UserEntry(msgspec.Struct, rename="kebab"):
    """How a user authenticates."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    as_: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}
    auth_provider: dict[str, Any] | None = None
    exec_: ExecEntry | None = msgspec.field(name="exec", default=None)


class ContextEntry(msgspec.Struct):
    """Which user on which server."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _Cluster(msgspec.Struct):
    name: str
    cluster: ClusterEntry = msgspec.field(default_factory=ClusterEntry)


class _User(msgspec.Struct):
    name: str
    user: UserEntry = msgspec.field(default_factory=UserEntry)


class _Context(msgspec.Struct):
    name: str
    context: ContextEntry = msgspec.field(default_factory=ContextEntry)


class _File(msgspec.Struct, rename="kebab"):
    clusters: list[_Cluster] = []
    users: list[_User] = []
    contexts: list[_Context] = []
    current_context: str = ""


@dataclass(frozen=True, slots=True)
class FoundEntry(Generic[T]):
    """An entry, and the file that it was read from."""

    entry: T
    file: Path


@dataclass(slots=True)
class Kubeconfig:
    """Several files merged: of entries with the same name, the first is used as a whole."""

    clusters: dict[str, FoundEntry[ClusterEntry]] = field(default_factory=dict)
    users: dict[str, FoundEntry[UserEntry]] = field(default_factory=dict)
    contexts: dict[str, FoundEntry[ContextEntry]] = field(default_factory=dict)
    current_context: str = ""


def read_files(paths: Sequence[Path]) -> Kubeconfig:
    """Read and merge files, in order of precedence."""
    merged = Kubeconfig()
    for path in paths:
        file = _read_file(path)
        for cluster in file.clusters:
            merged.clusters.setdefault(cluster.name, FoundEntry(cluster.cluster, path))
        for user in file.users:
            merged.users.setdefault(user.name, FoundEntry(user.user, path))
        for context in file.contexts:
            merged.contexts.setdefault(context.name, FoundEntry(context.context, path))
        merged.current_context = merged.current_context or file.current_context
    return merged


def _read_file(path: Path) -> _File:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as failure:
        raise AccessError(f"cannot read the kubeconfig file {path}: {failure.strerror}") from failure
    except UnicodeDecodeError as failure:
        raise AccessError(f"cannot read the kubeconfig file {path}: it is not text in UTF-8") from failure
    documents = yaml.read(text)
    if not documents:
        return _File()
    first = documents[0]
    if isinstance(first, yaml.UnreadableDocument):
        hint = f"; {first.hint}" if first.hint else ""
        raise AccessError(f"{path}:{first.line}:{first.column}: {first.message}{hint}")
    try:
        return msgspec.convert(_without_nulls(first.value), _File)
    except msgspec.ValidationError as error:
        raise AccessError(f"{path}: {_placed(str(error))}") from error


def _without_nulls(value: Any) -> Any:
    """Drop null values: null means the same as absent."""
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value if inner is not None]
    return value


def _placed(message: str) -> str:
    """Put the path in front of a message of msgspec."""
    what, at, where = message.partition(" - at `$")
    place = where.rstrip("`").lstrip(".") or "the file"
    return f"{place}: {what[:1].lower()}{what[1:]}" if at else f"the file: {what[:1].lower()}{what[1:]}"
