"""Answers in one piece: what is sent when, for every order in which a head, a body and an end can come."""

from __future__ import annotations

import asyncio

import pytest

from springtide.cluster.one_piece import OnePiece

END = b"(closed)"


class Line(asyncio.Transport):
    """Takes down what is sent, and when it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))

    def close(self) -> None:
        self.sent.append(END)
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def done(answer: OnePiece, *parts: bytes) -> None:
    """Write the parts of an answer, and close the connection where the end is among them."""
    for part in parts:
        if part == END:
            answer.close()
        else:
            answer.write(part)


@pytest.mark.parametrize(
    ("turns", "sent"),
    [
        pytest.param([[b"head ", b"body"]], [b"head body"], id="head-and-body"),
        pytest.param([[b"head ", b""]], [b"head "], id="empty-body"),
        pytest.param([[b"head ", b"1", b"2"]], [b"head 1", b"2"], id="body-in-parts"),
        pytest.param([[b"head "], [b"body"]], [b"head ", b"body"], id="body-comes-later"),
        pytest.param([[b"head "]], [b"head "], id="no-body-yet"),
        pytest.param([[b"head ", END]], [b"head ", END], id="closed-after-head"),
        pytest.param([[b"head ", b"body", END]], [b"head body", END], id="closed-after-body"),
        pytest.param([[END]], [END], id="closed-at-once"),
    ],
)
def test_what_is_sent(turns: list[list[bytes]], sent: list[bytes]) -> None:
    """What is written in one turn of the event loop, turn by turn."""

    async def story() -> list[bytes]:
        line = Line()
        answer = OnePiece(line, asyncio.get_running_loop())
        for turn in turns:
            done(answer, *turn)
            await asyncio.sleep(0)
        return line.sent

    assert sent == asyncio.run(story())


def test_a_head_is_not_sent_into_a_connection_that_was_closed_meanwhile() -> None:
    async def story() -> None:
        line = Line()
        answer = OnePiece(line, asyncio.get_running_loop())
        answer.write(b"head ")
        line.close()
        await asyncio.sleep(0)
        assert (line.sent, answer.is_closing()) == ([END], True)

    asyncio.run(story())
