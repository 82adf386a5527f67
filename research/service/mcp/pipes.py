"""The tools over two pipes, for one client: what `ctx mcp` runs."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import BinaryIO

import anyio
from anyio import to_thread
from mcp.server.stdio import stdio_server

from research.service.mcp.server import build_server
from research.service.mcp.toolbox import Toolbox

_LONGEST_LINE = 8 * 1024 * 1024  # characters of a message


async def serve_stdio(toolbox: Toolbox, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Serve one client until it closes its pipe, or goes away. Being cancelled ends it at once, also while a thread
    waits for a line that never comes."""
    server = build_server(toolbox)
    lines = _Lines(io.TextIOWrapper(stdin, encoding="utf-8", errors="replace"))
    out = _Lines(io.TextIOWrapper(stdout, encoding="utf-8"))
    try:
        with suppress(BrokenPipeError):
            try:
                async with stdio_server(lines, out) as (reading, writing):
                    await server.run(reading, writing, server.create_initialization_options())
            except BaseExceptionGroup as group:  # of the task group inside; who went away is no fault
                gone, others = group.split(BrokenPipeError)
                if others is not None:
                    raise others from None
                assert gone is not None
    finally:
        toolbox.stop_ingests()


class _Lines(anyio.AsyncFile[str]):
    """A stream whose blocking calls are left behind when they are cancelled: their threads end with the process."""

    async def readline(self) -> str:
        return await to_thread.run_sync(self._line, abandon_on_cancel=True)

    async def write(self, text: str) -> int:
        return await to_thread.run_sync(self.wrapped.write, text, abandon_on_cancel=True)

    async def flush(self) -> None:
        await to_thread.run_sync(self.wrapped.flush, abandon_on_cancel=True)

    def _line(self) -> str:
        """One that is too long is passed over, and comes out as one that nobody can read."""
        line = self.wrapped.readline(_LONGEST_LINE)
        if len(line) < _LONGEST_LINE or line.endswith("\n"):
            return line
        while (rest := self.wrapped.readline(_LONGEST_LINE)) and not rest.endswith("\n"):
            pass
        return "\n"
