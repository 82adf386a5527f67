"""The process of the local model: llama.cpp's own HTTP server on a loopback port, until stdin ends.

One line of JSON comes in (the model's file, the key, the window), one goes out (the address).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

HOST = "127.0.0.1"


def main() -> None:
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what compiled code prints is no answer to our parent
    order = json.loads(sys.stdin.buffer.readline())
    server = _started(order)
    told.write(json.dumps({"address": server.listening_address}) + "\n")
    told.flush()
    sys.stdin.buffer.read()  # ends when the parent closes it, or ends itself
    # Not by the way out: that would wait for an answer that nobody reads any more.
    os.kill(os.getpid(), signal.SIGKILL)


def _started(order: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = order["weights"]
    params.hostnames = [HOST]
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
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = _cores()
        threads.poll = 0  # a thread that waits by spinning takes the core from one that works
    return xllamacpp.Server(params)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    main()
