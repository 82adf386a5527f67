"""The one door to PyMuPDF: opening, its errors, keeping its messages off the terminal, and pages as pixels."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymupdf as _pymupdf

from ingest.faults import is_ours
from research.boxes import WHOLE_PAGE, Box, placed
from research.errors import DocumentError

if TYPE_CHECKING:
    from PIL import Image

pymupdf: Any = _pymupdf  # it carries no types

# What PyMuPDF raises on bad input: its C++ errors, its own RuntimeErrors, and slips of its Python layer.
_MUPDF_ERRORS: tuple[type[Exception], ...] = (
    pymupdf.mupdf.FzErrorBase,
    RuntimeError,
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    AttributeError,
    AssertionError,
    RecursionError,
    OverflowError,
    ZeroDivisionError,
)

# Without TEXT_PRESERVE_LIGATURES ligatures come apart; without TEXT_CID_FOR_UNKNOWN_UNICODE
# glyphs that map to nothing show as U+FFFD, and can be noticed.
TEXT_FLAGS: int = pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_MEDIABOX_CLIP

_HEADER_BYTES = 8192  # readers in the field accept junk before %PDF; none looks further than this


class MupdfError(Exception):
    """PyMuPDF could not read something: the file's fault, and no mistake of ours."""


@contextmanager
def mupdf_errors() -> Iterator[None]:
    """Stands around calls of PyMuPDF and nothing else: what it raises on bad input comes out as `MupdfError`.

    What was raised in our own code (a misspelt attribute, a page that is None) goes through as it is.
    """
    try:
        yield
    except _MUPDF_ERRORS as error:
        if is_ours(error):
            raise
        raise MupdfError(str(error)) from error


class _NullStream(io.TextIOBase):
    """Takes MuPDF's messages and drops them."""

    def write(self, text: str, /) -> int:
        return len(text)


def suppress_messages() -> None:
    """Keep every message of MuPDF and PyMuPDF away from stdout and stderr."""
    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    pymupdf.no_recommend_layout()
    pymupdf.set_messages(stream=_NullStream())


def open_document(path: Path) -> Any:
    """An open, readable PyMuPDF document, or a `DocumentError` that says why not."""
    _check_header(path)
    suppress_messages()
    try:
        with mupdf_errors():
            document = _open(path)
    except (OSError, pymupdf.FileNotFoundError) as error:
        raise DocumentError("the file cannot be read", code="unreadable") from error
    except MupdfError as error:
        raise DocumentError("the PDF is damaged beyond repair", code="damaged") from error
    try:
        with mupdf_errors():
            _check_document(document)
    except MupdfError as error:
        document.close()
        raise DocumentError("the PDF is damaged beyond repair", code="damaged") from error
    except BaseException:
        document.close()
        raise
    return document


def load_page(document: Any, number: int) -> Any:
    """PyMuPDF's own page, 1-based. Raises `MupdfError`."""
    with mupdf_errors():
        return document[number - 1]


def _open(path: Path) -> Any:
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        # MuPDF takes names as UTF-8 only; such a file is handed over as bytes.
        return pymupdf.open(stream=path.read_bytes(), filetype="pdf")
    return pymupdf.open(path, filetype="pdf")


def _check_header(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER_BYTES)
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise DocumentError(f"the file cannot be read: {reason}", code="unreadable") from error
    if not head:
        raise DocumentError("the file is empty", code="empty")
    if b"%PDF" not in head:
        raise DocumentError("the file is not a PDF", code="not_a_pdf")


def _check_document(document: Any) -> None:
    if not document.is_pdf:
        raise DocumentError("the file is not a PDF", code="not_a_pdf")
    # A file locked for its owner only opens with the empty user password.
    if document.needs_pass and not document.authenticate(""):
        raise DocumentError("the PDF is encrypted and needs a password", code="encrypted")
    if document.page_count < 1:
        if document.is_repaired:
            raise DocumentError("the PDF is damaged and none of its pages can be recovered", code="damaged")
        raise DocumentError("the PDF has no pages", code="no_pages")


def finite(value: float) -> float:
    """A coordinate to calculate with: broken files hold NaN and infinity."""
    return value if math.isfinite(value) else 0.0


def raster(page: Any, *, longest: int, box: Box | None = None, grey: bool = False) -> Image.Image | None:
    """A page, or the part of it in `box`, with its longest side `longest` pixels. None if it cannot be drawn.

    Scaled by the longest side, whatever the page measures, so that no page can ask for more memory.
    """
    from PIL import Image

    try:
        with mupdf_errors():
            whole = page.rect
        clip = _clip(whole, box)
        if clip.width <= 0 or clip.height <= 0:
            return None
        scale = longest / max(clip.width, clip.height)
        colours = pymupdf.csGRAY if grey else pymupdf.csRGB
        with mupdf_errors():
            matrix = pymupdf.Matrix(scale, scale)
            # Rounding to whole pixels goes outward, so a sliver still gets one.
            pixels = page.get_pixmap(matrix=matrix, clip=clip, colorspace=colours, alpha=False)
            samples = bytes(pixels.samples)
    except MupdfError:
        return None
    return Image.frombytes("L" if grey else "RGB", (pixels.width, pixels.height), samples)


def _clip(whole: Any, box: Box | None) -> Any:
    left, top, wide, tall = (finite(v) for v in (whole.x0, whole.y0, whole.width, whole.height))
    return pymupdf.Rect(placed(box or WHOLE_PAGE, (left, top, left + wide, top + tall)))
