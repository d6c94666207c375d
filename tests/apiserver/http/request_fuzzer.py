"""Random requests from a seed: almost valid ones, and junk."""

from __future__ import annotations

import base64
import copy
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import quote

import yaml

TOKEN = "the token of the fuzzed server"


@dataclass(frozen=True, slots=True)
class Request:
    """One request."""

    method: str
    path: str
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)

    def __str__(self) -> str:
        shown = self.body[:300]
        return f"{self.method} {self.path[:200]}?{self.query[:300]} {dict(self.headers)} {shown!r}"


_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW")
_WORDS = ("a", "A", "-", ".", "..", "x" * 300, "ünïcode", "%", "%00", "a b", "{}", "null", "0", "-1", "\u2028", "👩‍🚀")
_NUMBERS = ("0", "1", "-1", "2", "abc", "", "1.5", "1e3", "99999999999999999999999", "0x10", "٣", "+1", " 1")
_SELECTORS = (
    "a=b",
    "a in (b,c)",
    "!a",
    "a notin (",
    "=",
    ",,",
    "a=b,c!=d",
    "metadata.name=x",
    "status.phase=\\",
    "x" * 5000,
)
_VERSIONS = (*_NUMBERS, "rv", "18446744073709551616")
_QUERIES: dict[str, Sequence[str]] = {
    "limit": _NUMBERS,
    "continue": (
        "x",
        "====",
        base64.urlsafe_b64encode(b"{}").decode(),
        base64.urlsafe_b64encode(b'{"rv":1,"after":["a","b"],"left":"x"}').decode(),
        base64.urlsafe_b64encode(b'{"rv":1e400,"after":[[],{}],"left":null}').decode(),
    ),
    "labelSelector": _SELECTORS,
    "fieldSelector": _SELECTORS,
    "resourceVersion": _VERSIONS,
    "resourceVersionMatch": ("Exact", "NotOlderThan", "exact", ""),
    "watch": ("1", "true", "0", "maybe", ""),
    "allowWatchBookmarks": ("true", "x"),
    "sendInitialEvents": ("true", "false", "x"),
    "timeoutSeconds": _NUMBERS,
    "dryRun": ("All", "None", "all", "", "All,All"),
    "fieldManager": ("me", "", "x" * 200, "\x00", "a\nb", "ü"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "strict", ""),
    "force": ("true", "false", "x", ""),
    "propagationPolicy": ("Background", "Foreground", "Orphan", "background", ""),
    "gracePeriodSeconds": _NUMBERS,
    "orphanDependents": ("true", "x"),
    "pretty": ("true", "x"),
    "includeObject": ("None", "Metadata", "Object", "x"),
    "timeout": ("1s", "0", "x", "-1h"),
    "hash": ("x",),
}
_CONTENT_TYPES = (
    "application/json",
    "application/json; charset=utf-8",
    "application/json;;;=",
    "application/yaml",
    "application/apply-patch+yaml",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "text/html",
    "",
    "*/*",
    "/",
    "ü",
)
_ACCEPTS = (
    "application/json",
    "*/*",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=Nonsense;v=v9;g=x",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf,application/json",
    "text/html",
    "",
    ";;;q=",
    "application/json;q=nan",
)
_JUNK: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    2**64,
    10**400,
    1.5,
    -0.0,
    "",
    "x",
    "x" * 10_000,
    "\x00",
    "\ud83d",
    "10Gi",
    "1e999999999",
    "9" * 5000,
    "0001-01-01T00:00:00Z",
    "2026-02-30T25:61:61Z",
    "2026-11-16T00:00:00.123456789+14:00",
    [],
    [None],
    [[]],
    [{"name": "a"}, {"name": "a"}],
    {},
    {"": ""},
    {"a": None},
    {"$patch": "delete"},
    {"$patch": "nonsense"},
    {"$retainKeys": [1, {}]},
    {"$setElementOrder/containers": [{"x": 1}]},
    {"$deleteFromPrimitiveList/finalizers": "x"},
    {"f:metadata": {"f:labels": {".": {}}}},
)
_TEXTS: tuple[bytes, ...] = (
    b"",
    b" ",
    b"null",
    b"[]",
    b"{",
    b'{"a":',
    b'"x"',
    b"{}{}",
    b"NaN",
    b'{"a": NaN, "b": Infinity}',
    b'{"a":1e400}',
    b'{"kind":"ConfigMap","kind":"Pod"}',
    b"\xff\xfe\x00",
    b"\xef\xbb\xbf{}",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"[" * 5_000 + b"]" * 5_000,
    b'{"a":' * 2_000 + b"1" + b"}" * 2_000,
    b"a: &a [x]\nb: *a\n",
    b"a: &a {b: *a}\n",
    b"a: &a [*a, *a]\n",
    b"--- \nkind: A\n---\nkind: B\n",
    b"!!python/object/apply:os.system ['true']",
    b"? [a, b]\n: c\n",
    b"{" * 3_000,
    b"- " * 20_000 + b"x",
    b"a: !!binary nonsense\n",
    b"2026-02-30: x\n<<: [1]\n",
    b"%YAML 9.9\n---\na: b\n",
    b"\t- x\n",
    b"x: " + b"9" * 100_000,
    b'{"x": ' + b"9" * 100_000 + b"}",
    b"l0: &l0 [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"l%d: &l%d [%s]\n" % (i, i, b",".join([b"*l%d" % (i - 1)] * 9)) for i in range(1, 12)),
)


_ENTRIES: tuple[Any, ...] = (
    {"name": "c", "image": "j"},
    {"name": "d", "image": "i"},
    {"image": "without a key"},
    {"name": {"no": "scalar"}, "image": "i"},
    {"name": None},
    {"$patch": "delete", "name": "c"},
    {"$patch": "delete"},
    {"$patch": "merge", "name": "c"},
    {"$patch": "replace"},
    {"$patch": "nonsense", "name": "c"},
    {"$patch": ["delete"]},
    "a text",
    7,
    None,
    ["a list"],
)
"""List entries for strategic patches and applies of containers."""
_DIRECTIVES: tuple[dict[str, Any], ...] = (
    {},
    {"$setElementOrder/containers": [{"name": "d"}, {"name": "c"}]},
    {"$setElementOrder/containers": "c"},
    {"$setElementOrder/containers": [{}, 1]},
    {"$setElementOrder/restartPolicy": ["Always"]},
    {"$deleteFromPrimitiveList/containers": [{"name": "c"}]},
    {"$deleteFromPrimitiveList/containers": "c"},
    {"$retainKeys": ["containers"]},
    {"$retainKeys": "containers"},
    {"$patch": "replace"},
    {"$patch": "delete"},
    {"$patch": {"what": 1}},
)


class Fuzzer:
    """Draws requests for a server with these resources, each with a valid object."""

    def __init__(self, seed: int, resources: Sequence[tuple[str, dict[str, Any]]], *, plain: Sequence[str]) -> None:
        """Take a valid body for each collection path, and paths that are not resources."""
        self._random = Random(seed)
        self._resources = resources
        self._plain = plain

    def request(self) -> Request:
        """Draw the next request."""
        random = self._random
        if random.random() < 0.2:
            return random.choice((self._strategic, self._apply, self._eviction))()
        path, body = self._target()
        method = (
            random.choice(_METHODS)
            if random.random() < 0.3
            else random.choice(("GET", "POST", "PUT", "PATCH", "DELETE"))
        )
        if random.random() < 0.25:
            path = self._bent(path)
        return Request(method, path, self._query(), self._headers(method), self._body(method, body))

    def _strategic(self) -> Request:
        """Patch containers with valid and invalid directives."""
        random = self._random
        path, valid = random.choice([each for each in self._resources if "containers" in json.dumps(each[1])])
        pods = {"containers": self._entries()} | random.choice(_DIRECTIVES)
        spec = {"template": {"spec": pods}} if "template" in valid["spec"] else pods
        metadata: dict[str, Any] = random.choice(
            ({}, {"finalizers": [1, "x/y"]}, {"$deleteFromPrimitiveList/finalizers": [{}]})
        )
        patch = random.choice((None, {"spec": spec}, {"spec": spec, "metadata": metadata}))
        return self._written("PATCH", f"{path}/{valid['metadata']['name']}", patch, "strategic-merge-patch+json")

    def _apply(self) -> Request:
        """Apply objects with valid and invalid types and keys."""
        path, valid = self._random.choice(self._resources)
        body = self._with_junk(valid)
        if isinstance(body, dict) and isinstance(body.get("spec"), dict) and "containers" in body["spec"]:
            body["spec"]["containers"] = self._entries()
        query = f"fieldManager=fuzzer&force={self._random.choice(('true', 'false'))}"
        return self._written("PATCH", f"{path}/{valid['metadata']['name']}", body, "apply-patch+yaml", query)

    def _eviction(self) -> Request:
        """Evict or bind a pod, with arbitrary options and targets."""
        random = self._random
        path, valid = next(each for each in self._resources if each[0].endswith("/pods"))
        bodies: dict[str, dict[str, Any]] = {
            "eviction": {"deleteOptions": {"gracePeriodSeconds": 1, "dryRun": ["All"], "preconditions": {"uid": "x"}}},
            "binding": {"target": {"kind": "Node", "name": "n"}},
        }
        subresource = random.choice(tuple(bodies))
        body = bodies[subresource] | {"metadata": {"name": valid["metadata"]["name"]}}
        name = f"{path}/{valid['metadata']['name']}/{subresource}"
        return self._written("POST", name, self._with_junk(body) if random.random() < 0.7 else {}, "json")

    def _entries(self) -> Any:
        random = self._random
        if random.random() < 0.1:
            return random.choice(_JUNK)
        return copy.deepcopy(random.choices(_ENTRIES, k=random.randrange(4)))

    def _written(self, method: str, path: str, body: Any, media: str, query: str = "") -> Request:
        headers = (("authorization", f"Bearer {TOKEN}"), ("content-type", f"application/{media}"))
        return Request(method, path, query, headers, _encoded(body))

    def _target(self) -> tuple[str, dict[str, Any]]:
        random = self._random
        collection, valid = random.choice(self._resources)
        if random.random() < 0.15:
            return random.choice(self._plain), valid
        if random.random() < 0.35:
            return collection, valid
        name = valid["metadata"]["name"] if random.random() < 0.7 else random.choice(_WORDS)
        path = f"{collection}/{quote(name)}"
        if random.random() < 0.35:
            path += "/" + random.choice(
                ("status", "scale", "eviction", "binding", "finalize", "log", "exec", "proxy", "token", "x", "")
            )
        return path, valid

    def _bent(self, path: str) -> str:
        random = self._random
        parts = path.split("/")
        place = random.randrange(len(parts))
        match random.randrange(4):
            case 0:
                parts[place] = quote(random.choice(_WORDS), safe="%")
            case 1:
                del parts[place]
            case 2:
                parts.insert(place, random.choice(("", "..", "%2F", "watch", "namespaces")))
            case _:
                parts += ["x"] * random.randrange(50)
        return "/" + "/".join(parts).lstrip("/")

    def _query(self) -> str:
        random = self._random
        names = [random.choice(tuple(_QUERIES)) for _ in range(random.choice((0, 0, 0, 1, 1, 2, 4)))]
        parts = [f"{name}={quote(random.choice(_QUERIES[name]))}" for name in names]
        if random.random() < 0.05:
            parts.append(random.choice(("=", "&&", "%zz", "a", "limit", "x=" + "y" * 8000)))
        return "&".join(parts)

    def _headers(self, method: str) -> tuple[tuple[str, str], ...]:
        random = self._random
        headers = [("authorization", f"Bearer {TOKEN}")]
        likely = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers.append(("content-type", random.choice(_CONTENT_TYPES) if random.random() < 0.4 else likely))
        if random.random() < 0.4:
            headers.append(("accept", random.choice(_ACCEPTS)))
        if random.random() < 0.1:
            headers.append(("user-agent", random.choice(("", "/", "kubectl/v1.36", "x" * 3000, "ü"))))
        if random.random() < 0.05:
            headers.append(("content-encoding", random.choice(("gzip", "br", "identity"))))
        if random.random() < 0.05:
            headers.append(random.choice((("if-none-match", '"x"'), ("upgrade", "websocket"), ("expect", "nothing"))))
        return tuple(headers)

    def _body(self, method: str, valid: dict[str, Any]) -> bytes:
        random = self._random
        if method in ("GET", "HEAD", "OPTIONS") and random.random() < 0.8:
            return b""
        draw = random.random()
        if draw < 0.2:
            return random.choice(_TEXTS)
        if draw < 0.25:
            return random.randbytes(random.randrange(200))
        if draw < 0.35:
            return _encoded(self._operations())
        if draw < 0.42:
            options = {
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "preconditions": {"uid": "x", "resourceVersion": "1"},
            }
            return _encoded(self._with_junk(options))
        body = self._with_junk(valid) if random.random() < 0.8 else valid
        data = _encoded(body)
        if draw < 0.5 and "\\ud83d" not in data.decode():
            return yaml.safe_dump(body).encode()
        if draw < 0.55:
            return data[: random.randrange(len(data) + 1)]
        if draw < 0.57:
            return gzip.compress(data)
        return data

    def _operations(self) -> Any:
        random = self._random
        return [
            {
                "op": random.choice(("add", "remove", "replace", "move", "copy", "test", "x", 1)),
                "path": random.choice(
                    ("/metadata/labels/a", "/spec", "", "/", "x", "/~2", "/metadata/finalizers/-", "/a/9", None)
                ),
                "from": random.choice(("/metadata", "/spec", "", "x", None)),
                "value": copy.deepcopy(random.choice(_JUNK)),
            }
            for _ in range(random.randrange(4))
        ]

    def _with_junk(self, valid: dict[str, Any]) -> Any:
        """Return an object with some parts replaced by junk, or junk added."""
        random = self._random
        item = copy.deepcopy(valid)
        for _ in range(random.randrange(1, 4)):
            holder: Any = item
            while True:
                if not isinstance(holder, (dict, list)) or not holder:
                    break
                place = random.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
                inner = holder[place]
                if isinstance(inner, (dict, list)) and inner and random.random() < 0.75:
                    holder = inner
                    continue
                if isinstance(holder, dict) and random.random() < 0.3:
                    place = random.choice(("x", "metadata", "spec", "status", "", "apiVersion", "items", "finalizers"))
                holder[place] = copy.deepcopy(random.choice(_JUNK))
                break
        return item


def _encoded(value: Any) -> bytes:
    # Surrogates stay escaped, as a careless client would send them.
    return json.dumps(value).encode()
