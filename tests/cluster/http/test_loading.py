"""Loading of kubeconfig files and service accounts, and the errors of wrong ones."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path
from typing import Any

import pytest

from springtide.apis import yaml
from springtide.cluster.http import (
    AccessError,
    Authentication,
    ClusterAccess,
    ServerTrust,
    find_access,
    in_cluster,
    load_kubeconfig,
)
from springtide.cluster.http.credentials import ClientCertificate, InlineContent, read_content

BASIC: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "dev",
    "clusters": [{"name": "c", "cluster": {"server": "https://api.example.com:6443/"}}],
    "users": [{"name": "u", "user": {"token": "secret"}}],
    "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(*, cluster: Any = None, user: Any = None, **others: Any) -> dict[str, Any]:
    """Make a kubeconfig in which only this differs from the usual."""
    made = BASIC | others
    if cluster is not None:
        made |= {"clusters": [{"name": "c", "cluster": BASIC["clusters"][0]["cluster"] | cluster}]}
    if user is not None:
        made |= {"users": [{"name": "u", "user": user}]}
    return made


def write(path: Path, content: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.dump(content))
    return path


def load(folder: Path, content: dict[str, Any], **options: Any) -> ClusterAccess:
    return load_kubeconfig(write(folder / "config", content), environment={}, **options)


def proof(found: ClusterAccess) -> Authentication:
    return asyncio.run(found.credentials.authenticate())


def test_the_current_context_is_taken(tmp_path: Path) -> None:
    found = load(tmp_path, BASIC)

    assert (found.server, found.namespace) == ("https://api.example.com:6443", "shop")
    assert found.origin == f"the context dev of {tmp_path / 'config'}"
    assert proof(found) == Authentication("Bearer secret")
    assert found.trust == ServerTrust()


def test_another_context_can_be_named(tmp_path: Path) -> None:
    contexts = [*BASIC["contexts"], {"name": "other", "context": {"cluster": "c"}}]

    found = load(tmp_path, config(contexts=contexts), context="other")

    assert (found.namespace, proof(found)) == ("default", Authentication())


def test_json_is_read_as_yaml_and_null_as_absent(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        '{"clusters": [{"name": "c", "cluster": {"server": "https://x", "proxy-url": null}}], "users": null,'
        ' "contexts": [{"name": "x", "context": {"cluster": "c", "namespace": null}}], "current-context": "x"}'
    )

    assert load_kubeconfig(path, environment={}).server == "https://x"


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param({}, Authentication(), id="anonymous"),
        pytest.param({"token": "t\n"}, Authentication("Bearer t"), id="token"),
        pytest.param(
            {"tokenFile": "sub/token"}, Authentication("Bearer from-file"), id="token file beside the kubeconfig"
        ),
        pytest.param(
            {"token": "t", "tokenFile": "sub/token"}, Authentication("Bearer from-file"), id="token and token file"
        ),
        pytest.param({"username": "jane", "password": "x"}, Authentication("Basic amFuZTp4"), id="password"),
        pytest.param(
            {"client-certificate": "sub/crt", "client-key": "sub/key"},
            Authentication(certificate=ClientCertificate(b"CERT", b"KEY")),
            id="certificate in files",
        ),
        pytest.param(
            {"client-certificate-data": encoded("C"), "client-certificate": "sub/crt", "client-key-data": encoded("K")},
            Authentication(certificate=ClientCertificate(b"C", b"K")),
            id="certificate in the kubeconfig goes before one in a file",
        ),
        pytest.param(
            {"client-certificate": "sub/crt", "client-key": "sub/key", "token": "t"},
            Authentication("Bearer t", ClientCertificate(b"CERT", b"KEY")),
            id="certificate and token",
        ),
    ],
)
def test_users_authenticate(tmp_path: Path, user: dict[str, Any], expected: Authentication) -> None:
    (tmp_path / "sub").mkdir()
    for name, text in (("token", "from-file\n"), ("crt", "CERT"), ("key", "KEY")):
        (tmp_path / "sub" / name).write_text(text)

    assert proof(load(tmp_path, config(user=user))) == expected


def test_server_and_trust(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("CA")
    secure = {"certificate-authority": "ca.pem", "tls-server-name": "api", "proxy-url": "http://proxy:3128"}

    found = load(tmp_path, config(cluster=secure | {"disable-compression": True}))

    assert found.trust.authority is not None
    assert read_content(found.trust.authority) == b"CA"
    assert (found.trust.server_name, found.trust.insecure) == ("api", False)
    assert (found.proxy, found.compress) == ("http://proxy:3128", False)
    assert load(tmp_path, config(cluster={"insecure-skip-tls-verify": True})).trust == ServerTrust(insecure=True)
    data = load(tmp_path, config(cluster={"certificate-authority-data": encoded("CA2")}))
    assert data.trust.authority == InlineContent(b"CA2")


@pytest.mark.parametrize(
    ("cluster", "server"),
    [
        pytest.param({"server": "localhost:8080"}, "http://localhost:8080", id="no scheme"),
        pytest.param(
            {"server": "api:6443", "insecure-skip-tls-verify": True}, "https://api:6443", id="no scheme, but TLS"
        ),
        pytest.param({"server": "https://[::1]:6443/k8s/c-1/"}, "https://[::1]:6443/k8s/c-1", id="a path"),
    ],
)
def test_servers_are_urls(tmp_path: Path, cluster: dict[str, Any], server: str) -> None:
    assert load(tmp_path, config(cluster=cluster)).server == server


def test_the_environment_names_a_proxy_where_the_file_does_not(tmp_path: Path) -> None:
    path = write(tmp_path / "config", BASIC)
    environment = {"HTTPS_PROXY": "proxy:3128"}

    assert load_kubeconfig(path, environment=environment).proxy == "http://proxy:3128"
    assert load_kubeconfig(path, environment=environment | {"NO_PROXY": ".example.com"}).proxy == ""


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    user = {"token": "hidden", "client-certificate-data": encoded("C"), "client-key-data": encoded("hidden")}
    found = load(tmp_path, config(user=user, cluster={"proxy-url": "http://jane:hidden@proxy"}))

    assert "hidden" not in repr((found, proof(found)))
    with pytest.raises(AccessError, match="'socks5://…@proxy' is not a proxy"):
        load(tmp_path, config(cluster={"proxy-url": "socks5://jane:hidden@proxy"}))


def test_impersonation(tmp_path: Path) -> None:
    user = {
        "token": "t",
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"example.com/scope": ["x", "y"]},
    }

    assert load(tmp_path, config(user=user)).headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-example.com%2Fscope", "x"),
        ("Impersonate-Extra-example.com%2Fscope", "y"),
    )


def test_files_are_merged_in_order_of_precedence(tmp_path: Path) -> None:
    first = write(
        tmp_path / "one" / "config",
        {
            "clusters": [{"name": "c", "cluster": {"server": "https://first"}}],
            "users": [{"name": "u", "user": {"tokenFile": "token"}}],
        },
    )
    (first.parent / "token").write_text("beside the first")
    others = config(contexts=[{"name": "dev", "context": {"cluster": "c", "user": "u"}}])
    second = write(tmp_path / "two" / "config", others)
    third = write(tmp_path / "three", {"current-context": "other"})
    paths = [str(first), "", str(tmp_path / "missing"), str(second), str(third), str(first)]

    found = load_kubeconfig(environment={"KUBECONFIG": os.pathsep.join(paths)})

    assert (found.server, proof(found)) == ("https://first", Authentication("Bearer beside the first"))
    assert found.origin == f"the context dev of {first}, {second}, {third}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param({}, r"config: no current-context is set: set one, or name a context \(none\)", id="empty"),
        pytest.param(config(**{"current-context": "x"}), "there is no context 'x': there are dev", id="no context"),
        pytest.param(config(clusters=[]), r"contexts\[dev\].cluster: there is no cluster 'c'", id="no cluster"),
        pytest.param(config(users=[]), r"contexts\[dev\].user: there is no user 'u': there are none", id="no user"),
        pytest.param(config(cluster={"server": ""}), r"clusters\[c\].server: it is not set", id="no server"),
        pytest.param(
            config(cluster={"server": "ftp://x"}), r"server: 'ftp://x' is not the URL of a server", id="server"
        ),
        pytest.param(
            config(cluster={"server": "https://jane:x@api"}), r"server: a URL with a user in it", id="a user in the URL"
        ),
        pytest.param(config(cluster={"server": "https://x:y"}), "is not the URL of a server", id="port"),
        pytest.param(
            config(cluster={"proxy-url": "socks5://x"}),
            r"clusters\[c\].proxy-url: 'socks5://x' is not a proxy that can be used",
            id="socks",
        ),
        pytest.param(
            config(cluster={"certificate-authority": "no.pem"}),
            r"clusters\[c\].certificate-authority: cannot read .*no.pem: No such file",
            id="no authority",
        ),
        pytest.param(
            config(cluster={"certificate-authority-data": "%%"}),
            r"clusters\[c\].certificate-authority-data: it is not in base64",
            id="not in base64",
        ),
        pytest.param(
            config(cluster={"certificate-authority-data": "AAAA", "insecure-skip-tls-verify": True}),
            "exclude each other",
            id="insecure with an authority",
        ),
        pytest.param(
            config(user={"tokenFile": "nowhere"}), r"users\[u\].tokenFile: cannot read .*nowhere", id="no token file"
        ),
        pytest.param(
            config(user={"client-certificate-data": "AAAA"}), r"users\[u\].client-key: it is not set", id="no key"
        ),
        pytest.param(
            config(user={"auth-provider": {"name": "gcp"}}),
            r"users\[u\].auth-provider: 'gcp' is not supported.* use an exec plugin",
            id="auth provider",
        ),
        pytest.param(config(user={"as-groups": ["a"]}), r"users\[u\].as: it is not set", id="groups without a user"),
        pytest.param(config(user={"as": "a\nb"}), r"users\[u\].as: a name has a line break", id="a line break"),
        pytest.param(
            config(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}),
            r"users\[u\].exec.command: it is not set",
            id="no command",
        ),
        pytest.param(
            config(user={"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
            r"users\[u\].exec.apiVersion: '.*v1alpha1' is none of .*v1, .*v1beta1",
            id="an old plugin",
        ),
        pytest.param(
            config(user={"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}}),
            r"users\[u\].exec.interactiveMode: it is not set: say Never",
            id="no interactive mode",
        ),
        pytest.param(config(user={"token": 7}), r"config: users\[0\].user.token: expected `str`, got `int`", id="type"),
    ],
)
def test_errors_name_the_field(tmp_path: Path, content: dict[str, Any], message: str) -> None:
    with pytest.raises(AccessError, match=message) as caught:
        load(tmp_path, content)
    assert str(tmp_path / "config") in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "No such file or directory", id="no file"),
        pytest.param(b"a: [", r"config:1:\d+: ", id="no YAML"),
        pytest.param(b"\xff", "not text in UTF-8", id="no text"),
        pytest.param(b"just words", "the file: expected `object`, got `str`", id="no mapping"),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "config"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(AccessError, match=message) as caught:
        load_kubeconfig(path, environment={})
    assert str(path) in str(caught.value)


@pytest.fixture
def service_account(tmp_path: Path) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    for name, text in (("token", "of the pod"), ("ca.crt", "CA"), ("namespace", "ours\n")):
        (folder / name).write_text(text)
    return folder


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_a_pod_has_the_access_of_its_service_account(service_account: Path) -> None:
    found = in_cluster(folder=service_account, environment=POD)

    assert (found.server, found.namespace) == ("https://10.0.0.1:443", "ours")
    assert proof(found) == Authentication("Bearer of the pod")
    (service_account / "token").write_text("of the pod, later")
    assert proof(found) == Authentication("Bearer of the pod, later")
    assert found.trust.authority is not None
    (service_account / "ca.crt").write_text("another CA")
    assert read_content(found.trust.authority) == b"another CA"


def test_addresses_of_version_six_are_put_in_brackets(service_account: Path) -> None:
    environment = POD | {"KUBERNETES_SERVICE_HOST": "fd00::1"}

    assert in_cluster(folder=service_account, environment=environment).server == "https://[fd00::1]:443"


@pytest.mark.parametrize(
    ("environment", "missing", "message"),
    [
        pytest.param({}, "", "this is not a pod", id="no variables"),
        pytest.param(POD, "token", "cannot read .*token: No such file", id="no token"),
        pytest.param(POD, "ca.crt", "cannot read .*ca.crt: No such file", id="no authority"),
    ],
)
def test_errors_of_an_incomplete_service_account(
    service_account: Path, environment: dict[str, str], missing: str, message: str
) -> None:
    if missing:
        (service_account / missing).unlink()

    with pytest.raises(AccessError, match=message):
        in_cluster(folder=service_account, environment=environment)


def test_precedence_of_the_sources_of_access(tmp_path: Path, service_account: Path) -> None:
    """Arguments, then KUBECONFIG, then the service account of the pod, then ~/.kube/config."""
    said = write(tmp_path / "said", config(cluster={"server": "https://said"}))
    named = write(tmp_path / "named", config(cluster={"server": "https://named"}))
    write(tmp_path / ".kube" / "config", config(cluster={"server": "https://home"}))
    everything = POD | {"KUBECONFIG": str(named), "HOME": str(tmp_path)}

    def server(kubeconfig: Path | None, context: str | None, **environment: str) -> str:
        return find_access(kubeconfig, context, environment=environment, service_account=service_account).server

    assert server(said, None, **everything) == "https://said"
    assert server(None, None, **everything) == "https://named"
    del everything["KUBECONFIG"]
    assert server(None, None, **everything) == "https://10.0.0.1:443"
    assert server(None, "dev", **everything) == "https://home"
    assert server(None, None, HOME=str(tmp_path)) == "https://home"
    with pytest.raises(AccessError, match="no cluster is named"):
        server(None, None, HOME=str(tmp_path / "nobody"))
