"""What a command takes: CPU, wall time and memory of the whole process tree."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

_SAMPLE_SECONDS = 0.05
_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Taken:
    cpu: float  # seconds, the process and those it waited for
    wall: float  # seconds
    memory: float  # MB, the largest sum of resident memory over the process and its descendants
    stdout: str


def cost(command: list[str]) -> tuple[float, float]:
    """CPU and wall seconds."""
    taken = watch(command, memory=False)
    return taken.cpu, taken.wall


def watch(command: list[str], *, memory: bool = True, fine: Container[int] = (0,)) -> Taken:
    """Run a command to its end. Raises if it fails: if its exit code is none of those that are `fine`."""
    before = os.times()
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        sampler = _Sampler(process.pid)
        if memory:
            sampler.start()
        stdout, stderr = process.communicate()
        wall = time.perf_counter() - started
        sampler.ended = True
    if process.returncode not in fine:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {stderr[-2000:]}")
    after = os.times()
    cpu = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    return Taken(cpu, wall, sampler.peak, stdout)


class _Sampler(threading.Thread):
    """Looks at the tree again and again. Memory that processes share counts once for each: rather too much."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self.peak = 0.0
        self.ended = False

    def run(self) -> None:
        while not self.ended:
            self.peak = max(self.peak, sum(_resident(pid) for pid in _tree(self._pid)))
            time.sleep(_SAMPLE_SECONDS)


def _tree(pid: int) -> list[int]:
    found = [pid]
    for parent in found:  # grows while it is walked
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in children.read_text().split()]
            except OSError:
                continue
    return found


def _resident(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / _MB
