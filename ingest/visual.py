"""The visual stage: what the index's visual encoder sees on each page, stored beside the text.

With `regions` only lines that OCR read are embedded here; everything else it compares are the text side's own vectors.
With a visual model every page image is. A model that cannot run costs the visual side, never the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ingest.encoder import note_fetching, remember_permission
from ingest.stages import Work, report_failure
from research.boxes import pack_boxes
from research.encoders import (
    DEFAULT_CHECKPOINT,
    SKETCH,
    PageVectors,
    TextEncoder,
    VisualEncoder,
    check_allowed,
    checkpoint_of,
    checkpoints,
    colpali_ready,
    first_stage,
    fitting,
    identify,
    load_visual_encoder,
    pack,
)
from research.errors import CtxError, UsageError
from research.records import FailedPage
from research.store import (
    OFF,
    REGIONS,
    STAGE_VISUAL,
    Catalog,
    PageBlobs,
    PageImage,
    chunk_vectors,
    count_pages,
    page_vectors,
    visual_kind,
)

_PAGES = 8  # with lines to embed, a commit


def choose_visual(work: Work) -> None:
    """Settle which encoder works, before anything is read, and say what changing it means. A model that is not there
    is told at once, and costs the visual side only."""
    known = page_vectors.encoder_of(work.catalog)
    try:
        work.visual = _chosen(work, known)
    except UsageError:
        raise
    except CtxError as error:
        _fail(work, error)
        return
    model = is_by_model(work)
    if model and (work.settings.visual != "auto" or not known):
        remember_permission(work.visual, work.observer)
    if model and not work.settings.images:
        raise UsageError(
            "a visual model looks at page images, and images are switched off",
            hint="leave out --no-images, or choose --visual regions",
        )
    pages = count_pages(work.catalog)
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
    name = chunk_vectors.encoder_of(work.catalog)
    if work.visual == REGIONS and name:
        page_vectors.set_encoder(work.catalog, f"{REGIONS}:{name}", chunk_vectors.dim_of(work.catalog))


def embed_pages(work: Work) -> None:
    """Bring the visual side up to date, whichever it is."""
    if not work.visual:
        return
    lines = page_vectors.pages_with_new_lines(work.catalog) if work.visual == REGIONS else []
    encoder = work.encoder.load() if lines else None
    try:
        if work.visual == OFF:
            page_vectors.set_encoder(work.catalog, OFF, 0)
        elif is_by_model(work):
            _embed_images(work)
        elif encoder is not None:
            _embed_lines(work, lines, encoder)
        page_vectors.set_problem(work.catalog, "")
    except CtxError as error:
        _fail(work, error)


def _chosen(work: Work, known: str) -> str:
    wanted = work.settings.visual
    if wanted == "auto":
        if visual_kind(known) == "regions":
            return REGIONS  # whose text encoder is the text side's to choose
        if known:
            check_allowed(known, work.settings.named_encoders)
            return known
        return f"colpali:{DEFAULT_CHECKPOINT}" if colpali_ready() else REGIONS
    if wanted in (REGIONS, OFF):
        return wanted
    checkpoint = checkpoint_of(wanted)
    if (
        checkpoints.as_folder(checkpoint, typed=True) is None
        and not checkpoints.at_hand(checkpoint)
        and not checkpoints.offline()
    ):
        note_fetching(checkpoint, work.observer)
    return identify(wanted)


def _embed_lines(work: Work, pages: Sequence[int], encoder: TextEncoder) -> None:
    """Vectors of what OCR read, line by line: finer than a chunk, and placed exactly."""
    work.observer.on_progress("visual", 0, len(pages))
    for start in range(0, len(pages), _PAGES):
        part = pages[start : start + _PAGES]
        page_vectors.write(work.catalog, list(_line_vectors(work.catalog, part, encoder)))
        work.observer.on_progress("visual", start + len(part), len(pages))


def _embed_images(work: Work) -> None:
    """Vectors of page images by a visual model, page by page."""
    known = (page_vectors.encoder_of(work.catalog), page_vectors.dim_of(work.catalog))
    if known[0] == work.visual and not page_vectors.unseen_images(work.catalog):
        return
    encoder = load_visual_encoder(work.visual, device=work.settings.device)
    if known[0] == encoder.name and known[1] not in (0, encoder.dim):
        work.observer.on_note(
            f"{encoder.name} now gives vectors of {encoder.dim} dimensions, not {known[1]}; all pages are seen anew"
        )
    page_vectors.set_encoder(work.catalog, encoder.name, encoder.dim)
    images = page_vectors.unseen_images(work.catalog)
    work.observer.on_progress("visual", 0, len(images))
    for done, image in enumerate(images, start=1):
        _embed_image(work, image, encoder)
        work.observer.on_progress("visual", done, len(images))


def _embed_image(work: Work, image: PageImage, encoder: VisualEncoder) -> None:
    work.summary.visual_pages += 1
    try:
        seen = encoder.embed_pages([Path(image.path)])[0]
    except CtxError as error:
        failed = FailedPage(image.page, STAGE_VISUAL, "visual_failed", error.message)
        page_vectors.give_up(work.catalog, image, failed)
        work.summary.visual_failures.append(f"{image.name}: {error.message}")
        report_failure(work, image.source_path, failed)
    else:
        page_vectors.write(work.catalog, [_blobs(image.page_id, seen)])


def _fail(work: Work, error: CtxError) -> None:
    work.visual = ""
    work.summary.visual_error = error.message
    work.summary.visual_hint = error.hint
    page_vectors.set_problem(work.catalog, error.message)
    work.observer.on_note(f"the visual side is left as it is: {error.message}; the text side goes on")


def _kind(name: str) -> str:
    """The name without what may change unseen: the text encoder that `regions` shares."""
    return REGIONS if visual_kind(name) == "regions" else name


def _line_vectors(catalog: Catalog, page_ids: Sequence[int], encoder: TextEncoder) -> Iterator[PageBlobs]:
    for page_id in page_ids:
        lines = page_vectors.lines_of(catalog, page_id)
        packed = pack(encoder.embed([fitting(line.text, encoder) for line in lines])) if lines else b""
        yield PageBlobs(page_id, b"", b"", b"", packed)  # the lines have their boxes themselves


def _blobs(page_id: int, page: PageVectors) -> PageBlobs:
    first = first_stage(page.vectors).astype("<f2").tobytes()
    return PageBlobs(page_id, first, pack_boxes(page.boxes), pack(page.vectors, bits=SKETCH), pack(page.vectors))
