"""The text encoder of a run: which one, what naming it allows from then on, and loading it no sooner than needed.

Items, which are code, commits and whatever else is kept beside documents, get their vectors here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ingest.report import Observer
from research.addresses import is_encoder_address
from research.encoders import (
    DEFAULT,
    OpenAIEncoder,
    SentenceTransformersEncoder,
    TextEncoder,
    alike,
    check_allowed,
    hand_over,
    identify_text_encoder,
    is_light,
    load_text_encoder,
    remember,
)
from research.errors import EncoderUnavailable
from research.governance import check_encoder
from research.observe import logger_of
from research.parallel import Workers
from research.settings import Settings
from research.store import (
    Catalog,
    chunk_vectors,
    fitting_parts,
    make_folder,
    numbers_without_vectors,
    pending_items,
    write_item_vectors,
)

_BATCH = 128  # items a commit: a few seconds of work, all that a kill can cost

log = logger_of("ingest")


class RunEncoder:
    """The encoder by its full name; loaded once, at its first use or beforehand."""

    def __init__(self, name: str = DEFAULT, *, named: bool = False, timeout: int = 0) -> None:
        """`named`: by the user, in this run. `timeout`: seconds that an address may take; 0 is the usual."""
        self.name = name
        self._named = named
        self._timeout = timeout
        self._encoder: TextEncoder | None = None
        self._looked: OpenAIEncoder | None = None  # asked once, and not as patiently

    def load(self) -> TextEncoder:
        if self._encoder is None:
            self._encoder = load_text_encoder(self.name, timeout=self._timeout)
        return self._encoder

    def is_other_than(self, catalog: Catalog) -> bool:
        """Whether the index was filled by another encoder: one of another name, or another model behind the address
        that the user names. A server that is down decides nothing."""
        known = chunk_vectors.encoder_of(catalog)
        if not known or known != self.name:
            return bool(known)
        if not self._named or not is_encoder_address(self.name):
            return False
        self._looked = self._looked or OpenAIEncoder(self.name, timeout=self._timeout)
        try:
            return not _fills(catalog, self._looked)
        except EncoderUnavailable as error:
            log.info("whether %s is still the same could not be told: %s", self.name, error.message)
            self._named = False  # once is enough
            return False

    def declare(self, catalog: Catalog) -> bool:
        """Make it the encoder of the index. True if all vectors that were there went, though its name is the same."""
        encoder = self.load()
        if not isinstance(encoder, OpenAIEncoder):
            chunk_vectors.set_encoder(catalog, encoder.name, encoder.dim)
            return False
        changed = chunk_vectors.encoder_of(catalog) == encoder.name and not _fills(catalog, encoder)
        chunk_vectors.set_encoder(
            catalog, encoder.name, encoder.tried.dim, sketch=encoder.tried.sketch, changed=changed
        )
        return changed

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Load it on a thread while other processes start and read.

        What fails in between waits for the thread, so that none is left behind; a run that is stopped does not.
        """
        call = Workers("ctx-encoder").start(lambda: self.load().embed_query(""))
        try:
            yield
        except Exception:
            call.wait()
            raise
        if error := call.wait().error:
            log.warning("the text encoder %s could not be loaded ahead of time", self.name, exc_info=error)

    def token_counter(self, folder: Path) -> str:
        """What reading processes are to count tokens by; `folder` is where a tokenizer is handed over to them."""
        if is_light(self.name):
            return self.name
        encoder = self.load()
        tokenizer = encoder.tokenizer_json() if isinstance(encoder, SentenceTransformersEncoder) else ""
        if not tokenizer:
            return self.name
        make_folder(folder)
        return hand_over(tokenizer, encoder.max_tokens, folder / "tokens.json")


def _fills(catalog: Catalog, encoder: OpenAIEncoder) -> bool:
    """Whether what answers at the address gives vectors like those of the index."""
    sketch = chunk_vectors.sketch_of(catalog)
    return encoder.tried.dim == chunk_vectors.dim_of(catalog) and (not sketch or alike(encoder.tried.sketch, sketch))


def choose_text_encoder(catalog: Catalog, settings: Settings, observer: Observer) -> str:
    """The full name of the encoder the user names, else of the index's own, else of the embedded one. An index's own
    that the user has not allowed is refused: another in its place would embed everything anew, unasked."""
    known = chunk_vectors.encoder_of(catalog)
    if settings.text_encoder:
        name = identify_text_encoder(settings.text_encoder, fetching=lambda model: note_fetching(model, observer))
        check_encoder(name, settings)
        remember_permission(name, observer)
        return name
    check_allowed(known, settings.named_encoders)
    check_encoder(known, settings)
    return known or DEFAULT


def encoder_for_items(catalog: Catalog, settings: Settings, observer: Observer, what: str) -> RunEncoder:
    """The one that the index has, else the one that the user names. Where these differ, documents would have to be
    embedded anew, which is for an ingest of documents to do."""
    known = chunk_vectors.encoder_of(catalog)
    name = choose_text_encoder(catalog, settings, observer)
    if known and known != name:
        observer.on_note(f"{what} embedded by {known}, as this index is; to change it: ctx ingest PATH")
    return RunEncoder(known or name, named=bool(settings.text_encoder), timeout=settings.request_timeout)


def embed_items(catalog: Catalog, kind: str, encoder: RunEncoder, observer: Observer) -> int:
    """How many items were given their vectors."""
    numbers = numbers_without_vectors(catalog, kind, encoder.name)
    if not numbers:
        return 0
    loaded = encoder.load()
    if not chunk_vectors.encoder_of(catalog):
        encoder.declare(catalog)
    observer.on_progress("embed", 0, len(numbers))
    done = 0
    for start in range(0, len(numbers), _BATCH):
        pending = pending_items(catalog, numbers[start : start + _BATCH])
        parts, owners = fitting_parts(pending, loaded)
        if parts:
            write_item_vectors(catalog, loaded.name, owners, loaded.embed(parts))
        done += len(pending)
        observer.on_progress("embed", done, len(numbers))
    return done


def note_fetching(model: str, observer: Observer) -> None:
    observer.on_note(f"the weights of {model} are not on this machine; asking the model hub for them")


def remember_permission(name: str, observer: Observer) -> None:
    """The user named this encoder to an ingest: a later question may load it."""
    try:
        remember(name)
    except OSError as error:
        observer.on_note(
            f"that you named {name} cannot be remembered ({error.strerror or error}); questions need it named again"
        )
