"""A hundred killed readers, in reading, drawing and OCR: nothing is lacking after the next run."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.conftest import write_pdf
from tests.soak.corpus import make_corpus
from tests.soak.killing_workers import Harm, kill_readers

OPTIONS = ("--ocr", "auto", "--ocr-engine", "rapidocr")


def test_a_hundred_killed_readers(tmp_path: Path) -> None:
    docs = make_corpus(tmp_path / "docs", 12, scans=3)
    for number in range(0, 12, 7):  # the corpus leaves a page blank there, and blank pages tell nothing
        for path in docs.rglob(f"*-{number:03d}.pdf"):
            write_pdf(path, [f"Report {number}, part {part}." for part in range(2)])
    harms: list[Harm] = []
    seed = 0
    while sum(harm.killed for harm in harms) < 100:
        root = tmp_path / f"index-{seed}"
        harms.append(kill_readers(docs, root, Random(seed), kills=1 + seed % 3, within=6.0, options=OPTIONS))
        seed += 1
    told = sum(harm.code == 4 for harm in harms)
    print(f"{sum(harm.killed for harm in harms)} kills in {len(harms)} runs; {told} runs gave something up")
    assert [harm for harm in harms if harm.lacking_later or harm.findings] == []
    assert [harm for harm in harms if harm.lacking and harm.code == 0] == [], "a loss without a word"
