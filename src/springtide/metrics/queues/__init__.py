"""Readers of queue lengths: SQS, HTTP and Prometheus."""

from springtide.metrics.queues.port import QueueError, QueueLength, QueueReader, QueueTarget
from springtide.metrics.queues.readers import DelegatingQueueReader

__all__ = ["DelegatingQueueReader", "QueueError", "QueueLength", "QueueReader", "QueueTarget"]
