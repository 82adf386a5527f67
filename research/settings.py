"""Settings: flags, then CTX_* variables, then ctx.toml, then the user's config, then defaults.

A ctx.toml is found, not chosen: it may have come with a folder from anywhere. What loads code, opens a connection or
writes outside that folder is therefore the user's own to set, and refused by name in a found file. Each setting says so
itself, where it is declared.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from research.errors import UntrustedError, UsageError

PROJECT_FOLDER = ".ctx"
PROJECT_FILE = "ctx.toml"

_CHOICES = {"ocr": ("off", "auto", "force"), "ocr_engine": ("auto", "tesseract", "rapidocr")}

_USERS_OWN = "users_own"  # why a found ctx.toml may not set it
_INSIDE = "inside"  # a folder, which a found ctx.toml may set only inside its own
_FLAG = "flag"  # the option that sets it
_SEPARATOR = "separator"  # between the entries of a list in a CTX_* variable


def _own(default: Any, why: str, **more: str) -> Any:
    """A setting that only flags, CTX_* variables and the user's own config may give."""
    return field(default=default, metadata={_USERS_OWN: why, **more})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a user can set. Names are the same in ctx.toml; CTX_MAX_TOKENS sets max_tokens."""

    # A folder; empty: the nearest .ctx upward, else the user's data folder.
    index: str = field(default="", metadata={_INSIDE: "it says where files are written", _FLAG: "--index"})
    max_tokens: int = 10_000
    max_sources: int = 10
    num_results: int = 10
    mode: str = "hybrid"
    token_encoding: str = "o200k_base"
    text_encoder: str = _own("", "it names a model to load")  # empty: the one inside the package
    images: bool = True  # draw page images and thumbnails
    ocr: str = "auto"  # off, auto or force
    ocr_engine: str = "auto"  # auto, tesseract or rapidocr
    ocr_language: str = ""  # tesseract's names, joined by +: deu, deu+eng; empty: English, else what is installed
    # auto, regions, off, or a model: hub name or folder
    visual: str = _own("auto", "it names a model to load", flag="--visual")
    # where a visual model runs: auto, cpu, cuda or mps
    device: str = _own("auto", "it chooses what a model runs on", flag="--device")
    # models an index may ask for, by name or folder, though nobody named them on this machine
    allowed_encoders: tuple[str, ...] = _own((), "it permits models to be loaded", separator=",")
    # folders whose .ctx and ctx.toml are used though somebody else owns or may write them
    safe_folders: tuple[str, ...] = _own((), "it says whom to trust", separator=os.pathsep)

    @property
    def named_encoders(self) -> tuple[str, ...]:
        """Every encoder the user names here, which is the permission to load it."""
        return tuple(name for name in (self.text_encoder, self.visual, *self.allowed_encoders) if name)


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Merge all layers. Flags that are None were not given. Raises `UsageError` for anything unknown."""
    folder = folder or Path.cwd()
    environment = os.environ if environment is None else environment
    own = _from_environment(environment) | {key: value for key, value in (flags or {}).items() if value is not None}
    users = _from_file(user_config())
    safe = (users | own).get("safe_folders", ())
    found: dict[str, Any] = {}
    for path in _project_files(folder):
        _check_owner(path, safe)
        found = _from_file(path)
        _check_found(found, path)
    if found.get("index") and "index" not in own and Path(found["index"]).exists():
        _check_owner(Path(found["index"]), safe)
    return Settings(**(users | found | own))


def index_folder(settings: Settings, folder: Path | None = None) -> Path:
    """Where the index is, without making it."""
    if settings.index:
        return Path(settings.index).expanduser().absolute()
    for candidate in _upward(folder or Path.cwd()):
        found = candidate / PROJECT_FOLDER
        if found.is_dir():
            _check_owner(found, settings.safe_folders)
            return found
    return user_data()


def _check_owner(found: Path, safe_folders: tuple[str, ...]) -> None:
    """What nobody named is used only if it is the user's own."""
    from research.ownership import is_safe, why_strange

    reason = why_strange(found)
    if not reason or is_safe(found, safe_folders):
        return
    import shlex

    instead = f"name it with --index {shlex.quote(str(found))}" if found.is_dir() else "move it away"
    raise UntrustedError(
        f"found {found}, and did not use it: it {reason}",
        hint=f"{instead}, or if you trust it, add {shlex.quote(str(found.parent))} to safe_folders in {user_config()}",
    )


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


def _check_found(found: Mapping[str, Any], path: Path) -> None:
    """Refuse what a file may not decide that lies in a folder and was not named by anybody."""
    for setting in fields(Settings):
        own, inside = setting.metadata.get(_USERS_OWN), setting.metadata.get(_INSIDE)
        if setting.name not in found:
            continue
        if own:
            raise UsageError(
                f"{path}: {setting.name} is the user's own to set, because {own}; a file found in a folder may not",
                hint=_elsewhere(setting),
            )
        if inside and found[setting.name] and not _is_inside(Path(found[setting.name]), path.parent):
            raise UsageError(
                f"{path}: {setting.name} leads out of that folder, to {found[setting.name]}; because {inside}, a file"
                " found in a folder may name only places inside it",
                hint=_elsewhere(setting),
            )


def _elsewhere(setting: Field[Any]) -> str:
    """Where the user may say it instead."""
    flag = setting.metadata.get(_FLAG)
    variable = f"CTX_{setting.name.upper()}=…"
    return f"take it out; say it yourself with {f'{flag} …, ' if flag else ''}{variable}, or in {user_config()}"


def _is_inside(place: Path, folder: Path) -> bool:
    """Whether a path stays in a folder, with every link followed. (realpath, because resolve() raises for a loop.)"""
    return Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder))


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for setting in fields(Settings):
        name = f"CTX_{setting.name.upper()}"
        value: Any = environment.get(name)
        if value:
            separator = setting.metadata.get(_SEPARATOR)
            if separator:
                value = [entry.strip() for entry in value.split(separator) if entry.strip()]
            found[setting.name] = _typed(setting.name, value, name)
    return found


def _typed(key: str, value: Any, where: str) -> Any:
    known: dict[str, type] = {setting.name: type(setting.default) for setting in fields(Settings)}
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
    if wanted is tuple:
        if not isinstance(value, list) or not all(isinstance(entry, str) and entry for entry in value):
            raise UsageError(f"{where}: {key} must be a list of texts, not {value!r}")
        return tuple(value)
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
