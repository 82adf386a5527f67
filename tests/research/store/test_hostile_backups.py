"""Backups as somebody else would prepare them: each refused for its own reason, before anything is changed.

Every case changes one thing in a real backup. `test_backup.py` has the damage that needs no knowledge of the catalog.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from backup_changing import Change, Parts, Whole, bytes_of, make_whole, rewritten, sql, unchecked, unit_rows
from index_making import DIM, JPEG, WEBP

from research.encoders import pack
from research.errors import IndexUnusableError, NewerIndexError, OlderIndexError
from research.store.catalog import SCHEMA_VERSION
from research.store.paths import IndexPaths
from research.store.restoring import restore


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return make_whole(tmp_path_factory.mktemp("whole"))


def _new_id(doc_id: str) -> Change:
    """One document under another id, in every table and in its images."""

    def change(parts: Parts) -> None:
        with unchecked(parts.catalog) as connection:
            old = connection.execute("SELECT doc_id FROM documents WHERE filename = 'orca.pdf'").fetchone()[0]
            for table in ("documents", "files", "pages", "ledger", "name_words"):
                connection.execute(f"UPDATE {table} SET doc_id = ? WHERE doc_id = ?", (doc_id, old))

    return change


def _blob(table: str, column: str, data: bytes) -> Change:
    return sql(f"UPDATE {table} SET {column} = ? WHERE rowid = (SELECT MIN(rowid) FROM {table})", data)


def _bomb(table: str, column: str, size: int) -> Change:
    """Packed when it is needed: every process of the tests imports this file."""

    def change(parts: Parts) -> None:
        _blob(table, column, zlib.compress(bytes(size)))(parts)

    return change


def _value(table: str, column: str, value: object) -> Change:
    return sql(f"UPDATE {table} SET {column} = ? WHERE rowid = (SELECT MIN(rowid) FROM {table})", value)


def _former(value: object) -> Change:
    return sql("INSERT INTO former_ids SELECT ?, doc_id FROM documents LIMIT 1", value)


def _tag(value: str) -> Change:
    return sql("INSERT INTO tags SELECT doc_id, ? FROM documents LIMIT 1", value)


def _meta(key: str, value: str) -> Change:
    return sql("INSERT OR REPLACE INTO meta VALUES (?, ?)", key, value)


def _half(*values: float) -> bytes:
    return np.array([*values, *[0.0] * (DIM - len(values))], dtype="<f2").tobytes()


def _scales(blob: bytes) -> bytes:
    return blob[:8] + struct.pack("<f", float("nan")) + blob[12:]


def _bombs(parts: Parts) -> None:
    """Each text is as large as one may be, and all together are more than any catalog of this size holds."""
    bomb = zlib.compress(bytes(4 << 20))
    with closing(sqlite3.connect(parts.catalog, isolation_level=None)) as connection:
        connection.executemany(
            "INSERT INTO chunks (page_id, ordinal, text, context, tokens, box) VALUES (1, ?, ?, '', 1, '[0, 0, 1, 1]')",
            [(ordinal, bomb) for ordinal in range(1, 101)],
        )


CATALOGS: dict[str, tuple[Change, str]] = {
    "id-a-path": (_new_id("../../victim"), "documents: CHECK constraint failed: doc_id"),
    "id-capitals": (_new_id("ABCDEF0123456789"), "failed: doc_id"),
    "id-not-its-hash": (_new_id("0123456789abcdef"), "failed: doc_id = substr"),
    "id-null": (
        sql(
            "INSERT INTO documents SELECT NULL, substr(sha256, 2) || 'a', filename, extension, title, num_pages,"
            " timestamp, source_path, size_bytes, reader_version, warnings, file_id || '-2' FROM documents LIMIT 1"
        ),
        "NOT NULL constraint failed: documents.doc_id",
    ),
    "file-id-a-path": (_value("documents", "file_id", "file-../../victim"), "failed: file_id"),
    "file-id-bare": (_value("documents", "file_id", "0123456789abcdef"), "failed: file_id"),
    "file-id-empty": (_value("documents", "file_id", ""), "failed: file_id"),
    "former-id-a-path": (_former("../../victim"), "failed: former_id"),
    "former-id-a-number": (_former(7), "failed: former_id"),
    "former-id-of-nothing": (
        sql("INSERT INTO former_ids VALUES ('0123456789abcdef', '0123456789abcdef')"),
        "FOREIGN KEY constraint failed",
    ),
    "tag-two-lines": (_tag("a\nb"), "tags.tag"),
    "tag-escape": (_tag("\x1b[31m"), "tags.tag"),
    "tag-endless": (_tag("x" * 101), "tags: CHECK"),
    "hash-short": (_value("documents", "sha256", "ab"), "documents: CHECK"),
    "page-a-text": (_value("pages", "page", "7x"), "cannot store TEXT value in INTEGER column pages.page"),
    "page-a-blob": (_value("pages", "page", b"1"), "cannot store BLOB value in INTEGER column pages.page"),
    "page-zero": (_value("pages", "page", 0), "pages: CHECK constraint failed: page BETWEEN"),
    "page-below": (_value("pages", "page", -1), "pages: CHECK constraint failed: page BETWEEN"),
    "page-a-fraction": (_value("pages", "page", 1.5), "cannot store REAL value in INTEGER column pages.page"),
    "page-beyond": (_value("pages", "page", 9), "are not those from 1 to 2"),
    "page-lacking": (sql("PRAGMA foreign_keys = ON; DELETE FROM pages WHERE page = 2"), "are not those from 1 to 2"),
    "num-pages-more": (_value("documents", "num_pages", 99), "are not those from 1 to 99"),
    "num-pages-text": (_value("documents", "num_pages", "many"), "INTEGER column documents.num_pages"),
    "num-pages-none": (_value("documents", "num_pages", 0), "failed: num_pages"),
    "num-pages-huge": (_value("documents", "num_pages", 2**62), "failed: num_pages"),
    "name-a-path": (_value("documents", "filename", "../a.pdf"), "failed: filename"),
    "name-empty": (_value("documents", "filename", ""), "failed: filename"),
    "name-nul": (_value("documents", "filename", "a\0b.pdf"), "documents.filename"),
    "name-a-blob": (_value("documents", "filename", b"a.pdf"), "documents.filename"),
    "ending-a-path": (_value("documents", "extension", "a/b"), "failed: extension"),
    "title-endless": (_value("documents", "title", "a" * 100_000), "documents.title"),
    "title-not-text": (sql("UPDATE documents SET title = CAST(x'ff' AS TEXT)"), "damaged"),
    "time-none": (_value("documents", "timestamp", "yesterday"), "documents.timestamp"),
    "source-relative": (_value("documents", "source_path", "a.pdf"), "documents.source_path"),
    "size-below": (_value("documents", "size_bytes", -5), "failed: size_bytes"),
    "version-text": (_value("documents", "reader_version", "new"), "documents.reader_version"),
    "warnings-an-object": (_value("documents", "warnings", "{}"), "failed: warnings"),
    "warnings-numbers": (_value("documents", "warnings", "[1]"), "documents.warnings"),
    "warnings-deep": (_value("documents", "warnings", "[" * 60_000), "documents.warnings"),
    "path-nul": (_value("files", "path", "/a\0b"), "files.path"),
    "path-relative": (_value("files", "path", "a"), "files.path"),
    "mtime-text": (_value("files", "mtime_ns", "now"), "files.mtime_ns"),
    "label-a-blob": (_value("pages", "label", b"iv"), "pages.label"),
    "image-two": (_value("pages", "image", 2), "failed: image IN"),
    "ocr-text": (_value("pages", "needs_ocr", "yes"), "pages.needs_ocr"),
    "tables-below": (_value("pages", "num_tables", -1), "failed: num_tables"),
    "markdown-text": (_value("pages", "markdown", "walrus"), "pages holds"),
    "markdown-torn": (_blob("pages", "markdown", zlib.compress(b"walrus")[:-3]), "a text is damaged"),
    "markdown-not-utf8": (_blob("pages", "markdown", zlib.compress(b"\xff\xfe")), "a text is damaged"),
    "markdown-more": (_blob("pages", "markdown", zlib.compress(b"walrus") + b"x"), "a text is damaged"),
    "markdown-bomb": (_bomb("pages", "markdown", 20 << 20), "unpacks to more than any page"),
    "row-huge": (sql("UPDATE pages SET markdown = zeroblob(70 << 20) WHERE page_id = 1"), "too big"),
    "chunk-bomb": (_bomb("chunks", "text", 5 << 20), "unpacks to more than any page"),
    "chunk-bombs": (_bombs, "unpacks to more than any page"),
    "ordinal-below": (_value("chunks", "ordinal", -1), "failed: ordinal"),
    "tokens-huge": (_value("chunks", "tokens", 2**62), "failed: tokens"),
    "context-a-blob": (_value("chunks", "context", b""), "chunks.context"),
    "box-nan": (_value("chunks", "box", "[NaN, 0, 1, 1]"), "chunks.box"),
    "box-infinite": (_value("chunks", "box", "[0, 0, 1, 1e999]"), "chunks.box"),
    "box-huge": (_value("chunks", "box", f"[0, 0, 1, {'9' * 400}]"), "chunks.box"),
    "box-of-three": (_value("chunks", "box", "[0, 0, 1]"), "chunks.box"),
    "box-elsewhere": (_value("chunks", "box", "[0, 0, 1, 50]"), "chunks.box"),
    "regions-short": (_value("chunks", "regions", "[[0, 0, 0, 1]]"), "chunks.regions"),
    "regions-below": (_value("chunks", "regions", "[[-1, 0, 0, 1, 1]]"), "chunks.regions"),
    "regions-text": (_value("chunks", "regions", '[["0", 0, 0, 1, 1]]'), "chunks.regions"),
    "vector-nan": (_blob("vectors", "vector", _half(float("nan"))), "not of unit length"),
    "vector-infinite": (_blob("vectors", "vector", _half(float("inf"))), "not of unit length"),
    "vector-long": (_blob("vectors", "vector", _half(3.0)), "not of unit length"),
    "vector-short": (_blob("vectors", "vector", _half(1.0)[:-2]), "a vector has 14 bytes, not 16"),
    "vector-text": (_value("vectors", "vector", "a" * 16), "vectors holds"),
    "dim-other": (_meta("text_dim", "9"), "a vector has 16 bytes, not 18"),
    "dim-none": (_meta("text_dim", "0"), "text_dim"),
    "dim-a-word": (_meta("text_dim", "x"), "text_dim"),
    "dim-huge": (_meta("visual_dim", "9999"), "visual_dim"),
    "dim-lacking": (sql("DELETE FROM meta WHERE key = 'text_dim'"), "a vector has 16 bytes, not 0"),
    "encoder-two-lines": (_meta("text_encoder", "a\nb"), r"text_encoder is 'a\\nb'"),
    "encoder-escape": (_meta("text_encoder", "a\x1b[2Jb"), "text_encoder"),
    "encoder-turned": (_meta("text_encoder", "a\u202eb"), "text_encoder"),
    "encoder-empty": (_meta("text_encoder", ""), "text_encoder"),
    "encoder-endless": (_meta("text_encoder", "a" * 5000), "text_encoder"),
    "visual-unknown": (_meta("visual_encoder", "evil:thing"), "visual_encoder"),
    "meta-unknown": (_meta("hook", "rm -rf"), "'hook' is not a setting of ctx"),
    "meta-identity": (_meta("catalog_id", "../x"), "catalog_id"),
    "meta-revision": (_meta("revision", "-1"), "revision"),
    "stage-unknown": (sql("INSERT INTO ledger SELECT doc_id, 'later' FROM documents LIMIT 1"), "ledger: CHECK"),
    "lines-an-object": (_blob("page_lines", "lines", zlib.compress(b"{}")), "no list of lines"),
    "lines-deep": (_blob("page_lines", "lines", zlib.compress(b"[" * 60_000)), "no list of lines"),
    "lines-lacking": (_blob("page_lines", "lines", zlib.compress(b"[]")), "other vectors than lines"),
    "patches-cut": (_blob("page_vectors", "vectors", pack(unit_rows(2))[:-1]), "page_vectors: a page's vectors"),
    "patches-empty-head": (_blob("page_vectors", "vectors", b"\x10"), "no head"),
    "patches-other-dim": (_blob("page_vectors", "vectors", pack(unit_rows(2, 16))), "have 16 dimensions, not 8"),
    "patches-nan": (_blob("page_vectors", "vectors", _scales(pack(unit_rows(2)))), "scales that are none"),
    "patches-of-a-model": (_blob("page_vectors", "first", _half(1.0)), "other vectors than lines"),
    "table-one-more": (sql("CREATE TABLE more (x)"), "not one of ctx"),
    "table-one-less": (sql("DROP TABLE chunks"), "not one of ctx"),
    "view": (sql("CREATE VIEW v AS SELECT 1"), "not one of ctx"),
    "trigger": (sql("CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM documents; END"), "not one of ctx"),
    "orphans": (sql("DELETE FROM documents"), "FOREIGN KEY constraint failed"),
    "older-than-said": (sql("PRAGMA user_version = 2"), "another version than its catalog"),
    "no-version": (sql("PRAGMA user_version = 0"), "another version than its catalog"),
    "no-database": (lambda parts: parts.catalog.write_bytes(b"x" * 5000) and None, "damaged"),
}


LARGE = ("chunk-bombs", "row-huge")


@pytest.mark.parametrize("case", [case for case in CATALOGS if case not in LARGE])
def test_a_catalog_with_one_foreign_value(whole: Whole, tmp_path: Path, case: str) -> None:
    _is_refused(whole, tmp_path, *CATALOGS[case])


@pytest.mark.slow
@pytest.mark.parametrize("case", LARGE)
def test_a_catalog_with_something_large(whole: Whole, tmp_path: Path, case: str) -> None:
    _is_refused(whole, tmp_path, *CATALOGS[case])


def test_what_is_refused_makes_no_index(whole: Whole, tmp_path: Path) -> None:
    fresh = IndexPaths(tmp_path / "fresh")
    for change, words in (CATALOGS["orphans"], MANIFESTS["empty"], IMAGES["text"]):
        with pytest.raises(IndexUnusableError, match=words):
            restore(fresh, rewritten(whole, tmp_path, change))
        assert not fresh.root.exists()


def _is_refused(whole: Whole, tmp_path: Path, change: Change, words: str) -> None:
    file = rewritten(whole, tmp_path, change)
    with pytest.raises(IndexUnusableError, match=words) as caught:
        restore(whole.paths, file, force=True)
    assert caught.value.exit_code == 1
    assert f"{file} cannot be restored: " in caught.value.message
    assert "nothing was changed" in caught.value.hint
    assert bytes_of(whole.paths.root) == whole.before
    assert not whole.paths.restoring.exists()


def _manifest(**changes: object) -> Change:
    def change(parts: Parts) -> None:
        parts.manifest = json.dumps({**json.loads(parts.manifest), **changes}).encode()

    return change


def _raw(make: Callable[[bytes], bytes]) -> Change:
    def change(parts: Parts) -> None:
        parts.manifest = make(parts.manifest)

    return change


_UNREADABLE = "its manifest cannot be read"
MANIFESTS: dict[str, tuple[Change, str]] = {
    "deep": (_raw(lambda _: b"[" * 60_000), _UNREADABLE),
    "deep-inside": (_raw(lambda found: found.replace(b"{", b'{"x": ' + b"[" * 50_000, 1)), _UNREADABLE),
    "infinity": (_manifest(catalog_version=float("inf")), _UNREADABLE),
    "nan": (_manifest(documents=float("nan")), _UNREADABLE),
    "too-large-a-float": (_raw(lambda found: found.replace(b'"documents": 2', b'"documents": 1e999')), _UNREADABLE),
    "thousand-digits": (_raw(lambda found: found.replace(b": 2,", b": " + b"9" * 5000 + b",")), _UNREADABLE),
    "huge": (_manifest(pages=10**30), _UNREADABLE),
    "twice": (_raw(lambda found: found.replace(b"{", b'{"documents": 2,', 1)), _UNREADABLE),
    "negative": (_manifest(images=-2), _UNREADABLE),
    "a-float": (_manifest(pages=3.0), _UNREADABLE),
    "a-text": (_manifest(pages="3"), _UNREADABLE),
    "a-truth": (_manifest(catalog_version=True), _UNREADABLE),
    "null": (_manifest(created=None), _UNREADABLE),
    "a-list": (_raw(lambda _: b"[]"), _UNREADABLE),
    "a-number": (_raw(lambda _: b"7"), _UNREADABLE),
    "empty": (_raw(lambda _: b""), _UNREADABLE),
    "not-utf8": (_raw(lambda _: b'{"schema": "\xff"}'), _UNREADABLE),
    "utf16": (_raw(lambda found: found.decode().encode("utf-16")), _UNREADABLE),
    "mark": (_raw(lambda found: b"\xef\xbb\xbf" + found), _UNREADABLE),
    "of-others": (_manifest(schema="zip/1"), _UNREADABLE),
    "too-large": (_manifest(more="x" * 70_000), "manifest is too large"),
    "documents-off": (_manifest(documents=3), "speaks of 3 documents, and it holds 2"),
    "pages-off": (_manifest(pages=4), "speaks of 4 pages, and it holds 3"),
    "images-off": (_manifest(images=0), "speaks of 0 image files, and it holds 2"),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_an_odd_manifest(whole: Whole, tmp_path: Path, case: str) -> None:
    _is_refused(whole, tmp_path, *MANIFESTS[case])


def test_a_manifest_of_another_ctx(whole: Whole, tmp_path: Path) -> None:
    newer, older = {"catalog_version": SCHEMA_VERSION + 1}, {"catalog_version": SCHEMA_VERSION - 1}
    for changes, kind in (
        ({"schema": "ctx.archive/2"}, NewerIndexError),
        (newer, NewerIndexError),
        (older, OlderIndexError),
    ):
        file = rewritten(whole, tmp_path, _manifest(**changes))
        with pytest.raises(kind):
            restore(whole.paths, file, force=True)
    assert bytes_of(whole.paths.root) == whole.before


def _image(change: Callable[[dict[str, bytes], str], None], *, counted: bool = True) -> Change:
    """The images changed, and the manifest's count with them; the second argument is the folder of the first."""

    def prepare(parts: Parts) -> None:
        change(parts.images, next(iter(parts.images)).rsplit("/", 1)[0])
        if counted:
            _manifest(images=len(parts.images))(parts)

    return prepare


IMAGES: dict[str, tuple[Change, str]] = {
    "of-no-document": (_image(lambda held, _: held.update({"images/0123456789abcdef/00001.jpg": JPEG})), "of a page"),
    "of-no-page": (_image(lambda held, at: held.update({f"{at}/00009.jpg": JPEG})), "of a page that it does not have"),
    "of-a-page-not-drawn": (_image(lambda held, at: held.update({f"{at}/00002.jpg": JPEG})), "that it does not have"),
    "another-spelling": (_image(lambda held, at: held.update({f"{at}/000001.jpg": JPEG})), "that it does not have"),
    "one-more-uncounted": (_image(lambda held, at: held.update({f"{at}/00002.jpg": JPEG}), counted=False), "speaks of"),
    "lacking": (_image(lambda held, at: held.pop(f"{at}/00001.webp") and None), "lacks an image of its page 1"),
    "text": (_image(lambda held, at: held.update({f"{at}/00001.jpg": b"#!/bin/sh\necho"})), "no image of a page"),
    "empty": (_image(lambda held, at: held.update({f"{at}/00001.webp": b""})), "no image of a page"),
    "the-other-kind": (_image(lambda held, at: held.update({f"{at}/00001.jpg": WEBP})), "no image of a page"),
    "huge": (_image(lambda held, at: held.update({f"{at}/00001.jpg": JPEG + bytes(33 << 20)})), "no image of a page"),
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow) if case == "huge" else case for case in IMAGES]
)
def test_images_that_do_not_belong(whole: Whole, tmp_path: Path, case: str) -> None:
    _is_refused(whole, tmp_path, *IMAGES[case])
