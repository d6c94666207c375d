"""Our webhooks, asked by a real API server over TLS: what is refused, mended or converted, and how trust is renewed."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from tests.e2e.assets import Assets
from tests.e2e.control_plane import ControlPlane, running
from tests.e2e.identities import make_client, write_kubeconfig, write_private
from tests.e2e.objects import calendar, install_crds, read, write
from tests.e2e.processes import free_ports
from tests.e2e.springtide_process import NAMESPACE
from tests.e2e.waiting import eventually, in_background

from springtide.cluster.admission import Webhooks, serve_webhooks
from springtide.cluster.admission.configurations import MUTATING, VALIDATING
from springtide.cluster.certificates import CertificatePair, make_authority
from springtide.cluster.certificates.clients import AuthoritiesFile, ClientVerification
from springtide.cluster.certificates.manager import SECRET_NAME
from springtide.cluster.certificates.rotation import CertificateLifetimes
from springtide.cluster.http import HttpTransport, load_kubeconfig
from springtide.cluster.resources import Object

RESTLESS = CertificateLifetimes(authority=60, serving=60, propagation=2)
"""So short that an authority hands over to the next every two seconds: certificates are valid from an hour before."""
MISTAKEN = calendar("mistaken", "2100-01-01", zone="Moon/Base")
"""What a schema lets pass: it cannot tell a zone from another text."""
REFUSED = "The Calendar \"mistaken\" is invalid: spec.timeZone: time zone 'Moon/Base' is unknown"


@pytest.fixture(scope="module")
def asking(assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run a control plane that asks our webhooks; others would not like to be asked about their objects."""
    with running(assets, tmp_path_factory.mktemp("asking"), controllers=False) as plane:
        install_crds(plane)
        plane.kubectl("create", "namespace", NAMESPACE)
        with in_background(lambda: serve(plane)):
            eventually("v1beta1 is served", lambda: plane.answers("/apis/karpenter.sh/v1beta1/nodepools"))
            eventually("what is wrong is refused", lambda: refusal(plane, MISTAKEN))
            yield plane


@asynccontextmanager
async def serve(plane: ControlPlane) -> AsyncIterator[Webhooks]:
    """Serve the webhooks on loopback, registered by their URL."""
    async with (
        HttpTransport(load_kubeconfig(plane.admin), random=Random(1)) as transport,
        serve_webhooks(transport, namespace=NAMESPACE, create=True, terms=RESTLESS, round_seconds=0.5) as up,
    ):
        await up.until_ready()
        yield up


def refusal(plane: ControlPlane, item: Object) -> str:
    """Return the words with which an object is refused; nothing where it would be accepted."""
    done = plane.kubectl(
        "create", "--dry-run=server", "--validate=false", "-f", "-", text=json.dumps(item), check=False
    )
    return done.stderr if done.returncode else ""


def pool(name: str, group: str = "springtide.dev", version: str = "v1", **disruption: Any) -> Object:
    """Write a NodePool whose nodes are made by a class of a group."""
    owner = {"group": group} if version == "v1" else {"apiVersion": f"{group}/v1"}
    template = {
        "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
        "nodeClassRef": {**owner, "kind": "NodeClass", "name": "default"},
    }
    return {
        "apiVersion": f"karpenter.sh/{version}",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": {"spec": template}, "disruption": disruption},
    }


def test_webhooks_refuse_what_the_schema_allows(asking: ControlPlane) -> None:
    """In the words of `springtide check`."""
    words = refusal(asking, MISTAKEN)

    assert words.startswith(REFUSED)
    assert "expected an IANA name" in words


def test_all_problems_are_reported_at_once(asking: ControlPlane) -> None:
    item = calendar("mistaken", zone="Moon/Base")
    item["spec"]["holidays"] = {"country": "ZZ"}
    words = refusal(asking, item)

    assert "* spec.timeZone: " in words
    assert "* spec.holidays.country: " in words


def test_valid_objects_are_accepted_without_warnings(asking: ControlPlane) -> None:
    done = asking.kubectl("create", "--dry-run=server", "-f", "-", text=json.dumps(calendar("right", "2100-01-01")))

    assert done.stderr == ""


def test_a_change_that_leaves_old_problems_is_accepted(asking: ControlPlane) -> None:
    """Labels of an object can be changed whatever we think of its spec, and so it can be deleted."""
    write(asking, calendar("labelled", "2100-01-01"))

    assert asking.kubectl("label", "calendar", "labelled", "seen=yes").stderr == ""
    assert asking.kubectl("delete", "calendar", "labelled").stderr == ""


def test_objects_of_other_projects_are_accepted(asking: ControlPlane) -> None:
    """The same mistake is refused in a pool of ours, and none of our business in one of another project."""
    mistake: dict[str, Any] = {"budgets": [{"nodes": "1", "schedule": "0 9 31 2 *", "duration": "8h"}]}
    mine, theirs = pool("mine", **mistake), pool("theirs", group="karpenter.k8s.aws", **mistake)

    assert refusal(asking, theirs) == ""
    assert 'The NodePool "mine" is invalid' in refusal(asking, mine)


def test_reasons_are_stored_in_upstream_spelling(asking: ControlPlane) -> None:
    write(asking, pool("mended", budgets=[{"nodes": "1", "reasons": ["empty", "drifted"]}]))
    stored = read(asking, "nodepools.v1.karpenter.sh", "mended")

    assert stored is not None
    assert stored["spec"]["disruption"]["budgets"][0]["reasons"] == ["Empty", "Drifted"]


def test_a_node_pool_is_read_and_written_in_both_versions(asking: ControlPlane) -> None:
    """Both ways over our webhook: v1 is stored, and v1beta1 comes back as it was written."""
    written = pool("older", version="v1beta1", consolidationPolicy="WhenUnderutilized", expireAfter="24h")
    asking.kubectl("create", "-f", "-", text=json.dumps(written))
    newer, older = (read(asking, f"nodepools.{version}.karpenter.sh", "older") for version in ("v1", "v1beta1"))

    assert newer is not None
    assert older is not None
    assert newer["spec"]["disruption"]["consolidationPolicy"] == "WhenEmptyOrUnderutilized"
    assert newer["spec"]["disruption"]["budgetDefault"] == "Fallback"
    assert newer["spec"]["template"]["spec"]["expireAfter"] == "24h"
    assert older["spec"]["disruption"]["consolidationPolicy"] == "WhenUnderutilized"
    assert older["spec"]["disruption"]["expireAfter"] == "24h"
    assert older["metadata"]["uid"] == newer["metadata"]["uid"]


def test_certificates_are_renewed_under_load(asking: ControlPlane) -> None:
    """No question fails because one side already has, or still has, another authority than the other."""
    before = bundle(asking)
    deadline = time.monotonic() + 30
    while len(bundle(asking) - before) < 3:
        assert time.monotonic() < deadline, "authorities do not hand over"
        assert refusal(asking, MISTAKEN).startswith(REFUSED)

    assert bundle(asking, MUTATING, "mutatingwebhookconfiguration") - before


def test_a_deleted_secret_is_created_again(asking: ControlPlane) -> None:
    """With other keys; what was trusted stays so, so that no question fails meanwhile."""
    before = bundle(asking)
    asking.kubectl("delete", "secret", SECRET_NAME, "--namespace", NAMESPACE)
    eventually("another authority is published", lambda: bundle(asking) - before)

    assert read(asking, "secret", SECRET_NAME, NAMESPACE) is not None
    assert refusal(asking, MISTAKEN).startswith(REFUSED)


def test_the_api_server_is_verified_by_its_client_certificate(
    assets: Assets, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As docs/operations.md says it is configured. CRDs are not converted then: that is asked without a certificate."""
    (port,) = free_ports(1)
    authority = make_authority("webhook clients", now=int(time.time()), seconds=3600)
    (tmp_path / "ca.crt").write_bytes(authority.certificate)

    @asynccontextmanager
    async def verifying(plane: ControlPlane, *names: str) -> AsyncIterator[Webhooks]:
        clients = ClientVerification(AuthoritiesFile(tmp_path / "ca.crt"), names)
        async with (
            HttpTransport(load_kubeconfig(plane.admin), random=Random(1)) as transport,
            serve_webhooks(transport, namespace=NAMESPACE, create=True, port=port, clients=clients) as up,
        ):
            await up.until_ready()
            yield up

    flags = webhook_client_flags(tmp_path, f"127.0.0.1:{port}", make_client(authority, "kube-apiserver"))
    with running(assets, tmp_path, controllers=False, server_flags=flags) as plane:
        install_crds(plane)
        plane.kubectl("create", "namespace", NAMESPACE)
        with in_background(lambda: verifying(plane, "kube-apiserver")):
            eventually("what is wrong is refused", lambda: refusal(plane, MISTAKEN).startswith(REFUSED))
            assert refusal(plane, calendar("right", "2100-01-01")) == ""
            assert refusal(plane, pool("right")) == ""
            assert not plane.answers("/apis/karpenter.sh/v1beta1/nodepools")
        with in_background(lambda: verifying(plane, "another")):
            eventually(
                "the name is refused",
                lambda: "the client 'kube-apiserver' is not allowed to call" in refusal(plane, MISTAKEN),
            )
        # The volume of the authorities belongs to another cluster.
        strangers = make_authority("strangers", now=int(time.time()), seconds=3600)
        (tmp_path / "ca.crt").write_bytes(strangers.certificate)
        with in_background(lambda: verifying(plane)):
            eventually("the handshake fails", lambda: "failed calling webhook" in refusal(plane, MISTAKEN))
            assert "a client cannot connect: its certificate is not valid" in caplog.text


def webhook_client_flags(folder: Path, host: str, client: CertificatePair) -> Sequence[str]:
    """Configure kube-apiserver to send a client certificate to the webhooks of a host."""
    (folder / "client.crt").write_bytes(client.certificate)
    write_private(folder / "client.key", client.key)
    user = {"client-certificate": str(folder / "client.crt"), "client-key": str(folder / "client.key")}
    users = {"apiVersion": "v1", "kind": "Config", "users": [{"name": host, "user": user}]}
    write_kubeconfig(folder / "webhooks.kubeconfig", users)
    configuration = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(folder / "webhooks.kubeconfig"),
    }
    # One object under two names is written with an anchor and an alias, as in docs/operations.md.
    plugins = [
        {"name": name, "configuration": configuration}
        for name in ("ValidatingAdmissionWebhook", "MutatingAdmissionWebhook")
    ]
    admission = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}
    (folder / "admission.yaml").write_text(yaml.safe_dump(admission), encoding="utf-8")
    return (f"--admission-control-config-file={folder / 'admission.yaml'}",)


def bundle(plane: ControlPlane, name: str = VALIDATING, kind: str = "validatingwebhookconfiguration") -> set[str]:
    """Return the CA bundle that the API server trusts."""
    configuration = read(plane, kind, name)
    assert configuration is not None
    (webhook,) = configuration["webhooks"]
    text = base64.b64decode(webhook["clientConfig"].get("caBundle", "")).decode()
    return {part for part in text.split("-----BEGIN CERTIFICATE-----") if part.strip()}
