"""Queues: who is asked how long one is."""

from springtide.metrics.queues.facade import Queues
from springtide.metrics.queues.port import QueueError, QueueLength, QueueReader, Target

__all__ = ["QueueError", "QueueLength", "QueueReader", "Queues", "Target"]
