"""Late interaction against a plain loop, packed vectors, and what may be imported."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from research.encoders import maxsim as module
from research.encoders.maxsim import CANDIDATES, SKETCH, first_stage, maxsim, pack, score, stack, unpack
from tests.pace import draws

Floats = NDArray[np.float32]


def unit(vectors: NDArray[np.floating]) -> Floats:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def made(seed: int, *shape: int) -> Floats:
    return unit(np.random.default_rng(seed).standard_normal(shape))


@given(counts=st.lists(st.integers(0, 7), max_size=8), block=st.integers(1, 12), seed=st.integers(0, 99))
@draws(100)
def test_scores_are_those_of_a_plain_loop(counts: list[int], block: int, seed: int) -> None:
    pages = [made(seed + number, count, 16) if count else np.zeros((0, 16), np.float32)
             for number, count in enumerate(counts)]  # fmt: skip
    question = made(seed + 50, 3, 16)
    plain = [float((question @ page.T).max(axis=1).sum()) if len(page) else 0.0 for page in pages]
    before, module.BLOCK = module.BLOCK, block
    try:
        offsets = np.cumsum([0, *counts])
        together = np.concatenate([*pages, np.zeros((0, 16), np.float32)])
        assert np.allclose(maxsim(question, together, offsets), plain, atol=1e-5)
        assert np.allclose(score(question, stack([pack(page) for page in pages])), plain, atol=1e-3)
    finally:
        module.BLOCK = before


def test_sixteen_bits_keep_scores_within_a_thousandth() -> None:
    vectors, question = made(1, 832, 128), made(2, 40, 128)
    blob = pack(vectors)
    assert len(blob) == pytest.approx(832 * 260, abs=16)
    exact = (question @ vectors.T).max(axis=1).sum()
    assert abs(score(question, stack([blob]))[0] - exact) < 1e-3
    assert np.abs(unpack(blob) - vectors).max() < 1e-5
    assert unpack(pack(np.zeros((2, 8), np.float32))).tolist() == [[0.0] * 8] * 2


def test_pages_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match="different encoders"):
        stack([pack(made(1, 2, 16)), pack(made(1, 2, 24))])
    with pytest.raises(ValueError, match="cut off"):
        stack([pack(made(1, 2, 16))[:-1]])
    with pytest.raises(ValueError, match="dimensions"):
        score(made(1, 2, 24), stack([pack(made(1, 2, 16))]))
    assert score(made(1, 2, 24), stack([])).shape == (0,)


@pytest.mark.slow
def test_sketches_find_the_exact_top_ten_among_the_candidates() -> None:
    """Patches that share little with their page: the case where one vector a page finds next to nothing."""
    pick = np.random.default_rng(5)
    words = made(6, 1000, 128)
    pages = []
    for _ in range(800):
        own = words[pick.choice(pick.integers(0, 1000, 40), 60)]
        pages.append(unit(own + 0.05 * pick.standard_normal(own.shape) + 0.04))
    full, sketches = stack([pack(page) for page in pages]), stack([pack(page, bits=SKETCH) for page in pages])
    found = 0
    for number in range(20):
        question = unit(pages[number][:12] + 0.05 * pick.standard_normal((12, 128)))
        best = set(np.argsort(-score(question, full))[:10].tolist())
        found += len(best & set(np.argsort(-score(question, sketches))[:CANDIDATES].tolist()))
    assert found / 200 >= 0.99


def test_a_sketch_of_any_width() -> None:
    vectors = made(3, 5, 20)
    assert np.array_equal(np.sign(unpack(pack(vectors, bits=SKETCH))), np.sign(vectors))


def test_the_first_stage_vector_is_the_shared_direction() -> None:
    vectors = made(8, 30, 16)
    assert np.allclose(first_stage(vectors), unit(vectors.mean(axis=0)), atol=1e-5)
    assert first_stage(np.zeros((0, 16), np.float32)).tolist() == [0.0] * 16


LOADED = """
import sys
import research.encoders.colpali, research.encoders.libraries, research.encoders.maxsim
research.encoders.libraries.colpali_ready()
print(" ".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_importing_loads_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=60)
    heavy = {"torch", "numpy", "transformers", "colpali_engine", "torchvision", "peft", "PIL", "huggingface_hub"}
    assert not heavy & set(done.stdout.split())


BLOCKED = """
import sys
for name in sys.argv[1:]:
    sys.modules[name] = None
from research.errors import CtxError
from research.encoders.colpali import load_visual_encoder
from research.encoders.libraries import colpali_ready
assert not colpali_ready()
try:
    load_visual_encoder("colpali")
except CtxError as error:
    print(error.message, "|", error.hint)
"""


def test_without_the_extra_the_error_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, "colpali_engine", "torchvision"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    message, _, hint = done.stdout.strip().partition(" | ")
    assert "colpali_engine" in message
    assert hint == "pip install 'ctx-research[visual]'"
    assert "torch" not in done.stderr
