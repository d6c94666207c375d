"""Failures of the network in the words of a kube-apiserver, which are those of Go."""

from __future__ import annotations

import json
import ssl

import aiohttp

from springtide.simulator.webhooks.addresses import Address

_MOST_SHOWN = 2048
_X509 = {
    9: "certificate has expired or is not yet valid",
    10: "certificate has expired or is not yet valid",
    18: "certificate signed by unknown authority",
    19: "certificate signed by unknown authority",
    20: "certificate signed by unknown authority",
    21: "certificate signed by unknown authority",
}
"""What OpenSSL finds wrong with certificates, by its number."""
_BY_STATUS = {
    401: "the server has asked for the client to provide credentials",
    403: "the server does not allow this method on the requested resource",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
}
_SERVER_FAILURE = 500


def connection_failure(failure: Exception, address: Address) -> str:
    """Tell why no answer came."""
    match failure:
        case aiohttp.ClientConnectorCertificateError():
            return _untrusted(failure.certificate_error, address)
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {failure.host}: no such host"
        case aiohttp.ClientConnectorSSLError():
            cause = failure.os_error
            reason = getattr(cause, "reason", None) or cause.strerror or str(cause)
            return f"tls: {str(reason).lower().replace('_', ' ')}"
        case aiohttp.ClientConnectorError():
            words = _system_words(failure.os_error)
            return f"dial tcp {failure.host}:{failure.port}: connect: {words}" if words else "EOF"
        case aiohttp.ServerDisconnectedError():
            return "EOF"
        case _:
            return str(failure) or type(failure).__name__


def _system_words(error: OSError) -> str:
    """Give what the system says of a connection; nothing where the other side has just hung up."""
    # Where a name has several addresses, the event loop puts one text together from the failures of all.
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return "connection refused"
    return (error.strerror or "").lower()


def refusal(status: int, told: str, body: bytes) -> str:
    """Tell what an answer other than success means; `told` is its message, where it has one."""
    if told:
        return told
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= _SERVER_FAILURE:
        shown = json.dumps(body[:_MOST_SHOWN].decode(errors="replace"), ensure_ascii=False)
        return f"an error on the server ({shown}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


def _untrusted(error: Exception, address: Address) -> str:
    words = f"certificate is not valid for {address.server_name}"
    if isinstance(error, ssl.SSLCertVerificationError):
        words = _X509.get(error.verify_code, words if "mismatch" in error.verify_message else error.verify_message)
    return f"tls: failed to verify certificate: x509: {words}"
