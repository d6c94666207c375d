"""Admission webhooks: the embedded server asks them as a kube-apiserver does, over HTTPS and with the same words."""

from springtide.simulator.webhooks.performer import Reviews

__all__ = ["Reviews"]
