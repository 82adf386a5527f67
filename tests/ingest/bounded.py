"""The real `ctx ingest`, watched from outside: how it ended, and the most memory any of its processes took."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.network_guard import guarded

# A process of its own, so that nothing else this one has started is counted.
_WATCHER = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
sys.stderr.write(f"\\n{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}")
sys.exit(code)
"""


@dataclass(frozen=True)
class Bounded:
    code: int
    summary: dict[str, Any]
    megabytes: float
    said: str

    def outcomes(self) -> dict[str, tuple[str, str]]:
        """Result and code by file name without its ending."""
        return {Path(file["source_path"]).stem: (file["result"], file["code"]) for file in self.summary["files"]}


def ingest(path: Path, index: Path, *options: str, seconds: float = 120.0) -> Bounded:
    """Run the command to its end; a run that takes longer than `seconds` is a failure."""
    command = guarded("-m", "cli.main", "ingest", str(path), "--index", str(index), "--json", *options)
    watched = subprocess.Popen(
        [sys.executable, "-c", _WATCHER, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "CTX_VISUAL": "off"},
    )
    try:
        out, err = watched.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(watched.pid, signal.SIGKILL)  # nothing of it stays behind
        raise
    said, _, kilobytes = err.decode(errors="replace").rpartition("\n")
    assert "Traceback" not in said, said
    return Bounded(watched.returncode, json.loads(out), int(kilobytes) / 1024, said)
