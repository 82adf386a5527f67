"""The encoders of a run: which ones, what naming them allows from then on, and loading them no sooner than needed.

Items, which are code, commits and whatever else is kept beside documents, get their vectors here, and so do page images
and lines: with `regions` only lines that OCR read are embedded, everything else it compares are the text side's own
vectors; with a visual model every page image is. A model that cannot run costs the visual side, never the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import research.encoders as encoding  # whose names load what they need, at their first use
from ingest.report import Observer, report_failure
from research.addresses import is_encoder_address
from research.errors import CtxError, EncoderUnavailable, UsageError
from research.governance import check_encoder
from research.observe import logger_of
from research.parallel import Workers
from research.records import FailedPage, pack_boxes
from research.settings import Settings
from research.store import OFF, REGIONS, Catalog, PageBlobs, PageImage, fitting_parts, ledger, make_folder, visual_kind

if TYPE_CHECKING:
    from ingest.stages import Work
    from research.encoders import OpenAIEncoder, PageVectors, TextEncoder, VisualEncoder

_BATCH = 128  # items a commit: a few seconds of work, all that a kill can cost

log = logger_of("ingest")


class RunEncoder:
    """The encoder by its full name; loaded once, at its first use or beforehand."""

    def __init__(self, name: str = encoding.DEFAULT, *, named: bool = False, timeout: int = 0) -> None:
        """`named`: by the user, in this run. `timeout`: seconds that an address may take; 0 is the usual."""
        self.name = name
        self._named = named
        self._timeout = timeout
        self._encoder: TextEncoder | None = None
        self._looked: OpenAIEncoder | None = None  # asked once, and not as patiently

    def load(self) -> TextEncoder:
        if self._encoder is None:
            self._encoder = encoding.load_text_encoder(self.name, timeout=self._timeout)
        return self._encoder

    def is_other_than(self, catalog: Catalog) -> bool:
        """Whether the index was filled by another encoder: one of another name, or another model behind the address
        that the user names. A server that is down decides nothing."""
        known = catalog.chunks.encoder()
        if not known or known != self.name:
            return bool(known)
        if not self._named or not is_encoder_address(self.name):
            return False
        self._looked = self._looked or encoding.OpenAIEncoder(self.name, timeout=self._timeout)
        try:
            return not _fills(catalog, self._looked)
        except EncoderUnavailable as error:
            log.info("whether %s is still the same could not be told: %s", self.name, error.message)
            self._named = False  # once is enough
            return False

    def declare(self, catalog: Catalog) -> bool:
        """Make it the encoder of the index. True if all vectors that were there went, though its name is the same."""
        encoder = self.load()
        if not is_encoder_address(self.name):
            catalog.chunks.set_encoder(encoder.name, encoder.dim)
            return False
        assert isinstance(encoder, encoding.OpenAIEncoder)
        changed = catalog.chunks.encoder() == encoder.name and not _fills(catalog, encoder)
        catalog.chunks.set_encoder(encoder.name, encoder.tried.dim, sketch=encoder.tried.sketch, changed=changed)
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
        if encoding.is_light(self.name):
            return self.name
        encoder = self.load()
        tokenizer = encoder.tokenizer_json() if isinstance(encoder, encoding.SentenceTransformersEncoder) else ""
        if not tokenizer:
            return self.name
        make_folder(folder)
        return encoding.hand_over(tokenizer, encoder.max_tokens, folder / "tokens.json")


def _fills(catalog: Catalog, encoder: OpenAIEncoder) -> bool:
    """Whether what answers at the address gives vectors like those of the index."""
    sketch, tried = catalog.chunks.sketch(), encoder.tried
    return tried.dim == catalog.chunks.dim() and (not sketch or encoding.alike(tried.sketch, sketch))


def choose_text_encoder(catalog: Catalog, settings: Settings, observer: Observer) -> str:
    """Return the full name of the encoder the user names, else of the index's own, else of the embedded one. An index's
    own that the user has not allowed is refused: another in its place would embed everything anew, unasked."""
    known = catalog.chunks.encoder()
    if settings.text_encoder:
        name = encoding.identify_text_encoder(settings.text_encoder, lambda model: _note_fetching(model, observer))
        check_encoder(name, settings)
        _remember_permission(name, observer)
        return name
    if not encoding.is_embedded(known):
        encoding.check_allowed(known, settings.named_encoders)
    check_encoder(known, settings)
    return known or encoding.DEFAULT


def encoder_for_items(catalog: Catalog, settings: Settings, observer: Observer, what: str) -> RunEncoder:
    """Take the encoder that the index has, else the one that the user names. Where these differ, documents would have
    to be embedded anew, which is for an ingest of documents to do."""
    known = catalog.chunks.encoder()
    name = choose_text_encoder(catalog, settings, observer)
    if known and known != name:
        observer.on_note(f"{what} embedded by {known}, as this index is; to change it: ctx ingest PATH")
    return RunEncoder(known or name, named=bool(settings.text_encoder), timeout=settings.request_timeout)


def embed_items(catalog: Catalog, kind: str, encoder: RunEncoder, observer: Observer) -> int:
    """Give vectors to the items of a kind that have none; return how many."""
    numbers = catalog.items.without_vectors(kind, encoder.name)
    if not numbers:
        return 0
    loaded = encoder.load()
    if not catalog.chunks.encoder():
        encoder.declare(catalog)
    observer.on_progress("embed", 0, len(numbers))
    done = 0
    for start in range(0, len(numbers), _BATCH):
        pending = catalog.items.pending(numbers[start : start + _BATCH])
        parts, owners = fitting_parts(pending, loaded)
        if parts:
            catalog.items.write_vectors(loaded.name, owners, loaded.embed(parts))
        done += len(pending)
        observer.on_progress("embed", done, len(numbers))
    return done


def _note_fetching(model: str, observer: Observer) -> None:
    observer.on_note(f"the weights of {model} are not on this machine; asking the model hub for them")


def _remember_permission(name: str, observer: Observer) -> None:
    """The user named this encoder to an ingest: a later question may load it."""
    if encoding.is_embedded(name):
        return
    try:
        encoding.remember(name)
    except OSError as error:
        observer.on_note(
            f"that you named {name} cannot be remembered ({error.strerror or error}); questions need it named again"
        )


_PAGES = 8  # with lines to embed, a commit


def choose_visual(work: Work) -> None:
    """Settle which encoder works, before anything is read, and say what changing it means. A model that is not there
    is told at once, and costs the visual side only."""
    known = work.catalog.visual.encoder()
    try:
        work.visual = _chosen(work, known)
    except UsageError:
        raise
    except CtxError as error:
        _fail(work, error)
        return
    model = is_by_model(work)
    if model and (work.settings.visual != "auto" or not known):
        _remember_permission(work.visual, work.observer)
    if model and not work.settings.images:
        raise UsageError(
            "a visual model looks at page images, and images are switched off",
            hint="leave out --no-images, or choose --visual regions",
        )
    pages = work.catalog.pages.count()
    if pages and known and _kind(known) != _kind(work.visual):
        work.observer.on_note(
            f"the visual side of this index is by {known}; {pages} pages change to {work.visual}"
            " (their text and its vectors stay)"
        )


def is_by_model(work: Work) -> bool:
    """Whether a visual model looks at page images."""
    return visual_kind(work.visual) == "model"


def open_regions(work: Work) -> None:
    """Let `regions` answer as soon as the text side has vectors, long before OCR is through."""
    name = work.catalog.chunks.encoder()
    if work.visual == REGIONS and name:
        work.catalog.visual.set_encoder(f"{REGIONS}:{name}", work.catalog.chunks.dim())


def embed_pages(work: Work) -> None:
    """Bring the visual side up to date, whichever it is."""
    if not work.visual:
        return
    lines = work.catalog.visual.pages_with_new_lines() if work.visual == REGIONS else []
    encoder = work.encoder.load() if lines else None
    try:
        if work.visual == OFF:
            work.catalog.visual.set_encoder(OFF, 0)
        elif is_by_model(work):
            _embed_images(work)
        elif encoder is not None:
            _embed_lines(work, lines, encoder)
        work.catalog.visual.set_problem("")
    except CtxError as error:
        _fail(work, error)


def _chosen(work: Work, known: str) -> str:
    wanted = work.settings.visual
    if wanted == "auto":
        if visual_kind(known) == "regions":
            return REGIONS  # whose text encoder is the text side's to choose
        if known:
            encoding.check_allowed(known, work.settings.named_encoders)
            return known
        return f"colpali:{encoding.DEFAULT_CHECKPOINT}" if encoding.colpali_ready() else REGIONS
    if wanted in (REGIONS, OFF):
        return wanted
    checkpoint = encoding.checkpoint_of(wanted)
    if encoding.checkpoints.to_fetch(checkpoint):
        _note_fetching(checkpoint, work.observer)
    return encoding.identify(wanted)


def _embed_lines(work: Work, pages: Sequence[int], encoder: TextEncoder) -> None:
    """Vectors of what OCR read, line by line: finer than a chunk, and placed exactly."""
    work.observer.on_progress("visual", 0, len(pages))
    for start in range(0, len(pages), _PAGES):
        part = pages[start : start + _PAGES]
        work.catalog.visual.write(list(_line_vectors(work.catalog, part, encoder)))
        work.observer.on_progress("visual", start + len(part), len(pages))


def _embed_images(work: Work) -> None:
    """Vectors of page images by a visual model, page by page."""
    known = (work.catalog.visual.encoder(), work.catalog.visual.dim())
    if known[0] == work.visual and not work.catalog.visual.unseen_images():
        return
    encoder = encoding.load_visual_encoder(work.visual, device=work.settings.device)
    if known[0] == encoder.name and known[1] not in (0, encoder.dim):
        work.observer.on_note(
            f"{encoder.name} now gives vectors of {encoder.dim} dimensions, not {known[1]}; all pages are seen anew"
        )
    work.catalog.visual.set_encoder(encoder.name, encoder.dim)
    images = work.catalog.visual.unseen_images()
    work.observer.on_progress("visual", 0, len(images))
    for done, image in enumerate(images, start=1):
        _embed_image(work, image, encoder)
        work.observer.on_progress("visual", done, len(images))


def _embed_image(work: Work, image: PageImage, encoder: VisualEncoder) -> None:
    work.summary.visual_pages += 1
    try:
        seen = encoder.embed_pages([Path(image.path)])[0]
    except CtxError as error:
        failed = FailedPage(image.page, ledger.STAGE_VISUAL, "visual_failed", error.message)
        work.catalog.visual.give_up(image, failed)
        work.summary.visual_failures.append(f"{image.name}: {error.message}")
        report_failure(work, image.source_path, failed)
    else:
        work.catalog.visual.write([_blobs(image.page_id, seen)])


def _fail(work: Work, error: CtxError) -> None:
    work.visual = ""
    work.summary.visual_error = error.message
    work.summary.visual_hint = error.hint
    work.catalog.visual.set_problem(error.message)
    work.observer.on_note(f"the visual side is left as it is: {error.message}; the text side goes on")


def _kind(name: str) -> str:
    """The name without what may change unseen: the text encoder that `regions` shares."""
    return REGIONS if visual_kind(name) == "regions" else name


def _line_vectors(catalog: Catalog, page_ids: Sequence[int], encoder: TextEncoder) -> Iterator[PageBlobs]:
    for page_id in page_ids:
        lines = catalog.visual.lines(page_id)
        texts = [encoding.fitting(line.text, encoder) for line in lines]
        packed = encoding.pack(encoder.embed(texts)) if texts else b""
        yield PageBlobs(page_id, b"", b"", b"", packed)  # the lines have their boxes themselves


def _blobs(page_id: int, page: PageVectors) -> PageBlobs:
    first = encoding.first_stage(page.vectors).astype("<f2").tobytes()
    sketch, full = encoding.pack(page.vectors, bits=encoding.SKETCH), encoding.pack(page.vectors)
    return PageBlobs(page_id, first, pack_boxes(page.boxes), sketch, full)
