"""Models that the user names: who would be contacted, and whether what they name is there and answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from research.addresses import (
    ENCODER_KEY,
    RERANKER_KEY,
    encoder_address,
    is_encoder_address,
    is_reranker_address,
    is_this_machine,
    key_for,
    reranker_address,
)
from research.errors import CtxError, UsageError
from research.reports import Check, Contact, Status
from research.settings import Settings

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
        from research.address import parse_address

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
    key = key_for(url, own)
    if key.value and url.startswith("http:") and not is_this_machine(url):
        yield Check(use, "warning", f"the key in {key.variable} goes unencrypted to {url}", "take an https address")
