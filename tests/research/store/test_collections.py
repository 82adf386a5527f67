"""The Chroma collections follow the catalog: published, extended, pruned, renamed, and read two ways."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from index_making import Making, sync_if_stale

from research.errors import IndexUnusableError
from research.store import generations
from research.store import publish as writer
from research.store.doctor import check_index
from research.store.documents import FileStamp
from research.store.generations import TEXT, Collections, Generation, IndexState, state_of
from research.store.nearest import ChromaClient, VectorIndex, exact_scan


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaClient]:
    """Thirty pages, some blank, published once; tests only read it."""
    made = Making(tmp_path_factory.mktemp("published") / "index")
    for number in range(3):
        made.add(f"d{number}.pdf", [f"walrus {number} {page}" if page % 5 else "" for page in range(10)])
    made.embed()
    writer.publish(made.catalog)
    made.catalog.close()
    with ChromaClient(made.paths.root) as client:
        yield client


def _generation(client: ChromaClient) -> Generation:
    generation = client.generation()
    assert generation is not None
    return generation


def _question(seed: int, dim: int = 8) -> list[float]:
    vector = np.random.default_rng(seed).standard_normal(dim).astype(np.float32)
    return [float(value) for value in vector / np.linalg.norm(vector)]


def test_after_publishing_nothing_is_behind(published: ChromaClient) -> None:
    state = state_of(published.catalog)
    assert (state.missing, state.surplus, state.behind) == (0, 0, False)
    assert (_generation(published).text_records, _generation(published).visual_records) == (24, 30)
    assert published.text_collection.count() == 24
    assert published.visual_collection.count() == 30


def test_records_carry_the_contract_s_metadata(published: ChromaClient) -> None:
    names = {
        "doc_id", "filename", "page", "extension", "timestamp", "source_path", "image_path", "thumb_path",
        "section_path", "parent_heading", "num_headings", "num_tables", "num_pictures",
    }  # fmt: skip
    for collection in (published.text_collection, published.visual_collection):
        found = collection.get(limit=1)
        assert found["metadatas"] is not None
        assert names <= found["metadatas"][0].keys()


def test_nothing_is_left_for_a_reader_to_replay(published: ChromaClient) -> None:
    """What Chroma has not written into its neighbour files is replayed by every process that opens them."""
    with sqlite3.connect(_generation(published).path / "chroma.sqlite3") as database:
        pending = database.execute(
            "SELECT COUNT(*) FROM embeddings_queue q JOIN segments s ON q.topic LIKE '%' || s.collection"
            " LEFT JOIN max_seq_id m ON m.segment_id = s.id"
            " WHERE s.scope = 'VECTOR' AND q.seq_id > COALESCE(m.seq_id, 0)"
        ).fetchone()[0]
    database.close()
    assert pending == 0


def test_a_single_record_is_written_out_too(making: Making) -> None:
    making.add("a.pdf", ["walrus"])
    making.embed()
    generation = writer.publish(making.catalog)
    with sqlite3.connect(generation.path / "chroma.sqlite3") as database:
        database.execute("DELETE FROM embeddings_queue")  # the log goes, the neighbour files stay
    database.close()
    assert len(Collections(generation.path).nearest(TEXT, _question(1), 1)) == 1


def test_what_came_later_is_added_and_what_went_is_pruned(making: Making) -> None:
    first = making.add("a.pdf", ["walrus", "seal"])
    making.embed()
    one = writer.publish(making.catalog)
    assert writer.publish(making.catalog) == one, "nothing to do"
    second = making.add("b.pdf", ["orca"])
    making.embed()
    making.catalog.documents.remove(first.doc_id)
    state = state_of(making.catalog)
    assert (state.missing, state.surplus) == (1, 3), "a vector; two text records and the difference in pages"
    two = writer.publish(making.catalog)
    assert (two.number, two.text_records, two.visual_records) == (2, 1, 1)
    assert not state_of(making.catalog).behind
    with ChromaClient(making.paths.root) as client:
        assert client.text_collection.get()["ids"] == [f"{second.doc_id}:1:0"]
        assert client.visual_collection.get()["ids"] == [f"{second.doc_id}:1"]
    assert one.path.exists(), "a reader may be opening it now"
    making.add("c.pdf", ["auk"])
    making.embed()
    three = writer.publish(making.catalog)
    assert not one.path.exists()
    assert {path.name for path in making.paths.chroma.iterdir()} == {two.path.name, three.path.name}


def test_a_new_name_reaches_the_metadata(making: Making) -> None:
    info = making.add("old.pdf", ["walrus", ""])
    making.embed()
    writer.publish(making.catalog)
    making.catalog.documents.rename(info.doc_id, info.source_path, FileStamp("/docs/new.pdf", 1, 1, 1, 1), "new.pdf")
    assert state_of(making.catalog).behind
    writer.publish(making.catalog)
    with ChromaClient(making.paths.root) as client:
        for collection in (client.text_collection, client.visual_collection):
            assert {entry["filename"] for entry in collection.get()["metadatas"] or []} == {"new.pdf"}
    assert not state_of(making.catalog).behind


def test_a_new_name_and_an_image_of_a_document_without_text_reach_the_metadata(making: Making) -> None:
    info = making.add("old.pdf", [""])
    making.embed()
    first = writer.publish(making.catalog)
    making.catalog.documents.rename(info.doc_id, info.source_path, FileStamp("/docs/new.pdf", 1, 1, 1, 1), "new.pdf")
    making.catalog.documents.mark_drawn(info.doc_id, [1], published=first.through_seq)
    state = state_of(making.catalog)
    assert (state.missing, state.surplus, state.outdated, state.behind) == (0, 0, True, True)
    assert sync_if_stale(making.paths)
    with ChromaClient(making.paths.root) as client:
        [entry] = client.visual_collection.get()["metadatas"] or []
        assert entry["filename"] == "new.pdf"
        assert entry["image_path"]
    assert not state_of(making.catalog).behind


def test_a_document_finished_after_its_vectors_were_published_gets_its_pages(making: Making) -> None:
    """A run stopped between the last vector and the ledger, then a question that published what was there."""
    making.add("a.pdf", ["walrus", "seal"])
    making.catalog.chunks.set_encoder("made-up", 8)
    making.catalog.visual.set_encoder("regions:made-up", 8)
    waiting = [chunk.chunk_id for chunk in making.catalog.chunks.pending()]
    making.catalog.chunks.write(waiting, np.eye(8, dtype=np.float32)[: len(waiting)])
    half = writer.publish(making.catalog)
    assert (half.text_records, half.visual_records) == (2, 0)
    making.catalog.ledger.close()
    assert state_of(making.catalog).behind
    whole = writer.publish(making.catalog)
    assert (whole.text_records, whole.visual_records) == (2, 2)
    assert not state_of(making.catalog).behind


def test_another_encoder_starts_the_collections_anew(making: Making) -> None:
    making.add("a.pdf", ["walrus", "seal"])
    making.embed(dim=8, encoder="first")
    writer.publish(making.catalog)
    making.embed(dim=4, encoder="second")
    assert state_of(making.catalog).generation is None, "vectors of two encoders are never compared"
    generation = writer.publish(making.catalog)
    assert len(Collections(generation.path).nearest(TEXT, _question(1, dim=4), 2)) == 2


def test_a_catalog_set_back_does_not_trust_newer_collections(making: Making) -> None:
    making.add("a.pdf", ["walrus"])
    making.embed()
    writer.publish(making.catalog)
    making.catalog.execute("DELETE FROM vectors")
    making.catalog.execute("UPDATE meta SET value = '0' WHERE key = 'vectors_seq'")
    assert state_of(making.catalog).generation is None


def test_collections_of_another_catalog_are_not_used(making: Making, published: ChromaClient, tmp_path: Path) -> None:
    assert generations.newest(published.paths.chroma, making.catalog.meta("catalog_id")) is None
    assert generations.newest(tmp_path / "nowhere", "x") is None


def test_an_unbuilt_index_says_so(making: Making) -> None:
    with ChromaClient(making.paths.root) as client:
        assert client.generation() is None
        with pytest.raises(IndexUnusableError, match="not built"):
            _ = client.text_collection
    assert not sync_if_stale(making.paths), "an empty index needs no collections"


def test_repair_leaves_a_busy_index_alone(making: Making) -> None:
    from research.store.paths import write_lock

    making.add("a.pdf", ["walrus"])
    making.embed()
    with write_lock(making.paths):
        assert not sync_if_stale(making.paths)
    assert sync_if_stale(making.paths)
    assert not sync_if_stale(making.paths)


def test_a_draft_left_by_a_killed_process_is_no_generation(making: Making) -> None:
    making.add("a.pdf", ["walrus"])
    making.embed()
    draft = generations.start_draft(making.paths.chroma, None)
    (draft / "chroma.sqlite3").write_bytes(b"half")
    assert state_of(making.catalog).generation is None
    assert writer.publish(making.catalog).number == 1
    assert not draft.exists()


@pytest.mark.parametrize("manifest", ["", "[]", "{}", '{"catalog_id": 1}', "\x00"])
def test_a_broken_manifest_is_no_generation(tmp_path: Path, manifest: str) -> None:
    folder = tmp_path / "gen-000001"
    folder.mkdir()
    (folder / "generation.json").write_text(manifest)
    assert generations.newest(tmp_path, "x") is None


def test_touched_but_equal_files_are_still_good(making: Making) -> None:
    """A copied or restored index has new time stamps and the same bytes."""
    making.add("a.pdf", ["walrus"])
    making.embed()
    generation = writer.publish(making.catalog)
    entries = json.loads((generation.path / "generation.json").read_text())["files"]
    assert entries
    for entry in entries:
        (generation.path / entry["name"]).touch()
    assert state_of(making.catalog).generation == generation
    shutil.rmtree(making.paths.chroma)
    assert state_of(making.catalog).generation is None


def test_a_small_addition_waits_and_is_found(making: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where copying the collections costs more than comparing what is new with each question."""
    monkeypatch.setattr(generations, "_CHEAP", 0)
    monkeypatch.setattr(generations, "_SHARE", 0.3)
    gone = making.add("a.pdf", [f"walrus {number}" for number in range(10)])
    making.add("b.pdf", [f"seal {number}" for number in range(10)])
    making.embed()
    first = writer.publish(making.catalog)
    making.add("c.pdf", ["orca"])
    making.embed()
    state = state_of(making.catalog)
    assert (state.behind, state.due, state.overdue, state.missing) == (True, False, False, 2)
    assert not sync_if_stale(making.paths)
    assert writer.holds_everything(making.catalog), "what waits is no damage"
    assert "2 more are compared" in next(c.message for c in check_index(making.paths) if c.name == "collections")
    question = np.array(_question(1), dtype=np.float32)
    index = VectorIndex(making.paths)
    answer = index.nearest(making.catalog, question, 30)
    expected = exact_scan(making.catalog, question, 30).pairs
    assert (len(expected), answer.served_by) == (21, "core")
    assert [page for page, _ in answer.pairs] == [page for page, _ in expected]
    index.refresh()
    os.utime(first.path / "generation.json", (0, 0))
    assert state_of(making.catalog).overdue, "a run publishes what has waited for a day"
    making.catalog.documents.remove(gone.doc_id)
    assert state_of(making.catalog).due
    assert sync_if_stale(making.paths)
    assert not state_of(making.catalog).behind


def test_so_much_at_once_is_worth_a_publication() -> None:
    large = Generation(Path(), 1, "", 0, 100_000, 100_000)
    changes = {2: False, 4_999: False, 5_000: True}
    assert {missing: IndexState(large, missing, 0).due for missing in changes} == changes
    assert IndexState(Generation(Path(), 1, "", 0, 1_000, 1_000), 1, 0).due, "a small index is copied in no time"


@pytest.mark.slow
def test_a_publication_writes_each_record_about_once(making: Making) -> None:
    """Twice that after the first, whose files are copied before; Chroma by itself wrote 33 times as much."""
    for number in range(50):
        making.add(f"{number}.pdf", [f"walrus {number} {page}" for page in range(100)])
    making.embed(dim=128)
    code = (
        "import sys\nfrom pathlib import Path\nfrom research.store import Catalog, IndexPaths\n"
        "from research.store import publish as writer\n"
        "with Catalog(IndexPaths(Path(sys.argv[1]))) as catalog:\n    writer.publish(catalog)\n"
        "print(next(line.split()[1] for line in open('/proc/self/io') if line.startswith('wchar')))\n"
    )
    run = [sys.executable, "-c", code, str(making.paths.root)]
    for most in (3, 4):
        written = int(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
        generation = state_of(making.catalog).generation
        assert generation is not None
        size = sum(path.stat().st_size for path in generation.path.rglob("*") if path.is_file())
        assert written < most * size
        making.add("new.pdf", ["seal"] * 10)
        making.embed(dim=128)
