"""Request bodies: which are accepted, and the errors of the others."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.apiserver.http.asgi_client import BEE, BEES, CONFIGS, CRDS, PODS, AsgiClient, pod

_PROTOBUF = "application/vnd.kubernetes.protobuf"
_BEE = {"apiVersion": "example.com/v1", "kind": "Bee", "metadata": {"name": "maya"}}
_BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("media", "body", "code", "expected_text"),
    [
        pytest.param("application/json", b"", 400, "unexpected end of JSON input (<empty>)", id="empty body"),
        pytest.param("application/json", b'{"metadata": {', 400, "unexpected end of JSON input", id="truncated"),
        pytest.param(
            "application/json", b"hello", 400, "invalid character 'h' looking for beginning of", id="not JSON"
        ),
        pytest.param("application/json", b'{"a": NaN}', 400, "invalid character 'N'", id="number instead of object"),
        pytest.param("application/json", b"{} {}", 400, "invalid character '{' after top-level value", id="two values"),
        pytest.param("application/json", b"[]", 400, "cannot unmarshal array", id="list instead of object"),
        pytest.param("application/json", b'{"kind": 5}', 400, "cannot unmarshal number", id="kind is a number"),
        pytest.param(
            "application/json", b'{"a":' * 300 + b"1" + b"}" * 300, 400, "nested more than", id="excessive depth"
        ),
        pytest.param(
            "application/json", b'{"a":' * 200 + b"1" + b"}" * 200, 400, "nested more than", id="one level too deep"
        ),
        pytest.param("application/json", b'{"a":' * 199 + b"1" + b"}" * 199, 422, "is required", id="maximum depth"),
        pytest.param("application/json", b'{"a":' * 90_000, 400, "json parse error", id="90,000 levels"),
        pytest.param("application/json", b'{"metadata": {"name": "\xff"}}', 422, "RFC 1123", id="invalid UTF-8"),
        pytest.param(
            "application/json", b'{"x": "' + b"y" * 3_200_000 + b'"}', 413, "limit is 3145728", id="too large"
        ),
        pytest.param(
            "application/json", b'{"x": ' + b"9" * 400 + b"}", 400, "too large for an object", id="number beyond floats"
        ),
        pytest.param("application/json", b"null", 422, "name or generateName is required", id="null"),
        pytest.param("application/yaml", b"metadata: [", 400, "error parsing YAML: line 1", id="broken YAML"),
        pytest.param("application/yaml", b"\xff\xfe", 400, "error parsing YAML", id="YAML with invalid UTF-8"),
        pytest.param("application/yaml", _BOMB.encode(), 400, "aliases expand to more than", id="alias bomb"),
        pytest.param(
            "application/yaml", b"[" + b"1," * 250_000 + b"]", 400, "more than 200000 values", id="too many values"
        ),
        pytest.param("application/yaml", b"[" * 5000, 400, "nested more than", id="deeply nested YAML"),
        pytest.param("application/cbor", b"\xa0", 415, "accepted media types include", id="CBOR"),
        pytest.param("text/plain", b"hello", 415, "accepted media types include", id="unknown media type"),
        pytest.param(_PROTOBUF, b"hello", 415, "accepted media types include", id="protobuf without the magic prefix"),
        pytest.param(_PROTOBUF, b"k8s\x00\x0a\xff\xff", 400, "is not valid protobuf", id="broken protobuf"),
        pytest.param(_PROTOBUF, b"k8s\x00", 415, "does not decode protobuf of", id="protobuf of an unknown kind"),
    ],
)
def test_refuses_bodies_that_cannot_be_stored(media: str, body: bytes, code: int, expected_text: str) -> None:
    got = AsgiClient().request("POST", CONFIGS, body, content_type=media)

    assert (got.status, got.json["code"]) == (code, code)
    assert expected_text in got.json["message"]
    assert len(got.body) < 2000


def test_integers_beyond_64_bits_become_floats() -> None:
    client = AsgiClient()
    client.request("POST", CRDS, BEE)
    number = "9" * 30

    for media, text in (("json", f'{{"n": {number}}}'), ("yaml", f"{{n: {number}}}")):
        body = {**_BEE, "metadata": {"name": media}, "spec": {"free": "HERE"}}
        content = json.dumps(body).replace('"HERE"', text).encode()
        assert client.request("POST", BEES, content, content_type=f"application/{media}").status == 201
        assert client.request("GET", f"{BEES}/{media}").json["spec"]["free"]["n"] == float(number)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        pytest.param('{"metadata": {"name": "a", "poem": 1}}', ['unknown field "metadata.poem"'], id="unknown"),
        pytest.param(
            '{"metadata": {"name": "a"}, "data": {"k": "1", "k": "2"}}', ['duplicate field "data.k"'], id="duplicate"
        ),
        pytest.param(
            '{"x": 1, "x": 2, "metadata": {"name": "a", "name": "a"}, "y": 1}',
            ['unknown field "x"', 'duplicate field "metadata.name"', 'unknown field "y"'],
            id="in document order, without repetition",
        ),
        pytest.param('{"metadata": {"name": "a", "labels": {"any": "thing"}}}', [], id="names in a map"),
    ],
)
def test_unknown_fields_of_built_in_kinds(body: str, found: list[str]) -> None:
    strict = AsgiClient().request("POST", f"{CONFIGS}?fieldValidation=Strict", body.encode())
    warned = AsgiClient().request("POST", CONFIGS, body.encode())
    ignored = AsgiClient().request("POST", f"{CONFIGS}?fieldValidation=Ignore", body.encode())

    assert (warned.status, warned.warnings) == (201, found)
    assert (ignored.status, ignored.warnings) == (201, [])
    assert {"x", "y"}.isdisjoint(warned.json)
    assert "poem" not in warned.json["metadata"]
    if found:
        text = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: ' + ", ".join(found)
        assert (strict.status, strict.json["message"]) == (400, text)
    else:
        assert strict.status == 201


def test_unknown_fields_of_custom_kinds() -> None:
    client = AsgiClient()
    client.request("POST", CRDS, BEE)
    body = {**_BEE, "top": 1, "spec": {"zed": 1, "free": {"any": 1}, "flights": [{"to": "x"}, {"by": "y"}]}}

    got = client.request("POST", BEES, body)

    assert got.warnings == [f'unknown field "{path}"' for path in ("spec.flights[1].by", "spec.zed", "top")]
    assert got.json["spec"] == {"free": {"any": 1}, "flights": [{"to": "x"}, {}]}


@pytest.mark.parametrize(
    ("media", "body"),
    [
        pytest.param("merge-patch+json", {"spec": {"poem": 1, "gone": None}}, id="merge"),
        pytest.param(
            "strategic-merge-patch+json",
            {"spec": {"poem": 1, "$setElementOrder/volumes": []}},
            id="strategic",
        ),
        pytest.param("json-patch+json", [{"op": "add", "path": "/spec/poem", "value": 1}], id="json"),
    ],
)
def test_unknown_fields_in_patches(media: str, body: Any) -> None:
    client = AsgiClient()
    client.request("POST", PODS, pod())
    patch = {"content_type": f"application/{media}"}

    strict = client.request("PATCH", f"{PODS}/p?fieldValidation=Strict", body, **patch)
    warned = client.request("PATCH", f"{PODS}/p", body, **patch)

    assert (strict.status, strict.json["details"]["causes"][0]["field"]) == (422, "patch")
    assert 'strict decoding error: unknown field "spec.poem"' in strict.json["message"]
    assert (warned.status, warned.warnings) == (200, ['unknown field "spec.poem"'])
    assert "poem" not in client.request("GET", f"{PODS}/p").json["spec"]


def test_an_apply_of_unknown_fields_is_refused() -> None:
    body = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 1, "poem": 2}]}, "top": 1}
    path = "/api/v1/namespaces/default/services/s?fieldManager=me"

    got = AsgiClient().request("PATCH", path, body, content_type="application/apply-patch+yaml")

    assert got.status == 400
    assert got.json["message"] == (
        "failed to create typed patch object (/s; /v1, Kind=Service): errors:\n"
        '  .spec.ports[port=1,protocol="TCP"].poem: field not declared in schema\n'
        "  .top: field not declared in schema"
    )


def _field(number: int, value: bytes | str | int) -> bytes:
    """Encode one protobuf field."""
    if isinstance(value, int):
        return bytes([number << 3]) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def _message(version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + _field(1, _field(1, version) + _field(2, kind)) + _field(2, raw)


def test_protobuf_of_client_libraries_is_decoded() -> None:
    labels = _field(11, _field(1, "app") + _field(2, "web"))
    metadata = _field(1, "web") + _field(3, "") + _field(8, _field(1, 0)) + labels
    request = _field(1, "cpu") + _field(2, _field(1, "100m"))
    container = _field(1, "c") + _field(2, "nginx") + _field(8, _field(2, request)) + _field(14, "")
    template = _field(1, labels) + _field(2, _field(2, container))
    selector = _field(1, _field(1, "app") + _field(2, "web"))
    surge = _field(2, _field(1, 1) + _field(3, "40%"))
    strategy = _field(1, "RollingUpdate") + _field(2, surge)
    spec = _field(1, 0) + _field(2, selector) + _field(3, template) + _field(4, strategy) + _field(5, 0)
    raw = _field(1, metadata) + _field(2, spec)

    made = AsgiClient().request(
        "POST",
        "/apis/apps/v1/namespaces/default/deployments",
        _message("apps/v1", "Deployment", raw),
        content_type=_PROTOBUF,
    )

    assert made.status == 201
    assert made.json["spec"]["replicas"] == 0, "a zero that was written is not a default"
    assert made.json["spec"]["selector"] == {"matchLabels": {"app": "web"}}
    assert made.json["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == "40%"
    assert "minReadySeconds" not in made.json["spec"], "a zero that says nothing is nothing"
    (container_read,) = made.json["spec"]["template"]["spec"]["containers"]
    assert container_read["image"] == "nginx"
    assert container_read["resources"] == {"requests": {"cpu": "100m"}}


def test_bytes_in_protobuf_are_base64_in_json() -> None:
    secret = _field(1, _field(1, "s")) + _field(2, _field(1, "k") + _field(2, b"\x00\xff")) + _field(3, "Opaque")

    made = AsgiClient().request(
        "POST",
        "/api/v1/namespaces/default/secrets",
        _message("v1", "Secret", secret),
        content_type=_PROTOBUF,
    )

    assert made.json["data"] == {"k": base64.b64encode(b"\x00\xff").decode()}


def test_every_built_in_kind_is_accepted_in_protobuf() -> None:
    """Kinds that define other kinds are left out: their libraries send JSON."""
    client = AsgiClient()
    elsewhere = ("apiextensions.k8s.io", "apiregistration.k8s.io")

    for kind in client.server.catalogue.all():
        resource = kind.resource
        if resource.group not in elsewhere:
            path = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
            path += "/namespaces/default" if resource.namespaced else ""
            nameless = _message(resource.api_version, resource.kind, _field(1, b""))
            got = client.request("POST", f"{path}/{resource.plural}", nameless, content_type=_PROTOBUF)
            assert (got.status, "name or generateName is required" in got.json["message"]) == (422, True), resource
