"""An index that stays open for a minute, asked by eight threads, while others write it: right, and no growth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

_SOAK = """
import json, sys
from pathlib import Path
from tests.soak.open_index import OpenIndex
from tests.soak.running import growth

soak = OpenIndex(Path(sys.argv[1]), threads=8, seconds=60.0, generations=5)
soak.run()
print(json.dumps([soak.answers, soak.published, soak.problems, growth(soak.samples, since=10.0), soak.samples]))
"""


def test_an_open_index_for_a_minute(tmp_path: Path) -> None:
    # With a pool for each of the many threads that Chroma starts, the C library keeps ever more free memory in pieces:
    # measured is what is held, not that.
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    run = subprocess.run(
        [sys.executable, "-c", _SOAK, str(tmp_path)], stdout=-1, text=True, check=True, env=environment
    )
    answers, published, problems, (kilobytes, descriptors), samples = json.loads(run.stdout)
    print(f"{answers} answers, {published} generations, {kilobytes:+} kB, {descriptors:+} descriptors")
    for seconds, resident, opened in samples[:: max(1, len(samples) // 12)]:
        print(f"  {seconds:5.1f} s {resident:9,} kB {opened:4} descriptors")
    assert problems == []
    assert published >= 5
    assert answers > 100
    assert kilobytes < 6_000
    assert descriptors <= 3
