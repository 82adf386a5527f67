"""The embedded encoder against the published fp32 weights, and what callers rely on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from research.encoders import minilm
from research.encoders.minilm import MiniLMEncoder, load_session, load_tokenizer
from research.errors import CtxError
from tests.pace import draws
from tests.research.encoders.bert_reference import published_tokenizer, read_passages, reference_vectors
from tools.build_encoder import build

TEXT = Path(__file__).with_name("passages.txt")
PASSAGES = read_passages(TEXT)
TOKENIZER = published_tokenizer()
SHARED = MiniLMEncoder(threads=1)


@pytest.fixture(scope="module")
def encoder() -> MiniLMEncoder:
    return MiniLMEncoder(threads=2)


@pytest.fixture(scope="module")
def vectors(encoder: MiniLMEncoder) -> NDArray[np.float32]:
    return encoder.embed(PASSAGES)


@pytest.mark.slow
def test_vectors_are_close_to_fp32(vectors: NDArray[np.float32], tmp_path: Path) -> None:
    exact = reference_vectors(TEXT, tmp_path / "exact.npy")
    cosines = (vectors * exact).sum(axis=1)
    assert cosines.min() >= 0.985
    assert cosines.mean() >= 0.995
    # What search needs: the neighbours of a passage stay the same.
    ours, theirs = (np.argsort(-(v @ v.T), axis=1)[:, 1:6] for v in (vectors, exact))
    kept = [len(set(a) & set(b)) / 5 for a, b in zip(ours, theirs, strict=True)]
    assert np.mean(kept) >= 0.85


def test_vectors_have_unit_length_and_shape(vectors: NDArray[np.float32]) -> None:
    assert vectors.shape == (len(PASSAGES), 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@pytest.mark.slow
def test_a_text_has_one_vector_whatever_its_neighbours(encoder: MiniLMEncoder, vectors: NDArray[np.float32]) -> None:
    backwards = encoder.embed(PASSAGES[::-1])[::-1]
    alone = np.stack([MiniLMEncoder(threads=1).embed([text])[0] for text in PASSAGES[:5]])
    as_question = np.stack([encoder.embed_query(text) for text in PASSAGES[:5]])
    assert np.array_equal(vectors, backwards)
    assert np.array_equal(vectors[:5], alone)
    assert np.array_equal(vectors[:5], as_question)


def test_nothing_is_cut_silently(encoder: MiniLMEncoder) -> None:
    full = "word " * 254
    assert encoder.embed([full]).shape == (1, 384)
    with pytest.raises(ValueError, match="text 1 has 255 tokens"):
        encoder.embed(["short", full + "more"])


def test_no_texts_and_empty_texts(encoder: MiniLMEncoder) -> None:
    assert encoder.embed([]).shape == (0, 384)
    for text in ("", " \n", "\x00\u200b", "[SEP] [PAD]", "half \udcff a pair"):
        assert np.isclose(np.linalg.norm(encoder.embed_query(text)), 1, atol=1e-5)


def test_a_long_question_is_answered(encoder: MiniLMEncoder) -> None:
    question = ("Which payments fall due before the end of the contract? " * 200)[:10_000]
    vector = encoder.embed_query(question)
    assert np.isclose(np.linalg.norm(vector), 1, atol=1e-5)
    assert vector @ encoder.embed_query(question[:56]) > 0.7


@draws(200)
@given(st.text(st.characters(codec="utf-8"), max_size=300))
def test_count_tokens_is_the_published_tokenizers(text: str) -> None:
    # "[SEP]" and its like are text to us, special tokens to the published file.
    if not any(token in text for token in ("[SEP]", "[CLS]", "[PAD]", "[UNK]", "[MASK]")):
        ids = TOKENIZER.encode(text, add_special_tokens=False).ids
        assert SHARED._ids(text) == ids
        assert SHARED.count_tokens(text) == len(ids)


def test_real_text_is_tokenized_as_published() -> None:
    for text in PASSAGES:
        assert SHARED._ids(text) == TOKENIZER.encode(text, add_special_tokens=False).ids


def test_the_word_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.encoders.minilm.WORD_CACHE", 10)
    encoder = MiniLMEncoder()
    assert encoder.count_tokens(" ".join(f"w{i}" for i in range(50))) > 50
    assert len(encoder._word_tokens) <= 10


def test_shipped_files_are_whole_and_small() -> None:
    assert minilm.verify_files() == []
    assert sum(path.stat().st_size for path in minilm.SHIPPED) <= 25_000_000


def test_damage_is_named(tmp_path: Path) -> None:
    assert "cannot be read" in minilm.verify_files(tmp_path)[0]
    (tmp_path / "model.bin").write_bytes(b"not a model")
    listed = minilm.CHECKSUMS.read_text().splitlines()
    (tmp_path / "SHA256SUMS").write_text("\n".join(line for line in listed if "vocab.txt" not in line))
    assert minilm.verify_files(tmp_path) == [
        "model.onnx is missing",
        "model.bin is damaged: its SHA-256 is not the one in SHA256SUMS",
        "vocab.txt is not listed in SHA256SUMS",
    ]


def test_damaged_files_give_one_clear_error(tmp_path: Path) -> None:
    for action in (lambda: load_tokenizer(tmp_path / "vocab.txt"), lambda: load_session(tmp_path / "model.onnx")):
        with pytest.raises(CtxError, match="damaged or missing"):
            action()
    (tmp_path / "model.onnx").write_bytes(minilm.MODEL.read_bytes())
    (tmp_path / "model.bin").write_bytes(minilm.WEIGHTS.read_bytes()[:100_000])
    with pytest.raises(CtxError, match="damaged or missing"):
        load_session(tmp_path / "model.onnx")


@pytest.mark.slow
def test_a_rebuild_gives_the_same_files(tmp_path: Path) -> None:
    build(tmp_path)
    for path in (*minilm.SHIPPED, minilm.CHECKSUMS):
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name
