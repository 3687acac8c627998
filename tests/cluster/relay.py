"""
A wire between a program and the API server that can be cut without either side being told.

Comes in: TCP connections. Goes out: the same bytes to the server and back. While it is cut nothing passes, nothing is
closed, and new connections are taken and led nowhere, as with a broken router; what was sent meanwhile is delivered
when the wire is mended, however late that is.

It runs in a thread of its own, as the main thread waits for processes that need it.
"""

import asyncio
import concurrent.futures
import contextlib
import threading
import types
from typing import Self

START_S = 30.0
_CHUNK_BYTES = 1 << 16


class Relay:
    """The wire; a context manager. `port` is where the program goes."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()
        self._whole.set()
        self._over = asyncio.Event()
        self._port: concurrent.futures.Future[int] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._port.result(timeout=START_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(timeout=START_S)

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        return self._port.result(timeout=START_S)

    def cut(self) -> None:
        """Let nothing pass from now on."""
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        """Let everything pass again, first of all what has waited."""
        self._loop.call_soon_threadsafe(self._whole.set)

    # ------------------------------------------------------------------ in its own thread

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        carrying: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._carry(reader, writer))
            carrying.add(task)
            task.add_done_callback(carrying.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self._port.set_result(server.sockets[0].getsockname()[1])
        await self._over.wait()
        server.close()
        for task in list(carrying):
            task.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._whole.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self._target_port)
            try:
                await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
            finally:
                back.transport.abort()
        except OSError:
            # One of the two has gone, which is its right.
            return
        finally:
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK_BYTES):
            await self._whole.wait()
            writer.write(data)
            await writer.drain()
        await self._whole.wait()
        with contextlib.suppress(OSError):
            writer.close()
