"""One `ctx ask`, traced: the catalogs it opens, its SQL, the files of ours it goes through and how deep."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.speed import QUESTION, SAMPLES
from tests.bench.table import line, title

ROOT = Path(__file__).parents[2]
# 35 files before answers had passages, quotes, confidence, and questions parts of documents.
LIMITS = {"catalogs opened": 1, "SQL statements": 40, "files": 50, "frames deep": 12}

_TRACE = """
import json, os, sqlite3, sys, threading
packages = tuple(f"{sys.argv[1]}/{name}/" for name in ("cli", "ingest", "research"))
files, statements, opened, deepest = set(), [], [], 0
connect = sqlite3.connect

def traced(name, *args, **options):
    connection = connect(name, *args, **options)
    opened.append(name)
    # FTS5 tells of statements of its own in a comment.
    connection.set_trace_callback(lambda sql: None if sql.startswith("--") else statements.append(sql))
    return connection

sqlite3.connect = sqlite3.dbapi2.connect = traced

def is_ours(frame):
    # Functions only: bodies of modules and classes run when they are imported.
    return frame.f_code.co_flags & 1 and frame.f_code.co_filename.startswith(packages)

def look(frame, event, _):
    global deepest
    if event == "call" and is_ours(frame):
        files.add(frame.f_code.co_filename)
        depth = 0
        while frame is not None:
            depth += bool(is_ours(frame))
            frame = frame.f_back
        deepest = max(deepest, depth)

def leave(code):
    sys.setprofile(None)
    catalogs = [name for name in opened if "catalog.sqlite3" in str(name)]
    found = [len(catalogs), len(statements), len(files), deepest]
    os.write(3, json.dumps(found).encode())
    real_exit(code)

real_exit, os._exit = os._exit, leave
from cli.main import run_and_leave
sys.argv = ["ctx", *sys.argv[2:]]
threading.setprofile(look)
sys.setprofile(look)
run_and_leave()
"""


def run() -> None:
    title("A question's way (one cold `ctx ask`, traced)")
    with tempfile.TemporaryDirectory() as folder:
        index = str(Path(folder) / "index")
        ctx = [sys.executable, "-m", "cli.main"]
        subprocess.run([*ctx, "ingest", str(SAMPLES), "--quiet", "--index", index], check=True, capture_output=True)
        found = trace(["ask", QUESTION, "--index", index])
    for (name, most), value in zip(LIMITS.items(), found, strict=True):
        line(name, str(value), f"at most {most}")


def trace(args: list[str]) -> list[int]:
    """Catalogs opened, SQL statements, files, frames deep: of one command in a process of its own."""
    script = f"import os; os.dup2(os.open(os.environ['CTX_TRACE'], os.O_WRONLY), 3)\n{_TRACE}"
    with tempfile.NamedTemporaryFile() as told:
        environment = {**os.environ, "CTX_TRACE": told.name, "PYTHONPATH": str(ROOT)}
        subprocess.run(
            [sys.executable, "-c", script, str(ROOT), *args], check=True, capture_output=True, env=environment
        )
        found: list[int] = json.loads(Path(told.name).read_bytes())
    return found
