"""Ingests and questions on one index at the same time. `make soak` does it for a minute."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from ingest.report import FileOutcome, Observer
from ingest.run import ingest
from research.settings import Settings
from research.store import Catalog, IndexPaths
from research.store import publish as writer
from tests.in_process import Ran, run_in_process
from tests.soak.contents import assert_whole
from tests.soak.corpus import make_corpus
from tests.soak.crowding import Crowd


@pytest.mark.slow
def test_two_ingests_and_four_questions_at_once(tmp_path: Path) -> None:
    folders = [make_corpus(tmp_path / f"docs-{n}", 12, seed=n) for n in (1, 2)]
    crowd = Crowd(tmp_path / "index", seconds=0.0)
    crowd.run(folders, askers=4)
    assert crowd.problems == []
    assert (crowd.ingests, crowd.asks) == (2, 4)
    assert_whole(crowd.root)
    with Catalog(IndexPaths(crowd.root)) as catalog:
        documents = catalog.execute("SELECT COUNT(*) FROM documents").fetchone()[0]
        assert documents == 24 if not crowd.busy else documents == 12
        assert writer.holds_everything(catalog)


def test_during_an_ingest_a_second_is_told_of_it_and_a_backup_is_taken(tmp_path: Path) -> None:
    docs, paths, file = make_corpus(tmp_path / "docs", 3), IndexPaths(tmp_path / "index"), tmp_path / "backup.zip"
    at = ("--index", str(paths.root))
    said: list[Ran] = []

    class Meanwhile(Observer):
        def on_file(self, outcome: FileOutcome) -> None:
            if not said:
                said.append(run_in_process("ingest", str(docs), *at))
                said.append(run_in_process("backup", str(file), "--json", *at))

    ingest(paths, [docs], settings=Settings(images=False), observer=Meanwhile())
    second, backup = said
    assert second.code == 1
    assert f"process {os.getpid()} is writing this index" in second.err
    assert "--wait" in second.err
    assert backup.code == 0, backup.err
    with zipfile.ZipFile(file) as archive:
        archive.extract("catalog.sqlite3", tmp_path / "snapshot")
    assert backup.document["documents"] == assert_whole(tmp_path / "snapshot") == 1
