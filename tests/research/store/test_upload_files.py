"""Uploaded files on disk: durable and whole or not there, one a content, and gone with their document."""

from __future__ import annotations

import hashlib
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from index_making import Making

from ingest import Observer, ingest
from research.errors import IndexUnusableError
from research.settings import Settings
from research.store import files
from research.store.doctor import check_index, repair
from research.store.files import Incoming, Upload
from research.store.holdings import plan_removal, remove
from research.store.paths import IndexPaths
from tests.conftest import write_pdf

CONTENT = b"%PDF-1.7 not much of one"


def receive(paths: IndexPaths, name: str = "a.pdf", content: bytes = CONTENT) -> Upload:
    incoming = Incoming(paths, name)
    incoming.write(content[:5])
    incoming.write(content[5:])
    return incoming.keep()


@pytest.fixture
def paths(tmp_path: Path) -> IndexPaths:
    return IndexPaths(tmp_path / "index")


def test_an_upload_is_private_whole_and_waits(paths: IndexPaths) -> None:
    upload = receive(paths)
    assert upload.path == paths.uploads / hashlib.sha256(CONTENT).hexdigest()[:16] / "a.pdf"
    assert upload.path.read_bytes() == CONTENT
    assert (upload.size, upload.fresh) == (len(CONTENT), True)
    modes = {path.stat().st_mode & 0o777 for path in (paths.uploads, upload.folder)}
    assert modes == {0o700}
    assert {path.stat().st_mode & 0o777 for path in upload.folder.iterdir()} == {0o600}
    assert [each.path for each in files.waiting_uploads(paths)] == [upload.path]
    files.settle(upload)
    assert files.waiting_uploads(paths) == []
    assert [path.name for path in upload.folder.iterdir()] == ["a.pdf"]


def test_the_same_content_is_one_file_and_waits_again(paths: IndexPaths) -> None:
    first = receive(paths)
    files.fail(first, "damaged", "it is damaged")
    assert files.waiting_uploads(paths) == []
    second = receive(paths, "another name.pdf")
    assert (second.path, second.fresh) == (first.path, False)
    assert [path.name for path in sorted(paths.uploads.iterdir())] == [first.doc_id]
    assert sorted(path.name for path in first.folder.iterdir()) == ["a.pdf", "waiting"], "the failure is forgotten"


def test_one_that_is_not_whole_gives_way(paths: IndexPaths) -> None:
    first = receive(paths)
    first.path.write_bytes(b"%PDF")
    assert receive(paths, "b.pdf").path.read_bytes() == CONTENT
    shutil.rmtree(first.folder)
    first.folder.mkdir()
    assert receive(paths).fresh


def test_what_is_dropped_leaves_nothing(paths: IndexPaths) -> None:
    incoming = Incoming(paths, "a.pdf")
    incoming.write(CONTENT)
    incoming.drop()
    incoming.drop()
    assert list(paths.uploads.iterdir()) == []


@pytest.mark.parametrize("where", ["uploads", "uploads/{id}"])
def test_no_link_is_followed(paths: IndexPaths, tmp_path: Path, where: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "a.pdf").write_bytes(b"mine")
    doc_id = hashlib.sha256(CONTENT).hexdigest()[:16]
    paths.create()
    link = paths.root / where.format(id=doc_id)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(victim)
    with pytest.raises((IndexUnusableError, OSError), match=r"link|Not a directory"):
        receive(paths)
    assert files.all_uploads(paths) == []
    files.remove(paths, doc_id)
    files.sweep(paths)
    assert [path.name for path in victim.iterdir()] == ["a.pdf"]


_RECEIVING = """
import sys
from pathlib import Path
from research.store.paths import IndexPaths
from research.store.files import Incoming
incoming = Incoming(IndexPaths(Path(sys.argv[1])), "a.pdf")
incoming.write(b"%PDF-1.7 the first half")
print("receiving", flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_was_receiving_is_swept_and_what_a_living_one_does_is_not(making: Making) -> None:
    paths = making.paths
    living = Incoming(paths, "b.pdf")
    command = [sys.executable, "-c", _RECEIVING, str(paths.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "receiving\n"
        assert files.dead_passings(paths) == []
        process.send_signal(signal.SIGKILL)
        process.wait()
    [dead] = files.dead_passings(paths)
    assert (dead / "a.pdf").exists()
    said = [check.message for check in check_index(paths) if check.name == "consistency"]
    assert said == ["files that were not received to their end"]
    making.catalog.close()
    assert [check.message for check in repair(paths)] == ["files that were not received to their end"]
    assert not dead.exists()
    living.write(CONTENT)
    assert living.keep().path.read_bytes() == CONTENT


@pytest.mark.slow
def test_what_is_removed_from_the_index_is_gone_and_files_elsewhere_are_not(paths: IndexPaths, tmp_path: Path) -> None:
    mine = write_pdf(tmp_path / "docs" / "mine.pdf", ["The walrus has tusks."])
    theirs = write_pdf(tmp_path / "sent.pdf", ["The seal has none."])
    sent, copy = receive(paths, "sent.pdf", theirs.read_bytes()), receive(paths, "copy.pdf", mine.read_bytes())
    summary = ingest(
        paths, [mine, sent.path, copy.path], settings=Settings(ocr="off", images=False), observer=Observer()
    )
    assert [file.result for file in summary.files] == ["added", "added", "copy"]
    remove(paths, plan_removal(paths, ["sent.pdf", "mine.pdf"]).documents)
    assert list(paths.uploads.iterdir()) == []
    assert mine.exists()
    assert theirs.exists()


def test_a_scan_does_not_look_into_an_index(paths: IndexPaths, tmp_path: Path) -> None:
    """The uploads of another index below a folder are not the folder's."""
    from ingest.scan import scan

    mine = write_pdf(tmp_path / "mine.pdf", ["The walrus has tusks."])
    upload = receive(paths, "sent.pdf")
    half = Incoming(paths, "half.pdf")
    assert scan([tmp_path]).files == [mine]
    assert scan([paths.uploads]).files == [upload.path], "unless it is named; and never what is still received"
    half.drop()


def test_doctor_tells_of_uploads_that_are_in_no_document(making: Making) -> None:
    paths = making.paths
    assert [check for check in check_index(paths) if check.name == "uploads"] == []
    failed, _ = receive(paths, "broken.pdf", b"%PDF broken"), receive(paths, "new.pdf", b"%PDF new")
    files.fail(failed, "damaged", "the PDF is damaged beyond repair")
    told = [check for check in check_index(paths) if check.name == "uploads"]
    assert [check.message for check in told] == [
        "1 uploaded files are in no document: broken.pdf: the PDF is damaged beyond repair",
        "1 uploaded files wait to be read",
    ]
    assert all(f"ctx ingest {paths.uploads}" in check.remedy for check in told)


def test_bookkeeping_of_an_upload_that_was_removed_meanwhile_harms_nothing(paths: IndexPaths) -> None:
    upload = receive(paths)
    files.remove(paths, upload.doc_id)
    files.fail(upload, "x", "y")
    files.settle(upload)
    assert list(paths.uploads.iterdir()) == []
