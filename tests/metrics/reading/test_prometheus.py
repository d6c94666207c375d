"""The responses of Prometheus, and what other servers and networks return instead."""

from __future__ import annotations

import asyncio
import ssl
import zlib
from base64 import b64encode
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.cluster.http.certificates import Authority
from tests.metrics.reading.fake_prometheus import Answering, FakePrometheus, prometheus, saying

from springtide.metrics.reading.port import QueryError
from springtide.metrics.reading.prometheus import PrometheusReader, PrometheusSettings

QUERY = 'sum(http_requests{path="/a&b=c+d é"})'

DEEP = '{"status":"success","data":{"resultType":"vector","result":' + "[" * 200_000 + "]" * 200_000 + "}}"


def success(kind: str, result: str, more: str = "") -> str:
    return f'{{"status":"success","data":{{"resultType":"{kind}","result":{result}}}{more}}}'


def sample(value: str, **labels: str) -> str:
    written = ",".join(f'"{label}":"{text}"' for label, text in labels.items())
    return f'{{"metric":{{{written}}},"value":[1700000000.123,"{value}"]}}'


def vector(*samples: str) -> str:
    return success("vector", f"[{','.join(samples)}]")


def failure(kind: str, words: str) -> str:
    return f'{{"status":"error","errorType":"{kind}","error":"{words}"}}'


def asked(
    answering: Answering,
    *,
    tls: ssl.SSLContext | None = None,
    path: str = "",
    settings: Callable[[str], PrometheusSettings] = PrometheusSettings,
) -> tuple[Fraction, FakePrometheus]:
    """Query once; return the result and the server with its requests."""

    async def main() -> tuple[Fraction, FakePrometheus]:
        async with prometheus(answering, tls=tls) as fake, PrometheusReader(settings(fake.url + path)) as reader:
            return await reader.read(QUERY, namespace="shop"), fake

    return asyncio.run(main())


def refused(answering: Answering, **options: Any) -> QueryError:
    """Query once; return the error."""
    with pytest.raises(QueryError) as received:
        asked(answering, **options)
    assert str(received.value).startswith(("http://127.0.0.1:", "https://127.0.0.1:"))
    return received.value


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        pytest.param(vector(sample("41")), "41", id="whole"),
        pytest.param(vector(sample("0.1", name="x")), "1/10", id="decimal"),
        pytest.param(vector(sample("-2.5")), "-5/2", id="negative"),
        pytest.param(vector(sample("1e+06")), "1000000", id="exponent"),
        pytest.param(vector(sample("9007199254740993")), "9007199254740993", id="more-than-a-float-holds"),
        pytest.param(success("scalar", '[1700000000,"3.25"]'), "13/4", id="scalar"),
        pytest.param(
            success("vector", f"[{sample('7')}]", ',"warnings":["old"],"infos":["x"]'), "7", id="with-warnings"
        ),
    ],
)
def test_answer(answer: str, number: str) -> None:
    assert asked(saying(answer))[0] == Fraction(number)


@pytest.mark.parametrize(
    ("answering", "reason", "words"),
    [
        pytest.param(saying(vector()), "NoSample", "the result has no sample", id="none"),
        pytest.param(
            saying(vector(sample("1", __name__="up", job="a"), sample("2", job="b"))),
            "ManySamples",
            'the result has 2 samples instead of one (up{job="a"}, {job="b"}): put sum(…) or max(…)',
            id="many",
        ),
        pytest.param(saying(vector(sample("NaN"))), "NoValue", "NaN", id="nan"),
        pytest.param(saying(vector(sample("+Inf"))), "NoValue", "+Inf", id="infinite"),
        pytest.param(saying(success("scalar", '[1,"-Inf"]')), "NoValue", "-Inf", id="infinite-scalar"),
        pytest.param(saying(vector(sample("1e999999999"))), "PrometheusFailed", "1e999999999", id="endless-exponent"),
        pytest.param(saying(vector(sample("x"))), "PrometheusFailed", "'x' where a number should be", id="no-number"),
        pytest.param(
            saying(success("vector", '[{"metric":{},"histogram":[1,{"count":"3"}]}]')),
            "NotANumber",
            "a histogram",
            id="histogram",
        ),
        pytest.param(saying(success("matrix", "[]")), "NotANumber", "a matrix instead", id="matrix"),
        pytest.param(saying(success("string", '[1,"x"]')), "NotANumber", "a string instead", id="string"),
        pytest.param(
            saying(failure("bad_data", "invalid parameter: parse error at char 3"), 400),
            "NotPromQL",
            "parse error at char 3",
            id="bad-query",
        ),
        pytest.param(
            saying(failure("execution", "found duplicate series"), 422),
            "PrometheusFailed",
            "found duplicate series",
            id="execution",
        ),
        pytest.param(saying(failure("timeout", "query timed out"), 503), "PrometheusFailed", "timed out", id="busy"),
        pytest.param(saying(failure("internal", "broken"), 200), "PrometheusFailed", "broken", id="failure-with-200"),
        pytest.param(saying("", 401), "PrometheusRefused", "it answers 401, and nothing more", id="unauthorized"),
        pytest.param(saying("<h1>No\n entry</h1>", 403), "PrometheusRefused", "403: No entry", id="web-page"),
        pytest.param(saying("404 page not found", 404), "PrometheusRefused", "404 page not found", id="not-found"),
        pytest.param(saying("oops", 500), "PrometheusFailed", "it answers 500: oops", id="server-error"),
        pytest.param(saying("x" * 5000, 502), "PrometheusFailed", "…", id="long-speech"),
        pytest.param(
            saying("", 302, {"Location": "http://127.0.0.1:1/secret"}),
            "PrometheusRefused",
            "302, a redirection, which is not followed",
            id="redirection",
        ),
        pytest.param(saying("<html>hello</html>"), "PrometheusFailed", "not that of a Prometheus", id="not-json"),
        pytest.param(saying(b"\xff\xfe"), "PrometheusFailed", "not that of a Prometheus", id="not-text"),
        pytest.param(saying("[1, 2]"), "PrometheusFailed", "not that of a Prometheus", id="other-json"),
        pytest.param(saying(DEEP), "PrometheusFailed", "not that of a Prometheus", id="too-deep"),
        pytest.param(saying(DEEP, 500), "PrometheusFailed", "it answers 500", id="too-deep-a-failure"),
        pytest.param(saying('{"status":"success"}'), "PrometheusFailed", "without a message", id="no-data"),
        pytest.param(saying(success("vector", "3")), "PrometheusFailed", "not that of a Prometheus", id="odd-vector"),
        pytest.param(
            saying(vector(*(sample("1", n=str(n)) for n in range(30_000)))),
            "ManySamples",
            "larger than 1048576 bytes: put sum(…)",
            id="huge",
        ),
        pytest.param(
            saying(zlib.compress(b"x" * 10_000_000), headers={"Content-Encoding": "deflate"}),
            "ManySamples",
            "larger than 1048576 bytes",
            id="huge-when-unpacked",
        ),
        pytest.param(
            saying(b"no deflate", headers={"Content-Encoding": "deflate"}),
            "PrometheusUnreachable",
            "the connection broke",
            id="badly-packed",
        ),
    ],
)
def test_no_answer(answering: Answering, reason: str, words: str) -> None:
    received = refused(answering)
    assert (received.reason, words in str(received)) == (reason, True), str(received)
    assert len(str(received)) < 1100


@pytest.mark.parametrize(
    ("answer", "permanent"),
    [
        pytest.param(saying(failure("bad_data", "parse error"), 400), True, id="query"),
        pytest.param(saying(failure("unavailable", "starting"), 503), False, id="server"),
    ],
)
def test_only_a_bad_query_is_a_permanent_error(answer: Answering, permanent: bool) -> None:
    assert refused(answer).permanent == permanent


def test_slow_server() -> None:
    async def never(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    received = refused(never, settings=lambda url: PrometheusSettings(url, timeout=0.05))
    assert (received.reason, "no answer within 0.05 seconds" in str(received)) == ("PrometheusUnreachable", True)


def test_slow_body() -> None:
    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"{")
        await asyncio.Event().wait()
        return response

    received = refused(trickle, settings=lambda url: PrometheusSettings(url, timeout=0.05))
    assert (received.reason, "no answer within 0.05 seconds" in str(received)) == ("PrometheusUnreachable", True)


def test_broken_connection() -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    received = refused(hang_up)
    assert (received.reason, "closed the connection without an answer" in str(received)) == (
        "PrometheusUnreachable",
        True,
    )


def test_unreachable_server() -> None:
    async def main() -> None:
        async with prometheus(saying("")) as fake:
            url = fake.url
        async with PrometheusReader(PrometheusSettings(url)) as reader:
            await reader.read(QUERY, namespace="shop")

    with pytest.raises(QueryError, match="cannot connect") as received:
        asyncio.run(main())
    assert received.value.reason == "PrometheusUnreachable"


def test_closed_reader() -> None:
    with pytest.raises(QueryError, match="closed"):
        asyncio.run(PrometheusReader(PrometheusSettings("http://127.0.0.1:1")).read("1", namespace="shop"))


@pytest.mark.parametrize("path", ["", "/", "/prefix", "/prefix/"])
def test_the_query_goes_below_the_url(path: str) -> None:
    _, fake = asked(saying(vector(sample("1"))), path=path)
    assert fake.paths == [f"POST {path.rstrip('/')}/api/v1/query"]
    assert fake.queries == [QUERY]
    assert fake.headers[0]["User-Agent"].startswith("springtide/")


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grants allow an address, and not a proxy for it."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)

    number, _ = asked(saying(vector(sample("1"))))
    assert number == 1


def test_redirections_are_not_followed() -> None:
    async def around(request: web.Request) -> web.StreamResponse:
        seen.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    seen: list[str] = []
    refused(around)
    assert seen == ["/api/v1/query"]


# Proofs of who we are.

TOKEN = "s3cr3t-0123456789"
PASSWORD = "open sesame"
BASIC = b64encode(f"scaler:{PASSWORD}".encode()).decode()


def _with_token(folder: Path) -> Callable[[str], PrometheusSettings]:
    file = folder / "token"
    file.write_text(f"{TOKEN}\n")
    return lambda url: PrometheusSettings(url, bearer_token_file=file)


def _with_password(folder: Path) -> Callable[[str], PrometheusSettings]:
    file = folder / "password"
    file.write_text(f"{PASSWORD}\n")
    return lambda url: PrometheusSettings(url, username="scaler", password_file=file)


def _with_header(folder: Path) -> Callable[[str], PrometheusSettings]:
    return lambda url: PrometheusSettings(url, headers={"Authorization": f"Bearer {TOKEN}", "X-Scope-OrgID": "1"})


PROOFS = pytest.mark.parametrize(
    ("proof", "header"),
    [
        pytest.param(_with_token, f"Bearer {TOKEN}", id="token"),
        pytest.param(_with_password, f"Basic {BASIC}", id="password"),
        pytest.param(_with_header, f"Bearer {TOKEN}", id="header"),
    ],
)


@PROOFS
def test_proof(proof: Callable[[Path], Callable[[str], PrometheusSettings]], header: str, tmp_path: Path) -> None:
    _, fake = asked(saying(vector(sample("1"))), settings=proof(tmp_path))
    assert fake.headers[0]["Authorization"] == header


@PROOFS
@pytest.mark.parametrize("padding", [0, 985, 995], ids=["short", "at-the-cut", "across-the-cut"])
def test_secrets_are_never_repeated(
    proof: Callable[[Path], Callable[[str], PrometheusSettings]], header: str, padding: int, tmp_path: Path
) -> None:
    """A server, or a proxy before it, may quote the request."""

    async def parrot(request: web.Request) -> web.StreamResponse:
        said = " " + "x" * padding + f" {request.headers['Authorization']} {PASSWORD} {header.split()[-1]}"
        return web.json_response({"status": "error", "errorType": "internal", "error": said}, status=500)

    settings = proof(tmp_path)
    received = str(refused(parrot, settings=settings))
    shown = received + repr(settings("http://127.0.0.1:1"))
    wanted = header.split()[-1] if proof is not _with_password else BASIC
    assert not any(wanted[:length] in shown for length in range(4, len(wanted)))
    assert proof is not _with_password or PASSWORD not in shown


def test_token_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")

    async def main() -> list[str]:
        async with prometheus(saying(vector(sample("1")))) as fake:
            async with PrometheusReader(PrometheusSettings(fake.url, bearer_token_file=file)) as reader:
                await reader.read(QUERY, namespace="shop")
                file.write_text("the second")
                await reader.read(QUERY, namespace="shop")
            return [headers["Authorization"] for headers in fake.headers]

    assert asyncio.run(main()) == ["Bearer first", "Bearer the second"]


def test_missing_token_file(tmp_path: Path) -> None:
    received = refused(saying(""), settings=lambda url: PrometheusSettings(url, bearer_token_file=tmp_path / "none"))
    assert (received.reason, f"cannot read {tmp_path / 'none'}" in str(received)) == ("PrometheusUnreachable", True)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def _trusting(authority: Authority, folder: Path, **more: Any) -> Callable[[str], PrometheusSettings]:
    (folder / "ca.pem").write_bytes(authority.pair.certificate)
    return lambda url: PrometheusSettings(url, ca_file=folder / "ca.pem", **more)


def test_configured_authority(authority: Authority, tmp_path: Path) -> None:
    answer, _ = asked(
        saying(vector(sample("1"))), tls=authority.serving("127.0.0.1"), settings=_trusting(authority, tmp_path)
    )
    assert answer == 1


def test_unknown_authority(authority: Authority) -> None:
    received = refused(saying(vector(sample("1"))), tls=authority.serving("127.0.0.1"))
    assert (received.reason, "its certificate is not trusted" in str(received)) == ("PrometheusUnreachable", True)


def test_server_name(authority: Authority, tmp_path: Path) -> None:
    tls = authority.serving("prometheus.monitoring.svc")
    received = refused(saying(vector(sample("1"))), tls=tls, settings=_trusting(authority, tmp_path))
    assert "its certificate is not trusted" in str(received)
    trusting = _trusting(authority, tmp_path, server_name="prometheus.monitoring.svc")
    assert asked(saying(vector(sample("1"))), tls=tls, settings=trusting)[0] == 1


def test_client_certificate(authority: Authority, tmp_path: Path) -> None:
    tls = authority.serving("127.0.0.1", clients=True)
    received = refused(saying(vector(sample("1"))), tls=tls, settings=_trusting(authority, tmp_path))
    assert received.reason == "PrometheusUnreachable"
    pair = authority.client("scaler")
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    (tmp_path / "tls.key").write_bytes(pair.key)
    showing = _trusting(
        authority,
        tmp_path,
        client_certificate_file=tmp_path / "tls.crt",
        client_key_file=tmp_path / "tls.key",
    )
    assert asked(saying(vector(sample("1"))), tls=tls, settings=showing)[0] == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        pytest.param({"url": "prometheus:9090"}, "must begin with http", id="no-scheme"),
        pytest.param({"url": "ftp://x"}, "must begin with http", id="other-scheme"),
        pytest.param({"url": "http://"}, "must begin with http", id="no-host"),
        pytest.param({"url": "http://[x"}, "must begin with http", id="bad-address"),
        pytest.param({"url": "http://u:hunter2@x"}, "must not contain a password", id="password-in-url"),
        pytest.param({"url": "http://x/?token=hunter2"}, "must end with its path", id="query-in-url"),
        pytest.param({"username": "u"}, "give both or none", id="user-without-password"),
        pytest.param({"password_file": Path("p")}, "give both or none", id="password-without-user"),
        pytest.param({"client_key_file": Path("k")}, "give both files or none", id="key-without-certificate"),
        pytest.param(
            {"bearer_token_file": Path("t"), "headers": {"authorization": "hunter2"}}, "give one of", id="two-proofs"
        ),
        pytest.param({"timeout": 0}, "must be positive", id="no-time"),
        pytest.param({"headers": {"a b": "hunter2"}}, "not the name of a header", id="bad-header"),
        pytest.param({"headers": {"A": "hunter2\nB: c"}}, "characters that a header cannot have", id="smuggled-header"),
    ],
)
def test_invalid_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as received:
        PrometheusSettings(**{"url": "http://x", **settings})
    assert "hunter2" not in str(received.value)
