"""The TLS side of an aggregated server: what it shows, and whose certificates it takes; both can change while it runs.

A context of OpenSSL can be told to trust more, and never less. So whatever changes, a new context is made, and every
connection that begins is led to the newest. One that is open keeps what it began with.
"""

from __future__ import annotations

import ssl

from springtide.cluster.certificates import Pair
from springtide.cluster.serving import TlsIdentity


class Door(TlsIdentity):
    """What a server proves itself with, and which authorities its clients may be signed by."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._trusted = ""
        super().__init__(pair)
        # What is negotiated before a connection is led on is read from this context.
        _ask_for_certificates(self.context)
        self.context.sni_callback = self._lead_on

    def replace(self, pair: Pair) -> None:
        """Show another certificate, to whoever connects from now on."""
        super().replace(pair)
        self._pair = pair
        self._renew()

    def trust(self, authorities: str) -> None:
        """Take certificates that these authorities, in PEM, have signed, and no others, from now on."""
        if authorities != self._trusted:
            self._trusted = authorities
            self._renew()

    def _renew(self) -> None:
        newest = TlsIdentity(self._pair).context
        _ask_for_certificates(newest)
        if self._trusted:
            newest.load_verify_locations(cadata=self._trusted)
        self._newest = newest

    def _lead_on(self, connection: ssl.SSLObject, name: str | None, entered: ssl.SSLContext) -> None:  # noqa: ARG002
        connection.context = self._newest


def _ask_for_certificates(context: ssl.SSLContext) -> None:
    context.verify_mode = ssl.CERT_OPTIONAL
    # Sessions are not resumed: whoever comes back must be trusted still.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
