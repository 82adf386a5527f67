"""What the core writes is what Chroma's public client reads, and Chroma's own files are written about once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from research.store.generations import Collections, Metadata, make_database, open_client

METADATA: Metadata = {"filename": "übergabe.pdf", "page": 3, "ocr": False}


def test_the_public_client_reads_what_the_core_wrote(tmp_path: Path) -> None:
    vectors = list(np.eye(6, dtype=np.float32))
    keys = [f"doc:{number}" for number in range(6)]
    make_database(tmp_path)
    collections = Collections(tmp_path, writable=True)
    for name in ("text", "visual"):
        collections.make(name, 8)
    collections.upsert("text", keys, vectors, [METADATA | {"page": number} for number in range(6)])
    collections.upsert("text", keys[:1], vectors[1:2], [METADATA | {"page": 99}])
    collections.delete("text", keys[-2:])
    collections.rewrite_one("text")
    collections.rewrite_one("visual")
    assert (collections.keys("text"), collections.count("text")) == (set(keys[:4]), 4)
    assert (collections.keys("visual"), collections.count("visual")) == (set(), 0)
    found = Collections(tmp_path).nearest("text", vectors[2].tolist(), 4)
    assert found[0] == ("doc:2", pytest.approx(1.0))
    del collections
    client = open_client(tmp_path)
    assert {collection.name for collection in client.list_collections()} == {"text", "visual"}
    opened = client.get_collection("text", embedding_function=None)
    records = opened.get(include=["embeddings", "metadatas"])
    assert records["embeddings"] is not None
    assert records["metadatas"] is not None
    read = {
        key: (vector.tolist(), metadata["page"])
        for key, vector, metadata in zip(records["ids"], records["embeddings"], records["metadatas"], strict=True)
    }
    expected = {keys[number]: (vectors[number].tolist(), number) for number in range(4)}
    assert read == expected | {keys[0]: (vectors[1].tolist(), 99)}
    public = opened.query(query_embeddings=[vectors[2].tolist()], n_results=4)  # type: ignore[arg-type]
    assert public["ids"][0][0] == found[0][0]
    client.close()
