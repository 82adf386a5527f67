"""Two ingests and four askers on one index at once, and what they may and may not say."""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.soak.corpus import QUESTIONS
from tests.soak.running import run


@dataclass
class Crowd:
    """Runs until `seconds` have passed, everybody at least once; what went wrong is in `problems`."""

    root: Path
    seconds: float
    problems: list[str] = field(default_factory=list)
    ingests: int = 0
    busy: int = 0
    asks: int = 0
    answers: int = 0

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.seconds

    def run(self, folders: list[Path], askers: int) -> None:
        threads = [threading.Thread(target=self._guard, args=(self._ingest, folder)) for folder in folders]
        threads += [threading.Thread(target=self._guard, args=(self._ask, Random(n))) for n in range(askers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _guard(self, work: object, argument: object) -> None:
        try:
            while True:
                work(argument)  # type: ignore[operator]
                if time.monotonic() >= self._until:
                    return
        except Exception as error:  # noqa: BLE001  a thread's failure must reach the test
            self.problems.append(f"{type(error).__name__}: {error}")

    def _ingest(self, folder: Path) -> None:
        """Waits for the other every second time; otherwise being told of it is as good."""
        waiting = ("--wait",) if self.ingests % 2 == 0 else ()
        code, _, err = run("ingest", str(folder), "--no-images", "--quiet", *waiting, root=self.root)
        self.ingests += 1
        if code == 1 and not waiting and re.search(r"process \d+ is writing this index", err):
            self.busy += 1
        elif code != 0:
            self.problems.append(f"ingest ended with {code}: {err}")
        _change(folder)

    def _ask(self, random: Random) -> None:
        code, out, err = run("ask", random.choice(QUESTIONS), "--json", root=self.root)
        self.asks += 1
        answer = json.loads(out)
        if code == 0:
            self.answers += 1
            failed = [leg for leg in answer["coverage"]["legs"] if leg["status"] == "failed"]
            # Until the first vectors are there, the dense leg says that there are none.
            if [leg for leg in failed if "no document has vectors yet" not in leg["reason"]]:
                self.problems.append(f"a leg failed: {failed}")
        elif code != 3:
            self.problems.append(f"ask ended with {code}: {err}")


def _change(folder: Path) -> None:
    """The next ingest has something to do: a file gone, one renamed."""
    files = sorted(folder.rglob("*.pdf"))
    if len(files) > 4:
        files[0].unlink()
        files[1].rename(files[1].with_name(f"renamed-{files[1].name}"))
