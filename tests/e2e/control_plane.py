"""A real control plane on loopback: etcd, kube-apiserver, and the scheduler and controller-manager where wanted.

They are plain processes with RBAC, service accounts and the aggregation layer, as a production cluster has them. Each
can be stopped, killed and started again under the same address with the same data.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.error import URLError

from tests.e2e.assets import Assets
from tests.e2e.identities import PROXY, Identities, by_certificate, by_token, write_kubeconfig, write_private
from tests.e2e.processes import Program, free_ports

ADMIN_TOKEN = "admin-of-the-end-to-end-tests"
ADMINS = ("system:masters",)
_HOST = "127.0.0.1"
_ISSUER = "https://kubernetes.default.svc.cluster.local"
_OURS = ("node-lifecycle-controller", "taint-eviction-controller", "pod-garbage-collector-controller")
"""What of the controller-manager is left to the behaviours of our simulated nodes, which send no heartbeats."""


class ControlPlane:
    """A control plane that runs; `start` makes one."""

    def __init__(
        self,
        assets: Assets,
        folder: Path,
        *,
        controllers: bool = True,
        audited: str = "",
        server_flags: Sequence[str] = (),
    ) -> None:
        """Prepare the files of a control plane in a folder of its own; nothing runs yet.

        What the user `audited` asks for is written to `audit_log`. `server_flags` are more flags of kube-apiserver.
        """
        self.folder = folder
        self.audit_log = folder / "audit.log"
        self.assets = assets
        self._identities = Identities(folder / "identities")
        self._ports = dict(zip(("etcd", "peers", "server", "scheduler", "manager"), free_ports(5), strict=True))
        self.port = self._ports["server"]
        self.url = f"https://{_HOST}:{self.port}"
        self.authority = self._identities.authority.certificate
        """Who has signed the certificate of kube-apiserver."""
        self.front_proxy_authority = self._identities.front_proxy_authority.certificate
        """The CA of the request header that aggregated servers trust."""
        self.admin = self.kubeconfig("admin", groups=ADMINS)
        """The path of a kubeconfig for an administrator."""
        self.token = ADMIN_TOKEN
        """A token of the same user, for those who speak HTTP themselves."""
        self.etcd = self._etcd()
        self.apiserver = self._apiserver(*(self._auditing(audited) if audited else ()), *server_flags)
        self.programs = [self.etcd, self.apiserver]
        if controllers:
            self.scheduler = self._scheduler()
            self.controller_manager = self._controller_manager()
            self.programs += [self.scheduler, self.controller_manager]

    def start(self) -> None:
        """Start everything that does not run, and return when it is ready."""
        for program in self.programs:
            if not program.running:
                program.start()
            if program is self.etcd:
                program.wait_until("healthy", lambda: _answers(f"http://{_HOST}:{self._ports['etcd']}/health"))
            elif program is self.apiserver:
                program.wait_until("ready", lambda: self.answers("/readyz"))
        for program in self.programs[2:]:
            port = self._ports["scheduler" if program is self.scheduler else "manager"]
            program.wait_until("healthy", partial(_answers, f"https://{_HOST}:{port}/healthz"))

    def stop(self) -> None:
        """Stop everything, last started first."""
        for program in reversed(self.programs):
            program.stop()

    def answers(self, path: str) -> bool:
        """Return whether kube-apiserver answers an admin's GET of a path with a 200."""
        return _answers(self.url + path, token=self.token)

    def kubeconfig(self, user: str, *, groups: tuple[str, ...] = (), port: int = 0) -> Path:
        """Write a kubeconfig for a user, who is known by a certificate; `port` is of a detour to the server."""
        url = f"https://{_HOST}:{port}" if port else self.url
        config = self._identities.kubeconfig(url, by_certificate(self._identities.client(user, groups)))
        return write_kubeconfig(self.folder / f"{user.replace(':', '-')}{port or ''}.kubeconfig", config)

    def kubeconfig_of_token(self, name: str, token: str, *, namespace: str = "default") -> Path:
        """Write a kubeconfig for a user with a token."""
        config = self._identities.kubeconfig(self.url, by_token(token), namespace=namespace)
        return write_kubeconfig(self.folder / f"{name}.kubeconfig", config)

    def kubectl(
        self, *arguments: str | Path, kubeconfig: Path | None = None, text: str = "", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl, as an administrator by default; `text` is its standard input."""
        return self.run("kubectl", *arguments, kubeconfig=kubeconfig, text=text, check=check)

    def run(
        self, program: str, *arguments: str | Path, kubeconfig: Path | None = None, text: str = "", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl or helm to its end; one that fails raises with what it said, unless `check` is off."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        done = subprocess.run(
            [self.assets.path(program), *map(str, arguments)],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={"PATH": "/usr/bin:/bin", "HOME": str(home), "KUBECONFIG": str(kubeconfig or self.admin)},
        )
        if check and done.returncode:
            raise AssertionError(f"{program} {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}")
        return done

    def _etcd(self) -> Program:
        clients, peers = (f"http://{_HOST}:{self._ports[name]}" for name in ("etcd", "peers"))
        return self._program(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--log-level=warn",
            # A machine that loses power loses the run of tests as well.
            "--unsafe-no-fsync",
        )

    def _auditing(self, user: str) -> tuple[str, ...]:
        policy = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", "users": [user]}, {"level": "None"}],
        }
        path = self.folder / "audit-policy.json"
        path.write_text(json.dumps(policy), encoding="utf-8")
        return f"--audit-policy-file={path}", f"--audit-log-path={self.audit_log}"

    def _apiserver(self, *more: str) -> Program:
        who = self._identities
        tokens = self.folder / "tokens.csv"
        write_private(tokens, f"{ADMIN_TOKEN},admin,admin,system:masters\n".encode())
        return self._program(
            "kube-apiserver",
            f"--etcd-servers=http://{_HOST}:{self._ports['etcd']}",
            f"--bind-address={_HOST}",
            f"--advertise-address={_HOST}",
            f"--secure-port={self.port}",
            f"--tls-cert-file={who.server.certificate}",
            f"--tls-private-key-file={who.server.key}",
            f"--client-ca-file={who.authority.certificate}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=Node,RBAC",
            f"--service-account-key-file={who.service_accounts.certificate}",
            f"--service-account-signing-key-file={who.service_accounts.key}",
            f"--service-account-issuer={_ISSUER}",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--requestheader-client-ca-file={who.front_proxy_authority.certificate}",
            f"--requestheader-allowed-names={PROXY}",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            f"--proxy-client-cert-file={who.front_proxy.certificate}",
            f"--proxy-client-key-file={who.front_proxy.key}",
            # Endpoints may not lie on loopback, and no test reaches the server by its Service.
            "--endpoint-reconciler-type=none",
            # A stop would wait for a minute until all watches have ended by themselves.
            "--shutdown-send-retry-after=true",
            "--shutdown-watch-termination-grace-period=1s",
            "--profiling=false",
            *more,
        )

    def _scheduler(self) -> Program:
        return self._program(
            "kube-scheduler",
            f"--kubeconfig={self.kubeconfig('system:kube-scheduler')}",
            *self._served("scheduler"),
        )

    def _controller_manager(self) -> Program:
        left_out = ",".join(f"-{name}" for name in _OURS)
        return self._program(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig('system:kube-controller-manager')}",
            f"--controllers=*,{left_out}",
            "--use-service-account-credentials=true",
            # Autoscalers look at their metrics more often than every 15 seconds: tests wait for them.
            "--horizontal-pod-autoscaler-sync-period=1s",
            f"--service-account-private-key-file={self._identities.service_accounts.key}",
            f"--root-ca-file={self._identities.authority.certificate}",
            *self._served("manager"),
        )

    def _served(self, name: str) -> tuple[str, ...]:
        return (
            "--leader-elect=false",
            f"--bind-address={_HOST}",
            f"--secure-port={self._ports[name]}",
            "--profiling=false",
        )

    def _program(self, name: str, *arguments: str) -> Program:
        log = self.folder / f"{name}.log"
        return Program(name, [self.assets.path(name), *arguments], log=log)


@contextmanager
def running(
    assets: Assets, folder: Path, *, controllers: bool = True, audited: str = "", server_flags: Sequence[str] = ()
) -> Iterator[ControlPlane]:
    """Run a control plane for as long as a block of code lasts."""
    plane = ControlPlane(assets, folder, controllers=controllers, audited=audited, server_flags=server_flags)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


def _answers(url: str, *, token: str = "") -> bool:
    # Only whether the server answers: the tests check its certificate.
    unverified = ssl.create_default_context()
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    # Loopback, whatever proxies the environment names.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unverified)
    )
    try:
        with opener.open(request, timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False
