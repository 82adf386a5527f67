"""A checkpoint of the ColPali family: which of the models that colpali-engine offers it is, told by its own files; its
model and processor, loaded from this machine only.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from research.encoders import checkpoints
from research.encoders.checkpoints import DIGITS, add_weights
from research.errors import EncoderUnavailable

Layout = Literal["tiles", "grid", "square"]
"""How image vectors lie on a page: tiles with a patch grid each, the grid the processor reports, or one square grid."""

HEADS = ("custom_text_proj", "linear")
"""What colpali-engine calls the layer that makes vectors of a backbone's states. Missing in the files, it would be
filled with random numbers, other ones each time."""

_SAFE = {"local_files_only": True, "trust_remote_code": False}

_NESTED_HEAD = re.compile(r"^(base_model\.model\.)?model\.custom_text_proj\.")


@dataclass(frozen=True, slots=True)
class Family:
    """Class names in colpali_engine.models, and the layout of a page's vectors."""

    model: str
    processor: str
    model_type: str  # of the config.json of its checkpoints
    layout: Layout


FAMILIES = (
    Family("ColPali", "ColPaliProcessor", "paligemma", "square"),
    Family("ColGemma3", "ColGemmaProcessor3", "gemma3", "square"),
    Family("ColQwen2", "ColQwen2Processor", "qwen2_vl", "grid"),
    Family("ColQwen2_5", "ColQwen2_5_Processor", "qwen2_5_vl", "grid"),
    Family("ColQwen3", "ColQwen3Processor", "qwen3_vl", "grid"),
    Family("ColQwen3_5", "ColQwen3_5Processor", "qwen3_5", "grid"),
    Family("ColQwen2_5Omni", "ColQwen2_5OmniProcessor", "qwen2_5_omni_thinker", "grid"),
    Family("ColIdefics3", "ColIdefics3Processor", "idefics3", "tiles"),
    Family("ColModernVBert", "ColModernVBertProcessor", "modernvbert", "tiles"),
)
_BY_ARCHITECTURE = {family.model: family for family in FAMILIES}
_BY_TYPE = {family.model_type: family for family in FAMILIES}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint found on this machine. Its folder may be an adapter's, with another one for its model."""

    name: str  # what an index remembers it by
    places: list[Path]
    family: Family

    @property
    def folder(self) -> Path:
        return self.places[0]

    @property
    def processor(self) -> Path:
        """The folder with the processor's files; many adapters bring none of their own."""
        has_own = any((self.folder / name).is_file() for name in ("preprocessor_config.json", "processor_config.json"))
        return self.folder if has_own else self.places[-1]


def find_checkpoint(checkpoint: str, *, typed: bool = False) -> Checkpoint:
    """Locate a checkpoint as `checkpoints.find` does, and tell its family."""
    own, places = checkpoints.find(checkpoint, typed=typed)
    family = _family(*places)
    for place in places:
        if not checkpoints.complete(place):
            raise EncoderUnavailable(f"{place} has no weights, or not all that its index names")
    name = checkpoint if own is None else f"{own}@{_fingerprint(places)}"
    return Checkpoint(name, places, family)


def _family(folder: Path, base: Path | None = None) -> Family:
    config = (base or folder) / "config.json"
    if not config.is_file():
        raise EncoderUnavailable(f"{folder} is no model: it has neither config.json nor adapter_config.json")
    content = checkpoints.read_json(config)
    adapter = checkpoints.read_json(folder / "adapter_config.json") if base else {}
    mapping = adapter.get("auto_mapping") or {}
    listed = content.get("architectures")
    named = [mapping.get("base_model_class"), *map(str, listed if isinstance(listed, list) else ())]
    for architecture in named:
        if architecture in _BY_ARCHITECTURE:
            return _BY_ARCHITECTURE[architecture]
    model_type = content.get("model_type")
    # A bare backbone has the type of its family but no projection; the encoder notices the missing weights.
    # A class that says outright it is something else (a BiEncoder, transformers' own …ForRetrieval) is not taken.
    other = [name for name in named if isinstance(name, str) and name.startswith(("Bi", "Col"))]
    if not other and model_type in _BY_TYPE:
        return _BY_TYPE[str(model_type)]
    found = ", ".join(str(name) for name in named if name) or model_type or "nothing"
    known = ", ".join(family.model for family in FAMILIES)
    raise EncoderUnavailable(f"{folder} is no checkpoint colpali-engine loads: it names {found}, not one of {known}")


def _fingerprint(places: list[Path]) -> str:
    """Twelve digits that change when the configuration or the weights do."""
    digest = hashlib.sha256()
    for place in places:
        for name in ("config.json", "adapter_config.json"):
            if (place / name).is_file():
                digest.update((place / name).read_bytes())
        for path in checkpoints.weight_files(place):
            add_weights(digest, path)
    return digest.hexdigest()[:DIGITS]


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
    for folder in checkpoint.places:
        for path in checkpoints.weight_files(folder):
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
