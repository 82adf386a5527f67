"""What an OCR engine is, and what the engines share: their lines, the image they look at, its right way up, its order.

An image comes to them grey and of bounded size. A page that was scanned lying on its side or head is noticed by how
badly it reads, turned, and read again. Lines are put into the form of the PDF reader's, so that one set of rules finds
columns, rows and paragraphs in both.

RapidOCR stands here too: PP-OCR models in ONNX Runtime, weights out of its own wheel, for machines without tesseract.
"""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from PIL import Image

from ingest.pdf.layout import reading_order
from ingest.pdf.lines import Line, alnum_count, clean_text
from ingest.pdf.paragraphs import Row, make_rows
from research.errors import CtxError, OcrError
from research.lazy import switch_off
from research.records import Box, fractions, placed, rounded, scaled, turned_back

MAX_SIDE = 4096
_MIN_SIDE = 8  # pixels; nothing smaller holds a letter
_BLANK_SPREAD = 24  # grey levels between the paper and the darkest or lightest speck of an empty page
_MIN_LINES = 5  # fewer tell nothing
_TRANSPOSE = {
    90: Image.Transpose.ROTATE_270,  # Pillow turns the other way round
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_90,
}
_BODY = 10.0  # points given to the usual height of a line: the reader's rules are made for such pages
_NEAR_BODY = 1.3  # ink tells a line's size only roughly; raised notes and rules change it
_STEP = 1.25  # between larger and smaller sizes


@dataclass(frozen=True, slots=True)
class OcrLine:
    """A run of words on one baseline without a wide gap in it; a table's row comes as several."""

    text: str
    box: Box  # fractions of the image, or of the page once a page was read
    confidence: float  # 0..1
    slope: float = 0.0  # pixels down per pixel to the right, as the scan is skewed
    turn: int = 0  # degrees clockwise by which the image had to be turned to be read; the box is as it was before


Lines = list[OcrLine]


class OcrEngine(Protocol):
    """Reads images. One engine serves one thread; `name` tells program and version ("tesseract 5.3.0")."""

    @property
    def name(self) -> str: ...

    @property
    def page_side(self) -> int:
        """The longest side, in pixels, at which a page should be rendered for it."""
        ...

    def read(self, image: Image.Image) -> list[OcrLine]:
        """The lines of an image in reading order; none where nothing can be read. Raises `OcrError`."""
        ...


def grey(image: Image.Image, longest: int = MAX_SIDE) -> Image.Image:
    """Make an image grey, transparent parts white, no side longer than `longest`."""
    if image.has_transparency_data:
        shown = image.convert("RGBA")
        image = Image.new("RGBA", shown.size, "white")
        image.alpha_composite(shown)
    flat = image.convert("L")
    if max(flat.size) > longest:
        flat.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    return flat


def is_readable(image: Image.Image) -> bool:
    """Whether there can be letters: it is large enough, and not all of one shade."""
    if min(image.size) < _MIN_SIDE:
        return False
    low, high = image.convert("L").getextrema()
    assert isinstance(low, (int, float))
    assert isinstance(high, (int, float))
    return high - low >= _BLANK_SPREAD


def read_upright(
    image: Image.Image,
    read: Callable[[Image.Image], Lines],
    turn_of: Callable[[Image.Image, Lines], int],
    *,
    poor: float,
) -> Lines:
    """Read an image; where it reads badly and another turn reads better, take that.

    `poor` is the mean confidence that makes one ask, `turn_of` then tells the degrees, clockwise, or 0.
    """
    first = read(image)
    on_side = _tall_share(first, image.size) >= 0.5
    if len(first) < _MIN_LINES or (mean_confidence(first) >= poor and not on_side):
        return first
    turn = turn_of(image, first)
    if turn not in _TRANSPOSE:
        return first
    second = read(image.transpose(_TRANSPOSE[turn]))
    # Lines on their side may have been read well already; upright they also fall into rows and paragraphs.
    if _score(second) <= (0.9 if on_side else 1.2) * _score(first):
        return first
    return [replace(line, box=turned_back(line.box, turn), turn=turn) for line in second]


def _tall_share(lines: Lines, size: tuple[int, int]) -> float:
    characters = sum(len(line.text) for line in lines)
    return sum(len(line.text) for line in lines if _is_tall(line, size)) / max(characters, 1)


def _score(lines: Lines) -> float:
    return sum(line.confidence * alnum_count(line.text) for line in lines)


def in_reading_order(lines: list[OcrLine], size: tuple[int, int]) -> list[OcrLine]:
    """Order the lines of an image of `size` pixels as a person reads them."""
    return [lines[piece.block] for region in regions(lines, size) for row in region for piece in row.lines]


def regions(lines: list[OcrLine], size: tuple[int, int]) -> list[list[Row]]:
    """Find columns and other parts of the page in reading order, each a list of rows from top to bottom."""
    if lines and lines[0].turn:
        turn = lines[0].turn
        lines = [replace(line, box=turned_back(line.box, 360 - turn)) for line in lines]
        size = size if turn == 180 else (size[1], size[0])
    return [make_rows(region) for region in reading_order(_levelled(lines, size))]


def _levelled(lines: list[OcrLine], size: tuple[int, int]) -> list[Line]:
    """In points of an imagined page of ordinary type, with the skew of the scan taken out. `block` is the index."""
    wide, tall = size
    if not lines or not wide or not tall:
        return []
    slope = _skew(lines, wide)
    flat = [_flat(line, slope, wide, tall) for line in lines]
    body = _weighted_median([(box[3] - box[1], len(line.text)) for box, line in zip(flat, lines, strict=True)])
    scale = _BODY / max(body, 1e-6)
    levelled = []
    for index, (line, box) in enumerate(zip(lines, flat, strict=True)):
        x0, y0, x1, y1 = scaled(box, scale, scale)
        upright = y1 - y0 < 1.5 * (x1 - x0) or len(line.text) < 3
        height = y1 - y0 if upright else x1 - x0
        levelled.append(Line(line.text, x0, y0, x1, y1, _snapped(height), False, False, index, upright))
    return levelled


def _flat(line: OcrLine, slope: float, wide: int, tall: int) -> Box:
    x0, y0, x1, y1 = scaled(line.box, wide, tall)
    shift = slope * ((x0 + x1) / 2 - wide / 2)
    # A skewed line's box is higher than the line by what it climbs.
    climb = min(abs(slope) * (x1 - x0), 0.5 * (y1 - y0)) / 2
    return (x0, y0 - shift + climb, x1, y1 - shift - climb)


def _skew(lines: list[OcrLine], wide: int) -> float:
    """The slope of the long lines, or 0 where the page stands straight."""
    slopes = [(line.slope, round((line.box[2] - line.box[0]) * wide)) for line in lines if line.slope]
    slope = _weighted_median(slopes) if slopes else 0.0
    return slope if abs(slope) > 0.002 else 0.0


def _snapped(height: float) -> float:
    """The nearest of a few letter sizes: the body's for all that is near it, then coarse steps."""
    if _BODY / _NEAR_BODY < height < _BODY * _NEAR_BODY or height <= 0:
        return _BODY
    return round(_BODY * _STEP ** round(math.log(height / _BODY, _STEP)), 1)


def _weighted_median(values: list[tuple[float, int]]) -> float:
    ordered = sorted(values)
    half, seen = sum(weight for _, weight in ordered) / 2, 0
    for value, weight in ordered:
        seen += weight
        if seen >= half:
            return value
    return ordered[-1][0]


def mean_confidence(lines: list[OcrLine]) -> float:
    """Weigh confidence by characters; 1 where there are none."""
    characters = sum(len(line.text) for line in lines)
    return sum(line.confidence * len(line.text) for line in lines) / characters if characters else 1.0


def _is_tall(line: OcrLine, size: tuple[int, int]) -> bool:
    """Whether a line of some letters runs up or down the image rather than across."""
    wide, tall = (line.box[2] - line.box[0]) * size[0], (line.box[3] - line.box[1]) * size[1]
    return len(line.text) >= 3 and tall > 1.5 * wide


def lines_on_page(lines: list[OcrLine], box: Box) -> list[OcrLine]:
    """Place the lines of a picture that stands in `box` on its page."""
    return [replace(line, box=rounded(placed(line.box, box))) for line in lines]


_RAPID = "'rapidocr>=3.10,<3.11'"

_RAPID_SIDE = 1650  # measured: the recogniser wants these pixels, the detector does with fewer
_DETECTOR_SIDE = 1280
_MIN_SCORE = 0.5
_RAPID_POOR = 0.82  # it is sure of itself even where it errs: 0.7 upside down, 0.95 and more on any other page
_PADDING = 0.12  # of a box's height that the detector adds on every side


class RapidEngine:
    """Reads with rapidocr. Its models are loaded at the first image. Raises `CtxError` where it is missing."""

    def __init__(self) -> None:
        spec = find_spec("rapidocr")
        if spec is None or spec.origin is None:
            raise CtxError("rapidocr is not installed", hint=f"install it with: pip install {_RAPID}")
        self.name = f"rapidocr {version('rapidocr')}"
        self.page_side = _RAPID_SIDE
        self._models = Path(spec.origin).parent / "models"
        self._engine: Any = None

    def read(self, image: Image.Image) -> list[OcrLine]:
        flat = grey(image, _RAPID_SIDE)
        if not is_readable(flat):
            return []
        return in_reading_order(read_upright(flat, self._read, _rapid_turn, poor=_RAPID_POOR), flat.size)

    def _read(self, image: Image.Image) -> list[OcrLine]:
        import numpy as np

        engine = self._load()
        pixels = np.asarray(image.convert("RGB"))
        try:
            found = engine(pixels)
        except MemoryError:
            raise
        except Exception as error:  # OpenCV and ONNX Runtime raise all kinds
            raise OcrError(f"rapidocr failed: {type(error).__name__}") from error
        if found.boxes is None or found.txts is None:
            return []
        quads = zip(found.boxes, found.txts, found.scores, strict=True)
        lines = [_rapid_line(quad.tolist(), text, float(score), image.size) for quad, text, score in quads]
        return [line for line in lines if line]

    def _load(self) -> Any:
        if self._engine is None:
            # It brings a handler of its own that writes to stderr.
            logging.getLogger("RapidOCR").addHandler(logging.NullHandler())
            switch_off()  # it imports ONNX Runtime by itself
            with _no_socket_probe():
                from rapidocr import RapidOCR

            self._engine = RapidOCR(
                params={
                    "Global.log_level": "critical",
                    "Global.use_cls": False,  # it turns lines upside down that were not
                    "Global.text_score": _MIN_SCORE,
                    # Named files are never downloaded.
                    "Det.model_path": self._model("det"),
                    "Rec.model_path": self._model("rec"),
                    "Det.limit_type": "max",
                    "Det.limit_side_len": _DETECTOR_SIDE,
                    "Rec.rec_batch_num": 1,  # lines of one batch are padded to the longest
                    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
                    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
                    "EngineConfig.onnxruntime.enable_cpu_mem_arena": True,  # or a fifth of the time is system time
                }
            )
        return self._engine

    def _model(self, task: str) -> str:
        files = sorted(self._models.glob(f"*_{task}_*.onnx"))
        if not files:
            raise CtxError(
                "rapidocr's models are missing", hint=f"reinstall it with: pip install --force-reinstall {_RAPID}"
            )
        return str(files[-1])


@contextmanager
def _no_socket_probe() -> Iterator[None]:
    """It imports urllib3 for downloads that nobody asks it for, and that opens a socket at once to see whether this
    machine speaks IPv6, unless Python says that it does not."""
    before = socket.has_ipv6
    socket.has_ipv6 = False
    try:
        yield
    finally:
        socket.has_ipv6 = before


def _rapid_turn(image: Image.Image, lines: list[OcrLine]) -> int:
    # It turns tall lines a quarter to the left before it reads them: read well, the page wants just that.
    if sum(_is_tall(line, image.size) for line in lines) * 2 <= len(lines):
        return 180
    return 270 if mean_confidence(lines) >= _RAPID_POOR else 90


def _rapid_line(quad: list[list[float]], raw: str, score: float, size: tuple[int, int]) -> OcrLine | None:
    text = clean_text(raw)
    if not text or (alnum_count(text) <= 1 and score < 0.7):
        return None
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = quad  # from the top left, clockwise
    across = bx - ax
    slope = (by - ay + cy - dy) / (bx - ax + cx - dx) if across > 0 and bx - ax + cx - dx > 0 else 0.0
    if abs(slope) > 0.15:
        slope = 0.0
    x0, x1, y0, y1 = min(ax, dx), max(bx, cx), min(ay, by), max(cy, dy)
    pad = _PADDING * min(y1 - y0, x1 - x0)
    box = fractions((x0 + pad, y0 + pad, x1 - pad, y1 - pad), *size)
    return OcrLine(text, box, round(min(1.0, max(0.0, score)), 3), slope)
