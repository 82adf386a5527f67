"""Files that are gone are told, and forgotten only when that is asked for; folders can be followed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.report import IngestSummary
from ingest.run import ingest
from ingest.watch import PdfFilter, changes
from research.errors import NothingFoundError
from research.index import Index
from research.settings import Settings
from research.store.upkeep.gone_files import is_there

MakePdf = Callable[..., Path]
TEXT = Settings(images=False)


def run(index: Index, *folders: Path, prune: bool = False) -> IngestSummary:
    return ingest(index, list(folders), prune=prune)


def names(index: Index) -> list[str]:
    return [document.filename for document in index.documents()]


def test_what_is_gone_is_told_and_goes_with_prune(make_pdf: MakePdf, tmp_path: Path) -> None:
    docs, other = tmp_path / "docs", tmp_path / "docs-2"
    kept = make_pdf("kept.pdf", ["The walrus has tusks"], docs)
    lost = make_pdf("deep/lost.pdf", ["The penguin cannot fly"], docs)
    elsewhere = make_pdf("elsewhere.pdf", ["Orcas hunt in groups"], other)
    with Index(tmp_path / "index", TEXT) as index:
        assert run(index, docs, other).gone == []
        index.tag("kept.pdf", "sea")
        lost.unlink()
        elsewhere.unlink()

        summary = run(index, docs)  # what is gone from another folder is not this run's business
        assert (summary.gone, summary.removed) == ([str(lost)], [])
        assert names(index) == ["elsewhere.pdf", "kept.pdf", "lost.pdf"]

        summary = run(index, docs, prune=True)
        assert [document.filename for document in summary.removed] == ["lost.pdf"]
        assert summary.to_dict()["removed"][0]["filename"] == "lost.pdf"
        assert names(index) == ["elsewhere.pdf", "kept.pdf"]
        assert index.search("penguin", mode="lexical").results == []

        # A folder that holds nothing any more is told of, too; what lies elsewhere as well stays, by that name.
        os.link(kept, tmp_path / "copy.pdf")
        run(index, tmp_path / "copy.pdf")
        kept.unlink()
        assert run(index, docs).gone == [str(kept)]
        summary = run(index, docs, prune=True)
        assert (summary.gone, summary.removed) == ([str(kept)], [])
        assert names(index) == ["copy.pdf", "elsewhere.pdf"]
        assert index.tags("copy.pdf") == ["sea"]
        with pytest.raises(NothingFoundError, match="no PDF files"):
            run(index, docs, prune=True)


def test_a_file_that_moved_is_not_gone(make_pdf: MakePdf, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    moved = make_pdf("a.pdf", ["The walrus has tusks"], docs)
    with Index(tmp_path / "index", TEXT) as index:
        run(index, docs)
        moved.rename(docs / "b.pdf")
        summary = run(index, docs, prune=True)
        assert (summary.gone, summary.removed, names(index)) == ([], [], ["b.pdf"])


def test_an_empty_folder_makes_no_index(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    with pytest.raises(NothingFoundError, match="no PDF files"):
        ingest(Index(tmp_path / "index"), tmp_path / "docs", prune=True)
    assert not (tmp_path / "index").exists()


def test_what_cannot_be_looked_at_counts_as_there(tmp_path: Path) -> None:
    """Names too long for the system stand in for a server that does not answer: tests may run as root."""
    assert is_there(str(tmp_path / ("x" * 5_000)))
    assert is_there(str(tmp_path / "loop")) is False
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert is_there(str(tmp_path / "loop"))


def test_which_changes_concern_an_index(tmp_path: Path) -> None:
    wanted = PdfFilter([tmp_path])
    (tmp_path / "folder").mkdir()
    wanted.remember([str(tmp_path / "old" / "a.pdf")])
    concern = {name: wanted(None, str(tmp_path / name)) for name in ("a.PDF", "a.txt", "folder", "old", "other")}
    assert concern == {"a.PDF": True, "a.txt": False, "folder": True, "old": True, "other": False}
    assert not wanted(None, str(tmp_path / ".ctx" / "a.pdf"))
    assert not wanted(None, str(tmp_path / ".a.pdf"))


@pytest.mark.parametrize("poll", [False, True])
def test_a_change_is_noticed(tmp_path: Path, poll: bool) -> None:
    import threading

    (tmp_path / "a.txt").write_text("")
    timer = threading.Timer(0.6, (tmp_path / "a.pdf").write_text, ["x"])
    timer.start()
    assert next(changes([tmp_path], PdfFilter([tmp_path]), poll=poll)) is None
    assert (tmp_path / "a.pdf").exists()
    timer.join()
