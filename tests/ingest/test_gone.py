"""Files that are gone are told, and forgotten only when that is asked for and they are really gone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.report import IngestSummary
from ingest.run import ingest
from ingest.scan import folders_of
from research.errors import NothingFoundError, UsageError
from research.index import Index
from research.settings import Settings
from research.store import found_at
from research.store.holdings import is_there

MakePdf = Callable[..., Path]
TEXT = Settings(images=False)


def run(index: Index, *folders: Path, prune: bool = False) -> IngestSummary:
    return ingest(index, list(folders), prune=prune)


def names(index: Index) -> list[str]:
    return [document.filename for document in index.documents.list()]


def test_what_is_gone_is_told_and_goes_with_prune(make_pdf: MakePdf, tmp_path: Path) -> None:
    docs, other = tmp_path / "docs", tmp_path / "docs-2"
    kept = make_pdf("kept.pdf", ["The walrus has tusks"], docs)
    lost = make_pdf("deep/lost.pdf", ["The penguin cannot fly"], docs)
    (docs / "deep" / "notes.txt").write_text("not a PDF")
    elsewhere = make_pdf("elsewhere.pdf", ["Orcas hunt in groups"], other)
    with Index(tmp_path / "index", TEXT) as index:
        assert run(index, docs, other).gone == []
        index.documents.tag("kept.pdf", "sea")
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

        # What lies elsewhere as well stays, by that name.
        os.link(kept, tmp_path / "copy.pdf")
        run(index, tmp_path / "copy.pdf")
        kept.unlink()
        assert run(index, docs).gone == [str(kept)]
        summary = run(index, docs, prune=True)
        assert (summary.gone, summary.removed) == ([str(kept)], [])
        assert names(index) == ["copy.pdf", "elsewhere.pdf"]
        assert index.documents.tags("copy.pdf") == ["sea"]
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


@pytest.mark.slow
def test_an_empty_folder_is_not_pruned_for_a_drive_may_be_unmounted(make_pdf: MakePdf, tmp_path: Path) -> None:
    docs, drive = tmp_path / "docs", tmp_path / "docs" / "drive"
    make_pdf("here.pdf", ["The walrus has tusks"], docs)
    make_pdf("papers/far.pdf", ["The penguin cannot fly"], drive)
    with Index(tmp_path / "index", TEXT) as index:
        run(index, docs)
        before = folders_of([str(drive / "papers" / "far.pdf"), str(tmp_path / "nowhere" / "a.pdf")])
        assert {str(drive), str(tmp_path)} < set(before)
        assert str(tmp_path / "nowhere") not in before
        drive.rename(tmp_path / "not mounted")
        drive.mkdir()
        summary = run(index, docs, prune=True)
        assert (len(summary.gone), summary.removed, summary.empty_folders) == (1, [], [str(drive)])
        assert names(index) == ["far.pdf", "here.pdf"]
        # Whoever knew the folder with files in it is not deceived either: this is another one.
        summary = ingest(index, docs, prune=True, known_folders=before)
        assert (summary.removed, summary.empty_folders) == ([], [str(drive)])
        # The whole folder given is nothing special.
        summary = ingest(index, drive, prune=True)
        assert (summary.removed, summary.empty_folders) == ([], [str(drive)])
        # The same folder, emptied, is told from it.
        summary = ingest(index, docs, prune=True, known_folders=folders_of([str(drive / "any.pdf")]))
        assert [document.filename for document in summary.removed] == ["far.pdf"]


@pytest.mark.slow
def test_a_folder_that_is_gone_or_became_a_file_is_pruned(make_pdf: MakePdf, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    make_pdf("here.pdf", ["The walrus has tusks"], docs)
    old = make_pdf("old/a.pdf", ["The penguin cannot fly"], docs)
    older = make_pdf("older/b.pdf", ["Orcas hunt in groups"], docs)
    with Index(tmp_path / "index", TEXT) as index:
        run(index, docs)
        for path in (old, older):
            path.unlink()
            path.parent.rmdir()
        (docs / "older").write_text("a file now")
        assert [document.filename for document in run(index, docs, prune=True).removed] == ["a.pdf", "b.pdf"]


@pytest.mark.slow
def test_what_a_dangling_link_led_to_is_kept(make_pdf: MakePdf, tmp_path: Path) -> None:
    docs, drive = tmp_path / "docs", tmp_path / "drive"
    make_pdf("here.pdf", ["The walrus has tusks"], docs)
    make_pdf("far.pdf", ["The penguin cannot fly"], drive)
    make_pdf("single.pdf", ["Orcas hunt in groups"], tmp_path / "drive-2")
    (docs / "link").symlink_to(drive)
    (docs / "single.pdf").symlink_to(tmp_path / "drive-2" / "single.pdf")
    with Index(tmp_path / "index", TEXT) as index:
        ingest(index, docs, follow_links=True)
        assert names(index) == ["far.pdf", "here.pdf", "single.pdf"]
        for folder in (drive, tmp_path / "drive-2"):
            folder.rename(folder.with_name(f"{folder.name} away"))
        summary = ingest(index, docs, follow_links=True, prune=True)
        assert (summary.gone, summary.removed) == ([], [])
        drive.mkdir()
        (drive / "other.txt").write_text("it is there again, without the file")
        assert [d.filename for d in ingest(index, docs, follow_links=True, prune=True).removed] == ["far.pdf"]


@pytest.mark.slow
def test_names_that_are_no_text_are_found_again(make_pdf: MakePdf, tmp_path: Path) -> None:
    docs = tmp_path / os.fsdecode(b"d\xe9pot")
    path = docs / os.fsdecode(b"\xe9t\xe9.pdf")
    docs.mkdir()
    path.write_bytes(make_pdf("a.pdf", ["The walrus has tusks"]).read_bytes())
    stored = os.fsencode(path).decode("utf-8", "backslashreplace")
    assert found_at(stored) == str(path)
    with Index(tmp_path / "index", TEXT) as index:
        run(index, tmp_path / os.fsdecode(b"d\xe9pot"))
        summary = run(index, docs, prune=True)
        assert (summary.gone, summary.count("unchanged")) == ([], 1)
        path.unlink()
        (docs / "b.txt").write_text("")
        assert run(index, docs, prune=True).gone == [stored]


def test_an_empty_folder_makes_no_index_and_one_that_is_not_there_prunes_nothing(
    make_pdf: MakePdf, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    with pytest.raises(NothingFoundError, match="no PDF files"):
        ingest(Index(tmp_path / "index"), tmp_path / "docs", prune=True)
    assert not (tmp_path / "index").exists()
    with Index(tmp_path / "index", TEXT) as index:
        run(index, make_pdf("a.pdf", ["The walrus has tusks"], tmp_path / "docs").parent)
        (tmp_path / "docs").rename(tmp_path / "away")
        with pytest.raises(UsageError, match="no such file or folder"):
            run(index, tmp_path / "docs", prune=True)
        assert names(index) == ["a.pdf"]


def test_what_cannot_be_looked_at_counts_as_there(tmp_path: Path) -> None:
    """Names too long for the system stand in for a server that does not answer: tests may run as root."""
    assert is_there(str(tmp_path / ("x" * 5_000)))
    assert is_there(str(tmp_path / "loop")) is False
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert is_there(str(tmp_path / "loop"))
