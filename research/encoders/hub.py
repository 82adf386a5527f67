"""Where a model's files are: a folder, or the local cache of the model hub.

Only `locate(…, download=True)` reaches the network, and only ingest asks for that, for a name the user gave in that
run. Weights are safetensors: pickled ones can run code, so they are neither fetched nor read.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from research.encoders.quiet import quiet
from research.errors import EncoderUnavailable

WEIGHTS = "model.safetensors"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
PATTERNS = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja")
TIMEOUT = 10  # seconds for the hub to answer at all

_WHAT_IT_IS = "name a folder with config.json and weights, or a hub name such as ModernVBERT/colmodernvbert"
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def locate(checkpoint: str, *, download: bool) -> Path:
    """The folder of a checkpoint: its own, absolute, or the hub's snapshot, complete with weights. Only a hub name may
    be fetched, and only with `download`."""
    folder = as_folder(checkpoint)
    if folder is not None:
        return folder
    cached = cached_folder(checkpoint)
    if cached is not None and complete(cached):
        return cached
    fetch = f"hf download {checkpoint}"
    if offline():
        raise EncoderUnavailable(
            f"the weights of {checkpoint!r} are not on this machine, and HF_HUB_OFFLINE forbids fetching them",
            hint=f"HF_HUB_OFFLINE=0 {fetch}",
        )
    if not download:
        raise EncoderUnavailable(f"the weights of {checkpoint!r} are not on this machine", hint=fetch)
    return _fetch(checkpoint, hint=fetch)


def as_folder(checkpoint: str, *, typed: bool = False) -> Path | None:
    """The folder this names, None for a hub name. Something that can only be a path and is no folder is an error.

    A name that the user `typed` may be relative to where they stand. One that an index or a file remembers may not:
    a folder that somebody planted there would take the place of the hub's model of that name.
    """
    path = Path(checkpoint).expanduser() if typed else Path(checkpoint)
    if typed or path.is_absolute():
        if path.is_dir():
            return path.resolve()
        if path.exists():
            raise EncoderUnavailable(f"{checkpoint} is a file, and a model is a folder", hint=_WHAT_IT_IS)
    if not _HUB_NAME.fullmatch(checkpoint):
        raise EncoderUnavailable(f"no such model folder: {checkpoint}", hint=_WHAT_IT_IS)
    return None


def cached_folder(name: str) -> Path | None:
    """The snapshot of a hub name in the local cache, whole or not."""
    repository = _cache() / f"models--{name.replace('/', '--')}"
    try:
        revision = (repository / "refs" / "main").read_text().strip()
    except OSError:
        return None
    snapshot = repository / "snapshots" / revision
    return snapshot if snapshot.is_dir() else None


def at_hand(checkpoint: str) -> bool:
    """Whether everything this checkpoint needs, its base model included, lies on this machine."""
    try:
        folder = as_folder(checkpoint) or cached_folder(checkpoint)
        if folder is None or not complete(folder):
            return False
        base = base_of(folder)
        return base is None or at_hand(base)
    except EncoderUnavailable:
        return False


def base_of(folder: Path) -> str | None:
    """The checkpoint an adapter folder builds on; None for a folder that is no adapter or brings its own base."""
    if (folder / "config.json").is_file() or not (folder / "adapter_config.json").is_file():
        return None
    base = read_json(folder / "adapter_config.json").get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        raise EncoderUnavailable(f"{folder / 'adapter_config.json'} names no base model")
    return base


def locate_base(folder: Path, *, download: bool) -> Path | None:
    """Where the checkpoint lies that an adapter folder builds on; None as `base_of`."""
    base = base_of(folder)
    if base is not None and not Path(base).is_absolute() and Path(base).exists():
        # The libraries would take this folder for the base model, whatever it holds.
        raise EncoderUnavailable(
            f"{folder} builds on {base}, and a folder of that name lies where you stand", hint="run ctx elsewhere"
        )
    return None if base is None else locate(base, download=download)


def complete(folder: Path) -> bool:
    """Whether the weights a folder speaks of are all there (a download may have stopped half-way)."""
    if (folder / "adapter_config.json").is_file():
        return (folder / ADAPTER_WEIGHTS).is_file()
    if not weight_files(folder) and (folder / "modules.json").is_file():
        return any(folder.glob(f"*/{WEIGHTS}"))  # a text model may keep them in a module's folder
    return bool(weight_files(folder)) and all(path.is_file() for path in weight_files(folder))


def weight_files(folder: Path) -> list[Path]:
    """The files with a checkpoint's weights, as its index names them. An adapter's own are among them."""
    own = [folder / ADAPTER_WEIGHTS] if (folder / ADAPTER_WEIGHTS).is_file() else []
    index = folder / f"{WEIGHTS}.index.json"
    if index.is_file():
        parts = read_json(index).get("weight_map")
        return own + sorted({folder / str(part) for part in (parts or {}).values()})
    return [*own, folder / WEIGHTS] if (folder / WEIGHTS).is_file() else own


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EncoderUnavailable(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise EncoderUnavailable(f"{path} is no configuration")
    return content


def offline() -> bool:
    return any(
        os.environ.get(name, "").lower() in {"1", "true", "yes", "on"}
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )


def _fetch(name: str, *, hint: str) -> Path:
    try:
        with quiet():
            from huggingface_hub import snapshot_download

            return Path(snapshot_download(name, allow_patterns=list(PATTERNS), etag_timeout=TIMEOUT))
    except Exception as error:  # the hub client raises its own, its HTTP library's and the system's
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise EncoderUnavailable(
            f"the weights of {name!r} are not on this machine and could not be fetched: {reason}", hint=hint
        ) from error


def _cache() -> Path:
    """Where the hub client keeps what it downloads, by the same variables it reads."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser()
    home = os.environ.get("HF_HOME")
    if home:
        return Path(home).expanduser() / "hub"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface" / "hub"
