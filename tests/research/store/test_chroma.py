"""The two ways of writing collections make the same ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from research.store.vectors.chroma import ClientWriter, CoreWriter, Metadata, Writer, open_client

WRITERS = [CoreWriter, ClientWriter]
METADATA: Metadata = {"filename": "übergabe.pdf", "page": 3, "ocr": False}


def _write(writer: Writer) -> None:
    vectors = list(np.eye(6, dtype=np.float32))
    keys = [f"doc:{number}" for number in range(6)]
    writer.upsert("text", keys, vectors, [METADATA | {"page": number} for number in range(6)])
    writer.upsert("text", keys[:1], vectors[1:2], [METADATA | {"page": 99}])
    writer.delete("text", keys[-2:])
    writer.rewrite("text", 3)
    assert writer.keys("text") == set(keys[:4])
    assert writer.count("text") == 4
    assert writer.keys("visual") == set()
    writer.rewrite("visual", 3)
    assert writer.count("visual") == 0
    writer.close()


def _contents(folder: Path) -> dict[str, Any]:
    client = open_client(folder)
    found = {}
    for collection in client.list_collections():
        opened = client.get_collection(collection.name, embedding_function=None)
        records = opened.get(include=["embeddings", "metadatas"])
        assert records["embeddings"] is not None
        assert records["metadatas"] is not None
        rows = zip(records["ids"], np.asarray(records["embeddings"]).tolist(), records["metadatas"], strict=True)
        found[opened.name] = (opened.configuration_json, opened.metadata, sorted(rows))
    client.close()
    return found


def test_the_core_writes_what_the_public_client_writes(tmp_path: Path) -> None:
    contents = []
    for open_writer in WRITERS:
        folder = tmp_path / open_writer.__name__
        folder.mkdir()
        _write(open_writer(folder))
        contents.append(_contents(folder))
    by_core, by_client = contents
    assert by_core.keys() == {"text", "visual"}
    assert by_core == by_client


@pytest.mark.parametrize("second", WRITERS)
@pytest.mark.parametrize("first", WRITERS)
def test_each_goes_on_where_the_other_stopped(first: Any, second: Any, tmp_path: Path) -> None:
    _write(first(tmp_path))
    writer = second(tmp_path)
    assert writer.count("text") == 4
    writer.upsert("text", ["doc:9"], [np.ones(6, np.float32)], [METADATA])
    assert writer.count("text") == 5
    writer.close()
    assert len(_contents(tmp_path)["text"][2]) == 5
