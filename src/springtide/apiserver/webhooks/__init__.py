"""Admission webhooks: the embedded server asks them as a kube-apiserver does, over HTTPS and with the same words."""

from springtide.apiserver.webhooks.dispatcher import AdmissionWebhooks

__all__ = ["AdmissionWebhooks"]
