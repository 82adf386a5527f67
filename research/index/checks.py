"""Checks of what is installed (Python, packages, the shipped models and tables), of models that are named, and that
nothing reports home."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from research.addresses import (
    encoder_address,
    is_encoder_address,
    is_reranker_address,
    is_this_machine,
    parse_address,
    reranker_address,
)
from research.errors import CtxError, UsageError
from research.lazy import switch_off
from research.reports import Check, Contact, Status
from research.secret import ENCODER_KEY, RERANKER_KEY, find_key
from research.settings import Settings
from research.store import check_sqlite, guarded

# Every package that pyproject.toml names, so that a broken installation is told by name.
PACKAGES = (
    "chromadb",
    "filelock",
    "httpx",
    "jinja2",
    "lazy-loader",
    "numpy",
    "onnxruntime",
    "pillow",
    "platformdirs",
    "pydantic",
    "pymupdf",
    "PyStemmer",
    "rapidfuzz",
    "rapidocr",
    "regex",
    "rich",
    "tiktoken",
    "tokenizers",
    "typer",
    "typing-extensions",
    "watchfiles",
)
REINSTALL = "pip install --force-reinstall ctx-research"


def check_installation() -> list[Check]:
    """All of them, in order. A check never raises: what goes wrong is what it reports."""
    return [
        *guarded("python", _python, REINSTALL),
        *guarded("packages", check_packages, REINSTALL),
        *guarded("sqlite", check_sqlite, REINSTALL),
        *guarded("encoder", check_encoder, REINSTALL),
        *guarded("tokens", check_token_tables, REINSTALL),
        *guarded("telemetry", _telemetry, REINSTALL),
    ]


def _python() -> Iterator[Check]:
    yield Check("python", "ok", f"{sys.version.split()[0]} at {sys.executable}")


def check_packages(names: tuple[str, ...] = PACKAGES) -> Iterator[Check]:
    from importlib.metadata import PackageNotFoundError, version

    found, missing = [], []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        yield Check("packages", "error", f"not installed: {', '.join(missing)}", REINSTALL)
    else:
        yield Check("packages", "ok", ", ".join(found))


def check_encoder(folder: Path | None = None) -> Iterator[Check]:
    from research.encoders import minilm

    problems = minilm.verify_files(folder or minilm.FOLDER)
    if problems:
        yield Check("encoder", "error", "; ".join(problems), REINSTALL)
    else:
        yield Check("encoder", "ok", "the model's files are the published ones")


def check_token_tables(folder: Path | None = None) -> Iterator[Check]:
    """The tables as files. One that is damaged in the middle opens, and counts wrong."""
    from research.context import tokens
    from research.files import verify

    problems = verify(folder or tokens.FOLDER, tokens.SHIPPED)
    if problems:
        yield Check("tokens", "error", f"token counts cannot be trusted: {'; '.join(problems)}", REINSTALL)
    else:
        names = " and ".join(name.removesuffix(".bin") for name in tokens.SHIPPED)
        yield Check("tokens", "ok", f"the tables of {names} are the published ones")


def _telemetry() -> Iterator[Check]:
    from importlib.metadata import version

    seen = look()
    names = f"ONNX Runtime {version('onnxruntime')} and Chroma {version('chromadb')}"
    if not seen.ran:
        yield Check("telemetry", "error", f"{names} could not be looked at: they do not run", REINSTALL)
    elif seen.left_behind:
        message = f"{names}: a question to the encoder left {', '.join(seen.left_behind)} in an empty home"
        yield Check("telemetry", "error", message, REINSTALL)
    elif seen.chroma_reports:
        yield Check("telemetry", "error", f"{names}: Chroma is set to report its use", REINSTALL)
    else:
        yield Check("telemetry", "ok", f"off in {names}: tried in an empty home, they left nothing there")


_HOMES = ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "LOCALAPPDATA", "APPDATA")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the encoder and Chroma did in a home of their own."""

    left_behind: tuple[str, ...]  # files they wrote there: a device id, a queue of events
    chroma_reports: bool  # what Chroma's settings say
    ran: bool = True


def look() -> Seen:
    """Run the encoder and open Chroma once in a process with an empty home, and see what that leaves there."""
    with tempfile.TemporaryDirectory(prefix="ctx-telemetry-") as folder:
        home, work = Path(folder, "home"), Path(folder, "work")
        home.mkdir()
        work.mkdir()
        environment = {**os.environ, **dict.fromkeys(_HOMES, str(home)), "PYTHONPATH": _our_home()}
        done = subprocess.run(
            [sys.executable, "-P", "-m", "research.index.checks", str(work)],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        left = sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())
    return Seen(tuple(left), chroma_reports=done.stdout.strip() != "off", ran=done.returncode == 0)


def _our_home() -> str:
    return str(Path(__file__).parent.parent.parent)


def _try_out(folder: Path) -> None:
    from research.encoders import load_text_encoder
    from research.store import open_client

    load_text_encoder().embed_query("telemetry")
    client = open_client(folder)
    sys.stdout.write("on" if client.get_settings().anonymized_telemetry else "off")
    client.close()


if __name__ == "__main__":
    switch_off()
    _try_out(Path(sys.argv[1]))


_ENCODER, _RERANKER, _MODEL, _MEMORY = "text encoder", "reranker", "model", "memory service"
_PACKAGES = "packages"
_LOCAL = "local"
_SHOWN = 5
_LEAVE_OUT = "leave the setting out, or name another model"


def contacts(settings: Settings, status: Status) -> tuple[Contact, ...]:
    """Who would hear of a question or a document with these settings; nobody is asked for that."""
    encoders = [settings.text_encoder]  # of the next ingest; the index's own is asked by every question
    if status.text_encoder not in status.encoders_not_allowed:
        encoders.insert(0, status.text_encoder)
    found = [Contact(_ENCODER, encoder_address(name).url) for name in encoders if is_encoder_address(name)]
    if is_reranker_address(settings.reranker):
        found.append(Contact(_RERANKER, reranker_address(settings.reranker).url))
    if settings.model and settings.model != _LOCAL and settings.model_url:
        found.append(Contact(_MODEL, parse_address(settings.model_url).base))
    if os.environ.get("SA01_SOMA_BASE_URL", "").strip():  # hears of turns alone: ctx turn, and those of a server
        from research.conversation import SomaSettings

        with suppress(UsageError):  # told where it is used
            found.append(Contact(_MEMORY, SomaSettings.from_environment().base_url))
    if settings.redis_url:
        from research.packages import shown_address

        found.append(Contact(_PACKAGES, shown_address(settings.redis_url)))
    return tuple(dict.fromkeys(found))


def check_models(settings: Settings, of_index: Sequence[Check]) -> list[Check]:
    """Try what the settings name. `of_index` are the checks of the index, whose own encoder was tried there. One that
    fails is a warning: what is asked is answered without it."""
    found: list[Check] = []
    if is_encoder_address(settings.text_encoder):
        found += _tried(_ENCODER, lambda: _encoder(settings, of_index))
    if settings.reranker not in ("", "off"):
        found += _tried(_RERANKER, lambda: _reranker(settings))
    if settings.model:
        found += _tried(_MODEL, lambda: _model(settings))
    return found


def _tried(use: str, check: Callable[[], Iterator[Check]]) -> list[Check]:
    try:
        return list(check())
    except CtxError as error:
        return [Check(use, "warning", error.message, error.hint or _LEAVE_OUT)]


def _encoder(settings: Settings, of_index: Sequence[Check]) -> Iterator[Check]:
    from research.encoders import check_text_encoder, identify_text_encoder

    name = identify_text_encoder(settings.text_encoder)
    url = encoder_address(name).url
    yield from _in_the_clear(_ENCODER, url, ENCODER_KEY)
    if not any(check.name == "text" and url in check.message for check in of_index):
        yield Check(_ENCODER, "ok", check_text_encoder(name, timeout=settings.request_timeout))


def _reranker(settings: Settings) -> Iterator[Check]:
    from research.search import describe

    if is_reranker_address(settings.reranker):
        yield from _in_the_clear(_RERANKER, reranker_address(settings.reranker).url, RERANKER_KEY)
    yield Check(_RERANKER, "ok", describe(settings.reranker, settings.request_timeout))


def _model(settings: Settings) -> Iterator[Check]:
    """It is asked which models it has; nothing is written, for that may cost money."""
    from research.answer import OpenAIModel, open_model

    with open_model(settings) as client:
        if not isinstance(client, OpenAIModel):
            yield Check(_MODEL, "ok", f"{client.host} is installed; it runs here, and nobody is contacted")
            return
        if client.key is not None and client.address.base.startswith("http:") and not client.address.loopback:
            yield Check(_MODEL, "warning", f"the key goes unencrypted to {client.host}", "take an https address")
        served = client.models()
    names = [each.name for each in served]
    window = next((each.window for each in served if each.name == settings.model), 0)
    if names and not any(name in (settings.model, f"{settings.model}:latest") for name in names):
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        yield Check(_MODEL, "warning", f"{client.host} answers, and has no {settings.model}", f"it has: {shown}")
        return
    size = f", {window:,} tokens" if window else ""
    yield Check(_MODEL, "ok", f"{client.host} answers, with {settings.model}{size}")


def _in_the_clear(use: str, url: str, own: str) -> Iterator[Check]:
    key = find_key(url, own)
    if key.secret and url.startswith("http:") and not is_this_machine(url):
        yield Check(use, "warning", f"the key in {key.variable} goes unencrypted to {url}", "take an https address")
