"""Two ingests and four questions at once for a minute: nothing is lost and nobody is surprised."""

from __future__ import annotations

from pathlib import Path

from research.store import Catalog, IndexPaths
from research.store.vectors import writer
from tests.soak.contents import assert_whole
from tests.soak.corpus import make_corpus
from tests.soak.crowding import Crowd
from tests.soak.running import run


def test_a_minute_of_everybody_at_once(tmp_path: Path) -> None:
    folders = [make_corpus(tmp_path / f"docs-{n}", 60, seed=n) for n in (1, 2)]
    crowd = Crowd(tmp_path / "index", seconds=60.0)
    crowd.run(folders, askers=4)
    print(f"{crowd.ingests} ingests ({crowd.busy} told to wait), {crowd.asks} questions, {crowd.answers} answered")
    assert crowd.problems == []
    assert crowd.answers > 0
    for folder in folders:
        assert run("ingest", str(folder), "--quiet", root=crowd.root)[0] == 0
    assert_whole(crowd.root)
    with Catalog(IndexPaths(crowd.root)) as catalog:
        assert writer.holds_everything(catalog)
