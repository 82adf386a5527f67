"""Ingests and questions on one index at the same time. `make soak` does it for a minute."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

from research.store.catalog.catalog import Catalog
from research.store.files.paths import IndexPaths
from research.store.vectors import writer
from tests.soak.contents import assert_whole
from tests.soak.corpus import make_corpus
from tests.soak.crowding import Crowd
from tests.soak.running import STAGES, finish, run, start, wait_until

pytestmark = pytest.mark.usefixtures("unmeasured")


def test_two_ingests_and_four_questions_at_once(tmp_path: Path) -> None:
    folders = [make_corpus(tmp_path / f"docs-{n}", 12, seed=n) for n in (1, 2)]
    crowd = Crowd(tmp_path / "index", seconds=0.0)
    crowd.run(folders, askers=4)
    assert crowd.problems == []
    assert (crowd.ingests, crowd.asks) == (2, 4)
    assert_whole(crowd.root)
    with Catalog(IndexPaths(crowd.root)) as catalog:
        documents = catalog.connection.execute("SELECT COUNT(*) FROM documents").fetchone()[0]
        assert documents == 24 if not crowd.busy else documents == 12
        assert writer.holds_everything(catalog)


def test_during_an_ingest_a_second_is_told_of_it_and_a_backup_is_taken(tmp_path: Path) -> None:
    docs = make_corpus(tmp_path / "docs", 30)
    root, file = tmp_path / "index", tmp_path / "backup.zip"
    first = start("ingest", str(docs), root=root)
    assert wait_until(lambda: STAGES["first document"](root), first)
    code, _, err = run("ingest", str(docs), root=root)
    assert code == 1
    assert re.search(rf"process {first.pid} is writing this index", err)
    assert "--wait" in err
    code, out, err = run("backup", str(file), "--json", root=root)
    assert code == 0, err
    with zipfile.ZipFile(file) as archive:
        archive.extract("catalog.sqlite3", tmp_path / "snapshot")
    assert 1 <= json.loads(out)["documents"] == assert_whole(tmp_path / "snapshot")
    assert finish(first)[0] == 0
