"""ingest as a library: a script that fills an index and asks it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import ingest
from ingest import IngestSummary, Observer, Stage
from research.contract import SearchEngine
from research.errors import UsageError
from research.settings import Settings
from research.store import ChromaClient, IndexPaths
from tests.conftest import MakePdf


@dataclass(frozen=True)
class _Opened:
    """As research.Index has them."""

    paths: IndexPaths
    settings: Settings


def test_the_public_list_is_what_the_module_gives() -> None:
    for name in ingest.__all__:
        assert getattr(ingest, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = ingest.nonsense


@pytest.mark.slow
def test_a_script_fills_an_index_and_asks_it(make_pdf: MakePdf, tmp_path: Path) -> None:
    docs = make_pdf("walrus.pdf", ["The walrus has tusks."], tmp_path / "docs").parent
    (docs / "broken.pdf").write_text("no PDF")
    paths = IndexPaths(tmp_path / "index")

    summary = ingest.ingest(paths, [str(docs)])
    assert isinstance(summary, IngestSummary)
    assert (summary.count("added"), [file.code for file in summary.failed]) == (1, ["not_a_pdf"])
    assert paths.images.is_dir()
    with ChromaClient(paths.root) as client:
        assert SearchEngine(client).run("tusks", 1).found[0].page.filename == "walrus.pdf"
    with pytest.raises(UsageError, match="no such file"):
        ingest.ingest(paths, tmp_path / "nothing")


@pytest.mark.slow
def test_the_settings_of_an_open_index_are_the_runs(make_pdf: MakePdf, tmp_path: Path) -> None:
    heard: list[tuple[str, int, int]] = []

    class Hearing(Observer):
        def on_progress(self, stage: Stage, done: int, total: int) -> None:
            heard.append((stage, done, total))

    path = make_pdf("walrus.pdf", ["The walrus has tusks."])
    opened = _Opened(IndexPaths(tmp_path / "index"), Settings(images=False, ocr="off"))
    assert ingest.ingest(opened, path, observer=Hearing()).count("added") == 1
    assert heard == [("embed", 0, 1), ("embed", 1, 1), ("publish", 0, 1)]
    assert not opened.paths.images.exists()
    assert ingest.ingest(opened, path, settings=Settings()).count("unchanged") == 1
    assert opened.paths.images.is_dir()


def test_import_ingest_loads_nothing() -> None:
    code = "import sys, ingest; print(sorted(name for name in sys.modules if name.startswith(('ingest.', 'research'))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['research', 'research.lazy']\n", "the door, and how it opens"
