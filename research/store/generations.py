"""The one way into a Chroma folder: its compiled core, called directly.

The public client takes a second to import and adds checks of what ctx knows already; only who asks for Chroma's own
collection objects gets it (research/store/client.py). The core is not a public interface: where it is of another make,
questions compare the vectors of the catalog, which takes less than the client's import.

Generations of the Chroma folder: finished copies that are read and never written again; and drafts, private copies
that a writer works on until one rename publishes them.

Chroma rewrites its neighbour files in place, so a killed writer or a second process leaves them torn. Here a
writer works on a private copy and publishes it by one rename; readers open only what was published. A
generation says up to which vector of the catalog it goes, so whatever came later can be searched beside it.

What was published is judged by our own manifest, never by what Chroma keeps inside its files: one of another make may
lay them out differently, and that is no damage.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sqlite3
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from research.lazy import switch_off
from research.store.ledger import STAGE_VECTORS
from research.store.paths import make_folder, make_tree_private, own_entries, read_file, refuse_link, remove_tree, sync
from research.store.reader import Reader
from research.store.vectors import OFF, REGIONS

if TYPE_CHECKING:
    from chromadb.api.client import Client


DATABASE = "chroma.sqlite3"
TENANT = "default_tenant"
TENANT_DATABASE = "default_database"

# Every record changes some forty pages of Chroma's database, and SQLite writes each of them down before, to undo the
# statement if it must. Small pages fit the 64 KiB that it keeps in memory for that; larger ones go through a file:
# 94 kB written for each record.
_PAGE_SIZE = 1024
# Inner product, not cosine: a page without text has a zero vector, which cosine cannot take.
_HNSW = {"space": "ip", "ef_search": 400, "ef_construction": 200}
_LEAST_SYNC = 2  # the least that Chroma takes for its sync_threshold
_CACHED_INDEXES = 4
_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

Metadata = dict[str, str | int | bool]


def open_client(path: Path) -> Client:
    """Chroma's public client on a folder: no telemetry, and no settings from a stray .env file."""
    switch_off()
    import chromadb
    from chromadb.config import Settings

    settings = Settings(_env_file=None, anonymized_telemetry=False)  # type: ignore[call-arg]
    # Declared as the interface, which lacks `close`; the object is the client.
    return cast("Client", chromadb.PersistentClient(str(path), settings=settings))


def make_database(path: Path) -> None:
    """Make the database of an empty folder, for Chroma to put its tables into."""
    with closing(sqlite3.connect(path / DATABASE)) as database:
        database.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        database.execute("VACUUM")


class Collections:
    """The collections of a folder. They close when nobody refers to them any more; `writable` makes Chroma's tables
    where they are missing."""

    def __init__(self, path: Path, *, writable: bool = False) -> None:
        import chromadb_rust_bindings as core

        config = core.SqliteDBConfig(
            hash_type=core.MigrationHash.MD5,
            migration_mode=core.MigrationMode.Apply if writable else core.MigrationMode.Validate,
            url=str(path / DATABASE),
        )
        self._core: Any = core.Bindings(
            allow_reset=False, sqlite_db_config=config, persist_path=str(path), hnsw_cache_size=_CACHED_INDEXES
        )
        self._ids: dict[str, str] = {}

    def nearest(self, collection: str, vector: Sequence[float], count: int) -> list[tuple[str, float]]:
        """The keys of the `count` records most similar to a vector, with their cosines, best first."""
        asked = (self._id(collection), None, [list(vector)], count, None, None, ["distances"])
        answer = self._core.query(*asked, TENANT, TENANT_DATABASE)
        # The collections measure 1 − inner product of unit vectors.
        return [(key, 1.0 - distance) for key, distance in zip(answer.ids[0], answer.distances[0], strict=True)]

    def keys(self, collection: str) -> set[str]:
        return set(self._get(collection, None, []).ids)

    def count(self, collection: str) -> int:
        return int(self._core.count(self._id(collection), TENANT, TENANT_DATABASE))

    def make(self, collection: str, sync: int) -> None:
        """Make a collection if it is not there, and let Chroma (1.5.9) write its neighbour files, the whole of them,
        whenever so many records are not yet in them. What is never written every process replays that opens them.
        Before any record is written, when Chroma has read its threshold."""
        hnsw = {"sync_threshold": max(_LEAST_SYNC, sync)}
        # As the client words it for a collection without an embedding function.
        made = json.dumps({"hnsw": _HNSW | hnsw, "spann": None, "embedding_function": {"type": "legacy"}})
        found = self._core.create_collection(collection, made, None, None, True, TENANT, TENANT_DATABASE)
        if found.configuration["hnsw"]["sync_threshold"] != hnsw["sync_threshold"]:
            _patiently(lambda: self._core.update_collection(str(found.id), None, None, json.dumps({"hnsw": hnsw})))

    def upsert(
        self, collection: str, keys: Sequence[str], vectors: Sequence[Any], metadatas: Sequence[Metadata]
    ) -> None:
        records = (list(keys), list(vectors), list(metadatas), None, None)
        self._core.upsert(self._id(collection), *records, TENANT, TENANT_DATABASE)

    def delete(self, collection: str, keys: Sequence[str]) -> None:
        self._core.delete(self._id(collection), list(keys), None, None, None, TENANT, TENANT_DATABASE)

    def rewrite_one(self, collection: str) -> None:
        """Upsert a record as it is: the second change that Chroma waits for before it writes one."""
        one = self._get(collection, 1, ["embeddings", "metadatas"])
        if one.ids:
            self.upsert(collection, one.ids, one.embeddings, one.metadatas)

    def _get(self, collection: str, limit: int | None, include: list[str]) -> Any:
        return self._core.get(self._id(collection), None, None, limit, 0, None, include, TENANT, TENANT_DATABASE)

    def _id(self, collection: str) -> str:
        if collection not in self._ids:
            self._ids[collection] = str(self._core.get_collection(collection, TENANT, TENANT_DATABASE).id)
        return self._ids[collection]


def _patiently(change: Callable[[], object], pauses: Sequence[float] = _PAUSES) -> None:
    """Chroma's own connections, which it closes in the background, now and then lock each other out."""
    try:
        change()
    except Exception as error:
        if not pauses or "database is locked" not in str(error):
            raise
        time.sleep(pauses[0])
        _patiently(change, pauses[1:])


TEXT = "text"
VISUAL = "visual"

MANIFEST = "generation.json"
# Chroma's own database changes when it is merely read, so no stamp can guard it: its first bytes and its size do.
_SQLITE = b"SQLite format 3\0"
_HNSW_HEADER = struct.Struct("<iQQQQ")  # header.bin begins: version 1, offset, capacity, records, bytes of a record
_FIRST_CAPACITY = 100  # is written whole; of a larger one only the records
_NAME = re.compile(r"gen-[0-9]{6,18}")
_MOST_MANIFEST = 1 << 24
_DRAFT = "draft"
# A publication copies the collections and writes their neighbour files anew: 3.5 kB for each record there is, not for
# each that is new. So it waits until the new are a share of all; meanwhile questions compare them, 3 µs each.
_CHEAP = 5_000  # records that are copied in less than a second
_SHARE = 0.05
_MOST_COMPARED = 5_000  # 15 ms of a question
_MOST_SECONDS = 24 * 3600.0
# These tell nothing about the files: the next look may find all well.
_TRANSIENT = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}

# The pages that should have a record: with `regions` those of documents whose chunks are all embedded, with a visual
# model those that it has seen.
FINISHED_PAGES = f"FROM pages WHERE doc_id NOT IN (SELECT doc_id FROM ledger WHERE stage = '{STAGE_VECTORS}')"
SEEN_PAGES = "FROM page_vectors JOIN pages USING (page_id) WHERE length(first) > 0"
# As two counts, each of which an index answers.
_FINISHED = (
    "(SELECT COUNT(*) FROM pages) - (SELECT COUNT(*) FROM pages WHERE doc_id IN"
    f" (SELECT doc_id FROM ledger WHERE stage = '{STAGE_VECTORS}'))"
)
_VECTORS = "SELECT (SELECT COUNT(*) FROM vectors), (SELECT COUNT(*) FROM vectors WHERE seq > ?)"
_COUNTS = {
    "": f"{_VECTORS}, 0, 0",
    FINISHED_PAGES: f"{_VECTORS}, {_FINISHED}, 0",
    SEEN_PAGES: f"{_VECTORS}, (SELECT COUNT(*) {SEEN_PAGES}), (SELECT COUNT(*) {SEEN_PAGES} AND seq > ?)",
}


@dataclass(frozen=True, slots=True)
class Generation:
    """A published copy of the collections."""

    path: Path
    number: int
    catalog_id: str
    through_seq: int  # the last vector of the catalog that is in it
    text_records: int
    visual_records: int
    visual_through_seq: int = 0  # the last of the visual encoder's pages that is in it
    revision: int = 0  # of the catalog's metadata, see `Writer.bump_revision`

    def records_in(self, collection: str) -> int:
        return self.text_records if collection == TEXT else self.visual_records

    def through(self, collection: str) -> int:
        """The last sequence number of the catalog's vectors of this kind that is in it."""
        return self.through_seq if collection == TEXT else self.visual_through_seq


@dataclass(frozen=True, slots=True)
class IndexState:
    """How the collections stand against the catalog."""

    generation: Generation | None
    missing: int  # vectors and finished pages of the catalog that are not in the collections
    surplus: int  # records of the collections that the catalog no longer has
    outdated: bool = False  # names or images changed since

    @property
    def behind(self) -> bool:
        return self.missing > 0 or self.surplus > 0 or self.outdated or self.generation is None

    @property
    def due(self) -> bool:
        """Whether so much changed that publishing it is worth copying the collections."""
        if self.generation is None or not self.behind:
            return self.behind
        records = self.generation.text_records + self.generation.visual_records
        return records <= _CHEAP or self.missing + self.surplus >= min(_SHARE * records, _MOST_COMPARED)

    @property
    def overdue(self) -> bool:
        """Whether anything waits for a day: whoever asks Chroma itself sees names and removals late."""
        if self.generation is None or not self.behind:
            return self.behind
        with suppress(OSError):
            return time.time() - (self.generation.path / MANIFEST).stat().st_mtime > _MOST_SECONDS
        return True


def state_of(reader: Reader) -> IndexState:
    return compare(reader, current(reader))


def compare(reader: Reader, generation: Generation | None) -> IndexState:
    """A generation beside the catalog, by one statement and without opening Chroma."""
    base = generation or Generation(Path(), 0, "", 0, 0, 0)
    sql = _COUNTS[visual_pages(reader)]
    values = (base.through_seq, base.visual_through_seq)[: sql.count("?")]
    total, missing, pages, unseen = (int(count) for count in reader.execute(sql, values).fetchone())
    return IndexState(
        generation,
        missing=missing + max(unseen, pages - base.visual_records),
        surplus=max(0, base.text_records - (total - missing)) + max(0, base.visual_records - pages),
        outdated=generation is not None and generation.revision != reader.chunks.revision(),
    )


def visual_pages(reader: Reader) -> str:
    """The FROM clause of the pages that should have a record; empty where the visual side is off."""
    encoder = reader.visual.encoder()
    if encoder.startswith(REGIONS):
        return FINISHED_PAGES
    return "" if encoder in {"", OFF} else SEEN_PAGES


def current(reader: Reader) -> Generation | None:
    """The newest usable generation, with nothing in it that came after this reader's moment."""
    return newest(reader.paths.chroma, reader.meta("catalog_id"), through=reader.chunks.last_sequence())


def newest(folder: Path, catalog_id: str, *, through: int | None = None) -> Generation | None:
    """The newest generation of this catalog whose files are as they were published; with `through` the newest that
    holds nothing written after this sequence number. `OSError` if it cannot be told now."""
    for number, path in reversed(numbered(folder)):
        generation = _read(path, number)
        if generation is None or generation.catalog_id != catalog_id:
            continue
        if through is None or generation.through_seq <= through:
            return generation
    return None


def adopt(folder: Path, generation: Generation) -> Generation:
    """Make a generation that was published elsewhere the newest here. Readers of another catalog pass it by."""
    make_folder(folder)
    number = max((n for n, _ in numbered(folder)), default=0) + 1
    target = folder / f"gen-{number:06d}"
    generation.path.rename(target)
    sync(folder)
    return replace(generation, path=target, number=number)


def drop_older(folder: Path, number: int) -> None:
    """Remove what came before a generation, except the last one, which readers may be opening now."""
    for older, path in numbered(folder):
        if older < number - 1:
            remove_tree(path)


def is_damaged(generation: Generation) -> bool:
    """Whether its files are surely not what was published, every byte compared. False if that cannot be told now, and
    for a generation that was removed because there are newer ones."""
    try:
        manifest = json.loads(read_file(generation.path / MANIFEST, _MOST_MANIFEST))
        changed = any(_crc_of(generation.path / entry["name"]) != entry["crc"] for entry in manifest["files"])
        return changed or short_file(generation.path) is not None or _is_torn(generation.path / DATABASE)
    except FileNotFoundError:
        return generation.path.is_dir()
    except OSError:
        return False
    except (ValueError, KeyError, TypeError):
        return True


def short_file(folder: Path) -> Path | None:
    """The first neighbour file shorter than its header says: hnswlib does not look whether the disk took its writes."""
    for path in folder.glob("*/header.bin"):
        header, links, end = path.read_bytes(), path.with_name("link_lists.bin").read_bytes(), 0
        if not struct.pack("<i", 1).startswith(header[:4]):  # of another make
            continue
        if len(header) < _HNSW_HEADER.size:
            return path
        _, _, capacity, records, size = _HNSW_HEADER.unpack_from(header)
        places = capacity if capacity == _FIRST_CAPACITY else records
        for _ in range(min(records, len(links) // 4 + 1)):  # each begins with its length
            end += 4 + int.from_bytes(links[end : end + 4], "little")
        for name, least in (("data_level0.bin", places * size), ("length.bin", places * 4), ("link_lists.bin", end)):
            if path.with_name(name).stat().st_size < least:
                return path.with_name(name)
    return None


def invalidate(generation: Generation) -> None:
    """Mark a damaged generation, so that nobody opens it again and the next publication builds anew."""
    with suppress(OSError):  # in a read-only folder it stays, and every reader goes without it
        (generation.path / MANIFEST).unlink()


def numbered(folder: Path) -> list[tuple[int, Path]]:
    found = [path for path in own_entries(folder, _NAME) if not path.is_symlink()]
    return sorted((int(path.name.removeprefix("gen-")), path) for path in found)


def _crc_of(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            value = zlib.crc32(part, value)
    return value


def _read(path: Path, number: int) -> Generation | None:
    try:
        manifest = json.loads(read_file(path / MANIFEST, _MOST_MANIFEST))
        generation = Generation(
            path,
            number,
            str(manifest["catalog_id"]),
            int(manifest["upto"]),
            int(manifest["text_records"]),
            int(manifest["visual_records"]),
            int(manifest.get("visual_upto", 0)),
            int(manifest.get("revision", 0)),
        )
        files = {str(entry["name"]): entry for entry in manifest["files"]}
        sound = (
            files.keys() <= set(_plain_files(path))
            and all(_is_unchanged(path / name, entry) for name, entry in files.items())
            and _has_database(path / DATABASE, int(manifest.get("database_size", 0)))
        )
    except OSError as error:
        if error.errno in _TRANSIENT:
            raise
        return None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return generation if sound else None


def _plain_files(folder: Path, below: str = "") -> Iterator[str]:
    """The names of the files in a generation. `OSError` for anything but files and folders: we write no links, and
    Chroma would write through one."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _plain_files(Path(entry), f"{below}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                yield below + entry.name
            else:
                raise OSError(f"{entry.name} is no file")


def _is_unchanged(path: Path, entry: dict[str, int]) -> bool:
    """A torn neighbour file can crash the process that opens it, so files are checked before, not after."""
    found = path.stat()
    touched = found.st_mtime_ns != entry["mtime_ns"]
    return found.st_size == entry["size"] and not (touched and _crc_of(path) != entry["crc"])


def _has_database(path: Path, size: int) -> bool:
    """Whether Chroma's database is one and not shorter than it was: SQLite never gives back what it has taken."""
    return path.stat().st_size >= size and read_file(path, len(_SQLITE)) == _SQLITE


def _is_torn(database: Path) -> bool:
    try:
        with closing(sqlite3.connect(f"file:{quote(os.fsencode(database))}?mode=ro", uri=True)) as opened:
            return bool(opened.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok")
    except sqlite3.OperationalError:  # it cannot be looked at: locked, no descriptors, no memory
        return False
    except sqlite3.DatabaseError:
        return True


def start_draft(folder: Path, base: Generation | None) -> Path:
    """An empty private folder, or a copy of `base`, to write into."""
    draft = folder / _DRAFT
    make_folder(folder)
    drop_draft(folder)
    refuse_link(draft)
    if base is None:
        draft.mkdir(mode=0o700)
        make_database(draft)
    else:
        shutil.copytree(base.path, draft)
        (draft / MANIFEST).unlink(missing_ok=True)  # a reader may have invalidated it meanwhile
    return draft


def publish_draft(folder: Path, draft: Path, contents: Generation) -> Generation:
    """Make the draft the newest generation, with these `contents`; path and number are given here. Older ones go,
    except the one readers may be opening now."""
    files = sorted(name for name in _plain_files(draft) if not name.startswith(DATABASE))
    for path in draft.rglob("*"):
        sync(path)
    if short := short_file(draft):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(short))
    manifest = {
        "catalog_id": contents.catalog_id,
        "upto": contents.through_seq,
        "text_records": contents.text_records,
        "visual_records": contents.visual_records,
        "visual_upto": contents.visual_through_seq,
        "revision": contents.revision,
        "database_size": (draft / DATABASE).stat().st_size,
        "files": [_stamp(draft / name, name) for name in files],
    }
    (draft / MANIFEST).write_text(json.dumps(manifest, indent=1))
    make_tree_private(draft)  # Chroma makes its files as it pleases
    sync(draft / MANIFEST)
    published = adopt(folder, replace(contents, path=draft))
    drop_older(folder, published.number)
    return published


def has_draft(folder: Path) -> bool:
    return (folder / _DRAFT).exists()


def drop_draft(folder: Path) -> None:
    """Remove what a stopped writer left. Only for the holder of the write lock."""
    if not folder.is_symlink():
        remove_tree(folder / _DRAFT)


def _stamp(path: Path, name: str) -> dict[str, str | int]:
    stat = path.stat()
    return {"name": name, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "crc": _crc_of(path)}
