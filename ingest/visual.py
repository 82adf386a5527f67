"""The visual stage: what the index's visual encoder sees on each page, stored beside the text.

With `regions` only lines that OCR read are embedded here; everything else it compares are the text side's own vectors.
With a visual model every page image is. A model that cannot run costs the visual side, never the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.giving_up import report_failure
from ingest.permission import keep_permission
from ingest.report import IngestSummary, Observer
from research.boxes import pack_boxes
from research.encoders import hub
from research.encoders.allowed import check_allowed
from research.encoders.base import TextEncoder, fitting
from research.encoders.visual.first_stage import first_stage
from research.encoders.visual.packing import SKETCH, pack
from research.encoders.visual.registry import (
    DEFAULT_CHECKPOINT,
    checkpoint_of,
    colpali_ready,
    identify,
    load_visual_encoder,
)
from research.errors import CtxError, UsageError
from research.records import FailedPage
from research.settings import Settings
from research.store.catalog import page_vectors, vectors
from research.store.catalog.catalog import Catalog
from research.store.catalog.ledger import STAGE_VISUAL
from research.store.catalog.page_vectors import OFF, REGIONS, PageBlobs, PageImage
from research.store.catalog.pages import count_pages

if TYPE_CHECKING:
    from research.encoders.visual.base import PageVectors, VisualEncoder

_PAGES = 8  # with lines to embed, a commit


class VisualStage:
    """Chooses the encoder before anything is read, and does its work after the text side is done."""

    def __init__(self, catalog: Catalog, settings: Settings, observer: Observer, summary: IngestSummary) -> None:
        self._catalog = catalog
        self._settings = settings
        self._observer = observer
        self._summary = summary
        self._name = ""  # the encoder of this run; empty where none can work

    @property
    def by_model(self) -> bool:
        """Whether a visual model looks at page images."""
        return bool(self._name) and self._name != OFF and not self._name.startswith(REGIONS)

    def choose(self) -> None:
        """Settle which encoder works, and say what changing it means. A model that is not there is told at once."""
        known = page_vectors.encoder_of(self._catalog)
        try:
            self._name = self._chosen(known)
        except UsageError:
            raise
        except CtxError as error:
            self._fail(error)
            return
        if self.by_model and (self._settings.visual != "auto" or not known):
            keep_permission(self._name, self._observer)
        if self.by_model and not self._settings.images:
            raise UsageError(
                "a visual model looks at page images, and images are switched off",
                hint="leave out --no-images, or choose --visual regions",
            )
        pages = count_pages(self._catalog)
        if pages and known and _kind(known) != _kind(self._name):
            self._observer.noted(
                f"the visual side of this index is by {known}; {pages} pages change to {self._name}"
                " (their text and its vectors stay)"
            )

    def declare(self) -> None:
        """`regions` can answer as soon as the text side has vectors, long before OCR is through."""
        name = vectors.encoder_of(self._catalog)
        if self._name == REGIONS and name:
            page_vectors.set_encoder(self._catalog, f"{REGIONS}:{name}", vectors.dim_of(self._catalog))

    def embed(self, encoder: TextEncoder | None) -> None:
        """Bring the visual side up to date. `encoder` is the text side's, where one is loaded."""
        try:
            if self._name == OFF:
                page_vectors.set_encoder(self._catalog, OFF, 0)
            elif self.by_model:
                self._look()
            elif self._name:
                self._embed_lines(encoder)
            if self._name:
                page_vectors.set_problem(self._catalog, "")
        except CtxError as error:
            self._fail(error)

    def lines_wait(self) -> bool:
        """Whether `embed` will need the text encoder."""
        return self._name == REGIONS and bool(page_vectors.pages_with_new_lines(self._catalog))

    def _chosen(self, known: str) -> str:
        wanted = self._settings.visual
        if wanted == "auto":
            if known.startswith(REGIONS):
                return REGIONS  # whose text encoder is the text side's to choose
            if known:
                check_allowed(known, self._settings.named_encoders)
                return known
            return f"colpali:{DEFAULT_CHECKPOINT}" if colpali_ready() else REGIONS
        if wanted in (REGIONS, OFF):
            return wanted
        checkpoint = checkpoint_of(wanted)
        if hub.as_folder(checkpoint, typed=True) is None and not hub.at_hand(checkpoint) and not hub.offline():
            self._observer.noted(f"the weights of {checkpoint} are not on this machine; asking the model hub for them")
        return identify(wanted)

    def _embed_lines(self, encoder: TextEncoder | None) -> None:
        """Vectors of what OCR read, line by line: finer than a chunk, and placed exactly."""
        self.declare()
        pages = page_vectors.pages_with_new_lines(self._catalog)
        if not pages or encoder is None:
            return
        self._observer.seeing(0, len(pages))
        for start in range(0, len(pages), _PAGES):
            part = pages[start : start + _PAGES]
            page_vectors.write(self._catalog, list(_line_vectors(self._catalog, part, encoder)))
            self._observer.seeing(start + len(part), len(pages))

    def _look(self) -> None:
        """Vectors of page images by a visual model, page by page."""
        known = (page_vectors.encoder_of(self._catalog), page_vectors.dim_of(self._catalog))
        if known[0] == self._name and not page_vectors.unseen_images(self._catalog):
            return
        encoder = load_visual_encoder(self._name, device=self._settings.device)
        if known[0] == encoder.name and known[1] not in (0, encoder.dim):
            self._observer.noted(
                f"{encoder.name} now gives vectors of {encoder.dim} dimensions, not {known[1]}; all pages are seen anew"
            )
        page_vectors.set_encoder(self._catalog, encoder.name, encoder.dim)
        images = page_vectors.unseen_images(self._catalog)
        self._observer.seeing(0, len(images))
        for done, image in enumerate(images, start=1):
            self._look_at(image, encoder)
            self._observer.seeing(done, len(images))

    def _look_at(self, image: PageImage, encoder: VisualEncoder) -> None:
        self._summary.visual_pages += 1
        try:
            seen = encoder.embed_pages([Path(image.path)])[0]
        except CtxError as error:
            failed = FailedPage(image.page, STAGE_VISUAL, "visual_failed", error.message)
            page_vectors.give_up(self._catalog, image, failed)
            self._summary.visual_failures.append(f"{image.name}: {error.message}")
            report_failure(self._summary, self._observer, image.source_path, failed)
        else:
            page_vectors.write(self._catalog, [_blobs(image.page_id, seen)])

    def _fail(self, error: CtxError) -> None:
        self._name = ""
        self._summary.visual_error = error.message
        self._summary.visual_hint = error.hint
        page_vectors.set_problem(self._catalog, error.message)
        self._observer.noted(f"the visual side is left as it is: {error.message}; the text side goes on")


def _kind(name: str) -> str:
    """The name without what may change unseen: the text encoder that `regions` shares."""
    return REGIONS if name.startswith(REGIONS) else name


def _line_vectors(catalog: Catalog, page_ids: Sequence[int], encoder: TextEncoder) -> Iterator[PageBlobs]:
    for page_id in page_ids:
        lines = page_vectors.lines_of(catalog, page_id)
        packed = pack(encoder.embed([fitting(line.text, encoder) for line in lines])) if lines else b""
        yield PageBlobs(page_id, b"", b"", b"", packed)  # the lines have their boxes themselves


def _blobs(page_id: int, page: PageVectors) -> PageBlobs:
    first = first_stage(page.vectors).astype("<f2").tobytes()
    return PageBlobs(page_id, first, pack_boxes(page.boxes), pack(page.vectors, bits=SKETCH), pack(page.vectors))
