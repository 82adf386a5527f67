"""Nothing leaves the machine, and nothing is left in the user's home: the real commands under a guard of the kernel."""

from __future__ import annotations

import ast
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pymupdf
import pytest

from research.index.checks import look
from tests.conftest import SAMPLES, Tiny
from tests.network_guard import guarded

ROOT = Path(__file__).parent.parent
GUARD = Path(__file__).with_name("network_guard.py")


def _guarded(*args: str, home: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A Python program in a home of its own, without our switches or a CI's, which switch telemetry off as well."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(GUARD), *args]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_the_guard_sees_sockets(tmp_path: Path) -> None:
    for family in ("AF_INET", "AF_INET6"):
        code = f"import socket; socket.socket(socket.AF_UNIX); print('so far'); socket.socket(socket.{family})"
        done = _guarded("-u", "-c", code, home=tmp_path, cwd=tmp_path)
        assert (done.stdout, done.returncode) == ("so far\n", -signal.SIGSYS), family


def test_the_guard_sees_name_look_ups_of_child_processes(tmp_path: Path) -> None:
    child = "import socket; socket.getaddrinfo('name.invalid', 80)"
    code = f"import subprocess, sys; print(subprocess.run([sys.executable, '-c', {child!r}]).returncode)"
    done = _guarded("-c", code, home=tmp_path, cwd=tmp_path)
    assert done.stdout == f"{-signal.SIGSYS}\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Documents with text, one that only OCR can read, and an empty home."""
    folder = tmp_path / "place"
    (folder / "home").mkdir(parents=True)
    (folder / "docs").mkdir()
    with pymupdf.open(SAMPLES / "brindle-g4-controller-manual.pdf") as manual:
        manual.select([0, 1])
        manual.save(folder / "docs" / "manual.pdf")
        with pymupdf.open() as scan:
            page = scan.new_page()
            page.insert_image(page.rect, pixmap=manual[1].get_pixmap(dpi=110))
            scan.save(folder / "docs" / "scan.pdf")
    return folder


# That the user named a model, which is what allows a later question to load it.
PERMISSION = {".local/state/ctx/allowed-encoders", ".local/state/ctx/allowed-encoders.lock"}
FIRST = ["ingest", "docs", "--ocr-engine", "rapidocr"]
# One process for all of them: two load the model, and to import torch takes ten seconds.
QUICK = (
    ["ingest", "docs/manual.pdf", "--ocr", "off"],
    ["search", "controller", "--mode", "hybrid"],
    ["show", "manual.pdf", "1", "--image", "page.png", "--for", "controller"],
    ["status"],
    ["doctor", "--reindex"],
    ["backup", "b.zip"],
    ["restore", "b.zip", "--force"],
    ["ask", "What does the controller do?"],
)
REST = (
    *QUICK[1:-1],
    ["doctor"],
    ["remove", "scan.pdf", "--yes"],
    ["ingest", "docs/manual.pdf", "--visual", "model"],
    QUICK[-1],
)
_ROUND = """
import json, sys
from pathlib import Path
from cli.main import main
for args in json.loads(sys.argv[1]):
    code = main([*args, "--index", "index"])
    left = [path.relative_to(Path.home()).as_posix() for path in Path.home().rglob("*") if path.is_file()]
    print("\\n" + json.dumps(["ended", args, code, left]))
"""


def test_no_command_reaches_a_network_or_writes_into_the_home(place: Path) -> None:
    _run_all(QUICK, place)


@pytest.mark.slow
def test_no_model_reaches_a_network_either(place: Path, tiny: Tiny) -> None:
    (place / "model").symlink_to(tiny("ColIdefics3"))
    first = _guarded("-P", "-m", "cli.main", *FIRST, "--index", "index", home=place / "home", cwd=place)
    assert first.returncode == 0, (first.stdout, first.stderr)
    assert not [path for path in (place / "home").rglob("*") if path.is_file()]
    assert "failed" not in first.stdout
    _run_all(REST, place)


def _run_all(commands: Sequence[list[str]], place: Path) -> None:
    done = _guarded("-P", "-c", _ROUND, json.dumps(commands), home=place / "home", cwd=place)
    ended = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["ended", ')]
    assert [args for _, args, _, _ in ended] == list(commands), done.stderr
    for _, args, code, left in ended:
        assert code == 0, (args, done.stdout, done.stderr)
        assert set(left) <= PERMISSION, args
    assert "failed" not in done.stdout
    assert (place / "page.png").is_file()


@pytest.mark.slow
def test_the_doctor_looks_instead_of_believing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "0")
    seen = look()
    assert (seen.left_behind, seen.chroma_reports, seen.ran) == ((), False, True)
    # The same without the switches leaves a device id: what is looked for is really there to be seen.
    code = "import onnxruntime, sys\nonnxruntime.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'])"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    model = ROOT / "research" / "encoders" / "minilm" / "model.onnx"
    subprocess.run([sys.executable, "-c", code, str(model)], env=environment, check=True)
    assert [path.name for path in tmp_path.rglob("deviceid")] == ["deviceid"]


def test_onnxruntime_has_one_door() -> None:
    """Whoever imported it elsewhere might do so before its telemetry is off."""
    found = []
    for folder in ("cli", "ingest", "research", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "onnxruntime" in text else ():
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                if any(name.partition(".")[0] == "onnxruntime" for name in names):
                    found.append(path.relative_to(ROOT).as_posix())
    assert found == ["research/lazy.py"]


def test_a_test_cannot_reach_the_network() -> None:
    with pytest.raises(AssertionError, match="tried to reach the network"):
        socket.create_connection(("name.invalid", 80))
    with socket.socket(socket.AF_UNIX) as local, pytest.raises(AssertionError, match="tried to reach the network"):
        local.connect_ex("/nowhere")
    done = subprocess.run(guarded("-c", "import socket; socket.socket()"), check=False)
    assert done.returncode == -signal.SIGSYS, "nor can the commands that tests start"
