"""A run stopped anywhere, by Ctrl-C or by force, is finished by the next one as if nothing had happened."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pymupdf
import pytest

from ingest.report import FileOutcome, Observer, Stage
from ingest.run import ingest
from research.contract import SearchEngine
from research.settings import Settings
from research.store import (
    Catalog,
    ChromaClient,
    IndexPaths,
    VectorIndex,
    generations,
)

TEXTS = {
    "boats.pdf": ["Boats pay a fee in the harbour.", "The harbour is closed at night."],
    "bread.pdf": ["Bread is baked from flour, water and salt.", "", "Rye keeps longer than wheat."],
    "stars.pdf": ["Stars and planets of the night sky."],
}
TEXT = Settings(images=False)  # test_crash has the images
QUESTIONS = ["harbour fee", "baking", "astronomy at night"]


@dataclass(frozen=True)
class Content:
    """All that a user can see of an index."""

    documents: list[tuple[str, str, str]]
    pages: list[list[tuple[int, str]]]
    chunks: list[tuple[object, ...]]
    records: tuple[set[str], set[str]]
    answers: list[list[tuple[str, int, float]]]


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for name, pages in TEXTS.items():
        with pymupdf.open() as document:
            for text in pages:
                document.new_page().insert_textbox(pymupdf.Rect(72, 72, 520, 760), text, fontsize=11)
            document.save(folder / name)
    return folder


@pytest.fixture(scope="module")
def undisturbed(docs: Path, tmp_path_factory: pytest.TempPathFactory) -> Content:
    """What a run that nothing disturbs makes of the same files."""
    index = IndexPaths(tmp_path_factory.mktemp("undisturbed") / "index")
    _finish(docs, index)
    return _content(index)


def _content(index: IndexPaths) -> Content:
    with ChromaClient(index.root) as client:
        catalog = client.catalog
        assert catalog.ledger.unfinished() == {}
        assert not generations.state_of(catalog).behind
        documents = catalog.documents.all()
        chunks = catalog.execute(
            "SELECT doc_id, page, ordinal, context, tokens, vector FROM chunks JOIN pages USING (page_id)"
            " JOIN vectors USING (chunk_id) ORDER BY 1, 2, 3"
        ).fetchall()
        engine = SearchEngine(client)
        return Content(
            documents=[(document.doc_id, document.filename, document.title) for document in documents],
            pages=[catalog.pages.document_markdown(document.doc_id) for document in documents],
            chunks=[tuple(row) for row in chunks],
            records=(set(client.text_collection.get()["ids"]), set(client.visual_collection.get()["ids"])),
            answers=[
                [(found.page.filename, found.page.page, round(found.score, 5)) for found in engine.run(q, 10).found]
                for q in QUESTIONS
            ],
        )


def _finish(docs: Path, index: IndexPaths) -> None:
    summary = ingest(index, [docs], settings=TEXT, observer=Observer())
    assert not summary.interrupted
    assert not summary.failed


class _Stop(Observer):
    """Presses Ctrl-C at one point of the run."""

    def __init__(self, point: str) -> None:
        self._point = point

    def on_plan(self, files: int, size_bytes: int) -> None:
        self._reach("planned")

    def on_page(self, path: str, page: int, pages: int) -> None:
        self._reach("reading")

    def on_file(self, outcome: FileOutcome) -> None:
        self._reach("finished")

    def on_progress(self, stage: Stage, done: int, total: int) -> None:
        self._reach(stage if done == 0 else "embedded")

    def _reach(self, point: str) -> None:
        if point == self._point:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("point", "question_between"),
    [
        ("finished", True),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                ("planned", False),
                ("reading", True),
                ("embed", False),
                ("embedded", True),
                ("publish", False),
                ("publish", True),
            )
        ),
    ],
)
def test_the_next_run_goes_on_where_one_was_interrupted(
    docs: Path, tmp_path: Path, undisturbed: Content, point: str, question_between: bool
) -> None:
    """`make soak` has every point with and without a question."""
    interrupt_and_go_on(docs, IndexPaths(tmp_path / "index"), point, question_between=question_between)
    assert _content(IndexPaths(tmp_path / "index")) == undisturbed


def interrupt_and_go_on(docs: Path, index: IndexPaths, point: str, *, question_between: bool) -> None:
    summary = ingest(index, [docs], settings=TEXT, observer=_Stop(point))
    assert summary.interrupted
    assert not index.spool.exists()
    if question_between:  # which publishes what there is, as `ctx ask` does
        with Catalog(index) as catalog:
            VectorIndex(index).sync_if_stale(catalog)
        with ChromaClient(index.root) as client:
            for question in QUESTIONS:
                SearchEngine(client).run(question, 5)
    _finish(docs, index)


_KILLED = """
import os, signal, sys
from pathlib import Path
from ingest.report import Observer
from ingest.run import ingest
from research.settings import Settings
from research.store.paths import IndexPaths

class Killed(Observer):
    def _die(self, *told):
        if sys.argv[3] in ("on_page", "on_file", told[0]):
            os.kill(os.getpid(), signal.SIGKILL)

setattr(Killed, sys.argv[3] if sys.argv[3].startswith("on_") else "on_progress", Killed._die)
ingest(IndexPaths(Path(sys.argv[2])), [Path(sys.argv[1])], settings=Settings(images=False), observer=Killed())
"""


_OTHER_POINTS = (pytest.param(point, marks=pytest.mark.slow) for point in ("on_page", "on_file", "publish"))


@pytest.mark.parametrize("point", ["embed", *_OTHER_POINTS])
def test_the_next_run_goes_on_where_one_was_killed(
    docs: Path, tmp_path: Path, undisturbed: Content, point: str
) -> None:
    index = IndexPaths(tmp_path / "index")
    run = subprocess.run([sys.executable, "-c", _KILLED, str(docs), str(index.root), point], check=False)
    assert run.returncode == -9
    _finish(docs, index)
    assert not index.spool.exists()
    assert _content(index) == undisturbed


@pytest.mark.slow
def test_vectors_already_written_are_not_made_again(docs: Path, tmp_path: Path) -> None:
    index = IndexPaths(tmp_path / "index")
    summary = ingest(index, [docs], settings=TEXT, observer=_Stop("embedded"))
    assert (summary.interrupted, summary.chunks, summary.pending_chunks) == (True, 5, 0)
    summary = ingest(index, [docs], settings=TEXT, observer=Observer())
    assert summary.chunks == 0
    with ChromaClient(index.root) as client:
        assert client.catalog.chunks.last_sequence() == 5
