"""Names and places of the shipped model files, and the check that they are whole."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
MODEL = FOLDER / "model.onnx"
WEIGHTS = FOLDER / "model.bin"  # beside the graph, not inside it, so that it is mapped instead of read and copied
VOCABULARY = FOLDER / "vocab.txt"
CHECKSUMS = FOLDER / "SHA256SUMS"

SHIPPED = (MODEL, WEIGHTS, VOCABULARY)


def sha256(path: Path) -> str:
    """The file's SHA-256 in hex."""
    import hashlib  # a question never needs it

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify_files() -> list[str]:
    """Problems with the shipped model, one line each; empty when all is well."""
    try:
        lines = CHECKSUMS.read_text("utf-8").splitlines()
    except OSError as error:
        return [f"{CHECKSUMS.name} cannot be read: {error.strerror}"]
    expected = {name: digest for digest, name in (line.split() for line in lines if line.strip())}
    problems = []
    for path in SHIPPED:
        if path.name not in expected:
            problems.append(f"{path.name} is not listed in {CHECKSUMS.name}")
        elif not path.is_file():
            problems.append(f"{path.name} is missing")
        elif sha256(path) != expected[path.name]:
            problems.append(f"{path.name} is damaged: its SHA-256 is not the one in {CHECKSUMS.name}")
    return problems
