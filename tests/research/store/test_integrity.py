"""`ctx doctor --fix`: what is broken on purpose is found, mended, and then no longer found."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest
from index_making import Making

from research.errors import IndexUnusableError
from research.store import generations
from research.store import publish as writer
from research.store.doctor import reindex, repair
from research.store.fulltext import fulltext_disagrees
from research.store.generations import open_client
from research.store.integrity import FULL, QUICK, IntegrityCheck
from research.store.publish import publish_in_subprocess, verify_in_subprocess


@pytest.fixture
def filled(making: Making) -> Making:
    making.add("walrus-report.pdf", ["walrus on ice", "seal", ""])
    making.add("orca.pdf", ["orca"])
    making.embed()
    return making


def _execute(*statements: str) -> Callable[[Making], None]:
    def break_it(made: Making) -> None:
        made.catalog.execute("PRAGMA foreign_keys = OFF")
        for statement in statements:
            made.catalog.execute(statement)

    return break_it


def _lost_image(made: Making) -> None:
    [doc_id] = [row[0] for row in made.catalog.execute("SELECT doc_id FROM documents WHERE num_pages = 1")]
    made.catalog.documents.mark_drawn(doc_id, [1], published=0)


def _leftovers(made: Making) -> None:
    generations.start_draft(made.paths.chroma, None)
    for folder in (made.paths.spool, made.paths.restoring, made.paths.image_folder("0123456789abcdef")):
        folder.mkdir(parents=True)


@pytest.mark.parametrize(
    ("break_it", "name", "quick"),
    [
        (_execute("DELETE FROM documents WHERE num_pages = 1"), "references", False),
        (_execute("DELETE FROM pages WHERE page = 3"), "documents", True),
        (_execute("UPDATE pages SET markdown = x'00ff' WHERE page = 2"), "documents", False),
        (_execute("UPDATE vectors SET vector = x'0000' WHERE seq = 1"), "vectors", False),
        (_execute("DELETE FROM vectors WHERE seq = 1"), "ledger", True),
        (_execute("UPDATE pages SET needs_ocr = 1 WHERE page = 3"), "ledger", True),
        (_execute("UPDATE pages SET error = 'the page was skipped' WHERE page = 2"), "given up", True),
        (_lost_image, "images", True),
        (_execute("DELETE FROM page_words WHERE rowid = 1"), "full text", True),
        (_execute("UPDATE page_words SET body = 'penguin' WHERE rowid = 1"), "full text", False),
        (_execute("DELETE FROM page_words_data WHERE id > 10"), "full text", False),
        (_execute("DELETE FROM name_words"), "full text", False),
        (_leftovers, "leftovers", True),
    ],
)
def test_what_is_broken_is_found_and_mended(
    filled: Making, break_it: Callable[[Making], None], name: str, quick: bool
) -> None:
    break_it(filled)
    assert (name in _found(filled, QUICK)) == quick
    assert name in _found(filled, FULL)
    for check in FULL:
        for problem in check(filled.catalog):
            assert problem.fix is not None
            problem.fix(filled.catalog)
    assert _found(filled, FULL) == []
    assert _found(filled, QUICK) == []


def _found(made: Making, checks: tuple[IntegrityCheck, ...]) -> list[str]:
    return [problem.name for check in checks for problem in check(made.catalog)]


def test_an_incomplete_document_is_read_again(filled: Making) -> None:
    [sha256] = [r[0] for r in filled.catalog.execute("SELECT sha256 FROM documents WHERE num_pages = 3")]
    _execute("DELETE FROM pages WHERE page = 3")(filled)
    [done] = [done for done in repair(filled.paths) if done.name == "documents"]
    assert done.severity == "ok"
    assert "ctx ingest" in done.remedy
    known = filled.catalog.documents.of_hash(sha256)
    assert known is not None
    assert known[1] == 0, "as if an older reader had read it"


def test_collections_are_compared_record_by_record(filled: Making) -> None:
    generation = writer.publish(filled.catalog)
    assert writer.holds_everything(filled.catalog)
    client = open_client(generation.path)
    collection = client.get_collection("text", embedding_function=None)
    collection.delete(ids=collection.get(limit=1, include=[])["ids"])
    client.close()
    assert not generations.state_of(filled.catalog).behind, "no quick look sees it"
    filled.paths.root.chmod(0o755)
    repairs = {done.name: done.severity for done in repair(filled.paths)}
    assert repairs == {"folder": "ok", "collections": "ok"}
    assert writer.holds_everything(filled.catalog)
    assert filled.catalog.chunks.last_sequence() == 3, "nothing was embedded again"


def test_a_torn_catalog_is_told_and_not_made_worse(filled: Making) -> None:
    filled.catalog.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    filled.catalog.close()
    data = bytearray(filled.paths.catalog.read_bytes())
    data[8 * 4096 :] = b"\xee" * (len(data) - 8 * 4096)
    filled.paths.catalog.write_bytes(data)
    repairs = repair(filled.paths)
    assert any(done.severity == "error" for done in repairs)
    assert filled.paths.catalog.stat().st_size >= len(data)


def test_reindex_builds_everything_anew(filled: Making) -> None:
    filled.catalog.execute("DELETE FROM page_words_data WHERE id > 10")
    filled.catalog.execute("DELETE FROM name_words")
    filled.catalog.execute("UPDATE pages SET words = 99")
    done = reindex(filled.paths)
    assert (done.pages, done.text_records, done.visual_records) == (4, 3, 4)
    assert not fulltext_disagrees(filled.catalog)
    assert [term.pages for term in filled.catalog.words.statistics(["walrus", "orca"])] == [1, 1]
    assert len(filled.catalog.words.name_matches(["walrus"])) == 1
    assert [row[0] for row in filled.catalog.execute("SELECT words FROM pages")] == [2, 1, 0, 1]
    assert filled.catalog.chunks.last_sequence() == 3
    assert filled.catalog.ledger.unfinished() == {}


@pytest.mark.slow
def test_damage_that_ends_the_process_is_answered_by_starting_over(filled: Making) -> None:
    """Torn neighbour files that look untouched: the publishing process dies of them, and another builds anew."""
    generation = writer.publish(filled.catalog)
    manifest = json.loads((generation.path / "generation.json").read_text())
    for entry in manifest["files"]:
        path = generation.path / entry["name"]
        path.write_bytes(b"\xff" * entry["size"])
        os.utime(path, ns=(entry["mtime_ns"], entry["mtime_ns"]))
    filled.add("auk.pdf", ["auk"])
    filled.embed()
    publish_in_subprocess(filled.paths)
    assert verify_in_subprocess(filled.paths)


def test_a_disk_that_refuses_is_named(filled: Making) -> None:
    filled.paths.chroma.write_text("in the way")
    with pytest.raises(IndexUnusableError, match="collections cannot be written"):
        publish_in_subprocess(filled.paths)
