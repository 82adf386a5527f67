"""A run: files in, documents out; every file accounted for, whatever it is called and whatever it holds."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pymupdf
import pytest

from ingest.jobs import Task
from ingest.pool import LIMITS, Limits
from ingest.report import FileOutcome, IngestSummary, Observer, Stage
from ingest.run import ingest
from research.contract import SearchEngine
from research.errors import CtxError
from research.settings import Settings
from research.store import (
    Catalog,
    ChromaClient,
    IndexPaths,
    generations,
)

MakePdf = Callable[..., Path]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


@pytest.fixture
def index(tmp_path: Path) -> IndexPaths:
    return IndexPaths(tmp_path / "index")


TEXT = Settings(images=False)  # page images are tested with the stages after the text


def _run(path: Path, index: IndexPaths, observer: Observer | None = None, settings: Settings = TEXT) -> IngestSummary:
    summary = ingest(index, [path], settings=settings, observer=observer or Observer())
    assert not summary.interrupted
    assert summary.pending_chunks == 0
    with Catalog(index) as catalog:
        assert not generations.state_of(catalog).behind
        assert catalog.ledger.unfinished() == {}
    assert not index.spool.exists()
    assert summary.to_dict()["files"] == [_told(outcome) for outcome in summary.files]
    return summary


def _told(outcome: FileOutcome) -> dict[str, object]:
    """All fields of it, by the names that every command's JSON has for them."""
    names = {"path": "source_path", "pages": "num_pages"}
    fields = {names.get(name, name): getattr(outcome, name) for name in FileOutcome.__slots__}
    return {**fields, "filename": Path(outcome.path).name}


def _results(summary: IngestSummary) -> dict[str, str]:
    return {Path(outcome.path).name: outcome.result for outcome in summary.files}


def _names(index: IndexPaths) -> list[str]:
    with Catalog(index) as catalog:
        return [document.filename for document in catalog.documents.all()]


def test_the_life_of_a_file(make_pdf: MakePdf, docs: Path, index: IndexPaths) -> None:
    """Added, unchanged, touched, renamed, copied, changed: one index all the way."""
    make_pdf("walrus.pdf", ["The walrus has tusks", "It eats clams"], docs)
    make_pdf("deep/penguin.pdf", ["The penguin cannot fly"], docs)
    summary = _run(docs, index)
    assert _results(summary) == {"walrus.pdf": "added", "penguin.pdf": "added"}
    assert (summary.pages, summary.chunks) == (3, 3)
    first = {outcome.path: outcome.doc_id for outcome in summary.files}

    summary = _run(docs, index)
    assert _results(summary) == {"walrus.pdf": "unchanged", "penguin.pdf": "unchanged"}
    assert (summary.pages, summary.chunks) == (0, 0)
    assert {outcome.path: outcome.doc_id for outcome in summary.files} == first

    (docs / "walrus.pdf").touch()
    assert _results(_run(docs, index))["walrus.pdf"] == "unchanged", "the content decides"

    (docs / "walrus.pdf").rename(docs / "tusker.pdf")
    summary = _run(docs, index)
    assert _results(summary) == {"penguin.pdf": "unchanged", "tusker.pdf": "renamed"}
    renamed = {outcome.path: outcome.doc_id for outcome in summary.files}
    assert renamed[str(docs / "tusker.pdf")] == first[str(docs / "walrus.pdf")]
    assert summary.chunks == 0, "nothing is embedded again"
    with ChromaClient(index.root) as client:
        [best] = SearchEngine(client).run("tusker", 1).found
        assert best.page.filename == "tusker.pdf"
        assert best.page.source_path == str(docs / "tusker.pdf")
        named = {str(entry["filename"]) for entry in client.text_collection.get()["metadatas"] or []}
        assert named == {"tusker.pdf", "penguin.pdf"}

    shutil.copy(docs / "tusker.pdf", docs / "twin.pdf")
    assert _results(_run(docs, index))["twin.pdf"] == "copy"
    assert _names(index) == ["penguin.pdf", "tusker.pdf"]

    make_pdf("tusker.pdf", ["Nothing about that animal any more"], docs)
    summary = _run(docs, index)
    assert _results(summary) == {"penguin.pdf": "unchanged", "tusker.pdf": "replaced", "twin.pdf": "unchanged"}
    with Catalog(index) as catalog:
        known = {document.filename: document.doc_id for document in catalog.documents.all()}
        assert set(known) == {"penguin.pdf", "tusker.pdf", "twin.pdf"}, "the copy carries on under its own name"
        assert known["twin.pdf"] == first[str(docs / "walrus.pdf")]
        assert catalog.documents.paths(known["twin.pdf"]) == [str(docs / "twin.pdf")]


@pytest.mark.slow
def test_two_copies_in_one_run_are_one_document(make_pdf: MakePdf, docs: Path, index: IndexPaths) -> None:
    make_pdf("a.pdf", ["Walrus"], docs)
    shutil.copy(docs / "a.pdf", docs / "b.pdf")
    assert _results(_run(docs, index)) == {"a.pdf": "added", "b.pdf": "copy"}
    assert _names(index) == ["a.pdf"]
    assert _results(_run(docs, index)) == {"a.pdf": "unchanged", "b.pdf": "unchanged"}


@pytest.mark.slow
def test_files_that_swapped_their_contents(make_pdf: MakePdf, docs: Path, index: IndexPaths) -> None:
    make_pdf("a.pdf", ["Walrus"], docs)
    make_pdf("b.pdf", ["Penguin"], docs)
    _run(docs, index)
    (docs / "a.pdf").rename(docs / "x")
    (docs / "b.pdf").rename(docs / "a.pdf")
    (docs / "x").rename(docs / "b.pdf")
    _run(docs, index)
    with Catalog(index) as catalog:
        texts = {d.filename: catalog.pages.document_markdown(d.doc_id)[0][1] for d in catalog.documents.all()}
    assert texts == {"a.pdf": "Penguin", "b.pdf": "Walrus"}


@pytest.mark.slow
def test_a_newer_reader_reads_again(make_pdf: MakePdf, docs: Path, index: IndexPaths) -> None:
    make_pdf("a.pdf", ["Walrus"], docs)
    [before] = _run(docs, index).files
    with Catalog(index, writable=True) as catalog:
        catalog.execute("UPDATE documents SET reader_version = 0")
    [after] = _run(docs, index).files
    assert (after.result, after.doc_id) == ("replaced", before.doc_id)
    assert _names(index) == ["a.pdf"]


def test_one_bad_file_never_stops_the_rest(make_pdf: MakePdf, docs: Path, index: IndexPaths) -> None:
    make_pdf("good.pdf", ["Walrus"], docs)
    make_pdf("later.pdf", ["Penguin"], docs)
    (docs / "empty.pdf").touch()
    for name in ("text.pdf", "twin.pdf"):
        (docs / name).write_text("This is no PDF at all.")
    (docs / "damaged.pdf").write_bytes(b"%PDF-1.7\n" + bytes(range(256)) * 40)
    with pymupdf.open() as document:
        document.new_page()
        document.save(docs / "blank.pdf")
        document[0].insert_text((72, 72), "Secret")
        document.save(docs / "locked.pdf", encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="u", owner_pw="o")
    (docs / "gone.pdf").symlink_to(docs / "nowhere.pdf")
    summary = _run(docs, index)
    assert {Path(outcome.path).name: outcome.code for outcome in summary.failed} == {
        "empty.pdf": "empty",
        "text.pdf": "not_a_pdf",
        "twin.pdf": "not_a_pdf",
        "damaged.pdf": "damaged",
        "locked.pdf": "encrypted",
    }
    assert all(outcome.reason for outcome in summary.failed)
    assert {outcome.warnings for outcome in summary.files} == {()}, "a blank page is no worry"
    assert _names(index) == ["blank.pdf", "good.pdf", "later.pdf"]


@pytest.mark.slow
def test_a_file_that_turned_bad_keeps_its_last_good_self(make_pdf: MakePdf, docs: Path, index: IndexPaths) -> None:
    path = make_pdf("a.pdf", ["Walrus"], docs)
    _run(docs, index)
    path.write_bytes(b"half a download")
    [outcome] = _run(docs, index).failed
    assert outcome.code == "not_a_pdf"
    assert _names(index) == ["a.pdf"]


def test_a_pdf_by_another_name(make_pdf: MakePdf, docs: Path, index: IndexPaths) -> None:
    path = make_pdf("a.pdf", ["Walrus"], docs).rename(docs / "report")
    [outcome] = _run(path, index).files
    assert outcome.result == "added"
    assert _names(index) == ["report"]


class _Meddler(Observer):
    """Changes a file while it is being read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def on_page(self, path: str, page: int, pages: int) -> None:
        with self._path.open("ab") as file:
            file.write(b"\n% more")


@pytest.mark.slow
def test_a_file_that_changes_while_it_is_read_is_not_trusted(make_pdf: MakePdf, docs: Path, index: IndexPaths) -> None:
    path = make_pdf("a.pdf", ["Walrus", "Tusks"], docs)
    shutil.copy(path, docs / "copy.pdf")
    make_pdf("other.pdf", ["Penguin"], docs)
    summary = ingest(index, [docs], settings=Settings(), observer=_Meddler(path))
    assert _results(summary) == {"a.pdf": "failed", "copy.pdf": "failed", "other.pdf": "added"}
    assert {outcome.code for outcome in summary.failed} == {"changed"}
    assert _results(_run(docs, index)) == {"a.pdf": "added", "copy.pdf": "added", "other.pdf": "unchanged"}


def test_every_file_is_told_to_the_observer(make_pdf: MakePdf, docs: Path, index: IndexPaths) -> None:
    heard: list[tuple[object, ...]] = []

    class Hearing(Observer):
        def on_plan(self, files: int, size_bytes: int) -> None:
            heard.append(("planned", files, size_bytes > 0))

        def on_page(self, path: str, page: int, pages: int) -> None:
            assert 1 <= page <= pages

        def on_file(self, outcome: FileOutcome) -> None:
            heard.append(("finished", outcome.result))

        def on_progress(self, stage: Stage, done: int, total: int) -> None:
            heard.append((stage, done, total))

    make_pdf("a.pdf", ["Walrus", "Tusks"], docs)
    _run(docs, index, Hearing(), Settings())
    assert heard == [
        ("planned", 1, True),
        ("finished", "added"),
        ("embed", 0, 2),
        ("embed", 2, 2),
        ("render", 1, 1),
        ("publish", 0, 1),
    ]
    heard.clear()
    _run(docs, index, Hearing(), Settings())
    assert heard == [("finished", "unchanged")]


@pytest.mark.slow
def test_a_document_that_took_too_long_to_render_is_told_once(make_pdf: MakePdf, docs: Path, index: IndexPaths) -> None:
    make_pdf("slow.pdf", ["Page 1"], docs)
    limits = {**LIMITS, "render": Limits(60.0, 60.0, 0.0)}
    given = []
    for _ in range(2):
        summary = ingest(index, docs, limits=limits)
        given.append([[(page.page, page.stage, page.code) for page in pages]
                      for pages in (summary.failed_pages, summary.waiting_pages)])  # fmt: skip
    timeout = [(0, "images", "timeout")]
    assert given == [[timeout, []], [[], timeout]], "told, noted, and not waited for in every run"
    assert ingest(index, docs, retry=True).waiting_pages == []


@pytest.mark.slow
def test_vectors_of_an_unknown_encoder_are_made_anew(make_pdf: MakePdf, docs: Path, index: IndexPaths) -> None:
    """An index filled by an encoder other than the one asked for is embedded again, even if no file changed."""
    make_pdf("a.pdf", ["Walrus", "Tusks"], docs)
    _run(docs, index)
    with Catalog(index, writable=True) as catalog:
        name = catalog.chunks.encoder()
        catalog.write_meta({"text_encoder": "another"})
    summary = ingest(index, [docs], settings=Settings(text_encoder=name), observer=Observer())
    assert (summary.count("unchanged"), summary.chunks) == (1, 2)
    with Catalog(index) as catalog:
        assert catalog.chunks.encoder() == name
        assert not generations.state_of(catalog).behind


def test_chunks_too_long_for_the_encoder_are_one_clear_error(make_pdf: MakePdf, docs: Path, index: IndexPaths) -> None:
    make_pdf("a.pdf", ["The walrus has tusks."], docs)
    _run(docs, index)
    with Catalog(index, writable=True) as catalog:
        catalog.execute("UPDATE chunks SET tokens = 5000")
        catalog.execute("DELETE FROM vectors")
        catalog.execute("INSERT INTO ledger SELECT doc_id, 'vectors' FROM documents")
    with pytest.raises(CtxError, match="up to 5000 tokens"):
        ingest(index, [docs], settings=Settings(), observer=Observer())


@pytest.mark.slow
def test_a_document_beyond_its_time_is_tried_in_two_runs_and_then_waits(
    make_pdf: MakePdf, docs: Path, index: IndexPaths
) -> None:
    make_pdf("slow.pdf", [f"Page {n}" for n in range(4)], docs)
    none: Mapping[Task, Limits] = {"read": Limits(60.0, 60.0, 0.0)}
    given: list[tuple[str, bool]] = []
    for _ in range(3):
        summary = ingest(index, [docs], settings=Settings(images=False), observer=Observer(), limits=none)
        [file] = summary.files
        given.append((file.code, "not tried again" in file.reason))
    assert given == [("timeout", False), ("timeout", False), ("timeout", True)]
    again = ingest(index, [docs], settings=Settings(images=False), observer=Observer(), retry=True)
    assert [file.result for file in again.files] == ["added"]
