"""Reading processes with traps in them: pages on which they die, hang or meet a mistake of ours.

They run a copy of ctx; the command they work for is the real one, in this process. The traps are files, so that a test
can set and clear them between runs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import research
from ingest.pool import LIMITS
from tests.in_process import Ran, run_in_process

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
        (folder / "hanging").write_text(str(os.getpid()))
        time.sleep(600)
    elif what.startswith("exit"):
        os._exit(3)
    elif what.startswith("memory"):
        raise MemoryError
    else:
        {}["a key that is not there"]
"""

# Where the traps are.
_PLANTED = {
    "pdf/reader.py": (
        "            raw = _failed_page(number, PAGE_GIVEN_UP) if",
        '            skipped or trap("read", number)\n',
    ),
    "worker.py": ("    picture = raster(", '    trap("images", number)\n'),
    "ocr/page.py": ("            return read_page(", '            trap("ocr", page.number)\n'),
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


class Patience:
    """Limits of the pool: a page has a minute, and 0.3 seconds once its process is known to hang."""

    start, document = 60.0, 600.0

    def __init__(self, hanging: Path) -> None:
        self._hanging, self._seen = hanging, ""

    @property
    def page(self) -> float:
        """A process that hangs is seen twice: by the second time the pool has heard which page it is on."""
        process = self._hanging.read_text() if self._hanging.exists() else ""
        seen, self._seen = self._seen, process
        return 0.3 if process and process == seen and Path(f"/proc/{process}").exists() else 60.0


class FaultyCtx:
    """The command on one index, whose reading processes run the copy in `home`."""

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

    def run(self, *args: str) -> Ran:
        variables = {"PATH": f"{self._home / 'bin'}:{os.environ['PATH']}", "TRAPS": str(self._traps)}
        with pytest.MonkeyPatch.context() as patch, one_core():
            patch.setattr(research, "__file__", str(self._home / "research" / "__init__.py"))  # start_helper's sources
            for task in LIMITS:
                patch.setitem(LIMITS, task, Patience(self._traps / "hanging"))  # type: ignore[arg-type]
            return run_in_process(*args, "--index", str(self._index), env=variables)


@contextmanager
def one_core() -> Iterator[None]:
    """Only one process reads, so that no other is working while one hangs."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def make_faulty(home: Path) -> Path:
    """A folder for the faulty copy."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "tesseract").write_text(_TESSERACT)
    (home / "bin" / "tesseract").chmod(0o755)
    (home / "research").symlink_to(ROOT / "research")
    shutil.copytree(ROOT / "ingest", home / "ingest", ignore=shutil.ignore_patterns("__pycache__"))
    (home / "ingest" / "trap.py").write_text(_TRAP)
    for name, (before, planted) in _PLANTED.items():
        source = (home / "ingest" / name).read_text()
        assert source.count(before) == 1, f"{name} has changed; the trap needs another place"
        source = source.replace(before, planted + before)
        head = "from __future__ import annotations\n"
        (home / "ingest" / name).write_text(source.replace(head, f"{head}\nfrom ingest.trap import trap\n", 1))
    return home
