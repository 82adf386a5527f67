"""The stages after the text: page images beside the catalog, and OCR of what has no text layer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pymupdf
import pytest
from PIL import Image

from ingest.code.run import ingest_code
from ingest.commits.run import ingest_commits
from ingest.report import IngestSummary, Observer, Stage
from ingest.run import ingest
from research.contract import ContextBuilder, SearchEngine
from research.errors import CtxError
from research.graph import GraphUpdate, is_behind
from research.index import Index
from research.settings import Settings
from research.store import Catalog, ChromaClient, IndexPaths
from tests.conftest import MakePdf, write_pdf
from tests.ingest.commits.git_making import Made

RAPID = Settings(ocr="auto", ocr_engine="rapidocr")
OCR = Settings(ocr="auto", ocr_engine="tesseract", images=False)  # by one that the test sets


@pytest.fixture
def index(tmp_path: Path) -> IndexPaths:
    return IndexPaths(tmp_path / "index")


def run(path: Path, index: IndexPaths, settings: Settings, observer: Observer | None = None) -> IngestSummary:
    return ingest(index, [path], settings=settings, observer=observer or Observer())


def scan(path: Path, pages: list[str]) -> Path:
    """A PDF whose pages are pictures of text."""
    with pymupdf.open() as written, pymupdf.open() as scanned:
        for text in pages:
            page = written.new_page(width=420, height=160)
            page.insert_textbox(pymupdf.Rect(30, 30, 400, 150), text, fontsize=24)
            pixels = page.get_pixmap(dpi=110)
            scanned.new_page(width=420, height=160).insert_image(page.rect, pixmap=pixels)
        scanned.save(path)
    return path


@pytest.mark.slow
def test_every_page_has_an_image_and_a_thumbnail(make_pdf: MakePdf, index: IndexPaths) -> None:
    run(make_pdf("walrus.pdf", ["The walrus has tusks.", "It eats clams by the hundred."]), index, Settings())
    with ChromaClient(index.root) as client:
        context = ContextBuilder(SearchEngine(client), client).build("walrus tusks")
        first = context.sources[0]
        stored = client.visual_collection.get(include=["metadatas"])["metadatas"] or []
        assert {str(entry["image_path"]) for entry in stored} >= {str(first.image_path)}
    with Image.open(str(first.image_path)) as image, Image.open(str(first.thumbnail_path)) as thumbnail:
        assert (image.format, max(image.size)) == ("JPEG", 1280)
        assert (thumbnail.format, max(thumbnail.size)) == ("WEBP", 256)
    assert Path(str(first.image_path)).is_relative_to(index.images)


@pytest.mark.slow
def test_images_go_with_their_document(make_pdf: MakePdf, tmp_path: Path, index: IndexPaths) -> None:
    docs = tmp_path / "docs"
    make_pdf("a.pdf", ["The walrus has tusks."], docs)
    make_pdf("b.pdf", ["The penguin cannot fly."], docs)
    summary = run(docs, index, Settings())
    assert len(list(index.images.iterdir())) == 2
    make_pdf("a.pdf", ["Another text altogether."], docs)
    replaced = run(docs, index, Settings())
    kept = {outcome.doc_id for outcome in replaced.files}
    assert {folder.name for folder in index.images.iterdir()} == kept
    assert kept != {outcome.doc_id for outcome in summary.files}
    with Catalog(index, writable=True) as catalog:
        for doc_id in kept:
            catalog.documents.remove(doc_id)
    assert list(index.images.iterdir()) == []


def test_without_images(make_pdf: MakePdf, index: IndexPaths) -> None:
    run(make_pdf("a.pdf", ["The walrus has tusks."]), index, Settings(images=False))
    assert not index.images.exists()
    with ChromaClient(index.root) as client:
        [source] = ContextBuilder(SearchEngine(client), client).build("walrus").sources
        assert (source.image_path, source.thumbnail_path) == (None, None)
        assert client.catalog.ledger.unfinished() == {}


@pytest.mark.slow
def test_a_scan_waits_for_ocr_and_is_then_found_by_its_words(tmp_path: Path, index: IndexPaths) -> None:
    path = scan(tmp_path / "letter.pdf", ["The harbour fee is 42 euros.", "Boats over ten metres pay double."])
    summary = run(path, index, Settings(ocr="off"))
    assert summary.ocr_pages == 0
    assert summary.files[0].warnings == ("pages without a text layer: 2 of 2 (OCR is off)",)
    with Catalog(index) as catalog:
        assert catalog.ledger.count_for_ocr() == 2

    summary = run(path, index, RAPID)
    assert (summary.ocr_pages, summary.ocr_failures, summary.count("unchanged")) == (2, [], 1)
    with ChromaClient(index.root) as client:
        best = SearchEngine(client).run("harbour fee", 1).found[0]
        assert (best.page.page, set(best.legs)) == (1, {"lexical", "dense", "visual"})
        assert best.page.metadata()["ocr"] is True
        assert best.page.ocr_engine.startswith("rapidocr")
        second = ContextBuilder(SearchEngine(client), client).build("boats over ten metres").sources[0]
        assert second.page == 2
        assert "ten metres" in second.markdown_content
        assert client.catalog.ledger.unfinished() == {}
        assert client.text_collection.count() == 2


@pytest.mark.slow
def test_chunks_are_counted_as_the_catalog_has_them(tmp_path: Path, index: IndexPaths, reading_tesseract: str) -> None:
    """OCR replaces the few words of a page's text layer, which had their vector already."""
    path = scan(tmp_path / "letter.pdf", ["The harbour fee is 42 euros."])
    with pymupdf.open(path) as document:
        document[0].insert_text((5, 155), "Copy 7", fontsize=5)
        document.saveIncr()
    summary = run(path, index, OCR)
    assert (summary.ocr_pages, summary.files[0].warnings) == (1, ())
    with Catalog(index) as catalog:
        assert summary.chunks == catalog.chunks.count() == 1
        assert catalog.chunks.last_sequence() == 2, "embedded twice, and counted once"


@pytest.mark.slow
def test_ocr_goes_on_where_it_was_interrupted(tmp_path: Path, index: IndexPaths, reading_tesseract: str) -> None:
    class Stop(Observer):
        def on_progress(self, stage: Stage, done: int, total: int) -> None:
            if stage == "ocr" and done == 1:
                raise KeyboardInterrupt

    path = scan(tmp_path / "a.pdf", ["The first page of three", "The second page of three", "The third page of three"])
    summary = run(path, index, OCR, Stop())
    assert (summary.interrupted, summary.ocr_pages, summary.files[0].warnings) == (True, 1, ())
    summary = run(path, index, OCR)
    assert (summary.interrupted, summary.ocr_pages) == (False, 2)
    with ChromaClient(index.root) as client:
        assert {found.page.page for found in SearchEngine(client).run(reading_tesseract, 9).found} == {1, 2, 3}


@pytest.mark.slow
def test_pages_with_text_and_blank_pages_are_left_alone(
    make_pdf: MakePdf, index: IndexPaths, reading_tesseract: str
) -> None:
    path = make_pdf("a.pdf", ["Part One", "", "The walrus has tusks and whiskers, and sleeps in the sea."])
    summary = run(path, index, OCR)
    assert (summary.ocr_pages, summary.chunks) == (0, 2)


@pytest.mark.slow
def test_a_picture_nothing_can_be_read_in_is_not_tried_for_ever(
    tmp_path: Path, index: IndexPaths, blind_tesseract: None
) -> None:
    path = tmp_path / "grey.pdf"
    with pymupdf.open() as document:
        pixels = pymupdf.Pixmap(pymupdf.csGRAY, pymupdf.IRect(0, 0, 60, 60), 0)
        pixels.set_rect(pixels.irect, (128,))
        page = document.new_page(width=200, height=200)
        page.insert_image(page.rect, pixmap=pixels)
        document.save(path)
    run(path, index, OCR)
    with Catalog(index) as catalog:
        assert catalog.ledger.count_for_ocr() == 0
        assert catalog.ledger.unfinished() == {}


def test_a_missing_engine_is_one_clear_error(
    make_pdf: MakePdf, index: IndexPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = scan(tmp_path / "a.pdf", ["The first page"])
    with pytest.raises(CtxError, match="tesseract") as caught:
        run(path, index, Settings(ocr="auto", ocr_engine="tesseract"))
    assert "install" in caught.value.hint
    with Catalog(index) as catalog:
        assert catalog.ledger.count_for_ocr() == 1, "the text side is unharmed and OCR still due"


@pytest.mark.slow
def test_force_reads_pages_that_have_text(make_pdf: MakePdf, index: IndexPaths, reading_tesseract: str) -> None:
    path = make_pdf("a.pdf", ["The walrus has tusks and whiskers."])
    summary = run(path, index, replace(OCR, ocr="force"))
    assert summary.ocr_pages == 1
    with ChromaClient(index.root) as client:
        [found] = SearchEngine(client).run(reading_tesseract, 1).found
        assert found.page.ocr_engine == "tesseract 5.9.9"


@pytest.mark.slow
def test_every_kind_of_run_leaves_the_graph_up_to_date(tmp_path: Path) -> None:
    write_pdf(tmp_path / "docs" / "rents.pdf", ["Rents rose, as Table 5 shows.", "Nothing here.", "Table 5: Streets"])
    made = Made(tmp_path / "repo")
    made.commit("Parse dates", {"dates.py": "def parse():\n    return clean()\n\n\ndef clean():\n    return 1\n"})
    with Index(tmp_path / "index", Settings(images=False, ocr="off")) as index:
        for run, path in ((ingest, "docs"), (ingest_code, "repo"), (ingest_commits, "repo")):
            run(index, [tmp_path / path])
            assert not is_behind(index.catalog), run.__name__
        assert index.graph.update() == GraphUpdate()
        (document,) = index.documents.list()
        near = index.graph.near(f"page:{document.doc_id}#1", kinds=["refers"])
        assert [node.ref for node in near.nodes if node.hop] == [f"page:{document.doc_id}#3"]
        file = f"{tmp_path}/repo/dates.py"
        near = index.graph.near(f"code:{file}#parse", hops=2)
        kinds = {(edge.kind, edge.target) for edge in near.edges}
        assert kinds >= {("calls", f"code:{file}#clean"), ("changes", f"file:{file}")}
        index.admin.remove("rents.pdf")
        assert index.graph.near(f"document:{document.doc_id}").unknown == [f"document:{document.doc_id}"]
