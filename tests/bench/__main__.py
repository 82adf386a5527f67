"""`make bench`: what it costs, side by side in one run. Figures are ratios wherever a machine's mood would show.

    python -m tests.bench [speed] [ingest] [cold] [maxsim] [quality] [--eval FOLDER]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.bench import cold, ingest, maxsim, quality, speed

SECTIONS = {"speed": speed.run, "ingest": ingest.run, "cold": cold.run, "maxsim": maxsim.run}
EVAL = Path(__file__).parents[3] / "shared" / "eval"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, "quality"], help="default: all")
    parser.add_argument("--eval", type=Path, default=EVAL, help="folder of sets with pdfs/ and qrels.jsonl")
    chosen = parser.parse_args()
    for name, section in SECTIONS.items():
        if not chosen.sections or name in chosen.sections:
            section()
    if not chosen.sections or "quality" in chosen.sections:
        quality.run(chosen.eval)
    return 0


if __name__ == "__main__":
    sys.exit(main())
