"""Which text encoder a run uses, and what naming an encoder allows from then on."""

from __future__ import annotations

from ingest.report import Observer
from research.encoders.allowed import check_allowed, remember
from research.encoders.registry import DEFAULT, identify_text_encoder
from research.settings import Settings
from research.store.catalog import vectors
from research.store.catalog.catalog import Catalog


def chosen_encoder(catalog: Catalog, settings: Settings, observer: Observer) -> str:
    """The full name of the encoder the user names, else of the index's own, else of the embedded one. An index's own
    that the user has not allowed is refused: another in its place would embed everything anew, unasked."""
    known = vectors.encoder_of(catalog)
    if settings.text_encoder:
        name = identify_text_encoder(settings.text_encoder, fetching=lambda model: _note_fetching(model, observer))
        keep_permission(name, observer)
        return name
    check_allowed(known, settings.named_encoders)
    return known or DEFAULT


def _note_fetching(model: str, observer: Observer) -> None:
    observer.noted(f"the weights of {model} are not on this machine; asking the model hub for them")


def keep_permission(name: str, observer: Observer) -> None:
    """The user named this encoder to an ingest: a later question may load it."""
    try:
        remember(name)
    except OSError as error:
        observer.noted(
            f"that you named {name} cannot be remembered ({error.strerror or error}); questions need it named again"
        )
