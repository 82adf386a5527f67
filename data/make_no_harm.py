"""Build the PDFs of the no-harm set from data/no-harm/source: `python data/make_no_harm.py [folder]`.

Small documents of other fields, in which words of finance and of instructions mean something else. A source is plain
text: title, author, then pages, each with a heading after "# ". The standard fonts are not embedded, so a file has a
few kilobytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pymupdf

sys.path.insert(0, str(Path(__file__).resolve().parent))

from make_samples import A5, Card, save

HERE = Path(__file__).resolve().parent / "no-harm"
MARGIN = 50


def write_page(doc: pymupdf.Document, text: str) -> None:
    heading, _, body = text.partition("\n")
    page = doc.new_page(width=A5.width, height=A5.height)
    page.insert_text((MARGIN, 70), heading, fontname="hebo", fontsize=15)
    frame = pymupdf.Rect(MARGIN, 92, A5.width - MARGIN, A5.height - MARGIN)
    # Paragraphs stand apart, so that each is one.
    left = page.insert_textbox(frame, body.strip().replace("\n", "\n\n"), fontname="helv", fontsize=10)
    if left < 0:
        raise ValueError(f"too long for a page: {heading}")


def make(source: Path, folder: Path) -> Path:
    front, *pages = source.read_text(encoding="utf-8").split("\n# ")
    title, author = front.strip().splitlines()
    doc = pymupdf.open()
    for text in pages:
        write_page(doc, text)
    path = folder / f"{source.stem}.pdf"
    save(doc, path, Card(title, author, "20250102"))
    return path


def build(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    return [make(source, folder) for source in sorted((HERE / "source").glob("*.txt"))]


def main() -> None:
    for path in build(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "pdfs"):
        with pymupdf.open(path) as doc:
            sys.stdout.write(f"{path.name}: {len(doc)} pages, {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
