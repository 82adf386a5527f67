"""A checkpoint's model and processor, loaded from this machine's files only."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from research.encoders import checkpoints
from research.encoders.visual.families import Checkpoint
from research.errors import EncoderUnavailable

HEADS = ("custom_text_proj", "linear")
"""What colpali-engine calls the layer that makes vectors of a backbone's states. Missing in the files, it would be
filled with random numbers, other ones each time."""

_SAFE = {"local_files_only": True, "trust_remote_code": False}

_NESTED_HEAD = re.compile(r"^(base_model\.model\.)?model\.custom_text_proj\.")


def load_model(models: Any, checkpoint: Checkpoint, dtype: Any, *, int8: bool) -> Any:
    """The model, ready to embed, on the CPU."""
    kind = _class(models, checkpoint.family.model)
    keys = _keys(checkpoint)
    if not any(part in HEADS for key in keys for part in key.split(".")):
        raise EncoderUnavailable(
            f"{checkpoint.folder} is a backbone, no late-interaction checkpoint: its weights have no projection layer"
        )
    options: dict[str, Any] = {**_SAFE, "use_safetensors": True, "dtype": dtype, "output_loading_info": True}
    if any(_NESTED_HEAD.match(key) for key in keys):
        # Some published checkpoints keep the projection inside the backbone, where colpali-engine does not look.
        options["key_mapping"] = {
            _NESTED_HEAD.pattern: "custom_text_proj.",
            **getattr(kind, "_checkpoint_conversion_mapping", {}),
        }
    try:
        model, info = kind.from_pretrained(str(checkpoint.folder), **options)
    except Exception as error:  # five libraries read the files, each with errors of its own
        raise _unloadable(checkpoint.folder, error) from error
    missing = sorted(_field(info, "missing_keys"))
    if any(part in HEADS for key in missing for part in key.split(".")):
        raise EncoderUnavailable(f"{checkpoint.folder} does not fit {checkpoint.family.model}: {missing[0]} is missing")
    if _field(info, "mismatched_keys"):
        raise EncoderUnavailable(f"{checkpoint.folder} does not fit {checkpoint.family.model}: shapes differ")
    _settle(model, checkpoint)
    model.eval()
    return _quantised(model) if int8 else model


def load_processor(models: Any, checkpoint: Checkpoint) -> Any:
    kind = _class(models, checkpoint.family.processor)
    try:
        return kind.from_pretrained(str(checkpoint.processor), **_SAFE)
    except Exception as error:  # as above
        raise _unloadable(checkpoint.processor, error) from error


def _settle(model: Any, checkpoint: Checkpoint) -> None:
    """ColPali leaves its output layer without storage: files share it with the input layer, but its own tie_weights
    reaches only the inner language model. The backbone around that knows the tie."""
    if any(parameter.is_meta for parameter in model.parameters()):
        getattr(model, "model", model).tie_weights()
    empty = [name for name, parameter in model.named_parameters() if parameter.is_meta]
    if empty:
        raise EncoderUnavailable(f"{checkpoint.folder} does not fit {checkpoint.family.model}: {empty[0]} is missing")


def _quantised(model: Any) -> Any:
    import torch
    from peft.tuners.tuners_utils import BaseTunerLayer

    for module in model.modules():
        if isinstance(module, BaseTunerLayer):
            module.merge()
    quantize: Any = torch.ao.quantization.quantize_dynamic
    return quantize(model, {torch.nn.Linear}, dtype=torch.qint8, inplace=True)


def _keys(checkpoint: Checkpoint) -> list[str]:
    """Names of the weights in the checkpoint's files, the base model's and the adapter's."""
    from safetensors import SafetensorError, safe_open

    keys: list[str] = []
    for folder in (checkpoint.base, checkpoint.folder):
        for path in checkpoints.weight_files(folder) if folder else []:
            try:
                with safe_open(path, framework="numpy") as file:
                    keys += file.keys()
            except (SafetensorError, OSError) as error:
                raise _unloadable(path, error) from error
    return keys


def _class(models: Any, name: str) -> Any:
    kind = getattr(models, name, None)
    if kind is None:
        raise EncoderUnavailable(f"the installed colpali-engine has no {name}", hint="pip install -U colpali-engine")
    return kind


def _field(info: Any, name: str) -> Any:
    return info.get(name, ()) if isinstance(info, dict) else getattr(info, name, ())


def _unloadable(place: Path, error: Exception) -> EncoderUnavailable:
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    return EncoderUnavailable(f"the checkpoint {place} cannot be loaded: {reason}")
