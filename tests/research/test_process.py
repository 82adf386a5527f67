"""A helper process ends with the one it works for, even one that hangs; by the kernel or by looking."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from research import process
from tests.soak.running import assert_ended, descendants

_HELPER = """
import os, sys, time
from research import process
if sys.argv[1] == "looking":
    process._libc = None
process.die_with_parent(os.getppid())
print("ready", flush=True)
time.sleep(600)
"""
_BETWEEN = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"


@pytest.mark.parametrize("how", ["kernel", "looking"])
def test_a_helper_does_not_outlive_its_parent(how: str) -> None:
    command = [sys.executable, "-c", _BETWEEN, _HELPER, how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as between:
        assert between.stdout is not None
        assert between.stdout.readline() == "ready\n"
        family = descendants(between.pid)
        assert len(family) == 1
        between.kill()
        assert_ended(family)


def test_a_helper_whose_parent_is_gone_already_ends_at_once() -> None:
    program = "from research.process import die_with_parent; die_with_parent(1 << 30); print('still here')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")


def test_a_helper_runs_our_sources_whatever_lies_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with process.start_helper("json.tool", stderr=subprocess.PIPE) as helper:
        _, said = helper.communicate(timeout=60)
    assert f"can't open '{os.getpid()}'".encode() in said, "the real one, told the process id"


SECRETS = ("CTX_MODEL_KEY", "CTX_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "AWS_CLIENT_SECRET", "PGPASSWORD", "a_key")


def test_a_helper_is_told_no_secret_but_those_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, f"sk-live-{name}")
    monkeypatch.setenv("KEYBOARD", "qwerty")
    with process.start_helper("json.tool", stdin=subprocess.PIPE, environment={"CTX_API_KEY": "given"}) as helper:
        told = b""
        while b"PYTHONPATH=" not in told and helper.poll() is None:  # it is empty until the program has started
            told = Path(f"/proc/{helper.pid}/environ").read_bytes()
        helper.kill()
    assert b"PYTHONPATH=" in told
    assert b"KEYBOARD=qwerty" in told
    assert b"CTX_API_KEY=given" in told
    assert b"sk-live" not in told
