"""Queues of SQS, against moto."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import boto3
import botocore.exceptions
import pytest
from moto import mock_aws

from springtide.apis.scheduled.producer import QueueSpec
from springtide.apis.springtide.grants import GrantedResource
from springtide.metrics.queues import QueueError, QueueLength, QueueTarget
from springtide.metrics.queues.sqs import SqsQueueReader

ACCOUNT = "123456789012"
REGION = "eu-central-1"


def _arn(name: str = "jobs", *, region: str = REGION, account: str = ACCOUNT) -> str:
    return f"arn:aws:sqs:{region}:{account}:{name}"


def _read(queues: SqsQueueReader, arn: str) -> QueueLength | QueueError:
    try:
        return asyncio.run(queues.read(QueueSpec(type="AWSSQSQueue", id=arn), namespace="default"))
    except QueueError as failure:
        return failure


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Run moto, independent of the settings of the machine."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        yield boto3.client("sqs", region_name=REGION)


def _fill(sqs: Any, name: str, messages: int) -> None:
    url = sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"} if name.endswith(".fifo") else {})[
        "QueueUrl"
    ]
    for number in range(messages):
        more = {"MessageGroupId": "g", "MessageDeduplicationId": str(number)} if name.endswith(".fifo") else {}
        sqs.send_message(QueueUrl=url, MessageBody="work", **more)


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        pytest.param("jobs", 3, id="standard"),
        pytest.param("jobs.fifo", 2, id="fifo"),
        pytest.param("idle", 0, id="empty"),
    ],
)
def test_the_length_of_a_queue(sqs: Any, name: str, messages: int) -> None:
    """The number of waiting messages; SQS does not report their age."""
    _fill(sqs, name, messages)

    assert _read(SqsQueueReader(), _arn(name)) == QueueLength(messages, None)


def test_the_url_of_a_queue_is_cached(sqs: Any) -> None:
    """It is looked up once, and again after it has changed."""
    queues = SqsQueueReader()
    _fill(sqs, "jobs", 1)
    first = _read(queues, _arn())
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName="jobs")["QueueUrl"])
    gone = _read(queues, _arn())
    _fill(sqs, "jobs", 2)

    assert (first, _read(queues, _arn())) == (QueueLength(1), QueueLength(2))
    assert isinstance(gone, QueueError)
    assert (gone.reason, gone.retryable) == ("QueueNotFound", False)


@pytest.mark.parametrize(
    ("arn", "reason"),
    [
        pytest.param(_arn("other"), "QueueNotFound", id="another-name"),
        pytest.param(_arn(region="us-east-1"), "QueueNotFound", id="another-region"),
        # The imitation does not look at the account; the answer is looked at all the same.
        pytest.param(_arn(account="999999999999"), "OtherQueue", id="another-account"),
    ],
)
def test_a_missing_queue(sqs: Any, arn: str, reason: str) -> None:
    """A queue of the same name in the account or region of the process is another one."""
    _fill(sqs, "jobs", 5)

    failure = _read(SqsQueueReader(), arn)

    assert isinstance(failure, QueueError)
    assert (failure.reason, failure.retryable) == (reason, False)
    assert arn in str(failure)


class Scripted(SqsQueueReader):
    """A reader with a scripted response of SQS."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self._answer = answer

    def _client(self, region: str) -> Any:
        answer = self._answer

        class Client:
            class exceptions:  # noqa: N801 - as botocore calls it
                QueueDoesNotExist = KeyboardInterrupt

            def get_queue_url(self, **asked: str) -> Any:
                return {"QueueUrl": "https://sqs.example.com/1/jobs"}

            def get_queue_attributes(self, **asked: Any) -> Any:
                if isinstance(answer, Exception):
                    raise answer
                return {"Attributes": answer}

        return Client()


def _client_error(code: str, status: int) -> botocore.exceptions.ClientError:
    response: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return botocore.exceptions.ClientError(response, "GetQueueAttributes")


@pytest.mark.parametrize(
    ("answer", "reason", "retryable", "words"),
    [
        pytest.param(_client_error("AccessDenied", 403), "AccessDenied", False, "allow sqs:GetQueueUrl", id="denied"),
        pytest.param(_client_error("Throttling", 400), "Refused", True, "Throttling", id="throttled"),
        pytest.param(_client_error("InternalError", 500), "Refused", True, "InternalError", id="trouble"),
        pytest.param(_client_error("ExpiredToken", 403), "Refused", True, "ExpiredToken", id="token-being-renewed"),
        pytest.param(_client_error("RequestExpired", 400), "Refused", True, "RequestExpired", id="on-its-way-too-long"),
        pytest.param(_client_error("RequestTimeout", 400), "Refused", True, "RequestTimeout", id="timeout"),
        pytest.param(_client_error("SlowDown", 400), "Refused", True, "SlowDown", id="slow-down"),
        pytest.param(
            _client_error("RequestThrottled", 403), "Refused", True, "RequestThrottled", id="throttled-by-sqs"
        ),
        pytest.param(_client_error("SomethingNew", 429), "Refused", True, "SomethingNew", id="unknown-at-429"),
        pytest.param({}, "UnexpectedAnswer", False, "SQS in eu-central-1 does not answer as SQS does", id="empty"),
        pytest.param(
            {"QueueArn": _arn(), "ApproximateNumberOfMessages": "some"},
            "UnexpectedAnswer",
            False,
            "does not answer as SQS does",
            id="no-number",
        ),
        pytest.param(_client_error("InvalidAddress", 400), "Refused", False, "InvalidAddress", id="refused"),
        pytest.param(
            botocore.exceptions.NoCredentialsError(), "NoCredentials", False, "no AWS credentials", id="no-credentials"
        ),
        pytest.param(
            botocore.exceptions.EndpointConnectionError(endpoint_url="http://proxy:hunter2@x"),
            "NoAnswer",
            True,
            "SQS in eu-central-1 cannot be reached: EndpointConnectionError",
            id="unreachable",
        ),
        pytest.param(
            {"QueueArn": _arn("else"), "ApproximateNumberOfMessages": "3"},
            "OtherQueue",
            False,
            _arn(),
            id="another-queue",
        ),
    ],
)
def test_errors_of_sqs(answer: Any, reason: str, retryable: bool, words: str) -> None:
    """Each message says what to do, and contains no credentials."""
    failure = _read(Scripted(answer), _arn())

    assert isinstance(failure, QueueError)
    assert (failure.reason, failure.retryable) == (reason, retryable)
    assert words in str(failure)
    assert "hunter2" not in str(failure)


def test_slow_queues_delay_only_their_namespace() -> None:
    """Queues of other namespaces are read, and host names are resolved, meanwhile."""
    answered = threading.Event()

    class Silent(SqsQueueReader):
        def _ask(self, arn: str) -> QueueLength:
            if arn == _arn("silent"):
                answered.wait()
            return QueueLength(7)

    async def main() -> QueueLength:
        with closing(Silent()) as queues:
            silent = QueueSpec(type="AWSSQSQueue", id=_arn("silent"))
            waiting = [asyncio.ensure_future(queues.read(silent, namespace="a")) for _ in range(100)]
            async with asyncio.timeout(10):
                await asyncio.sleep(0)
                await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80)
                found = await queues.read(QueueSpec(type="AWSSQSQueue", id=_arn()), namespace="b")
            answered.set()
            await asyncio.gather(*waiting)
        return found

    assert asyncio.run(main()) == QueueLength(7)


def test_without_boto3_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """boto3 is needed only for SQS queues."""
    monkeypatch.setitem(sys.modules, "botocore.exceptions", None)

    failure = _read(SqsQueueReader(), _arn())

    assert isinstance(failure, QueueError)
    assert (failure.reason, str(failure)) == (
        "NotInstalled",
        "queues of AWS need boto3: pip install './springtide[aws]', in the folder with the clone",
    )


def test_the_target_is_the_arn() -> None:
    """A Grant must allow it."""
    assert SqsQueueReader().target(QueueSpec(type="AWSSQSQueue", id=_arn())) == QueueTarget(
        GrantedResource.QUEUE, _arn()
    )
