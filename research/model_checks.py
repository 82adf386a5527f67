"""Models that the user names: who would be contacted, and whether what they name is there and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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
from research.errors import CtxError
from research.reports import Check, Contact, Status
from research.settings import Settings

_ENCODER, _RERANKER = "text encoder", "reranker"
_LEAVE_OUT = "leave the setting out, or name another model"


def contacts(settings: Settings, status: Status) -> tuple[Contact, ...]:
    """Who would hear of a question or a document with these settings; nobody is asked for that."""
    encoders = [settings.text_encoder]  # of the next ingest; the index's own is asked by every question
    if status.text_encoder not in status.encoders_not_allowed:
        encoders.insert(0, status.text_encoder)
    found = [Contact(_ENCODER, encoder_address(name).url) for name in encoders if is_encoder_address(name)]
    if is_reranker_address(settings.reranker):
        found.append(Contact(_RERANKER, reranker_address(settings.reranker).url))
    return tuple(dict.fromkeys(found))


def check_models(settings: Settings, of_index: Sequence[Check]) -> list[Check]:
    """Try what the settings name. `of_index` are the checks of the index, whose own encoder was tried there. One that
    fails is a warning: what is asked is answered without it."""
    found: list[Check] = []
    if is_encoder_address(settings.text_encoder):
        found += _tried(_ENCODER, lambda: _encoder(settings, of_index))
    if settings.reranker not in ("", "off"):
        found += _tried(_RERANKER, lambda: _reranker(settings))
    return found


def _tried(use: str, check: Callable[[], Iterator[Check]]) -> list[Check]:
    try:
        return list(check())
    except CtxError as error:
        return [Check(use, "warning", error.message, error.hint or _LEAVE_OUT)]


def _encoder(settings: Settings, of_index: Sequence[Check]) -> Iterator[Check]:
    from research.encoders.registry import check_text_encoder, identify_text_encoder

    name = identify_text_encoder(settings.text_encoder)
    url = encoder_address(name).url
    yield from _in_the_clear(_ENCODER, url, ENCODER_KEY)
    if not any(check.name == "text" and url in check.message for check in of_index):
        yield Check(_ENCODER, "ok", check_text_encoder(name, timeout=settings.request_timeout))


def _reranker(settings: Settings) -> Iterator[Check]:
    from research.search.reranker import describe

    if is_reranker_address(settings.reranker):
        yield from _in_the_clear(_RERANKER, reranker_address(settings.reranker).url, RERANKER_KEY)
    yield Check(_RERANKER, "ok", describe(settings.reranker, settings.request_timeout))


def _in_the_clear(use: str, url: str, own: str) -> Iterator[Check]:
    key = key_for(url, own)
    if key.value and url.startswith("http:") and not is_this_machine(url):
        yield Check(use, "warning", f"the key in {key.variable} goes unencrypted to {url}", "take an https address")
