"""Build the PDFs of the set on parts of documents from data/parts/source: `python data/make_parts.py [folder]`.

Small documents that have what people ask for by name: abstract, contents, references, appendix and the like, in several
languages. A source is plain text: title, author and, for scripts that need one, the font; then, after a blank line,
pages separated by `---`. Headings begin with "# ". No font is embedded, so a file has a few kilobytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pymupdf

sys.path.insert(0, str(Path(__file__).resolve().parent))

from make_samples import A5, Card, save

HERE = Path(__file__).resolve().parent / "parts"
MARGIN = 50
WIDTH = A5.width - 2 * MARGIN
BOLD = {"helv": "hebo"}
SIZES = {0: 10.0, 1: 17.0, 2: 13.0, 3: 11.5}


def lines_of(text: str, font: str, size: float) -> Iterator[str]:
    """The text, broken where it meets the margin: between words, or anywhere in scripts without blanks."""
    pieces = [f"{word} " for word in text.split(" ")] if font.startswith("he") else list(text)
    line = ""
    for piece in pieces:
        if line and pymupdf.get_text_length((line + piece).rstrip(), font, size) > WIDTH:
            yield line.rstrip()
            line = ""
        line += piece
    yield line.rstrip()


def write_page(doc: pymupdf.Document, text: str, font: str) -> None:
    page = doc.new_page(width=A5.width, height=A5.height)
    y = 60.0
    for paragraph in text.strip().splitlines():
        level = len(paragraph) - len(paragraph.lstrip("#"))
        size = SIZES[level]
        name = BOLD.get(font, font) if level else font
        y += size if level else 4  # paragraphs stand apart, so that each is one
        for line in lines_of(paragraph.lstrip("# "), name, size):
            page.insert_text((MARGIN, y), line, fontname=name, fontsize=size)
            y += 1.3 * size
    if y > A5.height - MARGIN / 2:
        raise ValueError(f"too long for a page: {text[:40]}")


def make(source: Path, folder: Path) -> Path:
    front, _, body = source.read_text(encoding="utf-8").partition("\n\n")
    title, author, *fonts = front.splitlines()
    doc = pymupdf.open()
    for text in body.split("\n---\n"):
        write_page(doc, text, fonts[0] if fonts else "helv")
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
