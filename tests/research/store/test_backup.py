"""One file out of a live index and back: whole or not at all, and nothing foreign gets in."""

from __future__ import annotations

import os
import sqlite3
import stat
import zipfile
from collections.abc import Callable
from contextlib import closing
from copy import copy
from pathlib import Path

import pytest
from index_making import JPEG, WEBP, Making

from research.errors import BusyError, CtxError, IndexUnusableError, NothingFoundError, UsageError
from research.store import generations
from research.store.archive import CATALOG, MANIFEST, backup
from research.store.catalog import Catalog
from research.store.doctor import repair
from research.store.ledger import STAGE_IMAGES
from research.store.nearest import ChromaClient
from research.store.paths import IndexPaths, image_name, thumbnail_name, write_lock
from research.store.restoring import restore


@pytest.fixture
def filled(making: Making) -> Making:
    """Two documents with vectors, and an image for the first page of the first."""
    info = making.add("walrus.pdf", ["walrus", "seal"])
    making.add("orca.pdf", ["orca"])
    making.embed()
    folder = making.paths.image_folder(info.doc_id)
    folder.mkdir(parents=True)
    (folder / image_name(1)).write_bytes(JPEG)
    (folder / thumbnail_name(1)).write_bytes(WEBP)
    making.catalog.documents.mark_drawn(info.doc_id, [1], published=0)
    return making


@pytest.fixture
def file(filled: Making, tmp_path: Path) -> Path:
    backup(filled.paths, tmp_path / "backup.zip")
    return tmp_path / "backup.zip"


def names(root: Path) -> list[str]:
    with Catalog(IndexPaths(root)) as catalog:
        return [document.filename for document in catalog.documents.all()]


def test_there_and_back(filled: Making, tmp_path: Path) -> None:
    target = tmp_path / "backup.zip"
    written = backup(filled.paths, target)
    assert (written.documents, written.pages, written.images) == (2, 3, 2)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".ctx")] == []

    paths = IndexPaths(tmp_path / "other" / "index")
    restored = restore(paths, target)
    assert (restored.documents, restored.pages, restored.chunks, restored.images) == (2, 3, 3, 2)
    assert stat.S_IMODE(paths.root.stat().st_mode) == 0o700
    assert not paths.restoring.exists()
    with ChromaClient(paths.root) as client:
        assert not generations.state_of(client.catalog).behind
        assert client.catalog.meta("catalog_id") != filled.catalog.meta("catalog_id")
        found = client.visual_collection.get(include=["metadatas"])["metadatas"] or []
        [shown] = {str(entry["image_path"]) for entry in found if entry["image_path"]}
        assert Path(shown).is_relative_to(paths.root)
        assert Path(shown).read_bytes() == JPEG
        rows = [
            [tuple(row) for row in catalog.execute("SELECT chunk_id, vector FROM vectors ORDER BY 1")]
            for catalog in (filled.catalog, client.catalog)
        ]
        assert rows[0] == rows[1]


def test_a_backup_is_taken_while_another_writes(filled: Making, tmp_path: Path) -> None:
    with write_lock(filled.paths), filled.catalog.transaction() as connection:
        connection.execute("DELETE FROM documents WHERE filename = 'orca.pdf'")
        assert backup(filled.paths, tmp_path / "b.zip").documents == 2, "what is not committed is not there"


def test_images_that_are_left_out_or_gone_are_due_again(filled: Making, tmp_path: Path) -> None:
    assert backup(filled.paths, tmp_path / "without.zip", images=False).images == 0
    [folder] = filled.paths.images.iterdir()
    (folder / thumbnail_name(1)).unlink()
    assert backup(filled.paths, tmp_path / "gone.zip").images == 0
    for name in ("without.zip", "gone.zip"):
        with zipfile.ZipFile(tmp_path / name) as opened:
            assert set(opened.namelist()) == {CATALOG, MANIFEST}
            opened.extract(CATALOG, tmp_path / "out")
        with closing(sqlite3.connect(tmp_path / "out" / CATALOG)) as snapshot:
            assert snapshot.execute("SELECT COUNT(*) FROM ledger WHERE stage = ?", (STAGE_IMAGES,)).fetchone()[0] == 1
            assert snapshot.execute("SELECT COUNT(*) FROM pages WHERE image").fetchone()[0] == 0
    assert filled.catalog.ledger.unfinished() == {}, "the live index is as it was"


def test_nothing_is_overwritten_unasked(filled: Making, file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists already"):
        backup(filled.paths, file)
    assert backup(filled.paths, file, force=True).documents == 2
    with pytest.raises(UsageError, match="is a folder"):
        backup(filled.paths, tmp_path)
    with pytest.raises(UsageError, match="inside the index"):
        backup(filled.paths, filled.paths.root / "b.zip")
    with pytest.raises(NothingFoundError):
        backup(IndexPaths(tmp_path / "none"), tmp_path / "b.zip")
    with pytest.raises(CtxError, match="cannot write"):
        backup(filled.paths, tmp_path / "no" / "folder" / "b.zip")


def test_a_filled_index_is_replaced_only_by_force(filled: Making, file: Path) -> None:
    filled.add("new.pdf", ["auk"])
    before = names(filled.paths.root)
    with pytest.raises(UsageError, match="holds 3 documents"):
        restore(filled.paths, file)
    with write_lock(filled.paths), pytest.raises(BusyError):
        restore(filled.paths, file, force=True)
    assert names(filled.paths.root) == before
    with Catalog(filled.paths) as reader:  # one that is in the middle of something sees the old index to its end
        reader.execute("BEGIN")
        assert len(reader.documents.all()) == 3
        assert restore(filled.paths, file, force=True).documents == 2
        assert len(reader.documents.all()) == 3
    assert names(filled.paths.root) == ["orca.pdf", "walrus.pdf"]


@pytest.mark.slow
def test_a_damaged_index_is_replaced_and_kept_aside(filled: Making, file: Path) -> None:
    filled.catalog.close()
    filled.paths.catalog.write_bytes(b"no database at all" * 500)
    with pytest.raises(UsageError, match="damaged index"):
        restore(filled.paths, file)
    restored = restore(filled.paths, file, force=True)
    assert Path(restored.kept_aside).read_bytes().startswith(b"no database")
    assert names(filled.paths.root) == ["orca.pdf", "walrus.pdf"]


def test_a_folder_of_something_else_is_left_alone(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "photos"
    other.mkdir()
    (other / "holiday.jpg").touch()
    with pytest.raises(UsageError, match="is no index"):
        restore(IndexPaths(other), file)
    assert (other / "holiday.jpg").exists()


def _with(extra: Callable[[zipfile.ZipFile], None]) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        with zipfile.ZipFile(file, "a") as opened:
            extra(opened)

    return change


def _link(opened: zipfile.ZipFile) -> None:
    entry = zipfile.ZipInfo("images/abc/00001.jpg")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    opened.writestr(entry, "/etc/passwd")


def _many_times(opened: zipfile.ZipFile) -> None:
    """One piece of data under many names, which together are larger than the archive."""
    opened.writestr("images/abc/00001.jpg", b"0" * 1_000_000)
    for number in range(2, 50):
        entry = copy(opened.getinfo("images/abc/00001.jpg"))
        entry.filename = f"images/abc/{number:05d}.jpg"
        opened.filelist.append(entry)


def _cut(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)


def _flip(file: Path) -> None:
    """A byte in the middle of the catalog changes."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_with(lambda z: z.writestr("../evil.txt", "x")), "not ctx's"),
        (_with(lambda z: z.writestr("/etc/evil", "x")), "not ctx's"),
        (_with(lambda z: z.writestr("images/../../evil.jpg", "x")), "not ctx's"),
        (_with(lambda z: z.writestr("images/../../00001.jpg", "x")), "not ctx's"),
        (_with(lambda z: z.writestr("images/abc/", "")), "not ctx's"),
        (_with(_link), "no file"),
        (_with(lambda z: z.writestr("images/abc/00001.jpg", b"0" * 10_000_000, zipfile.ZIP_DEFLATED)), "packed"),
        (_with(_many_times), "larger than it is"),
        (_cut, "not a whole one"),
        (_flip, "damaged"),
        (lambda file: file.write_bytes(b"no zip"), "no backup"),
        (lambda file: file.unlink(), "there is no file"),
    ],
)
def test_what_is_no_sound_backup_changes_nothing(
    filled: Making, file: Path, tmp_path: Path, damage: Callable[[Path], None], words: str
) -> None:
    damage(file)
    fresh = IndexPaths(tmp_path / "fresh")
    with pytest.raises(IndexUnusableError, match=words):
        restore(fresh, file)
    assert not fresh.root.exists()
    with pytest.raises(IndexUnusableError, match=words):
        restore(filled.paths, file, force=True)
    assert names(filled.paths.root) == ["orca.pdf", "walrus.pdf"]
    assert not filled.paths.restoring.exists()
    assert not (tmp_path / "evil.txt").exists()


def _link_file(image: Path, secret: Path) -> None:
    image.unlink()
    image.symlink_to(secret)


def _link_folder(image: Path, secret: Path) -> None:
    image.parent.rename(secret.parent / "moved")
    image.parent.symlink_to(secret.parent / "moved")


def _pipe(image: Path, _: Path) -> None:
    image.unlink()
    os.mkfifo(image)


PLANTS = (_link_folder, _pipe, lambda image, _: image.write_bytes(b""))


@pytest.mark.parametrize("plant", [_link_file, *(pytest.param(plant, marks=pytest.mark.slow) for plant in PLANTS)])
def test_no_link_leads_into_a_backup(filled: Making, tmp_path: Path, plant: Callable[[Path, Path], None]) -> None:
    """Nor does anything else that is no image; its page is drawn again after a restore."""
    secret = tmp_path / "secret.jpg"
    secret.write_bytes(JPEG + b"secret")
    [image] = filled.paths.images.glob("*/*.jpg")
    plant(image, secret)
    assert backup(filled.paths, tmp_path / "b.zip").images == 0
    assert b"secret" not in (tmp_path / "b.zip").read_bytes()
    assert restore(IndexPaths(tmp_path / "fresh"), tmp_path / "b.zip").images == 0


@pytest.mark.slow
def test_what_could_not_be_restored_is_not_backed_up(filled: Making, tmp_path: Path) -> None:
    """Told while the index is there to be mended, not when the backup is needed."""
    nan = b"\xff\x7f" * 8
    filled.catalog.execute("UPDATE vectors SET vector = ? WHERE seq = (SELECT MIN(seq) FROM vectors)", (nan,))
    with pytest.raises(IndexUnusableError, match="not of unit length") as caught:
        backup(filled.paths, tmp_path / "b.zip")
    assert "ctx doctor --fix" in caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    filled.catalog.close()
    assert {done.name for done in repair(filled.paths) if done.severity == "ok"} >= {"vectors", "ledger"}
    assert backup(filled.paths, tmp_path / "b.zip").documents == 2
