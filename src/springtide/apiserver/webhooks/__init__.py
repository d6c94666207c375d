"""Admission webhooks, called over HTTPS as a kube-apiserver calls them, with the same error messages."""

from springtide.apiserver.webhooks.dispatcher import AdmissionWebhooks

__all__ = ["AdmissionWebhooks"]
