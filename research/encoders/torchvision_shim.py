"""Lets torchvision load beside a torch without CUDA.

The torchvision on PyPI is built for CUDA. Its compiled operators do not load beside a CPU torch, yet its Python
side registers shapes for two of them on import and fails with `operator torchvision::nms does not exist`, which
transformers then hides behind `Could not import module …`. Nothing an encoder does calls either operator
(they suppress overlapping detection boxes), so declaring their names is enough.
"""

from __future__ import annotations

import importlib.machinery
import sys
from typing import Any

SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}

_kept: list[Any] = []  # a torch Library withdraws its definitions when it is collected


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
