"""Damaged copies of real files, the same ones every time: the run ends, accounts for each, and finds what is left."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bounded import ingest

SAMPLES = Path(__file__).parent.parent.parent / "data" / "samples"
COPIES = 6


def mutated(data: bytes, chance: random.Random) -> bytes:
    """One way a file goes bad: cut off, bits turned, a stretch lost, doubled or overwritten, numbers changed."""
    kind = chance.randrange(6)
    start = chance.randrange(len(data))
    end = min(len(data), start + chance.randrange(1, 4000))
    if kind == 0:
        return data[:start]
    if kind == 1:
        flipped = bytearray(data)
        for _ in range(chance.randrange(1, 200)):
            flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        return bytes(flipped)
    if kind == 2:
        return data[:start] + data[end:]
    if kind == 3:
        return data[:end] + data[start:]
    if kind == 4:
        return data[:start] + chance.randbytes(end - start) + data[end:]
    digit = str(chance.randrange(10)).encode()
    return data[:start] + data[start:].replace(digit, chance.choice([b"9", b"-", b"0", b"99999999"]), 3)


def make_damaged(folder: Path, count: int, seed: int) -> None:
    chance = random.Random(seed)
    sources = [path.read_bytes() for path in sorted(SAMPLES.glob("*.pdf"))]
    for number in range(count):
        (folder / f"{number:03d}.pdf").write_bytes(mutated(chance.choice(sources[:3]), chance))


@pytest.mark.slow
def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    make_damaged(folder, COPIES, seed=4)
    result = ingest(folder, tmp_path / "index", "--no-images", seconds=240)
    assert len(result.summary["files"]) == COPIES
    assert result.code in {0, 4}
    assert {file["result"] for file in result.summary["files"]} <= {"added", "copy", "failed"}
    assert {file["code"] for file in result.summary["files"]} <= {
        "",
        "damaged",
        "encrypted",
        "no_pages",
        "not_a_pdf",
        "empty",
    }
    assert all(file["reason"] for file in result.summary["files"] if file["result"] == "failed")
    assert result.megabytes < 800
