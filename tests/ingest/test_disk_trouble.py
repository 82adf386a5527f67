"""A full disk, a folder that may not be written or is gone, files that change: a clear word, and nothing lost."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pymupdf
import pytest

from ingest.report import FileOutcome, Observer, Stage
from ingest.run import ingest
from research.errors import IndexUnusableError
from research.settings import Settings
from research.store import Catalog, IndexPaths, generations
from tests.conftest import MakePdf
from tests.soak.contents import assert_whole
from tests.soak.corpus import make_corpus


def run_limited(docs: Path, root: Path, most_bytes: int) -> subprocess.CompletedProcess[str]:
    """`ctx ingest` where no file may grow beyond a size, which ends like a full disk."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    return subprocess.run(
        [sys.executable, "-m", "cli.main", "ingest", str(docs), "--index", str(root)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )


@pytest.mark.slow
def test_a_disk_that_takes_no_more(tmp_path: Path) -> None:
    docs, root = make_corpus(tmp_path / "docs", 20), tmp_path / "index"
    full = run_limited(docs, root, 150_000)
    assert full.returncode == 1, full.stderr
    assert "the catalog in" in full.stderr
    assert "Traceback" not in full.stderr
    assert "hint: " in full.stderr
    assert "space" in full.stderr
    kept = assert_whole(root)
    summary = ingest(IndexPaths(root), [docs], settings=Settings(), observer=Observer())
    assert summary.count("unchanged") == kept
    assert summary.count("added") == 20 - kept
    with Catalog(IndexPaths(root)) as catalog:
        assert not generations.state_of(catalog).behind


@pytest.mark.slow
@pytest.mark.parametrize("most_bytes", [60_000, 140_000])
def test_collections_that_find_no_space_are_built_later(make_pdf: MakePdf, tmp_path: Path, most_bytes: int) -> None:
    """Little for Chroma's database, which says so, or for hnswlib's files, which nobody but ctx looks at."""
    docs, paths = tmp_path / "docs", IndexPaths(tmp_path / "index")
    make_pdf("a.pdf", ["The walrus has tusks."], docs)
    ingest(paths, [docs], settings=Settings(images=False), observer=Observer())
    shutil.rmtree(paths.chroma)
    full = run_limited(docs, paths.root, most_bytes)
    assert full.returncode == 1, full.stderr
    assert "ctx: error: the collections cannot be" in full.stderr
    assert "hint: " in full.stderr
    assert not list(paths.chroma.iterdir()), "what was half written does not fill the disk"
    ingest(paths, [docs], settings=Settings(images=False), observer=Observer())
    with Catalog(paths) as catalog:
        assert not generations.state_of(catalog).behind


@pytest.mark.slow
def test_images_that_find_no_space_are_drawn_later(tmp_path: Path) -> None:
    """A page of noise, whose image is larger than what fits: the failure is the disk's, and the ledger keeps it."""
    path, paths = tmp_path / "noise.pdf", IndexPaths(tmp_path / "index")
    with pymupdf.open() as document:
        page = document.new_page()
        noise = pymupdf.Pixmap(pymupdf.csRGB, 600, 600, os.urandom(3 * 600 * 600), 0)
        page.insert_image(page.rect, pixmap=noise, keep_proportion=False)
        page.insert_text((72, 72), "The walrus has tusks and whiskers.")
        document.save(path)
    with Catalog(paths, writable=True):
        pass  # to make all its tables takes more room than a page
    full = run_limited(path, paths.root, 700_000)
    assert full.returncode == 1, full.stderr
    assert "the index cannot be written: File too large" in full.stderr
    summary = ingest(paths, [path], settings=Settings(ocr="off"), observer=Observer())
    assert summary.count("unchanged") == 1
    with Catalog(paths) as catalog:
        assert catalog.execute("SELECT COUNT(*) FROM pages WHERE image").fetchone()[0] == 1


@pytest.mark.parametrize("point", [pytest.param("finished", marks=pytest.mark.slow), "reading"])
def test_an_index_folder_that_is_removed_meanwhile(tmp_path: Path, point: str) -> None:
    docs, paths = make_corpus(tmp_path / "docs", 12), IndexPaths(tmp_path / "index")

    class Remove(Observer):
        def on_page(self, path: str, page: int, pages: int) -> None:
            if point == "reading":
                shutil.rmtree(paths.root, ignore_errors=True)

        def on_file(self, outcome: FileOutcome) -> None:
            if point == "finished":
                shutil.rmtree(paths.root, ignore_errors=True)

    with pytest.raises(IndexUnusableError, match=r"was removed") as caught:
        ingest(paths, [docs], settings=Settings(), observer=Remove())
    assert "again" in caught.value.hint


@pytest.mark.slow
def test_a_file_that_vanishes_before_its_ocr_keeps_its_place(tmp_path: Path, blind_tesseract: None) -> None:
    docs, paths = make_corpus(tmp_path / "docs", 2, scans=2), IndexPaths(tmp_path / "index")
    first, second = sorted(docs.rglob("*.pdf"))
    kept = first.read_bytes()

    class Change(Observer):
        def on_progress(self, stage: Stage, done: int, total: int) -> None:
            if stage == "ocr" and done == 0:
                first.unlink()
                second.write_bytes(kept)

    settings = Settings(ocr="auto", ocr_engine="tesseract", images=False)
    summary = ingest(paths, [docs], settings=settings, observer=Change())
    assert (summary.ocr_pages, summary.ocr_failures) == (0, [])
    with Catalog(paths) as catalog:
        assert catalog.ledger.count_for_ocr() == 2, "the next run reads them, if the files are there again"


# Everything is loaded while that is still allowed; then the process becomes one that may only read the index.
_READ_ONLY = """
import os, sys
import cli.app, cli.ingest, cli.progress, filelock, ingest.run, research.encoders.minilm
from cli.main import main
import platformdirs.unix
os.chdir("/")
if os.geteuid() == 0:
    os.setuid(65534)  # permissions mean nothing to root
sys.exit(main(sys.argv[1:]))
"""


def test_an_index_that_may_not_be_written(make_pdf: MakePdf) -> None:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    docs, root = folder / "docs", folder / "index"
    make_pdf("a.pdf", ["The walrus has tusks."], docs)
    IndexPaths(root).create()
    root.chmod(0o555)
    ran = subprocess.run(
        [sys.executable, "-c", _READ_ONLY, "ingest", str(docs), "--index", str(root)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(folder)},
    )
    root.chmod(0o755)
    shutil.rmtree(folder)
    assert ran.returncode == 1, ran.stderr
    assert "the index folder" in ran.stderr
    assert "Permission denied" in ran.stderr
    assert "hint: make the folder writable" in ran.stderr
