"""What AWS answers: what is tried again, in which words it is told, and what is never repeated."""

from __future__ import annotations

import builtins
from typing import Any

import botocore.exceptions as botocore
import pytest
from tests.providers.clusters import run

from springtide.providers import ProviderError
from springtide.providers.aws.client import (
    MOST_CLIENTS,
    AwsClients,
    connect,
    error_from_response,
    error_without_response,
)

KEY = "AKIAIOSFODNN7EXAMPLE"


@pytest.mark.parametrize(
    ("code", "http_status", "short", "retryable"),
    [
        pytest.param("Throttling", 400, "Throttling", True, id="throttling"),
        pytest.param("ThrottlingException", 400, "Throttling", True, id="throttling-of-eks"),
        pytest.param("RequestLimitExceeded", 503, "RequestLimitExceeded", True, id="too-many"),
        pytest.param("ScalingActivityInProgress", 400, "ScalingActivityInProgress", True, id="busy"),
        pytest.param("ResourceContention", 500, "ResourceContention", True, id="contention"),
        pytest.param("ResourceInUseException", 409, "ResourceInUse", True, id="busy-at-eks"),
        pytest.param("ServerException", 500, "Server", True, id="server"),
        pytest.param("SomethingNew", 502, "SomethingNew", True, id="unknown-at-5xx"),
        pytest.param("SomethingNew", 429, "SomethingNew", True, id="unknown-at-429"),
        pytest.param("ExpiredToken", 403, "ExpiredToken", True, id="credentials-being-renewed"),
        pytest.param("SomethingNew", 400, "SomethingNew", False, id="unknown-at-4xx"),
        pytest.param("AccessDenied", 403, "AccessDenied", False, id="access-denied"),
        pytest.param("AccessDeniedException", 403, "AccessDenied", False, id="access-denied-at-eks"),
        pytest.param("ValidationError", 400, "ValidationError", False, id="validation"),
        pytest.param("ResourceNotFoundException", 404, "ResourceNotFound", False, id="not-found"),
        pytest.param("InvalidClientTokenId", 403, "InvalidClientTokenId", False, id="wrong-key"),
        pytest.param("Client.InvalidThing", 400, "InvalidThing", False, id="code-with-a-dot"),
        pytest.param("403 Forbidden", 403, "Aws403Forbidden", False, id="code-that-is-no-word"),
        pytest.param("Exception", 400, "Exception", False, id="nothing-but-an-ending"),
    ],
)
def test_answers(code: str, http_status: int, short: str, retryable: bool) -> None:
    """The code becomes one word, and the words stay."""
    failure = error_from_response("autoscaling", code, "because", http_status)

    assert (failure.code, failure.retryable) == (short, retryable)
    assert code in str(failure)


@pytest.mark.parametrize(
    ("failure", "short", "retryable"),
    [
        pytest.param(botocore.ConnectTimeoutError(endpoint_url="u"), "Timeout", True, id="connect-timeout"),
        pytest.param(botocore.ReadTimeoutError(endpoint_url="u"), "Timeout", True, id="read-timeout"),
        pytest.param(botocore.EndpointConnectionError(endpoint_url="u"), "Unreachable", True, id="no-connection"),
        pytest.param(botocore.ConnectionClosedError(endpoint_url="u"), "Unreachable", True, id="closed"),
        pytest.param(botocore.ProxyConnectionError(proxy_url="u"), "Unreachable", True, id="proxy"),
        pytest.param(botocore.SSLError(endpoint_url="u", error="e"), "Unreachable", True, id="tls"),
        pytest.param(botocore.HTTPClientError(error="e"), "Unreachable", True, id="http"),
        pytest.param(botocore.NoCredentialsError(), "NoCredentials", False, id="no-credentials"),
        pytest.param(
            botocore.PartialCredentialsError(provider="p", cred_var="v"), "NoCredentials", False, id="half-of-them"
        ),
        pytest.param(
            botocore.CredentialRetrievalError(provider="p", error_msg="e"), "CredentialsUnavailable", True, id="no-role"
        ),
        pytest.param(botocore.NoRegionError(), "NoRegion", False, id="no-region"),
        pytest.param(botocore.ParamValidationError(report="r"), "ParamValidation", False, id="parameters"),
    ],
)
def test_no_answers(failure: Exception, short: str, retryable: bool) -> None:
    """What never got an answer is mostly worth another try, what could not be made is not."""
    received = error_without_response("eks", failure)

    assert (received.code, received.retryable) == (short, retryable)
    assert str(received).startswith("eks: ")


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(
            error_from_response(
                "eks", "SignatureDoesNotMatch", f"Credential={KEY}/20260105, Signature=5d672d79c15b", 403
            ),
            id="signature",
        ),
        pytest.param(
            error_from_response("eks", "ExpiredToken", f"the token {KEY} has expired 5d672d79c15b", 403), id="token"
        ),
        pytest.param(error_from_response("eks", "AccessDenied", f"{KEY} may not", 403), id="key-in-other-words"),
        pytest.param(
            error_without_response("eks", botocore.ProxyConnectionError(proxy_url=f"http://{KEY}:5d672d79c15b@proxy")),
            id="proxy",
        ),
    ],
)
def test_credentials_are_never_repeated(failure: ProviderError) -> None:
    """Messages go into conditions, which many can read."""
    assert KEY not in str(failure)
    assert "5d672d79c15b" not in str(failure)


def test_long_words_are_cut() -> None:
    """And stay in one line."""
    message = str(error_from_response("eks", "AccessDenied", "no\n" * 1000, 403))

    assert len(message) < 600
    assert "\n" not in message


def test_boto3_is_needed_only_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the words say what to install."""
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("boto3"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)

    with pytest.raises(ProviderError, match=r"pip install './springtide\[aws\]'") as failed:
        run(AwsClients().call("eks", "eu-west-1", "describe_nodegroup"))
    assert (failed.value.code, failed.value.retryable) == ("AwsMissing", False)


def test_a_process_without_a_region(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """A bare name cannot be found then."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    with pytest.raises(ProviderError, match="write the ARN") as failed:
        run(AwsClients().call("autoscaling", "", "describe_auto_scaling_groups"))
    assert (failed.value.code, failed.value.retryable) == ("NoRegion", False)


def test_requests_end_soon_and_are_made_once() -> None:
    """A permitted write is sent before another replica can acquire the lease."""
    client = connect("eks", "eu-west-1")

    assert (client.meta.config.connect_timeout, client.meta.config.read_timeout) == (3, 10)
    assert client.meta.config.retries["total_max_attempts"] == 1


def test_a_client_is_made_once_for_a_service_and_a_region() -> None:
    """Making one takes long."""
    made: list[tuple[str, str]] = []

    class Client:
        def look(self) -> dict[str, Any]:
            return {}

    def making(service: str, region: str) -> Client:
        made.append((service, region))
        return Client()

    connections = AwsClients(making)
    for region in ("a", "b", "a"):
        run(connections.call("eks", region, "look"))

    assert made == [("eks", "a"), ("eks", "b")]


def test_the_least_recently_used_clients_are_dropped() -> None:
    """Users can name any region; the number of clients is limited, and those in use stay."""
    made: list[str] = []

    class Client:
        def look(self) -> dict[str, Any]:
            return {}

    def making(service: str, region: str) -> Any:
        made.append(region)
        return Client()

    connections = AwsClients(making)
    for number in range(MOST_CLIENTS + 10):
        run(connections.call("eks", "home", "look"))
        run(connections.call("eks", f"r-{number}", "look"))
    run(connections.call("eks", "r-0", "look"))

    assert made.count("home") == 1
    assert made.count("r-0") == 2
