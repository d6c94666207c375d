"""Queues whose length can be a metric, and how each kind of queue is identified."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal
from urllib.parse import urlsplit

from springtide.apis.fields import Context, NonEmpty, View, doc, extension, stock
from springtide.apis.problems import Problem, error
from springtide.apis.scheduled.promql import query_problems

_SQS_ARN = re.compile(r"arn:[a-z0-9-]+:sqs:[a-z0-9-]+:[0-9]+:[A-Za-z0-9_-]+(\.fifo)?")
_SQS_URL = re.compile(
    r"https://sqs\.(?P<region>[a-z0-9-]+)\.amazonaws\.com/(?P<account>[0-9]+)/(?P<name>[A-Za-z0-9_-]+(\.fifo)?)"
)
_JSON_POINTER = re.compile(r"(/([^~]|~[01])*)?")


class QueueSpec(View, kw_only=True):
    """A queue, and where it can be asked for its length."""

    __mistaken__ = {"arn": "write `id`", "url": "write `id`", "query": "write `id`"}

    type: Annotated[
        Literal["AWSSQSQueue", "Prometheus", "HTTP"],
        doc("What kind of queue it is, and so who is asked."),
        stock(type="string", enum=["AWSSQSQueue"]),
    ]
    id: Annotated[NonEmpty, doc("The queue: ARN of an SQS queue, a PromQL query, or a URL that answers JSON.")]
    pointer: Annotated[
        str | None,
        doc("JSON pointer to the number in an HTTP answer; the answer is the number if not set."),
        extension,
    ] = None

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find ids that do not identify a queue of their type."""
        match self.type:
            case "AWSSQSQueue" if not _SQS_ARN.fullmatch(self.id):
                yield error(("id",), f'"{self.id}" is not the ARN of an SQS queue', _sqs_hint(self.id))
            case "Prometheus":
                yield from query_problems(self.id, ("id",))
            case "HTTP" if not _is_url(self.id):
                yield error(("id",), f'"{self.id}" is not a URL', "write http:// or https://, a host and a path")
        if self.pointer is None:
            return
        if self.type != "HTTP":
            yield error(("pointer",), f"`pointer` is of no use for a queue of type {self.type}", "remove it")
        elif not _JSON_POINTER.fullmatch(self.pointer):
            yield error(
                ("pointer",),
                f'"{self.pointer}" is not a JSON pointer',
                "begin each step with `/`, such as /data/length; write ~ as ~0 and / as ~1",
            )


def _sqs_hint(id_: str) -> str:
    if url := _SQS_URL.fullmatch(id_):
        return f"write `arn:aws:sqs:{url['region']}:{url['account']}:{url['name']}`"
    return "write arn:aws:sqs:REGION:ACCOUNT:NAME"


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # an IPv6 address without its bracket, a port that is no number
        return False
