"""Restore over a good index: the old one whole or the new one whole, whenever it ends and however."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from backup_changing import Whole, bytes_of, make_whole, rewritten, sql, unit_rows
from index_making import Making

from research.encoders import SKETCH, first_stage, pack
from research.errors import IndexUnusableError
from research.records import pack_boxes
from research.store import generations
from research.store import publish as writer
from research.store.archive import backup
from research.store.catalog import Catalog
from research.store.doctor import repair
from research.store.paths import IndexPaths
from research.store.restoring import restore
from research.store.vectors import PageBlobs


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return make_whole(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def other(tmp_path: Path) -> Making:
    """Another good index, with a document of the backup's, one of its own, and collections."""
    made = Making(tmp_path / "other")
    made.add("orca.pdf", ["orca"])
    made.add("auk.pdf", ["auk", "gull"])
    made.embed()
    writer.publish(made.catalog)
    made.catalog.close()
    return made


OLD, NEW = ["auk.pdf", "orca.pdf"], ["orca.pdf", "walrus.pdf"]


def names(paths: IndexPaths) -> list[str]:
    with Catalog(paths) as catalog:
        return [document.filename for document in catalog.documents.all()]


def is_whole(paths: IndexPaths) -> bool:
    """Catalog, collections and images fit each other."""
    with Catalog(paths) as catalog:
        fits = not generations.state_of(catalog).behind and not catalog.pages.missing_images()
        return fits and writer.holds_everything(catalog)


def found(catalog: Catalog, word: str) -> list[int]:
    rows = catalog.execute(
        "SELECT page FROM page_words w JOIN pages p ON p.page_id = w.rowid WHERE page_words MATCH ?", (word,)
    )
    return [int(row[0]) for row in rows]


def test_what_cannot_be_checked_is_made_anew(whole: Whole, tmp_path: Path) -> None:
    """Full-text search, words of names and statistics of a backup are never used, whatever stands in them."""
    script = (
        "UPDATE page_words_data SET block = x'ffffffff'; UPDATE page_words_content SET c0 = 'forged';"
        " INSERT INTO name_words SELECT 'forged', doc_id FROM documents; ANALYZE pages;"
        " UPDATE sqlite_stat1 SET stat = 'forged'; UPDATE pages SET words = 4711"
    )
    paths = IndexPaths(tmp_path / "fresh")
    restore(paths, rewritten(whole, tmp_path, sql(script)))
    with Catalog(paths) as catalog:
        assert found(catalog, "seal") == [2]
        assert found(catalog, "forged") == []
        tables = {str(row[0]) for row in catalog.execute("SELECT name FROM sqlite_master")}
        assert not any(name.startswith("sqlite_stat") for name in tables)
        assert catalog.execute("SELECT MAX(words) FROM pages").fetchone()[0] == 1
    assert repair(paths) == []


@pytest.mark.slow
def test_other_pages_of_the_database_than_ours(whole: Whole, other: Making, tmp_path: Path) -> None:
    """A catalog in use cannot take pages of another size, so the restored one is made with its size."""
    file = rewritten(whole, tmp_path, sql("PRAGMA page_size = 1024; VACUUM"))
    restore(other.paths, file, force=True)
    assert names(other.paths) == NEW
    assert is_whole(other.paths)


def test_a_document_that_waits_to_be_read_again_may_be_torn(whole: Whole, tmp_path: Path) -> None:
    """As `ctx doctor --fix` leaves it: the next run reads it again, and a backup meanwhile is as good as the index."""
    torn = sql("UPDATE documents SET reader_version = 0; UPDATE pages SET markdown = x'00' WHERE page_id = 1")
    paths = IndexPaths(tmp_path / "fresh")
    restore(paths, rewritten(whole, tmp_path, torn))
    assert names(paths) == NEW
    bomb = zlib.compress(bytes(20 << 20))[:-4]
    change = sql("UPDATE documents SET reader_version = 0"), sql("UPDATE pages SET markdown = ?", bomb)
    with pytest.raises(IndexUnusableError, match="unpacks to more"):
        restore(paths, rewritten(whole, tmp_path, lambda parts: [one(parts) for one in change] and None), force=True)


def test_chunks_that_wait_for_vectors(whole: Whole, tmp_path: Path) -> None:
    waiting = sql("DELETE FROM vectors; INSERT INTO ledger SELECT doc_id, 'vectors' FROM documents")
    paths = IndexPaths(tmp_path / "fresh")
    assert restore(paths, rewritten(whole, tmp_path, waiting)).chunks == 3
    assert is_whole(paths)


@pytest.mark.slow
def test_pages_that_a_visual_model_saw(whole: Whole, tmp_path: Path) -> None:
    made = Making(tmp_path / "seen")
    made.add("seen.pdf", ["walrus", "seal"])
    made.embed()
    made.catalog.visual.set_encoder("colpali:hub/name@0123456789ab+int8", 16)
    rows = unit_rows(3, 16)
    boxes = pack_boxes([(0.0, 0.0, 0.5, 1.0)] * 3)
    first = first_stage(rows).astype("<f2").tobytes()
    made.catalog.visual.write([PageBlobs(1, first, boxes, pack(rows, bits=SKETCH), pack(rows))])
    made.catalog.visual.write([PageBlobs(2, b"", b"", b"", b"")])
    made.catalog.close()
    file = tmp_path / "seen.zip"
    backup(made.paths, file)
    done = restore(IndexPaths(tmp_path / "fresh"), file)
    assert done.visual_encoder == "colpali:hub/name@0123456789ab+int8"
    seen = Whole(made.paths, file, {})
    for column, blob, words in (
        ("boxes", boxes[:-8], "differ in number"),
        ("sketch", pack(rows[:2], bits=SKETCH), "differ in number"),
        ("sketch", pack(rows), "differ in number"),
        ("first", first[:-2], "30 bytes, not 32"),
        ("vectors", b"", "no head"),
    ):
        change = sql(f"UPDATE page_vectors SET {column} = ? WHERE page_id = 1", blob)
        with pytest.raises(IndexUnusableError, match=words):
            restore(IndexPaths(tmp_path / "fresh"), rewritten(seen, tmp_path, change), force=True)


# Where the restore is killed: a function of a module, before it runs.
_KILLED = """
import os, signal, sys
from importlib import import_module
from pathlib import Path
from research.store.paths import IndexPaths
from research.store.restoring import restore
module, name = sys.argv[3].rsplit(".", 1)
setattr(import_module(f"research.store.{module}"), name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
restore(IndexPaths(Path(sys.argv[1])), Path(sys.argv[2]), force=True)
"""


POINTS = {
    "restoring._copy": OLD,
    "restoring._extract_images": OLD,
    "restoring.publish_staged": OLD,
    "restoring._put_in_place": OLD,
    "restoring._adopt_images": OLD,
    "generations.adopt": OLD,
    "restoring._is_in_place": NEW,
    "restoring._replace_images": NEW,
    "files.sweep_images": NEW,
}


@pytest.mark.parametrize(
    ("point", "left"),
    [
        ("restoring._replace_catalog", OLD),
        *(pytest.param(point, left, marks=pytest.mark.slow) for point, left in POINTS.items()),
    ],
)
def test_killed_on_the_way(whole: Whole, other: Making, point: str, left: list[str]) -> None:
    arguments = [sys.executable, "-c", _KILLED, str(other.paths.root), str(whole.file), point]
    killed = subprocess.run(arguments, check=False, env={**os.environ})
    assert killed.returncode == -9
    assert names(other.paths) == left
    assert is_whole(other.paths)
    assert all(done.severity == "ok" for done in repair(other.paths))
    assert is_whole(other.paths)
    assert repair(other.paths) == []
    restore(other.paths, whole.file, force=True)
    assert names(other.paths) == NEW
    assert is_whole(other.paths)


def test_what_fails_late_leaves_the_old_index(whole: Whole, other: Making) -> None:
    """A file in the place of the collections: everything of the backup is sound, and it cannot be put in place."""
    shutil.rmtree(other.paths.chroma)
    other.paths.chroma.write_text("in the way")
    before = bytes_of(other.paths.root)
    with pytest.raises(IndexUnusableError, match="cannot restore into"):
        restore(other.paths, whole.file, force=True)
    assert bytes_of(other.paths.root) == before
    assert not other.paths.images.exists() or not any(other.paths.images.iterdir())


_SHORT_OF_SPACE = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
from cli.main import main
sys.argv = ["ctx", *sys.argv[2:]]
sys.exit(main())
"""


@pytest.mark.parametrize("most", [100_000, *(pytest.param(most, marks=pytest.mark.slow) for most in (10_000, 150_000))])
def test_a_disk_that_fills_up(whole: Whole, other: Making, most: int) -> None:
    """No file may grow beyond a size: the catalog or the collections cannot be written."""
    before = bytes_of(other.paths.root)
    arguments = ["restore", str(whole.file), "--force", "--index", str(other.paths.root)]
    ran = subprocess.run(
        [sys.executable, "-c", _SHORT_OF_SPACE, str(most), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ},
    )
    assert ran.returncode == 1, ran.stderr
    assert "space" in ran.stderr
    assert names(other.paths) == OLD
    assert is_whole(other.paths)
    assert {path: data for path, data in bytes_of(other.paths.root).items() if "chroma.sqlite3" not in path} == {
        path: data for path, data in before.items() if "chroma.sqlite3" not in path
    }


@pytest.mark.slow
def test_an_old_image_gives_way_to_the_backups(whole: Whole, tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path / "index")
    restore(paths, whole.file)
    [image] = paths.images.glob("*/*.jpg")
    sound = image.read_bytes()
    image.write_bytes(b"")
    restore(paths, whole.file, force=True)
    assert image.read_bytes() == sound
    assert repair(paths) == []
