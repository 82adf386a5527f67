"""The one door to PyMuPDF: opening, its errors, keeping its messages off the terminal, a page's lines and pixels."""

from __future__ import annotations

import io
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymupdf as _pymupdf

from ingest.jobs import is_ours
from ingest.pdf.lines import Line, RawPage, clean_code, clean_text
from research.errors import DocumentError
from research.records import WHOLE_PAGE, Box, placed

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

_UTF16 = re.compile(r"<FEFF((?:[0-9A-Fa-f]{4})+)>")  # a page's label as it stands in the file
_HEADER_BYTES = 8192  # readers in the field accept junk before %PDF; none looks further than this


class MupdfError(Exception):
    """PyMuPDF could not read something: the file's fault, and no mistake of ours."""


@contextmanager
def mupdf_errors() -> Iterator[None]:
    """Stand around calls of PyMuPDF and nothing else: what it raises on bad input comes out as `MupdfError`.

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


def _suppress_messages() -> None:
    """Keep every message of MuPDF and PyMuPDF away from stdout and stderr."""
    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    pymupdf.no_recommend_layout()
    pymupdf.set_messages(stream=_NullStream())


def open_document(path: Path) -> Any:
    """Open a document with PyMuPDF, or raise a `DocumentError` that says why not."""
    _check_header(path)
    _suppress_messages()
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
    """Load PyMuPDF's own page, 1-based. Raises `MupdfError`."""
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
    """Make a coordinate one to calculate with: broken files hold NaN and infinity."""
    return value if math.isfinite(value) else 0.0


def raster(page: Any, *, longest: int, box: Box | None = None, grey: bool = False) -> Image.Image | None:
    """Draw a page, or the part of it in `box`, with its longest side `longest` pixels. None if it cannot be drawn.

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


_BOLD_NAMES = ("bold", "black", "heavy", "demi")
_MONO_NAMES = ("courier", "mono", "consolas", "menlo", "inconsolata", "typewriter", "cmtt")
# A page with more is no page a person reads, and would be embedded for an hour; its text is kept up to here.
MAX_CHARACTERS = 100_000
_MAX_LINES = 50_000

Span = dict[str, Any]

_MAX_PICTURES = 64
_MAX_PATHS = 4_000  # beyond this a page is a drawing, not a table
_MAX_OPERATORS = 20_000  # beyond this the page is not run on

_mupdf: Any = pymupdf.mupdf


def extract_page(page: Any, number: int) -> RawPage:
    """Read one page. Raises `MupdfError`."""
    with mupdf_errors():
        rect = page.rect
        turn = page.rotation_matrix if page.rotation else None
        text = page.get_textpage(flags=TEXT_FLAGS).extractDICT()
    width, height = finite(rect.width), finite(rect.height)
    lines = _lines(text["blocks"], turn)
    pictures, ruled, painted = find_drawings(page, width, height)
    return RawPage(
        number=number,
        width=width,
        height=height,
        label=_label(page),
        rotated=turn is not None,
        lines=tuple(lines),
        pictures=pictures,
        ruled=ruled,
        painted=painted,
    )


def is_full(page: RawPage) -> bool:
    """Whether text of the page may have been left out."""
    return len(page.lines) >= _MAX_LINES or sum(len(line.text) for line in page.lines) >= MAX_CHARACTERS


def _label(page: Any) -> str:
    try:
        with mupdf_errors():
            label = page.get_label()
    except MupdfError:
        return ""  # a broken /PageLabels tree costs the label, not the page
    text = _UTF16.sub(lambda found: bytes.fromhex(found[1]).decode("utf-16-be", "replace"), str(label or ""))
    return clean_text(text)[:32]


def _lines(blocks: Iterable[dict[str, Any]], turn: Any) -> list[Line]:
    lines: list[Line] = []
    seen: set[tuple[int, int, str]] = set()
    room = MAX_CHARACTERS
    for number, block in enumerate(blocks):
        for raw in block.get("lines", ()):
            line = _line(raw, number, turn)
            if line is None:
                continue
            # Shadows and poor man's bold draw the same words twice in the same place.
            key = (round(line.x0 / 2), round(line.y0 / 2), line.text)
            if key in seen and len(line.text) > 1:
                continue
            seen.add(key)
            lines.append(line if len(line.text) <= room else line._replace(text=line.text[:room]))
            room -= len(line.text)
            if room <= 0 or len(lines) >= _MAX_LINES:
                return lines
    return lines


def _line(raw: dict[str, Any], block: int, turn: Any) -> Line | None:
    spans: list[Span] = raw["spans"]
    joined = "".join(span["text"] for span in spans)
    if not joined or joined.isspace():
        return None
    size, bold, mono = _font(spans)
    text = clean_code(joined) if mono else clean_text(joined)
    if not text.strip():
        return None
    box, direction = raw["bbox"], raw["dir"]
    if turn is not None:
        box = tuple(pymupdf.Rect(box) * turn)
        direction = (direction[0] * turn.a + direction[1] * turn.c, direction[0] * turn.b + direction[1] * turn.d)
    x0, y0, x1, y1 = map(finite, box)
    upright = raw["wmode"] == 0 and abs(direction[1]) < 0.1 and direction[0] > 0
    return Line(text, x0, y0, x1, y1, size, bold, mono, block, upright)


def _font(spans: list[Span]) -> tuple[float, bool, bool]:
    """Size, bold and monospace of a line: what most of its characters have."""
    if len(spans) == 1:
        span = spans[0]
        return round(finite(span["size"]), 1), _is_bold(span), _is_mono(span)
    sizes: Counter[float] = Counter()
    total = bold = mono = 0
    for span in spans:
        weight = len(span["text"].strip())
        total += weight
        sizes[round(finite(span["size"]), 1)] += weight
        bold += weight * _is_bold(span)
        mono += weight * _is_mono(span)
    return sizes.most_common(1)[0][0], bold >= 0.8 * total, mono >= 0.8 * total


def _is_bold(span: Span) -> bool:
    return bool(span["flags"] & pymupdf.TEXT_FONT_BOLD) or _named(span["font"])[0]


def _is_mono(span: Span) -> bool:
    return bool(span["flags"] & pymupdf.TEXT_FONT_MONOSPACED) or _named(span["font"])[1]


@lru_cache(maxsize=1024)
def _named(font: str) -> tuple[bool, bool]:
    """What a font's name says of it (bold, monospace) where its flags are silent."""
    name = font.lower().replace("monotype", "")
    return any(word in name for word in _BOLD_NAMES), any(word in name for word in _MONO_NAMES)


class _DrawingDevice(_mupdf.FzDevice2):  # type: ignore[misc]  # an untyped base
    """Counts what is painted, and stops the page's run when it has seen enough.

    PyMuPDF's `get_bboxlog` tells the same, but also of every piece of text, and keeps it all: slower, and without bound
    on a page of millions of strokes.
    """

    def __init__(self, cookie: Any) -> None:
        super().__init__()
        self.use_virtual_fill_path()
        self.use_virtual_stroke_path()
        self.use_virtual_fill_image()
        self.use_virtual_fill_image_mask()
        self.cookie = cookie
        self.across = self.upright = self.framed = self.paths = self.operators = 0
        self.images: dict[Box, None] = {}
        self.fault: Exception | None = None  # of our own code: MuPDF would make an error of its own of it

    def fill_path(self, _ctx: Any, path: Any, _even_odd: Any, ctm: Any, *_: Any) -> None:
        self._path(_mupdf.ll_fz_bound_path(path, None, ctm), stroked=False)

    def stroke_path(self, _ctx: Any, path: Any, stroke: Any, ctm: Any, *_: Any) -> None:
        self._path(_mupdf.ll_fz_bound_path(path, stroke, ctm), stroked=True)

    def fill_image(self, _ctx: Any, _image: Any, ctm: Any, *_: Any) -> None:
        self._image(ctm)

    def fill_image_mask(self, _ctx: Any, _image: Any, ctm: Any, *_: Any) -> None:
        self._image(ctm)

    def _path(self, box: Any, *, stroked: bool) -> None:
        try:
            self._count()
            self.paths += 1
            wide, tall = box.x1 - box.x0, box.y1 - box.y0
            self.across += tall <= 3 and wide > 20
            self.upright += wide <= 3 and tall > 8
            # A frame may be one cell, or a whole grid drawn as one path.
            self.framed += stroked and wide > 12 and tall > 6
        except Exception as error:  # noqa: BLE001  raised again after the run
            self._stop(error)

    def _image(self, ctm: Any) -> None:
        try:
            self._count()
            # The image fills the unit square; these are its corners on the page.
            xs = (ctm.e, ctm.e + ctm.a, ctm.e + ctm.c, ctm.e + ctm.a + ctm.c)
            ys = (ctm.f, ctm.f + ctm.b, ctm.f + ctm.d, ctm.f + ctm.b + ctm.d)
            if len(self.images) < _MAX_OPERATORS:
                self.images[(min(xs), min(ys), max(xs), max(ys))] = None
        except Exception as error:  # noqa: BLE001  raised again after the run
            self._stop(error)

    def _count(self) -> None:
        self.operators += 1
        if self.operators >= _MAX_OPERATORS:
            self._stop()

    def _stop(self, fault: Exception | None = None) -> None:
        self.fault = self.fault or fault
        self.cookie.m_internal.abort = 1


def find_drawings(page: Any, width: float, height: float) -> tuple[tuple[Box, ...], bool, bool]:
    """Find the pictures worth counting, as displayed; whether enough rules are drawn for a table to be likely; and
    whether anything at all is drawn."""
    cookie = _mupdf.FzCookie()
    device = _DrawingDevice(cookie)
    try:
        with mupdf_errors():
            _mupdf.fz_run_page(page.this, device, _mupdf.FzMatrix(), cookie)
            _mupdf.fz_close_device(device)
    except MupdfError:
        return (), False, True  # the text was read; pictures are not worth the page
    if device.fault is not None:
        raise device.fault
    pictures = [box for box in device.images if _is_picture(box, width, height)]
    ruled = device.framed > 0 or (device.across >= 2 and device.upright >= 1)
    return tuple(pictures[:_MAX_PICTURES]), ruled and device.paths <= _MAX_PATHS, device.operators > 0


def _is_picture(box: Box, width: float, height: float) -> bool:
    wide = min(finite(box[2]), width) - max(finite(box[0]), 0.0)
    tall = min(finite(box[3]), height) - max(finite(box[1]), 0.0)
    if wide <= 0 or tall <= 0:
        return False
    return (wide > 64 and tall > 64) or wide * tall >= 0.03 * width * height
