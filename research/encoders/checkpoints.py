"""A model's files: where they are, whether they are all there and still the same, and that they ask for nothing else.

They lie in a folder, or in the local cache of the model hub. Only `locate(…, download=True)` reaches the network, and
only ingest asks for that, for a name the user gave in that run. Weights are safetensors: pickled ones can run code, so
they are neither fetched nor read.

A model is data: numbers in safetensors, and settings in JSON. The libraries behind it read more out of a folder: a
module's class or a keyword argument can name code to import, a place to write to, or compute kernels to fetch. They are
told not to (`trust_remote_code=False`, `use_safetensors=True`); that alone would leave out what they do not count as
remote code. Here a folder that asks for any of it is refused, whoever named it, before any library opens it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from research.encoders.libraries import quiet
from research.errors import EncoderUnavailable

if TYPE_CHECKING:
    from hashlib import _Hash

WEIGHTS = "model.safetensors"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
PATTERNS = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja")
TIMEOUT = 10  # seconds for the hub to answer at all

_WHAT_IT_IS = "name a folder with config.json and weights, or a hub name such as ModernVBERT/colmodernvbert"
HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")

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

DIGITS = 12
# Pieces of a weights file that enter its fingerprint: enough to notice another training, quick on gigabytes.
SAMPLES = 64
SAMPLE = 4096

_NAME = re.compile(
    rf"(?:(?P<kind>sentence-transformers|colpali):)?(?P<model>.+?)(?:@(?P<mark>[0-9a-f]{{{DIGITS}}}))?"
    r"(?P<int8>\+int8)?(?:\+pool(?P<pool>[1-9]\d*))?"
)


class Name(NamedTuple):
    """An encoder's name in its parts."""

    kind: str  # empty where a user left it out
    model: str  # a folder or a hub name
    mark: str = ""  # the fingerprint of its files; empty where there is none
    int8: bool = False
    pool: int = 1

    @classmethod
    def of(cls, name: str) -> Name:
        match = _NAME.fullmatch(name)
        if match is None:
            return cls("", name)
        return cls(
            match["kind"] or "", match["model"], match["mark"] or "", bool(match["int8"]), int(match["pool"] or 1)
        )


def find(model: str, *, typed: bool = False) -> tuple[Path | None, list[Path]]:
    """Locate a model on this machine and check that its files are safe to load. Returns its folder if it was named by
    one, and where its files are: in that or the hub's, then those of the model that an adapter builds on.

    One that the user `typed` may be a relative folder, and a hub name that is not in the cache is fetched; for a folder
    nothing ever is, not even the base model of an adapter.
    """
    own = as_folder(model, typed=typed)
    folder = own or locate(model, download=typed)
    base = locate_base(folder, download=typed and own is None)
    places = [folder, *([base] if base else [])]
    for place in places:
        check_files(place)
    return own, places


def to_fetch(model: str) -> bool:
    """Whether finding this model, which the user typed, would ask the hub for it."""
    return as_folder(model, typed=True) is None and not at_hand(model) and not offline()


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
    if not HUB_NAME.fullmatch(checkpoint):
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
    content = _read(path)
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


def add_weights(digest: _Hash, path: Path) -> None:
    """A weights file by its name, its size and samples of its content."""
    size = path.stat().st_size
    digest.update(f"{path.name}:{size}".encode())
    with path.open("rb") as file:
        for number in range(SAMPLES):
            file.seek(size * number // SAMPLES)
            digest.update(file.read(SAMPLE))


def add_file(digest: _Hash, name: str, path: Path) -> None:
    """A small file as a whole."""
    content = path.read_bytes()
    digest.update(f"{name}:{len(content)}".encode())
    digest.update(content)
