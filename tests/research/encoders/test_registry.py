"""Names to encoders, and any sentence-transformers model in place of the embedded one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from research.encoders.base import (
    DEFAULT,
    hand_over,
    identify_text_encoder,
    load_remembered,
    load_text_encoder,
    token_counter,
)
from research.encoders.minilm import MiniLMEncoder
from research.encoders.sentence_transformers import SentenceTransformersEncoder
from research.errors import CtxError
from tests.research.encoders.bert_reference import published
from tests.research.encoders.tiny_text import make_tiny_static, make_tiny_text


def test_the_default_is_the_embedded_encoder() -> None:
    for name in (DEFAULT, "all-MiniLM-L6-v2", "default"):
        encoder = load_text_encoder(name, threads=1)
        assert isinstance(encoder, MiniLMEncoder)
        assert encoder.name == DEFAULT


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.encoders.sentence_transformers.PACKAGE", "a-package-that-is-not-here")
    with pytest.raises(CtxError, match="is not installed") as caught:
        load_text_encoder("some/model")
    assert caught.value.hint == "pip install 'ctx-research[encoders]'"


OLD = """
import sys
from research.encoders.base import identify_text_encoder, load_text_encoder
from research.errors import CtxError
for use in (identify_text_encoder, load_text_encoder):
    try:
        use(sys.argv[1])
    except CtxError as error:
        print(error.message, error.hint)
"""


@pytest.mark.slow
def test_an_old_package_is_refused_and_its_code_never_imported(tiny_text: Path, tmp_path: Path) -> None:
    (tmp_path / "sentence_transformers").mkdir()
    (tmp_path / "sentence_transformers" / "__init__.py").write_text(
        f"open({str(tmp_path / 'PWNED')!r}, 'w')\nclass SentenceTransformer: pass\n"
    )
    (tmp_path / "sentence_transformers-5.7.0.dist-info").mkdir()
    (tmp_path / "sentence_transformers-5.7.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: sentence-transformers\nVersion: 5.7.0\n"
    )
    home = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-P", "-c", OLD, str(tiny_text)],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{home}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all("version 5.7.0" in line and "pip install 'ctx-research[encoders]'" in line for line in lines)
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.slow
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
    with pytest.raises(CtxError, match="no such model folder"):
        load_text_encoder(str(tmp_path / "missing"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_remembered_name_loads_what_it_was_made_from(tiny_text: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_text, tmp_path / "model"))
    name = identify_text_encoder(str(folder))
    assert re.fullmatch(rf"sentence-transformers:{re.escape(str(folder))}@[0-9a-f]{{12}}", name)
    encoder = load_text_encoder(name)
    assert (encoder.name, encoder.dim) == (name, 16)
    assert load_text_encoder(f"sentence-transformers:{folder}").name == name  # as ctx 0.1.0 wrote it
    with pytest.raises(CtxError, match="gives vectors of 16 dimensions, and this index has 384"):
        load_remembered(name, dim=384, named=[name])
    make_tiny_text(tmp_path / "other", seed=1, dense=True)
    shutil.copy(tmp_path / "other" / "2_Dense" / "model.safetensors", folder / "2_Dense" / "model.safetensors")
    with pytest.raises(CtxError, match="its files have changed") as caught:
        load_text_encoder(name)
    assert f"CTX_TEXT_ENCODER={folder} ctx ingest PATH" in caught.value.hint
    shutil.rmtree(folder)
    with pytest.raises(CtxError, match="is no longer at"):
        load_text_encoder(name)


def test_the_same_folder_has_one_name_however_it_is_written(
    tiny_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = identify_text_encoder(str(tiny_text))
    (tmp_path / "link").symlink_to(tiny_text)
    monkeypatch.chdir(tiny_text.parent)
    for written in (tiny_text.name, f"./{tiny_text.name}", str(tmp_path / "link"), name):
        assert identify_text_encoder(written) == name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_hub_name_is_found_in_the_cache_and_nowhere_else(
    tiny_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "cache" / "models--some--model"
    shutil.copytree(tiny_text, repository / "snapshots" / "abc")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    name = identify_text_encoder("some/model")
    assert re.fullmatch("sentence-transformers:some/model@[0-9a-f]{12}", name)
    # A folder of that name that lies where the user stands is not what the index means.
    make_tiny_text(tmp_path / "here" / "some" / "model", seed=1)
    monkeypatch.chdir(tmp_path / "here")
    encoder = load_text_encoder(name)
    assert (encoder.name, encoder.dim) == (name, 16)
    for missing in ("other/model", "sentence-transformers:other/model@0123456789ab", "bare-name"):
        with pytest.raises(CtxError, match="are not on this machine") as caught:
            load_text_encoder(missing)
        assert caught.value.hint.startswith("hf download ")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_model_of_word_vectors_alone(tmp_path: Path) -> None:
    encoder = load_text_encoder(str(make_tiny_static(tmp_path / "model")))
    assert encoder.max_tokens == 512
    assert encoder.embed(["Boats in the harbour."]).shape == (1, encoder.dim)
    assert isinstance(encoder, SentenceTransformersEncoder)
    counter = token_counter(hand_over(encoder.tokenizer_json(), encoder.max_tokens, tmp_path / "tokens.json"))
    assert counter.count_tokens("Boats in the harbour.") == encoder.count_tokens("Boats in the harbour.") > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_tokens_are_counted_alike_without_the_encoder(tmp_path: Path) -> None:
    encoder = load_text_encoder(str(published("model.safetensors").parent), threads=1)
    assert isinstance(encoder, SentenceTransformersEncoder)
    counter = token_counter(hand_over(encoder.tokenizer_json(), encoder.max_tokens, tmp_path / "tokens.json"))
    assert counter.max_tokens == encoder.max_tokens
    for text in ("", "Boats.", "Ünïcode, Straße 中文 and 🙂\n\ttabs", "word " * 1000, "ABC-def_ghi/42.7%"):
        assert counter.count_tokens(text) == encoder.count_tokens(text)
