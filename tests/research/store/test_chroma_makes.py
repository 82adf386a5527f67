"""A Chroma of another make: questions are answered, the reason is told, and nothing is built again and again."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from index_making import Making

import research
from research.store import generations
from research.store import publish as writer

_MISSING = 'raise ImportError("there is no core for this platform")\n'

# The real one, but whoever calls it directly, as ctx does, finds methods of another signature.
_OTHER_SIGNATURE = """
import importlib.machinery, importlib.util, os, sys

elsewhere = [path for path in sys.path if os.path.abspath(path or ".") != os.path.dirname(os.path.abspath(__file__))]
spec = importlib.machinery.PathFinder.find_spec(__name__, elsewhere)
real = importlib.util.module_from_spec(spec)
sys.modules[__name__] = real
spec.loader.exec_module(real)
RealBindings = real.Bindings

class Bindings:
    def __init__(self, **settings):
        self.real = RealBindings(**settings)

    def __getattr__(self, name):
        if name in ("query", "upsert") and not sys._getframe(1).f_globals["__name__"].startswith("chromadb."):
            raise TypeError(f"{name}() missing 1 required positional argument: 'read_level'")
        return getattr(self.real, name)

real.Bindings = Bindings
"""

_THREE_QUESTIONS = """
import json, sys
from pathlib import Path
import numpy as np
from research.store.catalog import Catalog
from research.store.paths import IndexPaths
from research.store.nearest import VectorIndex, exact_scan
from research.store.doctor import check_index

paths = IndexPaths(Path(sys.argv[1]))
asked = []
for _ in range(3):
    index = VectorIndex(paths)
    with Catalog(paths) as catalog:
        published = index.sync_if_stale(catalog)
        found = index.nearest(catalog, np.eye(8, dtype=np.float32)[0], 5)
        exact = exact_scan(catalog, np.eye(8, dtype=np.float32)[0], 5)
        asked.append([published, [page for page, _ in found.pairs] == [page for page, _ in exact.pairs],
                      found.served_by, found.problem])
told = [[check.message, check.remedy] for check in check_index(paths) if check.name == "collections"]
print(json.dumps({"asked": asked, "doctor": told}))
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Making(tmp_path_factory.mktemp("sound") / "index")
    made.add("a.pdf", [f"walrus {page}" for page in range(12)])
    made.embed()
    writer.publish(made.catalog)
    made.catalog.close()
    return made.paths.root


def _run(tmp_path: Path, core: str, root: Path) -> dict[str, Any]:
    """Three questions where `core` stands in the place of Chroma's own; the publishing process sees it too."""
    home = tmp_path / "home"
    home.mkdir()
    for package in ("cli", "ingest", "research"):  # all from here, none from where it is installed
        (home / package).symlink_to(Path(research.__file__).parent.parent / package)
    if core:
        (home / "chromadb_rust_bindings.py").write_text(core)
    command = [sys.executable, "-c", _THREE_QUESTIONS, str(root)]
    environment = {**os.environ, "PYTHONPATH": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=home)
    assert run.returncode == 0, run.stderr[-3000:]
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


def _copy(sound: Path, tmp_path: Path, *, stale: bool = False) -> Path:
    root = tmp_path / "index"
    shutil.copytree(sound, root)
    if stale:
        made = Making(root)
        made.add("b.pdf", ["orca", "seal"])
        made.embed()
        made.catalog.close()
    return root


def _generations(root: Path) -> dict[str, set[str]]:
    """Generation → its folders of neighbours, which keep their names in what is built on it."""
    return {path.name: {folder.name for folder in path.glob("*/")} for path in (root / "chroma").glob("gen-*")}


def test_without_the_core_questions_are_answered_and_nothing_is_rebuilt(sound: Path, tmp_path: Path) -> None:
    root = _copy(sound, tmp_path)
    before = _generations(root)
    answer = _run(tmp_path, _MISSING, root)
    assert [entry[:3] for entry in answer["asked"]] == [[False, True, "exact"]] * 3
    assert all("no core for this platform" in problem for *_, problem in answer["asked"])
    assert _generations(root) == before
    [_, [message, remedy]] = answer["doctor"]
    assert ("no core for this platform" in message, "chromadb" in remedy) == (True, True)


@pytest.mark.slow
def test_what_cannot_be_published_is_not_tried_by_every_question(sound: Path, tmp_path: Path) -> None:
    root = _copy(sound, tmp_path, stale=True)
    before = _generations(root)
    note = root / "chroma" / "publish-failed.json"
    answer = _run(tmp_path, _MISSING, root)
    assert [entry[:3] for entry in answer["asked"]] == [[False, True, "exact"]] * 3
    assert _generations(root) == before
    assert "no core for this platform" in json.loads(note.read_text())["error"]
    assert "could not bring the collections up to date" in answer["doctor"][1][0]
    os.utime(note, (0, 0))
    shutil.rmtree(tmp_path / "home")
    answer = _run(tmp_path, "", root)
    assert [entry[:3] for entry in answer["asked"]] == [[True, True, "core"], *[[False, True, "core"]] * 2]
    assert not note.exists()


@pytest.mark.slow
def test_with_a_core_of_another_signature_every_vector_is_compared(sound: Path, tmp_path: Path) -> None:
    root = _copy(sound, tmp_path, stale=True)
    before = _generations(root)
    answer = _run(tmp_path, _OTHER_SIGNATURE, root)
    assert [entry[:3] for entry in answer["asked"]] == [[False, True, "exact"]] * 3
    assert all("read_level" in problem for *_, problem in answer["asked"])
    assert _generations(root) == before
    assert "chromadb" in answer["doctor"][-1][1]


@pytest.mark.slow
def test_unknown_tables_are_no_damage(sound: Path, tmp_path: Path) -> None:
    root = _copy(sound, tmp_path)
    database = sqlite3.connect(root / "chroma" / "gen-000001" / "chroma.sqlite3")
    database.execute("ALTER TABLE segments RENAME TO segments_v2")
    database.close()
    before = _generations(root)
    answer = _run(tmp_path, "", root)
    assert [entry[:3] for entry in answer["asked"]] == [[False, True, "exact"]] * 3
    assert all("cannot be read" in problem for *_, problem in answer["asked"])
    assert _generations(root) == before
    assert (root / "chroma" / "gen-000001" / "generation.json").exists()
    [_, [_, remedy]] = answer["doctor"]
    assert "ctx doctor --reindex" in remedy
    made = Making(root)
    made.add("b.pdf", ["orca"])
    made.embed()
    writer.publish_in_subprocess(made.paths)
    generation = generations.current(made.catalog)
    made.catalog.close()
    assert generation is not None
    assert (generation.text_records, generation.number) == (13, 2), "the next publication starts over"
