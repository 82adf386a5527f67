"""What a model's files may not ask for, looked at before any library opens them.

A model is data: numbers in safetensors, and settings in JSON. The libraries behind it read more out of a folder:
pickled weights run code when they are opened, a module's class or a keyword argument can name code to import, a place
to write to, or compute kernels to fetch. They are told not to (`trust_remote_code=False`, `use_safetensors=True`); that
alone would leave out what they do not count as remote code. Here a folder that asks for any of it is refused, whoever
named it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from research.encoders.hub import ADAPTER_WEIGHTS, WEIGHTS, weight_files
from research.errors import EncoderUnavailable

_MODULES = "modules.json"
_LONGEST = 32 << 20  # bytes of a configuration; beyond that it is none
_DATA = {"tokenizer.json", "vocab.json", "added_tokens.json"}  # large, and nothing in them names anything
# A class of the library itself. A name in lower case would be a module that some file of it imports, such as pickle.
_OWN_CLASS = re.compile(r"sentence_transformers(\.[a-z_0-9]+)*\.[A-Z]\w*")
# A layer of torch. The library calls whatever stands there: torch itself has functions that run programs.
_ACTIVATIONS = {"activation_function", "activation_fn", "sbert_ce_default_activation_function"}
_OWN_ACTIVATION = re.compile(r"torch\.nn\.(modules\.[a-z_]+\.)?[A-Z]\w*")
_SWITCHES = {"trust_remote_code", "allow_all_kernels", "use_kernels", "kernel_config"}
_KEYWORDS = re.compile(r"(model|tokenizer|processor|config)_(args|kwargs)")
_MODEL_KEYWORDS = {"dtype", "torch_dtype", "attn_implementation", "add_pooling_layer", "low_cpu_mem_usage"}
# Adapters that are numbers alone; others load further models, tokenizers or files.
_ADAPTERS = {"LORA", "ADALORA", "LOHA", "LOKR", "IA3"}
_ADAPTER_TABLES = {"auto_mapping", "rank_pattern", "alpha_pattern"}


def check_files(folder: Path) -> None:
    """Raise `EncoderUnavailable` if loading this model could run code, or reach beyond its folder."""
    for place in places_of(folder):
        _check_weights(place)
        for path in sorted(place.glob("*.json")):
            if path.name not in _DATA:
                _check_settings(path)


def places_of(folder: Path) -> Iterator[Path]:
    """The folder, and those of its modules with all that is below them."""
    yield folder
    for name in sorted(_module_folders(folder)):
        for current, _, _ in os.walk(folder / name):
            yield Path(current)


def _module_folders(folder: Path) -> set[str]:
    found: set[str] = set()
    modules = _read(folder / _MODULES) if (folder / _MODULES).is_file() else []
    for module in modules if isinstance(modules, list) else []:
        found.add(str(module.get("path", "")) if isinstance(module, dict) else "")
    for name in ("router_config.json", "config.json"):  # a model of several routes keeps each in a folder of its own
        content = _read(folder / name) if (folder / name).is_file() else {}
        found.update(_routes(content))
    for name in found:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise _refused(folder / _MODULES, f"leads out of the folder, to {name}")
    return found - {"", "."}


def _check_weights(place: Path) -> None:
    for pattern, sound in (("pytorch_model*", WEIGHTS), ("adapter_model.bin", ADAPTER_WEIGHTS)):
        pickled = sorted(path.name for path in place.glob(pattern))
        if pickled and not (place / sound).is_file() and not (place / f"{sound}.index.json").is_file():
            raise EncoderUnavailable(
                f"{place} has pickled weights ({pickled[0]}), which can run code when they are opened; ctx reads"
                " safetensors only",
                hint=f"take a model that comes with {sound}, or convert it",
            )
    for path in weight_files(place):
        if path.suffix != ".safetensors" or path.parent != place:
            raise _refused(place / f"{WEIGHTS}.index.json", f"names {path.name}, which is no safetensors file in it")


def _check_settings(path: Path) -> None:
    content = _read(path)
    if path.name == _MODULES:
        for module in content if isinstance(content, list) else [content]:
            _check_class(path, module.get("type") if isinstance(module, dict) else module)
    if path.name == "adapter_config.json" and isinstance(content, dict):
        _check_adapter(path, content)
    if path.name.startswith("sentence_") and isinstance(content, dict):
        _check_keywords(path, content)
    for key, value in _entries(content):
        if key in _SWITCHES and value:
            raise _refused(path, f"sets {key}")
        if key in _ACTIVATIONS and "." in str(value) and not _OWN_ACTIVATION.fullmatch(str(value)):
            raise _refused(path, f"names the class {value!r}, which is code of its own")
        if "_implementation" in key and "/" in json.dumps(value):
            raise _refused(path, f"asks for compute kernels from elsewhere ({key})")
    for kind in _routes(content).values():
        _check_class(path, kind)


def _routes(content: Any) -> dict[str, Any]:
    """The parts of a model that is several in one: folder → class."""
    routes = content.get("types") if isinstance(content, dict) and "structure" in content else None
    return routes if isinstance(routes, dict) else {}


def _check_class(path: Path, kind: Any) -> None:
    if not isinstance(kind, str) or not _OWN_CLASS.fullmatch(kind):
        raise _refused(path, f"names the class {kind!r}, which is code of its own")


def _check_adapter(path: Path, content: dict[str, Any]) -> None:
    kind = content.get("peft_type")
    if kind not in _ADAPTERS:
        raise _refused(path, f"is an adapter of the kind {kind!r}, not one of {', '.join(sorted(_ADAPTERS))}")
    for key, value in content.items():
        if isinstance(value, dict) and value and key not in _ADAPTER_TABLES:
            raise _refused(path, f"sets {key}")


def _check_keywords(path: Path, content: dict[str, Any]) -> None:
    """Arguments that a file hands to the function which loads the model."""
    if content.get("tokenizer_name_or_path"):
        raise _refused(path, "takes its tokenizer from elsewhere (tokenizer_name_or_path)")
    for name, keywords in content.items():
        if not _KEYWORDS.fullmatch(name):
            continue
        for key, value in keywords.items() if isinstance(keywords, dict) else ():
            plain = isinstance(value, str | int | float | bool | None) and not re.search(r"[/\\]", str(value))
            if not plain or (name.startswith("model") and key not in _MODEL_KEYWORDS):
                raise _refused(path, f"sets {name}.{key}")


def _entries(content: Any) -> Iterator[tuple[str, Any]]:
    """Every key of a document with its value, however deep."""
    waiting = [content]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield from part.items()
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > _LONGEST:
            raise _refused(path, "is too large for a configuration")
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise EncoderUnavailable(f"{path} cannot be read: {error}") from error


def _refused(path: Path, why: str) -> EncoderUnavailable:
    return EncoderUnavailable(
        f"{path} {why}; ctx loads numbers and settings from a model, never code",
        hint="take another model; ctx works without one, too",
    )
