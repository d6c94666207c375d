"""Queues of AWS SQS, read through boto3 with the credentials of the process.

boto3 blocks, so it runs in threads, of which one namespace can use only a part. It is an optional dependency, which is
imported when the first SQS queue is read.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import msgspec

from springtide.apis.scheduled.producer import QueueSpec
from springtide.apis.springtide.grants import GrantedResource
from springtide.cluster.compute import Threads
from springtide.metrics.queues.port import QueueError, QueueLength, QueueReader, QueueTarget, whole_messages
from springtide.providers.aws.client import is_transient

CONNECT_TIMEOUT = 3
READ_TIMEOUT = 5
TRIES = 2
MOST_AT_ONCE = 32
"""The largest number of concurrent requests."""
OF_ONE_NAMESPACE = 8
"""The largest number of concurrent requests for one namespace."""
MOST_REGIONS = 64
"""The largest number of cached clients; AWS has fewer regions, but users can write any region in an ARN."""

_LENGTH = "ApproximateNumberOfMessages"
_ARN = "QueueArn"
_MISSING = ("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue")
_NOT_ALLOWED = ("AccessDenied", "AccessDeniedException", "InvalidClientTokenId", "UnrecognizedClientException")


@dataclass(frozen=True, slots=True)
class _Address:
    """The parts of an ARN."""

    region: str
    account: str
    name: str

    @classmethod
    def of(cls, arn: str) -> _Address:
        _, _, _, region, account, name = arn.split(":")
        return cls(region, account, name)


class _Found(msgspec.Struct, frozen=True, rename="pascal"):
    queue_url: str


class _Attributes(msgspec.Struct, frozen=True, rename="pascal"):
    queue_arn: str
    approximate_number_of_messages: int


class _Described(msgspec.Struct, frozen=True, rename="pascal"):
    attributes: _Attributes


class SqsQueueReader(QueueReader):
    """Reads SQS queues by their ARNs."""

    def __init__(self) -> None:
        self._clients: dict[str, Any] = {}
        self._urls: dict[str, str] = {}
        self._making = threading.Lock()
        self._threads = Threads("sqs", MOST_AT_ONCE, each=OF_ONE_NAMESPACE)

    def target(self, queue: QueueSpec) -> QueueTarget | None:
        """Return the ARN."""
        return QueueTarget(GrantedResource.QUEUE, queue.id)

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
        """Call SQS in a thread."""
        return await self._threads.run(self._read, queue.id, owner=namespace)

    def close(self) -> None:
        """Stop the threads; no further requests are possible."""
        self._threads.close()

    def _read(self, arn: str) -> QueueLength:
        try:
            # An optional dependency.
            import botocore.exceptions as failures
        except ImportError as failure:
            msg = "queues of AWS need boto3: pip install './springtide[aws]', in the folder with the clone"
            raise QueueError("NotInstalled", msg, retryable=False) from failure
        try:
            return self._ask(arn)
        except failures.ClientError as failure:
            raise _refused(arn, failure.response) from failure
        except (failures.NoCredentialsError, failures.PartialCredentialsError) as failure:
            msg = "the process has no AWS credentials: give its service account a role"
            raise QueueError("NoCredentials", msg, retryable=False) from failure
        except msgspec.ValidationError as failure:
            msg = f"SQS in {_Address.of(arn).region} does not answer as SQS does: {failure}"
            raise QueueError("UnexpectedAnswer", msg, retryable=False) from failure
        except failures.BotoCoreError as failure:
            # Its message may contain proxies and addresses, so only its type is shown.
            msg = f"SQS in {_Address.of(arn).region} cannot be reached: {type(failure).__name__}"
            raise QueueError("NoAnswer", msg, retryable=True) from failure

    def _ask(self, arn: str) -> QueueLength:
        address = _Address.of(arn)
        client = self._client(address.region)
        url = self._urls.get(arn)
        if url is None:
            # With the account: the account of the process may have another queue of the same name.
            found = client.get_queue_url(QueueName=address.name, QueueOwnerAWSAccountId=address.account)
            url = self._urls[arn] = msgspec.convert(found, _Found).queue_url
        try:
            answer = client.get_queue_attributes(QueueUrl=url, AttributeNames=[_LENGTH, _ARN])
        except client.exceptions.QueueDoesNotExist:
            self._urls.pop(arn, None)
            raise
        # Not strict: numbers come as text.
        attributes = msgspec.convert(answer, _Described, strict=False).attributes
        if attributes.queue_arn != arn:
            self._urls.pop(arn, None)
            msg = f"SQS answers for another queue than {arn}: check region and account of the ARN"
            raise QueueError("OtherQueue", msg, retryable=False)
        return QueueLength(whole_messages(attributes.approximate_number_of_messages, "SQS"))

    def _client(self, region: str) -> Any:
        import boto3
        from botocore.config import Config

        # Threads may share clients, but not create them concurrently.
        with self._making:
            if region not in self._clients:
                config = Config(
                    connect_timeout=CONNECT_TIMEOUT,
                    read_timeout=READ_TIMEOUT,
                    max_pool_connections=MOST_AT_ONCE,
                    retries={"mode": "standard", "total_max_attempts": TRIES},
                )
                made = boto3.client("sqs", region_name=region, config=config)
                if len(self._clients) >= MOST_REGIONS:
                    del self._clients[next(iter(self._clients))]
                self._clients[region] = made
            # Least recently used first.
            client = self._clients[region] = self._clients.pop(region)
            return client


def _refused(arn: str, response: Any) -> QueueError:
    code = str((response.get("Error") or {}).get("Code") or "Unknown")
    status = (response.get("ResponseMetadata") or {}).get("HTTPStatusCode") or 0
    if code in _MISSING:
        return QueueError("QueueNotFound", f"there is no queue {arn}, or the process may not see it", retryable=False)
    if code in _NOT_ALLOWED:
        msg = f"AWS refuses to show {arn} ({code}): allow sqs:GetQueueUrl and sqs:GetQueueAttributes on it"
        return QueueError("AccessDenied", msg, retryable=False)
    msg = f"SQS refuses to describe {arn}: {code}"
    return QueueError("Refused", msg, retryable=is_transient(code, status))
