"""A run stopped anywhere, by Ctrl-C or by force, is finished by the next one as if nothing had happened."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pymupdf
import pytest

from ingest.report import FileOutcome, SilentObserver
from ingest.run import ingest
from research.search.engine import SearchEngine
from research.settings import Settings
from research.store.catalog import vectors
from research.store.catalog.documents import all_documents, unfinished
from research.store.catalog.pages import document_markdown
from research.store.client import ChromaClient
from research.store.files.paths import IndexPaths
from research.store.vectors import sync_state
from research.store.vectors.catch_up import repair_if_behind

pytestmark = pytest.mark.usefixtures("unmeasured")

TEXTS = {
    "boats.pdf": ["Boats pay a fee in the harbour.", "The harbour is closed at night."],
    "bread.pdf": ["Bread is baked from flour, water and salt.", "", "Rye keeps longer than wheat."],
    "stars.pdf": ["Stars and planets of the night sky."],
}
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
        assert unfinished(catalog) == {}
        assert not sync_state.state_of(catalog).behind
        documents = all_documents(catalog)
        chunks = catalog.connection.execute(
            "SELECT doc_id, page, ordinal, context, tokens, vector FROM chunks JOIN pages USING (page_id)"
            " JOIN vectors USING (chunk_id) ORDER BY 1, 2, 3"
        ).fetchall()
        engine = SearchEngine(client)
        return Content(
            documents=[(document.doc_id, document.filename, document.title) for document in documents],
            pages=[document_markdown(catalog, document.doc_id) for document in documents],
            chunks=[tuple(row) for row in chunks],
            records=(set(client.text_collection.get()["ids"]), set(client.visual_collection.get()["ids"])),
            answers=[
                [(found.page.filename, found.page.page, round(found.score, 5)) for found in engine.run(q, 10).found]
                for q in QUESTIONS
            ],
        )


def _finish(docs: Path, index: IndexPaths) -> None:
    summary = ingest([docs], index, settings=Settings(), observer=SilentObserver())
    assert not summary.interrupted
    assert not summary.failed


class _Stop(SilentObserver):
    """Presses Ctrl-C at one point of the run."""

    def __init__(self, point: str) -> None:
        self._point = point

    def planned(self, files: int, size_bytes: int) -> None:
        self._reach("planned")

    def reading(self, path: str, page: int, pages: int) -> None:
        self._reach("reading")

    def finished(self, outcome: FileOutcome) -> None:
        self._reach("finished")

    def embedding(self, done: int, total: int) -> None:
        self._reach("embedding" if done == 0 else "embedded")

    def publishing(self) -> None:
        self._reach("publishing")

    def _reach(self, point: str) -> None:
        if point == self._point:
            raise KeyboardInterrupt


@pytest.mark.parametrize("question_between", [False, True])
@pytest.mark.parametrize("point", ["planned", "reading", "finished", "embedding", "embedded", "publishing"])
def test_the_next_run_goes_on_where_one_was_interrupted(
    docs: Path, tmp_path: Path, undisturbed: Content, point: str, question_between: bool
) -> None:
    index = IndexPaths(tmp_path / "index")
    summary = ingest([docs], index, settings=Settings(), observer=_Stop(point))
    assert summary.interrupted
    assert not index.spool.exists()
    if question_between:  # which publishes what there is, as `ctx ask` does
        repair_if_behind(index)
        with ChromaClient(index.root) as client:
            for question in QUESTIONS:
                SearchEngine(client).run(question, 5)
    _finish(docs, index)
    assert _content(index) == undisturbed


_KILLED = """
import os, signal, sys
from pathlib import Path
from ingest.report import SilentObserver
from ingest.run import ingest
from research.settings import Settings
from research.store.files.paths import IndexPaths

class Killed(SilentObserver):
    def _die(self, *_):
        os.kill(os.getpid(), signal.SIGKILL)

setattr(Killed, sys.argv[3], Killed._die)
ingest([Path(sys.argv[1])], IndexPaths(Path(sys.argv[2])), settings=Settings(), observer=Killed())
"""


@pytest.mark.parametrize("point", ["reading", "finished", "embedding", "publishing"])
def test_the_next_run_goes_on_where_one_was_killed(
    docs: Path, tmp_path: Path, undisturbed: Content, point: str
) -> None:
    index = IndexPaths(tmp_path / "index")
    run = subprocess.run([sys.executable, "-c", _KILLED, str(docs), str(index.root), point], check=False)
    assert run.returncode == -9
    _finish(docs, index)
    assert not index.spool.exists()
    assert _content(index) == undisturbed


def test_vectors_already_written_are_not_made_again(docs: Path, tmp_path: Path) -> None:
    index = IndexPaths(tmp_path / "index")
    summary = ingest([docs], index, settings=Settings(), observer=_Stop("embedded"))
    assert (summary.interrupted, summary.chunks, summary.pending_chunks) == (True, 5, 0)
    summary = ingest([docs], index, settings=Settings(), observer=SilentObserver())
    assert summary.chunks == 0
    with ChromaClient(index.root) as client:
        assert vectors.last_sequence(client.catalog) == 5
