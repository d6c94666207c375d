"""A line to a server on which what is sent can be held up: the network at its slowest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_HOST = "127.0.0.1"
_CHUNK = 65_536


class Line:
    """A port that leads to another one. What it carries is encrypted; all that it can do is to wait."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._loop = asyncio.get_running_loop()
        self._free = asyncio.Event()
        self._free.set()
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()
        self.held = 0
        """Bytes that have been held up so far."""

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def hold(self) -> None:
        """Hold up what clients send from now on; what the server sends still arrives. From any thread."""
        self._loop.call_soon_threadsafe(self._free.clear)

    def release(self) -> None:
        """Let everything through that was held up. From any thread."""
        self._loop.call_soon_threadsafe(self._free.set)

    async def open(self) -> None:
        """Begin to accept connections."""
        self._server = await asyncio.start_server(self._connected, _HOST, 0)

    async def close(self) -> None:
        """Cut all connections, and accept no more."""
        assert self._server is not None
        self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        # What is cut is closed in the next turn of the loop.
        await asyncio.sleep(0)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.create_task(self._talk(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            server_reader, server_writer = await asyncio.open_connection(_HOST, self._target)
            ends.append(server_writer)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._carry(reader, server_writer, self._free))
                both.create_task(self._carry(server_reader, writer, None))
            for end in ends:
                end.close()
                await end.wait_closed()
        except* OSError:
            pass
        finally:
            for end in ends:
                end.transport.abort()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, free: asyncio.Event | None
    ) -> None:
        while data := await reader.read(_CHUNK):
            if free is not None and not free.is_set():
                self.held += len(data)
                await free.wait()
            writer.write(data)
            await writer.drain()
        writer.write_eof()


@asynccontextmanager
async def line(port: int) -> AsyncIterator[Line]:
    """Keep a line to a port of loopback for as long as the block lasts."""
    made = Line(port)
    await made.open()
    try:
        yield made
    finally:
        await made.close()
