"""An index that stays open: it follows each publication, leaks nothing, and outlives what fails for a moment."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from index_making import DIM, Making

from research.store import publish as writer
from research.store.catalog import Catalog
from research.store.generations import state_of
from research.store.nearest import ChromaClient, Nearest, RetriedCollections, VectorIndex, exact_scan
from research.store.publish import publish_in_subprocess

QUESTION = np.eye(DIM, dtype=np.float32)[0]


def descriptors(made: Making) -> list[str]:
    found = []
    for entry in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if os.path.lexists(path := f"/proc/self/fd/{entry}"):
            found.append(os.readlink(path))  # noqa: PTH115
    return sorted(target for target in found if target.startswith(str(made.paths.chroma)))


def mapped(made: Making) -> list[str]:
    names = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    return sorted(name for name in names if name.startswith(str(made.paths.chroma)))


def pages(answer: Nearest) -> list[int]:
    return [page_id for page_id, _ in answer.pairs]


@pytest.fixture
def filled(making: Making) -> Making:
    making.add("a.pdf", [f"walrus {page}" for page in range(6)])
    making.embed()
    writer.publish(making.catalog)
    return making


@pytest.mark.slow
def test_an_open_index_follows_many_publications(filled: Making) -> None:
    """Published by other processes, as it is in life. The folder of the first is long gone at the end."""
    index = VectorIndex(filled.paths)
    with Catalog(filled.paths) as catalog:
        opened = []
        for number in range(6):
            filled.add(f"{number}.pdf", [f"seal {number}"])
            filled.embed()
            publish_in_subprocess(filled.paths)
            answer = index.nearest(catalog, QUESTION, 50)
            assert (answer.served_by, answer.problem) == ("core", "")
            assert pages(answer) == pages(exact_scan(catalog, QUESTION, 50))
            assert not state_of(catalog).behind
            gc.collect()
            opened.append(len(descriptors(filled)))
            newest = f"gen-{number + 2:06d}"
            assert {part for target in descriptors(filled) for part in target.split("/") if "gen-" in part} == {newest}
        assert opened[-1] <= opened[0] + 2, "each generation is let go with the next"
    index.refresh()
    gc.collect()
    assert descriptors(filled) == mapped(filled) == []


def test_a_generation_in_use_is_closed_by_its_last_question(filled: Making) -> None:
    index = VectorIndex(filled.paths)
    index.nearest(filled.catalog, QUESTION, 5)
    held = index._current(filled.catalog)
    assert held is not None
    filled.add("b.pdf", ["seal"])
    filled.embed()
    writer.publish(filled.catalog)
    assert len(index.nearest(filled.catalog, QUESTION, 50).pairs) == 7
    assert any("gen-000001" in target for target in descriptors(filled))
    assert len(held.nearest(filled.catalog, QUESTION.tolist(), 50, "text").pairs) == 6, "it answers to the end"
    del held
    gc.collect()
    assert not any("gen-000001" in target for target in descriptors(filled))
    index.refresh()


def test_a_question_keeps_the_moment_it_began_at(filled: Making) -> None:
    """Published inside a question: its snapshot is older, so the generation before answers."""
    index = VectorIndex(filled.paths)
    with Catalog(filled.paths) as catalog, catalog.snapshot() as snapshot:
        filled.add("b.pdf", ["seal"])
        filled.embed()
        writer.publish(filled.catalog)
        answer = index.nearest(snapshot, QUESTION, 50)
        assert (len(answer.pairs), answer.served_by) == (6, "core")
        with catalog.snapshot() as later:
            assert len(index.nearest(later, QUESTION, 50).pairs) == 7
    index.refresh()


def test_an_index_made_anew_in_the_same_place_is_followed(filled: Making) -> None:
    index = VectorIndex(filled.paths)
    assert len(index.nearest(filled.catalog, QUESTION, 50).pairs) == 6
    filled.catalog.close()
    shutil.rmtree(filled.paths.root)
    again = Making(filled.paths.root)
    again.add("b.pdf", ["seal", "orca"])
    again.embed()
    writer.publish(again.catalog)
    answer = index.nearest(again.catalog, QUESTION, 50)
    assert (len(answer.pairs), answer.served_by) == (2, "core")
    again.catalog.close()
    index.refresh()


@pytest.mark.slow
def test_the_contract_s_collections_follow_too(filled: Making) -> None:
    with ChromaClient(filled.paths.root) as client:
        held = client.text_collection
        assert held.count() == 6
        for number in range(3):
            filled.add(f"{number}.pdf", [f"seal {number}"])
            filled.embed()
            writer.publish(filled.catalog)
            assert client.text_collection.count() == 7 + number
            if number == 0:
                assert held.count() == 6, "what the caller holds lives one publication longer"
        opened = {part for target in descriptors(filled) for part in target.split("/") if "gen-" in part}
        assert opened <= {"gen-000003", "gen-000004"}
    gc.collect()
    assert descriptors(filled) == []


class _Shaky:
    """A reader that fails as often as it is told."""

    def __init__(self, failures: list[str]) -> None:
        self.failures = failures

    def nearest(self, collection: str, vector: Sequence[float], count: int) -> list[tuple[str, float]]:
        if self.failures:
            raise OSError(self.failures.pop())
        return [("a:1:0", 1.0)]


def test_a_reader_that_failed_is_tried_again_ever_more_rarely() -> None:
    failures = ["once"]
    reader = RetriedCollections(lambda: _Shaky(failures))  # type: ignore[arg-type, return-value]
    assert reader.nearest("text", [1.0], 1) is None
    assert reader.problem == "OSError: once"
    assert reader.nearest("text", [1.0], 1) == [("a:1:0", 1.0)]
    failures += ["for long"] * 1000
    for _ in range(1000):
        assert reader.nearest("text", [1.0], 1) is None
    assert 10 < 1000 - len(failures) < 40, "tries among a thousand questions"
    failures.clear()
    answers = [reader.nearest("text", [1.0], 1) for _ in range(64)]
    assert answers[-1] == [("a:1:0", 1.0)], "and it comes back"


def test_threads_that_meet_one_failure_do_not_lose_the_reader(filled: Making) -> None:
    failures = ["core"] * 8
    reader = RetriedCollections(lambda: _Shaky(failures))  # type: ignore[arg-type, return-value]
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        reader.nearest("text", [1.0], 1)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failures.clear()
    assert [("a:1:0", 1.0)] in [reader.nearest("text", [1.0], 1) for _ in range(64)]


# Everything is loaded while there are descriptors; then there are none left to open a generation with.
_NO_DESCRIPTORS = """
import json, os, resource, sys
from pathlib import Path
import numpy as np
from research.store.catalog import Catalog
from research.store.paths import IndexPaths
from research.store.generations import open_client
from research.store.nearest import VectorIndex

sound, root = (IndexPaths(Path(path)) for path in sys.argv[1:])
vector = np.eye(8, dtype=np.float32)[0]
client = open_client(next(sound.chroma.glob("gen-*")))
client.get_collection("text", embedding_function=None).query(query_embeddings=[vector.tolist()], n_results=1)
client.close()
with Catalog(root) as catalog:
    index = VectorIndex(root)
    index.generation(catalog)
    answers = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = int(os.environ["SPARE"])
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare, hard))
    for _ in range(2):
        found = index.nearest(catalog, vector, 50)
        answers.append([len(found.pairs), found.served_by, found.problem, index.sync_if_stale(catalog)])
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    served = [index.nearest(catalog, vector, 50).served_by for _ in range(4)]
print(json.dumps({"answers": answers, "served": served}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("spare", [0, 3])
def test_a_process_without_descriptors_takes_nothing_from_others(filled: Making, tmp_path: Path, spare: int) -> None:
    root = tmp_path / "copy"
    shutil.copytree(filled.paths.root, root)
    run = subprocess.run(
        [sys.executable, "-c", _NO_DESCRIPTORS, str(filled.paths.root), str(root)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SPARE": str(spare)},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    answer = json.loads(run.stdout)
    for found, served_by, problem, published in answer["answers"]:
        assert (found, served_by, published) == (6, "exact", False)
        assert problem
    assert "core" in answer["served"], "it recovers"
    assert {path.name for path in (root / "chroma").iterdir()} == {"gen-000001"}
    assert (root / "chroma" / "gen-000001" / "generation.json").exists()
