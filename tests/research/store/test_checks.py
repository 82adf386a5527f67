"""`ctx doctor` on an index: what is wrong is found, and the remedy fits the case."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from index_making import Making, stamp

from research.records import DocumentInfo, Page
from research.store import publish as writer
from research.store.doctor import Check, check_index, repair
from research.store.holdings import status_of
from research.store.paths import write_lock


@pytest.fixture
def filled(making: Making) -> Making:
    making.add("walrus.pdf", ["walrus on ice", "seal"])
    making.add("orca.pdf", ["orca"])
    return making


def _checks(made: Making) -> dict[str, Check]:
    return {check.name: check for check in check_index(made.paths)}


def test_an_unfinished_index_and_an_open_folder(filled: Making) -> None:
    filled.paths.root.chmod(0o755)
    found = _checks(filled)
    assert (found["unfinished"].severity, found["collections"].severity) == ("warning", "ok")
    assert (found["folder"].severity, found["folder"].fixable) == ("warning", True)
    assert "chmod 700" in found["folder"].remedy


def test_collections_that_lag(filled: Making) -> None:
    filled.embed()
    missing = _checks(filled)["collections"]
    assert (missing.severity, missing.fixable) == ("warning", True)
    writer.publish(filled.catalog)
    assert _checks(filled)["collections"].severity == "ok"
    filled.catalog.documents.remove(filled.add("auk.pdf", ["auk"]).doc_id)
    filled.catalog.execute("DELETE FROM pages WHERE page = 2")
    lagging = _checks(filled)["collections"]
    assert lagging.severity == "warning"
    assert "too many" in lagging.message


@pytest.mark.parametrize(("version", "step"), [(0, "ctx restore"), (1, "ctx ingest PATH --index"), (99, "upgrade ctx")])
def test_a_catalog_in_trouble_is_not_sent_back_to_the_doctor(filled: Making, version: int, step: str) -> None:
    filled.catalog.execute(f"PRAGMA user_version = {version}")
    filled.catalog.close()
    for found in (check_index(filled.paths)[-1], repair(filled.paths)[-1]):
        assert (found.name, found.severity) == ("catalog", "error")
        assert "ctx doctor" not in found.remedy
        assert step in found.remedy


def test_a_dangling_link_is_called_what_it_is(filled: Making, tmp_path: Path) -> None:
    filled.catalog.close()
    filled.paths.catalog.unlink()
    filled.paths.catalog.symlink_to(tmp_path / "nowhere")
    found = check_index(filled.paths)[-1]
    assert (found.name, found.severity) == ("catalog", "error")
    assert "is a link" in found.message
    assert "remove the link" in found.remedy


def test_no_index_at_all(tmp_path: Path) -> None:
    from research.store.paths import IndexPaths

    [found] = check_index(IndexPaths(tmp_path / "none"))
    assert (found.name, found.severity, found.remedy) == ("index", "warning", "ctx ingest PATH")


_HOLD = """
import sys
from pathlib import Path
from research.store.paths import write_lock
from research.store.paths import IndexPaths
with write_lock(IndexPaths(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_killed_writer_is_no_writer_though_its_number_lives_on(filled: Making) -> None:
    """Its note stays behind, and by now the number is another process's: here, ours."""
    filled.catalog.execute("DELETE FROM ledger")
    command = [sys.executable, "-c", _HOLD, str(filled.paths.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        busy = status_of(filled.paths)
        assert (busy.writing, busy.writer_pid) == (True, other.pid)
        assert "not looked at" in _checks(filled)["consistency"].message
        other.kill()
    note = filled.paths.lock.with_suffix(".pid")
    assert note.exists()
    note.write_text(str(os.getpid()))
    idle = status_of(filled.paths)
    assert (idle.writing, idle.writer_pid) == (False, None)
    assert _checks(filled)["consistency"].severity == "warning", "the doctor does look"


def test_a_writer_without_a_note_is_still_a_writer(filled: Making) -> None:
    with write_lock(filled.paths):
        filled.paths.lock.with_suffix(".pid").unlink()
        found = status_of(filled.paths)
        assert (found.writing, found.writer_pid) == (True, None)


def _add_file(made: Making, path: Path, content: bytes) -> DocumentInfo:
    """A document that came from a real file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    info = DocumentInfo(
        digest[:16], path.name, "pdf", "", 1, "2026-01-01T00:00:00+00:00", str(path), len(content), digest
    )
    made.catalog.documents.add(info, stamp(str(path), len(content)), [(Page(1, "text"), [])], reader_version=1)
    return info


def test_files_that_are_there(making: Making, tmp_path: Path) -> None:
    _add_file(making, tmp_path / "docs/a.pdf", b"one")
    odd = os.fsdecode(b"odd \xff.pdf")
    info = _add_file(making, tmp_path / "docs/plain.pdf", b"two")
    (tmp_path / "docs/plain.pdf").rename(tmp_path / "docs" / odd)
    stored = str(tmp_path / "docs/odd \\xff.pdf")  # as a run writes a name that is no valid text
    making.catalog.execute("UPDATE files SET path = ? WHERE doc_id = ?", (stored, info.doc_id))
    assert _checks(making)["files"] == Check("files", "ok", "all 2 files are where they were")


def test_a_file_that_moved_is_named(making: Making, tmp_path: Path) -> None:
    moved = _add_file(making, tmp_path / "docs/a.pdf", b"the first")
    _add_file(making, tmp_path / "docs/b.pdf", b"the other")
    (tmp_path / "docs/a.pdf").unlink()
    (tmp_path / "docs/old").mkdir()
    (tmp_path / "docs/old/a.pdf").write_bytes(b"imposters")  # the same name and size
    new = tmp_path / "docs/old/2019/renamed.pdf"
    new.parent.mkdir()
    new.write_bytes(b"the first")
    found = _checks(making)["files"]
    assert found.severity == "warning"
    assert found.message == f"1 of 2 files are gone: {moved.filename} (now {new})"
    assert found.remedy == f"ctx ingest {new}"


def test_files_of_which_some_moved_and_some_are_deleted(making: Making, tmp_path: Path) -> None:
    for name in "abc":
        _add_file(making, tmp_path / f"docs/{name}.pdf", name.encode())
    (tmp_path / "docs/b").mkdir()
    for name in "ab":
        (tmp_path / f"docs/{name}.pdf").rename(tmp_path / f"docs/b/{name}.pdf")
    (tmp_path / "docs/c.pdf").unlink()
    found = _checks(making)["files"]
    rest = "the others moved? ctx ingest NEWPLACE; deleted? ctx ingest FOLDER --prune"
    assert found.remedy == f"ctx ingest {tmp_path}/docs/b; {rest}"
    assert "c.pdf" in found.message


def test_a_file_that_is_nowhere_may_have_moved_or_been_deleted(making: Making, tmp_path: Path) -> None:
    info = _add_file(making, tmp_path / "docs/a.pdf", b"one")
    (tmp_path / "docs/a.pdf").unlink()
    (tmp_path / "docs").rmdir()
    found = _checks(making)["files"]
    assert found.remedy == f"moved? ctx ingest NEWPLACE (it keeps its id); deleted? ctx remove {info.doc_id}"
