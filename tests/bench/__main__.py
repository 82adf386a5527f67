"""`make bench`: what it costs, side by side in one run. Figures are ratios wherever a machine's mood would show.

python -m tests.bench [speed] [ingest] [limits] [cold] [growth] [side] [maxsim] [quality] [rare] [way] [reliability]
                      [quotes] [confidence] [check] [half] [parts] [memories] [locomo] [followups] [turn] [redaction]
                      [batch] [serve] [context] [packages] [code] [commits] [experiences] [policy] [graph]
                      [together] [beside]
                      [--eval FOLDER]
                      [--beside CHECKOUT] [--verbose FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from research.lazy import switch_off
from tests.bench import (
    batch,
    beside,
    calibration,
    check,
    code,
    cold,
    commits,
    confidence,
    context,
    experiences,
    followups,
    graph,
    growth,
    half_sentences,
    ingest,
    limits,
    locomo,
    maxsim,
    memories,
    packages,
    parts,
    policy,
    quality,
    quotes,
    rare,
    redaction,
    serve,
    side,
    speed,
    together,
    turn,
    way,
)

EVAL = Path(__file__).parents[3] / "shared" / "eval"
# Asked for by name, growth goes all the way; among all the others it must not take longer than they do.
EVERY_SIZE, FEWER_SIZES = [1_000, 10_000, 100_000], [1_000, 10_000]


def main() -> int:
    switch_off()
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="default: all")
    parser.add_argument("--eval", type=Path, default=EVAL, help="folder of sets with pdfs/ and qrels.jsonl")
    parser.add_argument("--pages", type=int, nargs="+", metavar="N", help="sizes of the growth bench")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep indexes there for the next run")
    parser.add_argument("--questions", type=int, default=60, metavar="N", help="of the batch bench; 300 is its goal's")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="another checkout to measure beside this one")
    parser.add_argument("--verbose", type=Path, metavar="FILE", help="what the together bench says of each question")
    chosen = parser.parse_args()
    sizes = chosen.pages or (EVERY_SIZE if "growth" in chosen.sections else FEWER_SIZES)
    sections: dict[str, Callable[[], None]] = {
        "speed": speed.run,
        "ingest": ingest.run,
        "limits": limits.run,
        "cold": cold.run,
        "growth": lambda: growth.run(sizes, chosen.keep),
        "side": lambda: side.run(chosen.eval),
        "maxsim": maxsim.run,
        "quality": lambda: quality.run(chosen.eval),
        "rare": lambda: rare.run(chosen.eval, chosen.keep),
        "way": way.run,
        "reliability": calibration.run,
        "quotes": lambda: quotes.run(chosen.eval, chosen.keep),
        "confidence": lambda: confidence.run(chosen.eval, chosen.keep),
        "check": lambda: check.run(chosen.keep),
        "half": lambda: half_sentences.run(chosen.eval, chosen.beside, chosen.keep),
        "graph": lambda: graph.run(chosen.eval, chosen.keep),
        "batch": lambda: batch.run(chosen.eval, chosen.questions),
        "parts": parts.run,
        "followups": lambda: followups.run(chosen.eval, chosen.keep),
        "memories": memories.run,
        "locomo": lambda: locomo.run(chosen.eval),
        "redaction": lambda: redaction.run(chosen.eval),
        "policy": policy.run,
        "turn": turn.run,
        "serve": serve.run,
        "context": lambda: context.run(chosen.keep),
        "packages": lambda: packages.run(chosen.eval, chosen.keep),
        "code": code.run,
        "commits": commits.run,
        "experiences": experiences.run,
        "together": lambda: together.run(chosen.keep, chosen.verbose),
        "beside": lambda: beside.run(chosen.beside),
    }
    if unknown := set(chosen.sections) - sections.keys():
        parser.error(f"no such section: {', '.join(sorted(unknown))}; there are {', '.join(sections)}")
    for name, section in sections.items():
        if not chosen.sections or name in chosen.sections:
            section()
    return 0


if __name__ == "__main__":
    sys.exit(main())
