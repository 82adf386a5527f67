"""The libraries behind models: kept quiet while they work, and torchvision made to load beside a torch without CUDA.

The torchvision on PyPI is built for CUDA. Its compiled operators do not load beside a CPU torch, yet its Python side
registers shapes for two of them on import and fails with `operator torchvision::nms does not exist`, which transformers
then hides behind `Could not import module …`. Nothing an encoder does calls either operator (they suppress overlapping
detection boxes), so declaring their names is enough.
"""

from __future__ import annotations

import importlib.machinery
import logging
import os
import platform
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DEFAULT_CHECKPOINT = "ModernVBERT/colmodernvbert"
"""The visual model where none is named."""

PACKAGES = ("torch", "torchvision", "transformers", "peft", "PIL", "colpali_engine")

SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}

_kept: list[Any] = []  # a torch Library withdraws its definitions when it is collected


@contextmanager
def quiet() -> Iterator[None]:
    """Keep to themselves what these libraries say on the way: bars, warnings, log lines. Nor is anything for their
    makers. The hub's client, which transformers follows, reads once that it is to report nothing and draw no bars."""
    os.environ.update(HF_HUB_DISABLE_TELEMETRY="1", DO_NOT_TRACK="1", HF_HUB_DISABLE_PROGRESS_BARS="1")
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(before)


def is_there(package: str) -> bool:
    """Whether a package could be imported; it is not."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # blocked, or half removed
        return False


def missing_packages() -> list[str]:
    return [name for name in PACKAGES if not is_there(name)]


def accelerator_there() -> bool:
    """Whether torch could find an accelerator here, told without importing it (that takes seconds)."""
    try:
        build = version("torch")
    except PackageNotFoundError:
        return False
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    if build.endswith("+cpu") or os.environ.get("CUDA_VISIBLE_DEVICES", "0") in {"", "-1"}:
        return False
    nodes = ("/dev/kfd",) if "rocm" in build else ("/dev/nvidiactl", "/dev/dxg")
    return any(Path(node).exists() for node in nodes)


def installed() -> bool:
    """Whether the packages of the `visual` extra are there. Imports none of them."""
    return not missing_packages()


def colpali_ready(checkpoint: str = DEFAULT_CHECKPOINT) -> bool:
    """Whether `auto` may choose colpali: the extra is installed, the weights are on this machine and so is an
    accelerator. Imports no torch and never reaches the network."""
    if not (installed() and accelerator_there()):
        return False
    from research.encoders.checkpoints import at_hand

    return at_hand(checkpoint)


def allow_torchvision() -> None:
    """Declare the operators torchvision asks for, if this torch has no CUDA and they are not there. Call it before
    anything imports torchvision; calling it again does nothing."""
    if _kept or "torchvision" in sys.modules:
        return
    import torch

    if torch.version.cuda is not None or not _is_cuda_build():
        return
    make: Any = torch.library.Library
    library = make("torchvision", "FRAGMENT")
    for schema in SCHEMAS.values():
        library.define(schema)
    _kept.append(library)


def _is_cuda_build() -> bool:
    """Whether the installed torchvision's own operators fail to load here."""
    import torch

    spec = importlib.machinery.PathFinder.find_spec("torchvision")
    if spec is None or not spec.submodule_search_locations:
        return False
    extension = importlib.machinery.PathFinder.find_spec("_C", list(spec.submodule_search_locations))
    if extension is None or extension.origin is None:
        return True
    operators: Any = torch.ops
    try:
        operators.load_library(extension.origin)
    except OSError:
        return True
    return not hasattr(operators.torchvision, "nms")
