"""Settings: flags, then CTX_* variables, then ctx.toml, then the user's config, then defaults."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from research.errors import UsageError

PROJECT_FOLDER = ".ctx"
PROJECT_FILE = "ctx.toml"

_CHOICES = {"ocr": ("off", "auto", "force"), "ocr_engine": ("auto", "tesseract", "rapidocr")}


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a user can set. Names are the same in ctx.toml; CTX_MAX_TOKENS sets max_tokens."""

    index: str = ""  # folder; empty: the nearest .ctx upward, else the user's data folder
    max_tokens: int = 10_000
    max_sources: int = 10
    num_results: int = 10
    mode: str = "hybrid"
    token_encoding: str = "o200k_base"
    text_encoder: str = ""  # empty: the one inside the package
    images: bool = True  # draw page images and thumbnails
    ocr: str = "auto"  # off, auto or force
    ocr_engine: str = "auto"  # auto, tesseract or rapidocr
    visual: str = "auto"  # auto, regions, off, or a model: hub name or folder
    device: str = "auto"  # where a visual model runs: auto, cpu, cuda or mps


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Merge all layers. Flags that are None were not given. Raises `UsageError` for anything unknown."""
    folder = folder or Path.cwd()
    environment = os.environ if environment is None else environment
    merged: dict[str, Any] = {}
    for path in (user_config(), *_project_files(folder)):
        merged.update(_from_file(path))
    merged.update(_from_environment(environment))
    merged.update({key: value for key, value in (flags or {}).items() if value is not None})
    return Settings(**merged)


def index_folder(settings: Settings, folder: Path | None = None) -> Path:
    """Where the index is, without making it."""
    if settings.index:
        return Path(settings.index).expanduser().absolute()
    for candidate in _upward(folder or Path.cwd()):
        if (candidate / PROJECT_FOLDER).is_dir():
            return candidate / PROJECT_FOLDER
    return user_data()


def user_data() -> Path:
    from platformdirs import user_data_path

    return user_data_path("ctx", appauthor=False)


def user_config() -> Path:
    from platformdirs import user_config_path

    return user_config_path("ctx", appauthor=False) / "config.toml"


def _upward(folder: Path) -> Iterator[Path]:
    folder = folder.absolute()
    yield folder
    yield from folder.parents


def _project_files(folder: Path) -> list[Path]:
    """The nearest ctx.toml upward, if there is one."""
    return next(([c / PROJECT_FILE] for c in _upward(folder) if (c / PROJECT_FILE).is_file()), [])


def _from_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    import tomllib

    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}", hint="mend the file or move it away") from error
    checked = {key: _typed(key, value, f"{path}") for key, value in found.items()}
    if checked.get("index"):
        # A relative folder in a file means relative to that file, wherever the command runs.
        checked["index"] = str(path.parent / Path(checked["index"]).expanduser())
    return checked


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for field in fields(Settings):
        name = f"CTX_{field.name.upper()}"
        if environment.get(name):
            found[field.name] = _typed(field.name, environment[name], name)
    return found


def _typed(key: str, value: Any, where: str) -> Any:
    known: dict[str, type] = {field.name: type(field.default) for field in fields(Settings)}
    if key not in known:
        raise UsageError(f"{where}: unknown setting {key!r}", hint="known settings: " + ", ".join(known))
    wanted = known[key]
    if wanted is bool:
        return _switch(key, value, where)
    if wanted is int:
        try:
            number = int(str(value))  # of the text, because int() takes true for 1 and cuts 1.5 to 1
        except ValueError:
            raise UsageError(f"{where}: {key} must be a whole number, not {value!r}") from None
        if number < 0:
            raise UsageError(f"{where}: {key} cannot be negative")
        return number
    if not isinstance(value, str):
        raise UsageError(f"{where}: {key} must be text, not {value!r}")
    if value not in _CHOICES.get(key, (value,)):
        raise UsageError(f"{where}: {key} cannot be {value!r}", hint="choose one of: " + ", ".join(_CHOICES[key]))
    return value


def _switch(key: str, value: Any, where: str) -> bool:
    known = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if str(value).lower() not in known:
        raise UsageError(f"{where}: {key} must be true or false, not {value!r}")
    return known[str(value).lower()]
