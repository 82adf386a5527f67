"""Names and places of the shipped model files, and the check that they are whole."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
MODEL = FOLDER / "model.onnx"
WEIGHTS = FOLDER / "model.bin"  # beside the graph, not inside it, so that it is mapped instead of read and copied
VOCABULARY = FOLDER / "vocab.txt"
CHECKSUMS = FOLDER / "SHA256SUMS"

SHIPPED = (MODEL, WEIGHTS, VOCABULARY)


def verify_files(folder: Path = FOLDER) -> list[str]:
    """Problems with the shipped model, one line each; empty when all is well."""
    from research.checksums import verify  # a question never needs it

    return verify(folder, [path.name for path in SHIPPED])
