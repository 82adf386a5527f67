"""A citation is a promise: what the index says of a page really stands on that physical page."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pymupdf
import pytest

from research.store import ChromaClient

SAMPLES = sorted((Path(__file__).parents[2] / "data" / "samples").glob("*.pdf"))


def _bare(text: str) -> str:
    """Letters and digits alone: hyphens at line ends, ligatures and markup are the reader's to change."""
    return "".join(c for c in unicodedata.normalize("NFKC", text) if c.isalnum())


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_word_stands_on_its_page(samples: ChromaClient, path: Path) -> None:
    [document] = [d for d in samples.catalog.documents.all() if d.filename == path.name]
    stored = samples.catalog.pages.document_markdown(document.doc_id)
    with pymupdf.open(path) as pdf:
        assert [number for number, _ in stored] == list(range(1, pdf.page_count + 1))
        for number, markdown in stored:
            page = _bare(pdf[number - 1].get_text())
            known = samples.catalog.pages.get(document.doc_id, number)
            assert known is not None
            strangers = [word for word in re.split(r"[\s|]+", markdown) if _bare(word) not in page]
            assert strangers == [] or known.ocr_engine, f"page {number}"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_chunks_are_passages_of_their_page(samples: ChromaClient, path: Path) -> None:
    import zlib

    rows = samples.catalog.execute(
        "SELECT c.text, c.tokens, p.markdown, p.page FROM chunks c JOIN pages p USING (page_id)"
        " JOIN documents USING (doc_id) WHERE filename = ?",
        (path.name,),
    ).fetchall()
    assert rows
    for text, tokens, markdown, number in rows:
        page = _bare(zlib.decompress(markdown).decode())
        for line in zlib.decompress(text).decode().splitlines():
            assert _bare(line) in page, f"page {number}"
        assert 0 < tokens <= 256
