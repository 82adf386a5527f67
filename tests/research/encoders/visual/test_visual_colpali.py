"""Real colpali-engine classes on tiny checkpoints: same scores, boxes where the model looked, clear refusals."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from research.encoders.colpali import engine, load_visual_encoder
from research.encoders.libraries import DEFAULT_CHECKPOINT, colpali_ready, quiet
from research.encoders.maxsim import pack, score, stack
from research.errors import CtxError, EncoderUnavailable, UsageError
from research.records import WHOLE_PAGE
from tests.conftest import Tiny
from tests.research.encoders.visual import tiny as making

pytestmark = pytest.mark.slow

QUESTIONS = ("How many weeks of parental leave?", "A table of revenue by region")
TILED = ("ColIdefics3", "ColModernVBert", "ColIdefics3+adapter", "ColModernVBert+adapter")
NAMES = (*TILED, "ColQwen2", "ColPali")


@pytest.mark.parametrize("name", NAMES)
def test_scores_equal_those_of_colpali_engine(tiny: Tiny, pages: list[Path], name: str) -> None:
    import torch
    from PIL import Image

    models = engine()
    folder = tiny(name)
    encoder = load_visual_encoder(f"colpali:{folder}")
    packed = stack([pack(page.vectors) for page in encoder.embed_pages(pages)])
    ours = np.stack([score(encoder.embed_question(question), packed) for question in QUESTIONS])

    family = name.partition("+")[0]
    with quiet(), torch.inference_mode():
        model = getattr(models, family).from_pretrained(folder, local_files_only=True).eval()
        processor = getattr(models, f"{family}Processor").from_pretrained(tiny(family), local_files_only=True)
        theirs_pages = [model(**processor.process_images([Image.open(path)]))[0] for path in pages]
        theirs_questions = [model(**processor.process_queries([question]))[0] for question in QUESTIONS]
        theirs = processor.score_multi_vector(theirs_questions, theirs_pages, device="cpu").numpy()
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() < 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_every_vector_has_unit_length_and_a_box_on_the_page(tiny: Tiny, pages: list[Path], name: str) -> None:
    encoder = load_visual_encoder(f"colpali:{tiny(name)}")
    for page in encoder.embed_pages(pages):
        assert page.vectors.shape == (len(page.boxes), encoder.dim)
        assert page.vectors.dtype == np.float32
        assert np.allclose(np.linalg.norm(page.vectors, axis=1), 1, atol=1e-5)
        assert all(0 <= x0 < x1 <= 1 + 1e-9 and 0 <= y0 < y1 <= 1 + 1e-9 for x0, y0, x1, y1 in page.boxes)


@pytest.mark.parametrize("name", TILED)
def test_tiles_lie_where_the_page_was_cut(tiny: Tiny, pages: list[Path], name: str) -> None:
    portrait = load_visual_encoder(f"colpali:{tiny(name)}").embed_pages(pages[:1])[0]
    # 4 × 3 tiles and the small whole page, 2 × 2 vectors in each; the prompt's words have no place.
    placed = [box for box in portrait.boxes if box != WHOLE_PAGE]
    assert len(placed) == 13 * making.VECTORS_PER_TILE
    assert len(set(placed)) == 13 * making.VECTORS_PER_TILE
    smallest = min((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in placed)
    assert smallest == pytest.approx(1 / (8 * 6))


@pytest.mark.parametrize("name", ["ColIdefics3", "ColModernVBert", "ColQwen2", "ColPali"])
def test_a_box_is_where_the_vector_looked(tiny: Tiny, tmp_path: Path, name: str) -> None:
    from PIL import Image, ImageDraw

    encoder = load_visual_encoder(f"colpali:{tiny(name)}")
    for number, (x, y) in enumerate(((0.75, 0.3), (0.25, 0.8))):
        blank = Image.new("RGB", (900, 1200), "white")
        blank.save(tmp_path / "blank.png")
        ImageDraw.Draw(blank).rectangle((900 * x - 60, 1200 * y - 60, 900 * x + 60, 1200 * y + 60), fill="black")
        blank.save(tmp_path / f"{number}.png")
        before, after = encoder.embed_pages([tmp_path / "blank.png", tmp_path / f"{number}.png"])
        changed = np.linalg.norm(before.vectors - after.vectors, axis=1)
        x0, y0, x1, y1 = after.boxes[int(changed.argmax())]
        assert x0 - 0.1 <= x <= x1 + 0.1
        assert y0 - 0.1 <= y <= y1 + 0.1


def test_the_same_page_gives_the_same_vectors_alone_or_in_a_batch(tiny: Tiny, pages: list[Path]) -> None:
    folder = tiny("ColModernVBert")
    alone = load_visual_encoder(f"colpali:{folder}")
    together = load_visual_encoder(f"colpali:{folder}")
    together._batch_size = 3  # type: ignore[attr-defined]  # as on an accelerator that has room for so many
    for first, again, batched in zip(
        alone.embed_pages(pages), alone.embed_pages(pages), together.embed_pages(pages), strict=True
    ):
        assert np.array_equal(first.vectors, again.vectors)
        assert np.allclose(first.vectors, batched.vectors, atol=1e-4)
        assert first.boxes == batched.boxes


def test_an_adapter_changes_the_vectors_of_its_base(tiny: Tiny, pages: list[Path]) -> None:
    base = load_visual_encoder(f"colpali:{tiny('ColIdefics3')}").embed_pages(pages[:1])[0]
    adapted = load_visual_encoder(f"colpali:{tiny('ColIdefics3+adapter')}").embed_pages(pages[:1])[0]
    assert base.vectors.shape == adapted.vectors.shape
    assert not np.allclose(base.vectors, adapted.vectors, atol=1e-2)


@pytest.mark.parametrize("name", ["ColModernVBert", "ColIdefics3+adapter"])
def test_int8_stays_close_and_is_another_encoder(tiny: Tiny, pages: list[Path], name: str) -> None:
    folder = tiny(name)
    full = load_visual_encoder(f"colpali:{folder}")
    small = load_visual_encoder(f"colpali:{folder}+int8")
    assert small.name == f"{full.name}+int8"
    one, other = full.embed_pages(pages[:1])[0], small.embed_pages(pages[:1])[0]
    assert (one.vectors * other.vectors).sum(axis=1).mean() > 0.95


def test_pooling_keeps_a_third_of_the_vectors(tiny: Tiny, pages: list[Path]) -> None:
    name = load_visual_encoder(f"colpali:{tiny('ColModernVBert')}+pool3").name
    assert name.endswith("+pool3")
    pooled = load_visual_encoder(name)  # as an index remembers it
    full = load_visual_encoder(f"colpali:{tiny('ColModernVBert')}")
    one, other = full.embed_pages(pages[:1])[0], pooled.embed_pages(pages[:1])[0]
    assert len(other.vectors) == len(other.boxes) == len(one.vectors) // 3
    assert np.allclose(np.linalg.norm(other.vectors, axis=1), 1, atol=1e-5)
    assert set(other.boxes) <= set(one.boxes)


def test_bf16_runs(tiny: Tiny, pages: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    folder = tiny("ColModernVBert")
    full = load_visual_encoder(f"colpali:{folder}").embed_pages(pages[:1])[0]
    # As on an accelerator that has it.
    monkeypatch.setattr("research.encoders.colpali.choose_dtype", lambda device: torch.bfloat16)
    half = load_visual_encoder(f"colpali:{folder}").embed_pages(pages[:1])[0]
    assert half.vectors.dtype == np.float32
    assert (full.vectors * half.vectors).sum(axis=1).min() > 0.98


def test_strange_pages(tiny: Tiny, tmp_path: Path) -> None:
    from PIL import Image

    encoder = load_visual_encoder(f"colpali:{tiny('ColIdefics3')}")
    for number, size in enumerate(((1, 1), (1280, 1), (3, 1280))):
        Image.new("L", size, 128).save(tmp_path / f"{number}.png")
    for page in encoder.embed_pages([tmp_path / f"{number}.png" for number in range(3)]):
        assert len(page.vectors) == len(page.boxes) > 0
        assert all(0 <= edge <= 1 + 1e-9 for box in page.boxes for edge in box)
    (tmp_path / "broken.jpg").write_bytes(b"no picture")
    with pytest.raises(CtxError, match=r"broken\.jpg cannot be read"):
        encoder.embed_pages([tmp_path / "broken.jpg"])
    assert encoder.embed_pages([]) == []


def test_control_tokens_in_a_question_are_words_no_more(tiny: Tiny) -> None:
    encoder = load_visual_encoder(f"colpali:{tiny('ColModernVBert')}")
    assert encoder.embed_question("What is <image> in <row_1_col_1>?").shape[1] == encoder.dim
    assert encoder.embed_question("").shape[1] == encoder.dim


def test_a_head_kept_inside_the_backbone_is_found(tiny: Tiny, tmp_path: Path, pages: list[Path]) -> None:
    from safetensors.torch import load_file, save_file

    source = tiny("ColModernVBert")
    shutil.copytree(source, tmp_path / "nested")
    weights = {
        key.removeprefix("base_model.model.").replace("custom_text_proj", "model.custom_text_proj"): value
        for key, value in load_file(source / "model.safetensors").items()
    }
    save_file(weights, tmp_path / "nested" / "model.safetensors", metadata={"format": "pt"})
    one = load_visual_encoder(f"colpali:{source}").embed_pages(pages[:1])[0]
    other = load_visual_encoder(f"colpali:{tmp_path / 'nested'}").embed_pages(pages[:1])[0]
    assert np.array_equal(one.vectors, other.vectors)


def test_changed_weights_are_another_encoder(tiny: Tiny, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny("ColIdefics3"), tmp_path / "model"))
    name = load_visual_encoder(f"colpali:{folder}").name
    assert load_visual_encoder(name).name == name
    making.make_tiny(folder, "ColIdefics3", seed=7)
    with pytest.raises(EncoderUnavailable, match="weights have changed") as caught:
        load_visual_encoder(name)
    assert f"--visual {folder}" in caught.value.hint


def test_folders_that_are_no_model(tiny: Tiny, tmp_path: Path) -> None:
    def refused(folder: Path | str, words: str) -> None:
        with pytest.raises(EncoderUnavailable, match=words):
            load_visual_encoder(f"colpali:{folder}")

    refused(tmp_path, "is no model")
    refused(tmp_path / "missing", "no such model folder")
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file", "is a file")

    model = Path(shutil.copytree(tiny("ColModernVBert"), tmp_path / "model"))
    config = json.loads((model / "config.json").read_text())
    for architecture in ("BiModernVBert", "ColModernVBertForRetrieval"):
        (model / "config.json").write_text(json.dumps({**config, "architectures": [architecture]}))
        refused(model, f"it names {architecture}")
    (model / "config.json").write_text(json.dumps({"model_type": "bert"}))
    refused(model, "it names bert")
    (model / "config.json").write_text("{")
    refused(model, "cannot be read")

    (model / "config.json").write_text(json.dumps({**config, "architectures": ["ModernVBertModel"]}))
    assert load_visual_encoder(f"colpali:{model}").dim == 128  # by its type, and it has the projection
    whole = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(whole[:5000])
    refused(model, "cannot be loaded")
    (model / "model.safetensors").unlink()
    refused(model, "has no weights")

    from safetensors.torch import load_file, save_file

    weights = load_file(tiny("ColModernVBert") / "model.safetensors")
    backbone = {key: value for key, value in weights.items() if "custom_text_proj" not in key}
    save_file(backbone, model / "model.safetensors", metadata={"format": "pt"})
    refused(model, "no projection layer")

    adapter = Path(shutil.copytree(tiny("ColModernVBert+adapter"), tmp_path / "adapter"))
    settings = json.loads((adapter / "adapter_config.json").read_text())
    settings["base_model_name_or_path"] = "nobody/nothing"
    (adapter / "adapter_config.json").write_text(json.dumps(settings))
    with pytest.raises(EncoderUnavailable) as caught:
        load_visual_encoder(f"colpali:{adapter}")
    assert caught.value.hint == "hf download nobody/nothing"


def test_devices_are_obeyed(tiny: Tiny) -> None:
    import torch

    name = f"colpali:{tiny('ColIdefics3')}"
    assert load_visual_encoder(name, device="cpu").dim == 128
    with pytest.raises(UsageError, match="device cannot be"):
        load_visual_encoder(name, device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(EncoderUnavailable, match="cuda is not there"):
            load_visual_encoder(name, device="cuda")


QUIET = """
import socket, sys
def refuse(*_): raise SystemExit("reached for the network")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
from pathlib import Path
from research.encoders.colpali import load_visual_encoder
encoder = load_visual_encoder("colpali:" + sys.argv[1])
encoder.embed_pages([Path(sys.argv[2])])
encoder.embed_question("What is on this page?")
load_visual_encoder("colpali:" + sys.argv[1] + "+int8")
"""


def test_a_local_checkpoint_needs_no_network_and_says_nothing(tiny: Tiny, pages: list[Path]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", QUIET, str(tiny("ColModernVBert+adapter")), str(pages[0])],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_hub_name_in_the_cache_is_found_there(
    tiny: Tiny, pages: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "models--some--model"
    shutil.copytree(tiny("ColModernVBert"), repository / "snapshots" / "abc")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    encoder = load_visual_encoder("colpali:some/model")
    assert encoder.name == "colpali:some/model"
    assert len(encoder.embed_pages(pages[:1])) == 1

    monkeypatch.setattr("research.encoders.libraries.accelerator_there", lambda: True)
    assert colpali_ready("some/model")
    assert not colpali_ready("other/model")
    assert not colpali_ready(DEFAULT_CHECKPOINT)
    (repository / "snapshots" / "abc" / "model.safetensors").unlink()
    assert not colpali_ready("some/model")


def test_weights_that_are_nowhere_name_the_command_to_fetch_them(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tiny
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EncoderUnavailable, match="HF_HUB_OFFLINE") as caught:
        load_visual_encoder("colpali")
    assert caught.value.hint.endswith(f"hf download {DEFAULT_CHECKPOINT}")
