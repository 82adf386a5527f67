"""The quick counts are those that reading every row gives."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from index_making import Making

from research.records import Chunk, Page
from tests.pace import draws

PLAIN = {
    "documents": "SELECT COUNT(doc_id) FROM documents",
    "pages": "SELECT COUNT(page_id) FROM pages",
    "pages_without_text": "SELECT COALESCE(SUM(words = 0), 0) FROM pages",
    "finished_pages": "SELECT COUNT(*) FROM pages WHERE doc_id NOT IN"
    " (SELECT doc_id FROM ledger WHERE stage = 'vectors')",
    "pages_without_vectors": "SELECT COUNT(DISTINCT page_id) FROM ledger JOIN pages USING (doc_id)"
    " JOIN chunks USING (page_id) LEFT JOIN vectors USING (chunk_id) WHERE stage = 'vectors' AND seq IS NULL",
    "vectors": "SELECT COUNT(vector) FROM vectors",
    "page_vectors": "SELECT COUNT(vectors) FROM page_vectors",
}
TEXTS = ("", "…", "walrus", "walrus and seal", "100 €", "日本語")
STEPS = st.one_of(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=5),  # a document of these pages
    st.sampled_from(["embed", "remove", "ocr"]),
)


def _agree(making: Making) -> None:
    found = asdict(making.catalog.pages.totals())
    assert found == {name: making.catalog.execute(plain).fetchone()[0] for name, plain in PLAIN.items()}


@draws(25)
@given(steps=st.lists(STEPS, min_size=1, max_size=8))
def test_they_agree_after_anything(steps: list[str | list[str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    making = Making(tmp_path_factory.mktemp("counts") / "index")
    ids: list[str] = []
    for number, step in enumerate(steps):
        if isinstance(step, list):
            ids.append(making.add(f"{number}.pdf", [*step, f"own {number}"]).doc_id)
        elif step == "embed":
            making.embed()
        elif ids and step == "remove":
            making.catalog.documents.remove(ids.pop())
        elif ids:
            page = Page(1, "words that OCR read")
            making.catalog.documents.write_ocr(
                ids[-1], page, [Chunk(1, 0, page.markdown, "", 5, (0.0, 0.0, 1.0, 1.0))], []
            )
        _agree(making)
    making.catalog.close()
