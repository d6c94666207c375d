"""Connections to the door: each proves itself anew."""

from __future__ import annotations

import ssl

from tests.metrics.external.shelf import AUTHORITY

from springtide.metrics.external.door import Door


def test_nobody_is_given_a_ticket_to_come_back_with() -> None:
    """A session that is resumed would bring along a certificate that may be trusted no more."""
    client_hears, server_hears = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    door = Door(AUTHORITY)
    door.trust(AUTHORITY.certificate.decode())
    server = door.context.wrap_bio(server_hears, client_hears, server_side=True)
    client = context.wrap_bio(client_hears, server_hears, server_hostname="springtide")
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    server.write(b"hello")

    # Tickets come before the first words.
    assert client.read(5) == b"hello"
    assert client.session is not None
    assert not client.session.has_ticket
