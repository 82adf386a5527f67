"""Names to encoders, and any sentence-transformers model in place of the embedded one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from research.encoders.minilm.encoder import MiniLMEncoder
from research.encoders.registry import DEFAULT, load_text_encoder
from research.errors import CtxError
from tests.research.encoders.bert_reference import published


def test_the_default_is_the_embedded_encoder() -> None:
    for name in (DEFAULT, "all-MiniLM-L6-v2", "default"):
        encoder = load_text_encoder(name, threads=1)
        assert isinstance(encoder, MiniLMEncoder)
        assert encoder.name == DEFAULT


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(CtxError) as caught:
        load_text_encoder("some/model")
    assert caught.value.hint == "pip install sentence-transformers"


@pytest.mark.filterwarnings("ignore")
def test_a_local_folder_is_loaded(tmp_path: Path) -> None:
    folder = published("model.safetensors").parent
    encoder = load_text_encoder(str(folder), threads=2)
    ours = load_text_encoder()
    assert encoder.dim == 384
    assert str(folder) in encoder.name
    text = "Water boils at a lower temperature on a mountain."
    assert encoder.count_tokens(text) == ours.count_tokens(text)
    assert encoder.embed([text])[0] @ ours.embed_query(text) > 0.985
    assert np.allclose(encoder.embed([text])[0], encoder.embed_query(text), atol=1e-5)
    assert encoder.embed([]).shape == (0, 384)
    with pytest.raises(ValueError, match="tokens"):
        encoder.embed(["word " * encoder.max_tokens])

    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CtxError, match="cannot load the encoder"):
        load_text_encoder(str(tmp_path))
    with pytest.raises(CtxError, match="no such encoder folder"):
        load_text_encoder(str(tmp_path / "missing"))
