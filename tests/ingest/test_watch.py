"""Following folders: which changes concern an index, and that they are noticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from watchfiles import Change, watch

from ingest.run import ingest
from ingest.scan import PdfFilter, changes
from research.index import Index
from research.settings import Settings

MakePdf = Callable[..., Path]


def test_which_changes_concern_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = PdfFilter([tmp_path], tmp_path / "index")
    (tmp_path / "folder").mkdir()
    (tmp_path / "index").mkdir()
    (tmp_path / "old").mkdir()
    wanted.remember([str(tmp_path / "old" / "a.pdf")])
    wanted.remember([str(tmp_path / "b.pdf")])
    (tmp_path / "old").rmdir()
    concern = {name: wanted(None, str(tmp_path / name)) for name in ("a.PDF", "a.txt", "folder", "old", "other")}
    assert concern == {"a.PDF": True, "a.txt": False, "folder": True, "old": True, "other": False}
    assert not wanted(None, str(tmp_path / ".ctx" / "a.pdf"))
    assert not wanted(None, str(tmp_path / ".a.pdf"))
    assert not wanted(None, str(tmp_path / "index"))
    assert not wanted(None, str(tmp_path / "index" / "a.pdf"))
    assert not wanted(None, str(tmp_path)), "its own times change with every file"
    monkeypatch.chdir(tmp_path)
    assert wanted(None, "a.pdf")
    assert PdfFilter([Path(".hidden")], Path("index"))(None, ".hidden/a.pdf"), "what was given is not hidden"
    gone = PdfFilter([tmp_path / "none"], tmp_path / "index")
    assert gone(None, str(tmp_path / "none"))


@pytest.mark.parametrize("poll", [False, True])
def test_a_change_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, poll: bool) -> None:
    monkeypatch.setattr("ingest.scan._SETTLE_MS", 100)
    (tmp_path / "a.txt").write_text("")
    steps = changes([tmp_path], PdfFilter([tmp_path], tmp_path / "index"), poll=poll)
    assert next(steps) is None, "the first tells that the folders are watched"
    (tmp_path / "a.pdf").write_text("x")
    assert next(steps) is None


@pytest.mark.slow
def test_a_run_does_not_call_for_the_next(make_pdf: MakePdf, tmp_path: Path) -> None:
    """Whatever is written into an index inside the folder that is watched."""
    docs = make_pdf("a.pdf", ["The walrus has tusks"], tmp_path / "docs").parent
    index = docs / "index"
    wanted = PdfFilter([docs], index)
    seen = watch(docs, watch_filter=None, rust_timeout=100, step=100, yield_on_timeout=True)
    next(seen)
    with Index(index, Settings(images=False)) as opened:
        ingest(opened, docs)
        ingest(opened, docs)
    (docs / "end.txt").touch()
    events: list[tuple[Change, str]] = []
    while not any(path.endswith("end.txt") for _, path in events):
        events += next(seen)
    assert any("catalog" in path for _, path in events)
    assert [path for change, path in events if wanted(change, path)] == []
