"""Whatever happens to Chroma's files, a question is answered, the damage is seen and mended, and no process dies."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_making import Making, sync_if_stale

from research.errors import FREE_SPACE, IndexUnusableError
from research.store import publish as writer
from research.store.catalog import Catalog
from research.store.doctor import check_index
from research.store.nearest import VectorIndex, exact_scan
from research.store.paths import IndexPaths

# Opens a possibly torn index, which with Chroma alone can end the process: hence a process of its own.
_ASK = """
import json, sys
import numpy as np
from pathlib import Path
from research.contract import SearchEngine
from research.store.nearest import ChromaClient
from research.store.generations import state_of
from research.store.paths import IndexPaths
from research.store.nearest import VectorIndex
from research.store.catalog import Catalog

class Encoder:
    name, dim, max_tokens = "made-up", 8, 256
    def embed_query(self, text):
        return np.eye(8, dtype=np.float32)[0]

def look(path):
    with ChromaClient(path) as client:
        engine = SearchEngine(client, encoder=Encoder())
        outcome = engine.run("walrus", 40, "dense")
        return {
            "behind": state_of(client.catalog).behind,
            "pages": [[f.page.filename, f.page.page, round(f.score, 4)] for f in outcome.found],
            "legs": [[leg.name, leg.status] for leg in outcome.coverage.legs],
            "sequence": client.catalog.chunks.last_sequence(),
            "visual": len(engine.run("walrus", 40, "visual").found),
        }

path = sys.argv[1]
before = look(path)
def sync(path):
    paths = IndexPaths(Path(path))
    with Catalog(paths) as catalog:
        return VectorIndex(paths).sync_if_stale(catalog)

repaired = sync(path)
print(json.dumps({"before": before, "repaired": repaired, "after": look(path)}))
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Making(tmp_path_factory.mktemp("sound") / "index")
    made.add("a.pdf", [f"walrus {page}" for page in range(12)])
    made.embed()
    writer.publish(made.catalog)
    made.catalog.close()
    return made.paths.root


def _ask(root: Path) -> dict[str, Any]:
    run = subprocess.run([sys.executable, "-c", _ASK, str(root)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"ended with {run.returncode}\n{run.stderr[-2000:]}"
    assert "Traceback" not in run.stderr, run.stderr
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


@pytest.fixture(scope="module")
def expected(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    copy = tmp_path_factory.mktemp("copy") / "index"
    shutil.copytree(sound, copy)
    answer = _ask(copy)
    assert not answer["before"]["behind"]
    assert not answer["repaired"]
    assert answer["before"] == answer["after"]
    pages: list[Any] = answer["before"]["pages"]
    assert len(pages) == 12
    return pages


def _truncate_vectors(generation: Path) -> None:
    for path in generation.glob("*/data_level0.bin"):
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)


def _overwrite_headers(generation: Path) -> None:
    for path in generation.glob("*/header.bin"):
        path.write_bytes(b"\xff" * path.stat().st_size)


def _delete_folder(generation: Path) -> None:
    shutil.rmtree(generation.parent)


def _delete_neighbour_files(generation: Path) -> None:
    for path in generation.glob("*/"):
        shutil.rmtree(path)


def _garbage_database(generation: Path) -> None:
    (generation / "chroma.sqlite3").write_bytes(b"no database at all " * 500)


def _empty_database(generation: Path) -> None:
    (generation / "chroma.sqlite3").write_bytes(b"")


def _torn_database(generation: Path) -> None:
    path = generation / "chroma.sqlite3"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _garbage_manifest(generation: Path) -> None:
    (generation / "generation.json").write_text("{")


DAMAGES = (
    _overwrite_headers,
    _delete_folder,
    _delete_neighbour_files,
    _garbage_database,
    _empty_database,
    _torn_database,
    _garbage_manifest,
)


@pytest.mark.parametrize(
    "damage", [_truncate_vectors, *(pytest.param(damage, marks=pytest.mark.slow) for damage in DAMAGES)]
)
def test_damage_is_survived_seen_and_mended(
    sound: Path, expected: list[Any], tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    copy = tmp_path / "index"
    shutil.copytree(sound, copy)
    damage(copy / "chroma" / "gen-000001")
    answer = _ask(copy)
    assert answer["before"]["pages"] == expected
    assert answer["before"]["legs"] == [["dense", "ok"]]
    assert answer["before"]["behind"]
    assert answer["repaired"]
    assert answer["after"]["pages"] == expected
    assert not answer["after"]["behind"]
    assert answer["after"]["visual"] > 0
    assert answer["after"]["sequence"] == answer["before"]["sequence"] == 12, "nothing was embedded again"


def _collection_checks(paths: IndexPaths) -> list[tuple[str, str]]:
    return [(check.severity, check.message) for check in check_index(paths) if check.name == "collections"]


def test_what_a_full_disk_cuts_short_is_not_published(tmp_path: Path) -> None:
    """hnswlib writes its 167,600 bytes without looking; Chroma's database needs less than the limit."""
    made = Making(tmp_path / "index")
    made.add("a.pdf", ["walrus"])
    made.embed(dim=384)
    good = writer.publish(made.catalog)
    made.add("b.pdf", ["seal"])
    made.embed(dim=384)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (130_000, before[1]))
    try:
        with pytest.raises(IndexUnusableError, match="cannot be written: No space left on device") as caught:
            writer.publish_in_subprocess(made.paths, rebuild=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.hint == FREE_SPACE
    assert [path.name for path in made.paths.chroma.iterdir()] == [good.path.name], "the draft does not fill the disk"
    question = np.full(384, 384**-0.5, np.float32)
    found, exact = VectorIndex(made.paths).nearest(made.catalog, question, 5), exact_scan(made.catalog, question, 5)
    assert (found.served_by, len(found.pairs)) == ("core", 2)
    assert dict(found.pairs) == pytest.approx(dict(exact.pairs), abs=1e-3)
    assert sync_if_stale(made.paths), "where there is space again, the next question publishes"
    made.catalog.close()


@pytest.mark.parametrize("name", ["data_level0.bin", "length.bin", "link_lists.bin", "header.bin"])
def test_the_doctor_finds_a_file_that_is_cut_short(sound: Path, tmp_path: Path, name: str) -> None:
    """Since it was published, or when an earlier ctx published it: then the manifest says what is there."""
    paths = IndexPaths(tmp_path / "index")
    shutil.copytree(sound, paths.root)
    assert [severity for severity, _ in _collection_checks(paths)] == ["ok"]
    generation = paths.chroma / "gen-000001"
    cut = next(generation.glob(f"*/{name}"))
    os.truncate(cut, cut.stat().st_size // 4)
    assert [severity for severity, _ in _collection_checks(paths)] == ["warning"]
    manifest = json.loads((generation / "generation.json").read_text())
    for entry in manifest["files"]:
        data = (generation / entry["name"]).read_bytes()
        stamp = {
            "size": len(data),
            "mtime_ns": (generation / entry["name"]).stat().st_mtime_ns,
            "crc": zlib.crc32(data),
        }
        entry.update(stamp)
    (generation / "generation.json").write_text(json.dumps(manifest))
    assert "gen-000001 of the collections is damaged" in str(_collection_checks(paths))
    with Catalog(paths) as catalog:
        assert not writer.holds_everything(catalog), "ctx doctor --fix builds it anew"


@pytest.mark.slow
def test_damage_that_no_check_sees_is_found_by_the_first_question(
    sound: Path, expected: list[Any], tmp_path: Path
) -> None:
    copy = tmp_path / "index"
    shutil.copytree(sound, copy)
    with (copy / "chroma" / "gen-000001" / "chroma.sqlite3").open("r+b") as file:
        file.seek(4096)  # its first page is as it was
        file.write(b"\xff" * 100_000)
    answer = _ask(copy)
    assert answer["before"]["pages"] == expected
    assert answer["repaired"]
    assert answer["after"]["pages"] == expected
    assert not answer["after"]["behind"]


@pytest.mark.slow
def test_the_generation_before_steps_in_for_a_torn_one(tmp_path: Path) -> None:
    made = Making(tmp_path / "index")
    made.add("a.pdf", [f"walrus {page}" for page in range(5)])
    made.embed()
    writer.publish(made.catalog)
    made.add("b.pdf", [f"seal {page}" for page in range(5)])
    made.embed()
    torn = writer.publish(made.catalog)
    made.catalog.close()
    _truncate_vectors(torn.path)
    assert "gen-000002 of the collections is damaged" in str(_collection_checks(made.paths))
    answer = _ask(made.paths.root)
    assert len(answer["before"]["pages"]) == 10
    assert answer["before"]["behind"]
    assert answer["repaired"]
    assert not answer["after"]["behind"]
    assert answer["after"]["pages"] == answer["before"]["pages"]


# Everything is loaded while that is still allowed; then the process becomes one that may only read the index.
_READ_ONLY = """
import json, os, sys, tempfile
import numpy as np
from pathlib import Path
from research.contract import SearchEngine
from research.store.nearest import ChromaClient
from research.store.generations import open_client
from research.store.generations import state_of
from research.store.paths import IndexPaths
from research.store.nearest import VectorIndex
from research.store.catalog import Catalog

class Encoder:
    name, dim, max_tokens = "made-up", 8, 256
    def embed_query(self, text):
        return np.eye(8, dtype=np.float32)[0]

def look(path):
    with ChromaClient(path) as client:
        engine = SearchEngine(client, encoder=Encoder())
        outcome = engine.run("walrus", 40)
        again = engine.run("walrus", 40)
        assert [f.page for f in outcome.found] == [f.page for f in again.found]
        return [[f.page.page, round(f.score, 4)] for f in outcome.found], outcome.coverage.complete

sound, index = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    client = open_client(Path(folder))
    client.get_or_create_collection("text", embedding_function=None)
    client.close()
expected = look(sound)
if os.geteuid() == 0:
    os.setuid(65534)  # permissions mean nothing to root
found = look(index)
paths = IndexPaths(Path(index))
with Catalog(paths) as catalog:
    assert not VectorIndex(paths).sync_if_stale(catalog)
print(json.dumps({"expected": expected, "found": found}))
"""


@pytest.mark.slow
def test_a_folder_that_chroma_cannot_write_is_searched_all_the_same(sound: Path, tmp_path: Path) -> None:
    """Chroma opens its files for writing even to read them; the catalog's vectors step in."""
    copy = tmp_path / "index"
    shutil.copytree(sound, copy)
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(sound, folder / "index")
    everything = [folder / "index", *(folder / "index").rglob("*")]
    folder.chmod(0o755)
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    run = subprocess.run(
        [sys.executable, "-c", _READ_ONLY, str(copy), str(folder / "index")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_CONFIG_HOME": str(folder)},  # one that whoever it becomes may look into
    )
    for path in everything:
        path.chmod(0o755)
    shutil.rmtree(folder)
    assert run.returncode == 0, run.stderr[-3000:]
    answer = json.loads(run.stdout)
    assert answer["found"] == answer["expected"]
    assert len(answer["found"][0]) == 12
