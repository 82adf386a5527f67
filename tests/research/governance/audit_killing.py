"""Processes that record entries, two beside each other, killed at random moments."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from random import Random

from research.governance.audit import Verification
from tests.research.governance.audit_making import audited

ROOT = Path(__file__).parents[3]


def kill_recorders(index: Path, kills: int, random: Random) -> tuple[dict[int, str], Verification]:
    """What was acknowledged before each death, and what verification says in the end."""
    with audited(index):
        pass
    acknowledged: dict[int, str] = {}
    for round_ in range(0, kills, 2):
        running = [_start(index, f"{round_}-{side}") for side in "ab"]
        for process in running:  # both have begun, so that the kill falls into their work
            assert process.stdout is not None
            _note(acknowledged, process.stdout.readline())
        for process in running:
            time.sleep(random.uniform(0, 0.12))
            process.kill()
        for process in running:
            assert process.stdout is not None
            assert process.stderr is not None
            with process.stdout, process.stderr:  # not `communicate`, which loses what `readline` has read ahead
                out, err = process.stdout.read(), process.stderr.read()
            process.wait()
            assert not err, err
            whole = out.rpartition("\n")[0]  # a line that was cut was not told
            for line in whole.splitlines():
                _note(acknowledged, line)
    with audited(index) as audit:
        return acknowledged, audit.verify()


def _start(index: Path, name: str) -> subprocess.Popen[str]:
    program = "tests.research.governance.audit_making"
    command = [sys.executable, "-m", program, str(index), name]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _note(acknowledged: dict[int, str], line: str) -> None:
    seq, decision = line.split()
    assert int(seq) not in acknowledged, "a number was given twice"
    acknowledged[int(seq)] = decision
