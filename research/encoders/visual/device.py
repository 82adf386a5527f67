"""Where a model runs and in which number format."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from research.errors import EncoderUnavailable
from research.settings import check


def choose_device(wanted: str) -> str:
    """auto, cpu, mps, cuda or cuda:N as torch writes it. One that is named but not there is an error."""
    import torch

    check("device", wanted, "device")
    kind, _, number = wanted.partition(":")
    cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if wanted == "auto":
        return "cuda" if cuda else "mps" if mps else "cpu"
    if kind == "cuda" and (not cuda or int(number or 0) >= torch.cuda.device_count()):
        raise EncoderUnavailable(f"the device {wanted} is not there: torch {torch.__version__} does not see it")
    if kind == "mps" and not mps:
        raise EncoderUnavailable(f"the device mps is not there: torch {torch.__version__} does not see it")
    return wanted


def choose_dtype(device: str) -> Any:
    """bfloat16 on an accelerator that has it. Never on a CPU: most must emulate it, six times slower than without; and
    on the few that need not, an index would hold other vectors than on the rest, off by more than a score may be."""
    import torch

    if device.startswith("cuda") and torch.cuda.is_bf16_supported():
        return torch.bfloat16
    return torch.float32


def free_memory(device: str) -> tuple[int, int]:
    """Bytes an accelerator has left for activations, and the most that activations took so far; zeros elsewhere."""
    import torch

    if not device.startswith("cuda"):
        return 0, 0
    held = torch.cuda.memory_allocated(device)
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - held, torch.cuda.max_memory_allocated(device) - held


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
