"""A copy of ctx with traps in it: pages on which its reading process dies, hangs or meets a mistake of ours.

The traps are files, so that a test can set and clear them between runs of the real command.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.in_process import run_in_process
from tests.network_guard import guarded

ROOT = Path(__file__).parent.parent.parent

_TRAP = """
import os, signal, time
from pathlib import Path

def trap(stage, page):
    folder = Path(os.environ["TRAPS"])
    try:
        what = (folder / f"{stage}-{page}").read_text()
    except FileNotFoundError:
        return
    with (folder / "met").open("a") as met:
        met.write(f"{stage}-{page}\\n")
    if what.endswith("once"):
        (folder / f"{stage}-{page}").unlink()
    if what.startswith("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    elif what.startswith("crash"):
        os.kill(os.getpid(), signal.SIGSEGV)
    elif what.startswith("hang"):
        time.sleep(600)
    elif what.startswith("exit"):
        os._exit(3)
    elif what.startswith("memory"):
        raise MemoryError
    else:
        {}["a key that is not there"]
"""

# Where the traps are, and the time a page has there.
_PLANTED = {
    "pdf/reader.py": ("            return extract_page(", '            trap("read", number)\n'),
    "images.py": ("    picture = raster(", '    trap("images", number)\n'),
    "ocr/run.py": ("            return read_page(", '            trap("ocr", number)\n'),
}
_LIMITS = {
    "Limits(60.0, 30.0, 600.0)": "Limits(60.0, 3.0, 600.0)",
    "Limits(60.0, 30.0, 900.0)": "Limits(60.0, 3.0, 900.0)",
    "Limits(60.0, 90.0, 7200.0)": "Limits(60.0, 5.0, 7200.0)",
}
# A tesseract that reads the same line on every page. What is tested is how a process ends, not how well it reads; and
# rapidocr takes seconds to load.
_LINE = "The heron stands in the reeds."
_WORDS = "".join(
    f"5\\t1\\t1\\t1\\t1\\t{n}\\t{60 + 90 * n}\\t60\\t80\\t30\\t95\\t{word}\\n" for n, word in enumerate(_LINE.split())
)
_TESSERACT = f"""#!/bin/sh
case "$1" in
--version) echo "tesseract 5.9.9"; exit 0;;
--list-langs) printf "List\\neng\\n"; exit 0;;
esac
cat > /dev/null
printf '{_WORDS}'
"""


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


class FaultyCtx:
    """The command, from a copy of its sources in `home`, on one index."""

    def __init__(self, home: Path, index: Path) -> None:
        self._home, self._index, self._traps = home, index, index.with_name("traps")
        self._traps.mkdir()

    def set(self, **traps: str) -> None:
        """`set(read_2="kill")`: a trap of that kind at page 2 in reading; "kill once" clears itself."""
        for place, what in traps.items():
            (self._traps / place.replace("_", "-")).write_text(what)

    def clear(self) -> None:
        for file in self._traps.iterdir():
            file.unlink()

    def met(self) -> int:
        """How often a process walked into a trap."""
        met = self._traps / "met"
        return len(met.read_text().splitlines()) if met.exists() else 0

    def run(self, *args: str) -> Said:
        """Only an ingest has traps in it; other commands need no process of their own."""
        if "ingest" not in args:
            ran = run_in_process(*args, "--index", str(self._index))
            return Said(ran.code, ran.out, ran.err)
        done = subprocess.run(
            guarded("-m", "cli.main", *args, "--index", str(self._index)),
            cwd=self._home,
            env={
                **os.environ,
                "PATH": f"{self._home / 'bin'}:{os.environ['PATH']}",
                "PYTHONPATH": str(self._home),
                "TRAPS": str(self._traps),
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)


def make_faulty(home: Path) -> Path:
    """A folder to run the faulty copy from."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "tesseract").write_text(_TESSERACT)
    (home / "bin" / "tesseract").chmod(0o755)
    for package in ("cli", "research"):
        (home / package).symlink_to(ROOT / package)
    shutil.copytree(ROOT / "ingest", home / "ingest", ignore=shutil.ignore_patterns("__pycache__"))
    (home / "ingest" / "trap.py").write_text(_TRAP)
    for name, (before, planted) in _PLANTED.items():
        source = (home / "ingest" / name).read_text()
        assert source.count(before) == 1, f"{name} has changed; the trap needs another place"
        source = source.replace(before, planted + before)
        head = "from __future__ import annotations\n"
        (home / "ingest" / name).write_text(source.replace(head, f"{head}\nfrom ingest.trap import trap\n", 1))
    pool = (home / "ingest" / "pool.py").read_text()
    for usual, short in _LIMITS.items():
        assert usual in pool
        pool = pool.replace(usual, short)
    (home / "ingest" / "pool.py").write_text(pool)
    return home
