"""The graph is there when a run ends: of documents, code and commits together."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.code.run import ingest_code
from ingest.commits.run import ingest_commits
from ingest.run import ingest
from research.graph import GraphUpdate, is_behind
from research.index import Index
from research.settings import Settings
from tests.conftest import write_pdf
from tests.ingest.commits.git_making import Made


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
